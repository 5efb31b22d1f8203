//! Polls a profile that may still be being written.

use crate::selection::Selection;
use nodewise_input::shell_word;
use nodewise_store::Reader;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// A recorder leaves what it knows at a fiftieth of its time: who has not for so long is gone.
const GONE: Duration = Duration::from_secs(120);

/// Between two looks at a profile.
pub const PAUSE: Duration = Duration::from_millis(500);
/// Reading takes a quarter of the time at most.
const SPARE: u32 = 3;

/// How long not to look again, after a look that began then.
#[must_use]
pub fn pause_after(began: Instant) -> Duration {
    PAUSE.max(began.elapsed() * SPARE)
}

/// A profile's folder, and how it is read.
pub struct Followed<T> {
    folder: PathBuf,
    read: Box<dyn Fn() -> anyhow::Result<T> + Send>,
    /// The manifest that was read last.
    seen: Option<Stamp>,
    /// It has been read once.
    known: bool,
}

/// A manifest is replaced whole.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    bytes: u64,
    modified: SystemTime,
}

/// What a look at it finds.
pub enum Look<T> {
    /// What was there before.
    Same,
    /// Nothing to show yet: why.
    Waits(String),
    /// It changed; this was read.
    New(T),
    /// It cannot be read: why.
    Failed(anyhow::Error),
}

impl<T> Followed<T> {
    /// The folder that the selection means, or one that is becoming a profile. `read` is given it.
    ///
    /// # Errors
    /// There is neither.
    pub fn new(
        selection: &Selection,
        read: impl Fn(&Selection) -> anyhow::Result<T> + Send + 'static,
    ) -> anyhow::Result<Self> {
        let named = selection.profile.as_deref().unwrap_or(Path::new("."));
        let folder = match named.join("raw").is_dir() {
            true => named.to_owned(),
            false => nodewise_store::latest(named)?,
        };
        Ok(Self::beginning(selection, folder, read))
    }

    /// A folder where a profile will be.
    #[must_use]
    pub fn beginning(
        selection: &Selection,
        folder: PathBuf,
        read: impl Fn(&Selection) -> anyhow::Result<T> + Send + 'static,
    ) -> Self {
        let selection = Selection {
            profile: Some(folder.clone()),
            ..selection.clone()
        };
        Self {
            folder,
            read: Box::new(move || read(&selection)),
            seen: None,
            known: false,
        }
    }

    /// Whether more data is to be expected: the recording is unfinished, and a recorder is at work.
    #[must_use]
    pub fn live(&self) -> bool {
        let fresh = |modified: SystemTime| modified.elapsed().is_ok_and(|age| age < GONE);
        match Reader::ended(&self.folder) {
            Ok(true) => false,
            Ok(false) if self.stamp().is_some_and(|s| fresh(s.modified)) => true,
            _ => self.recorded_last().is_some_and(fresh),
        }
    }

    /// When what the recorder has yet to work up last grew.
    fn recorded_last(&self) -> Option<SystemTime> {
        let raw = self.folder.join("raw");
        let files = std::fs::read_dir(&raw).ok()?.flatten();
        let all = files.map(|file| file.metadata()).chain([raw.metadata()]);
        all.filter_map(|of| of.and_then(|m| m.modified()).ok()).max()
    }

    /// The folder of the profile.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Reads it if it has changed.
    pub fn look(&mut self) -> Look<T> {
        let stamp = self.stamp();
        if stamp.is_none() && !self.known {
            return Look::Waits(self.nothing_yet());
        }
        if stamp == self.seen {
            return Look::Same;
        }
        match (self.read)() {
            Ok(read) => {
                (self.seen, self.known) = (stamp, true);
                Look::New(read)
            }
            // It was replaced under our hands: the next look finds it whole.
            Err(_) if self.stamp() != stamp => Look::Same,
            Err(_) if !self.known && self.live() => {
                self.seen = stamp;
                Look::Waits(self.nothing_yet())
            }
            Err(error) => {
                self.seen = stamp;
                Look::Failed(error)
            }
        }
    }

    /// Who counts by itself leaves nothing else before its end.
    fn nothing_yet(&self) -> String {
        let folder = self.folder.display();
        match self.folder.join("raw").is_dir() {
            true => format!(
                "{folder}: the recording has yet to end; if it was interrupted: nodewise record --recover {}",
                shell_word(folder.to_string())
            ),
            false => format!("{folder}: nothing was recorded yet"),
        }
    }

    fn stamp(&self) -> Option<Stamp> {
        let of = |m: Metadata| {
            Some(Stamp {
                bytes: m.len(),
                modified: m.modified().ok()?,
            })
        };
        std::fs::metadata(self.folder.join("manifest.json"))
            .ok()
            .and_then(of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn a_recording_nobody_is_at_any_more_is_not_live() {
        let folder = std::env::temp_dir().join(format!("nodewise-followed-{}", std::process::id()));
        let raw = folder.join("raw");
        std::fs::create_dir_all(&raw).unwrap();
        std::fs::write(raw.join("counts"), "").unwrap();
        let selection = Selection {
            profile: None,
            machine: "this".into(),
            affinity: "auto".into(),
            page_size: 0,
            other_runs: Vec::new(),
            plain: None,
            plain_cpu: None,
        };
        let followed = Followed::beginning(&selection, folder.clone(), |_| Ok(()));
        let touched = |path: &Path, age| {
            let file = File::open(path).unwrap();
            file.set_modified(SystemTime::now() - age).unwrap();
            followed.live()
        };
        assert!(followed.live());
        assert!(touched(&raw.join("counts"), 2 * GONE));
        assert!(!touched(&raw, 2 * GONE));
        assert!(touched(&raw.join("counts"), GONE / 2));
        std::fs::remove_dir_all(folder).unwrap();
    }
}

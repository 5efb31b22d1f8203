//! Polls a profile that may still be written.

use crate::selection::Selection;
use nodewise_input::shell_word;
use nodewise_store::Reader;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// Age from which an unfinished recording counts as abandoned: nothing was written since. A recorder with few slices, or with
/// checkpoints that take seconds, may write less often, and is followed again once it does.
const ABANDONED_AGE: Duration = Duration::from_secs(120);

/// Pause between two checks of a profile.
pub const PAUSE: Duration = Duration::from_millis(500);
/// Pause after reading, as a multiple of the reading time: reading takes at most a quarter of the time.
const PAUSE_PER_READING_TIME: u32 = 3;

/// The pause after a check that began at `began`.
#[must_use]
pub fn pause_after(began: Instant) -> Duration {
    PAUSE.max(began.elapsed() * PAUSE_PER_READING_TIME)
}

/// The folder of a profile, and the function that reads it.
pub struct Followed<T> {
    folder: PathBuf,
    read: Box<dyn Fn() -> anyhow::Result<T> + Send>,
    /// Stamp of the manifest that was read last.
    read_stamp: Option<Stamp>,
    /// Whether the profile has been read at least once.
    was_read: bool,
}

/// Identifies a version of the manifest, which is always replaced as a whole.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    bytes: u64,
    modified: SystemTime,
}

/// The result of a check.
pub enum Look<T> {
    /// The profile has not changed.
    Same,
    /// There is nothing to show yet; the text says why.
    Waits(String),
    /// The profile has changed; this was read.
    New(T),
    /// The profile cannot be read.
    Failed(anyhow::Error),
}

impl<T> Followed<T> {
    /// Follows the selected profile, or a folder that is going to be one. `read` gets the selection with this folder.
    ///
    /// # Errors
    /// If there is neither.
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

    /// Follows a folder in which a profile will be written.
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
            read_stamp: None,
            was_read: false,
        }
    }

    /// Whether more data is expected: the recording is unfinished, and its recorder is still active.
    #[must_use]
    pub fn live(&self) -> bool {
        let fresh = |modified: SystemTime| modified.elapsed().is_ok_and(|age| age < ABANDONED_AGE);
        match Reader::ended(&self.folder) {
            Ok(true) => false,
            Ok(false) if self.stamp().is_some_and(|s| fresh(s.modified)) => true,
            _ => self.recorded_last().is_some_and(fresh),
        }
    }

    /// The latest modification of raw data that the recorder has not processed yet.
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

    /// Reads the profile if it has changed.
    pub fn look(&mut self) -> Look<T> {
        let stamp = self.stamp();
        if stamp.is_none() && !self.was_read {
            return Look::Waits(self.nothing_yet());
        }
        if stamp == self.read_stamp {
            return Look::Same;
        }
        match (self.read)() {
            Ok(read) => {
                (self.read_stamp, self.was_read) = (stamp, true);
                Look::New(read)
            }
            // The profile was replaced while it was read; the next check reads the new one.
            Err(_) if self.stamp() != stamp => Look::Same,
            Err(_) if !self.was_read && self.live() => {
                self.read_stamp = stamp;
                Look::Waits(self.nothing_yet())
            }
            Err(error) => {
                self.read_stamp = stamp;
                Look::Failed(error)
            }
        }
    }

    /// Why there is nothing to read yet: before its first slice a recording has only raw data.
    fn nothing_yet(&self) -> String {
        let folder = self.folder.display();
        match self.folder.join("raw").is_dir() {
            true => format!(
                "{folder}: the recording has no slice yet; if it was interrupted: nodewise record --recover {}",
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
            core_factor: None,
        };
        let followed = Followed::beginning(&selection, folder.clone(), |_| Ok(()));
        let touched = |path: &Path, age| {
            let file = File::open(path).unwrap();
            file.set_modified(SystemTime::now() - age).unwrap();
            followed.live()
        };
        assert!(followed.live());
        assert!(touched(&raw.join("counts"), 2 * ABANDONED_AGE));
        assert!(!touched(&raw, 2 * ABANDONED_AGE));
        assert!(touched(&raw.join("counts"), ABANDONED_AGE / 2));
        std::fs::remove_dir_all(folder).unwrap();
    }
}

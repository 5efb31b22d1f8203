//! Makes a profile of what an interrupted recording left behind.

use crate::alive;
use crate::control::Control;
use crate::damage::Damage;
use crate::error::{Error, ErrorKind};
use crate::recording::Recording;
use nodewise_linux::clock;
use nodewise_profile::{
    AccessSource, Coverage, Meta, Migration, Object, ObjectId, PageNumber, Profile, SliceId,
};
use nodewise_store::{Reader, Writer};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Result of recovering an interrupted recording.
pub struct Recovered {
    /// The profile without its accesses.
    pub profile: Profile,
    /// Which raw files could not be read; they are kept then.
    pub unread: Option<String>,
}

/// Reads `folder/raw` into a profile of one slice, which replaces the content of `folder`. The folder is not changed
/// until that profile is complete, and raw files that could not be read are kept. A recording of samples is in the
/// profile up to the last checkpoint already, and only the logs in `raw` are removed; before the first checkpoint there
/// is nothing to recover.
///
/// # Errors
/// There is nothing to recover, the recording is still running, or the profile cannot be written.
pub fn recover(folder: &Path) -> Result<Recovered, Error> {
    let raw = folder.join("raw");
    let kept = Reader::open(folder).map(Reader::into_profile);
    let control = Control::open(&raw).ok();
    let mut writers = alive::writers(&raw);
    if Reader::meta(folder).is_ok_and(|meta| meta.observer.is_sampled()) {
        let profile = kept?;
        // What a program logs after its recorder has ended is in no profile.
        writers.retain(|pid| control.as_ref().is_some_and(|c| c.recorder() == *pid));
        refuse_running(folder, &writers)?;
        read_whole(folder)?;
        if profile.meta.truncated.is_some() || raw.is_dir() {
            let _ = std::fs::remove_dir_all(&raw);
            return Ok(Recovered {
                profile,
                unread: None,
            });
        }
        return Err(nothing(folder));
    }
    if !raw.is_dir() {
        return Err(nothing(folder));
    }
    refuse_running(folder, &writers)?;
    let fresh = beside(folder, "recovered");
    let Profile { meta, migrations, .. } = kept.unwrap_or_default();
    let writer = Writer::create(&fresh, &meta, true)?;
    let mut recording = Recording::new(&raw, writer, None);
    // The coverage of the last checkpoint is not that of the whole.
    recording.profile_mut().meta = Meta {
        coverage: Coverage::default(),
        ..meta.clone()
    };
    let wall = last_written(&raw).saturating_sub(meta.started_at.saturating_mul(1_000_000_000));
    recording.cut(wall)?;
    recording.profile_mut().meta.wall_ns = wall;
    let damage = Damage::of(&raw, control.as_ref());
    let unread = damage.sentence().or_else(|| recording.unread());
    let stopped = control.and_then(|c| c.truncated());
    let why: Vec<String> = stopped.into_iter().chain(unread.clone()).collect();
    recording.profile_mut().meta.truncated = Some(match why.is_empty() {
        true => "the recorder was interrupted".to_owned(),
        false => why.join("; "),
    });
    recording.profile_mut().migrations = in_one_slice(migrations, recording.profile_mut());
    let profile = recording.finish()?;
    // Damaged raw files may lead to a profile that no reader accepts; the raw files are then kept.
    if let Err(error) = read_whole(&fresh) {
        let _ = std::fs::remove_dir_all(&fresh);
        let message = format!(
            "{}: what was left makes no readable profile ({error}); it stays as it is",
            folder.display()
        );
        return Err(Error::new(ErrorKind::Io, message));
    }
    replace(folder, &fresh, unread.is_some()).map_err(|e| Error::raw(folder, &e))?;
    Ok(Recovered { profile, unread })
}

/// Replaces the interrupted recording by the recovered profile; keeps the raw files if asked to.
fn replace(folder: &Path, fresh: &Path, keep_raw: bool) -> std::io::Result<()> {
    let old = beside(folder, "interrupted");
    std::fs::rename(folder, &old)?;
    if keep_raw {
        std::fs::rename(old.join("raw"), fresh.join("raw"))?;
    }
    std::fs::rename(fresh, folder)?;
    std::fs::remove_dir_all(&old)
}

/// Refuses while the program still counts, as its further counts would be lost with the raw files.
fn refuse_running(folder: &Path, writers: &BTreeSet<u32>) -> Result<(), Error> {
    if writers.is_empty() {
        return Ok(());
    }
    let message = format!(
        "{}: the recording goes on, in process {}; recover it when they have ended",
        folder.display(),
        alive::list(writers, "the folders in its raw/ begin with their numbers")
    );
    Err(Error::new(ErrorKind::Io, message))
}

/// Reads a profile completely, checking every row.
fn read_whole(folder: &Path) -> Result<(), nodewise_store::Error> {
    Reader::open(folder)?.visit(&mut |_| ())
}

fn nothing(folder: &Path) -> Error {
    let message = format!("{}: nothing to recover: it has no folder `raw`", folder.display());
    Error::new(ErrorKind::Io, message)
}

/// Migrations of the last checkpoint, converted to the slice and objects of the recovered profile.
fn in_one_slice(migrations: Vec<Migration>, recovered: &Profile) -> Vec<Migration> {
    let owner = |page: PageNumber| {
        let holds = |o: &Object| (o.first_page.0..o.first_page.0 + o.pages).contains(&page.0);
        let index = recovered.objects.iter().position(holds);
        ObjectId::from_index(index.unwrap_or_default())
    };
    let carried = migrations.into_iter().map(|m| Migration {
        slice: SliceId(0),
        object: owner(m.page),
        ..m
    });
    carried.collect()
}

/// Time of the last write of any process, Unix time in nanoseconds; 0 if there was none.
fn last_written(raw: &Path) -> u64 {
    let entries = |p: &Path| {
        std::fs::read_dir(p)
            .into_iter()
            .flatten()
            .flatten()
            .map(|e| e.path())
    };
    let times = entries(raw).flat_map(|image| entries(&image).collect::<Vec<_>>());
    let times = times.filter_map(|file| std::fs::metadata(file).ok()?.modified().ok());
    let newest = times
        .max()
        .and_then(|t| t.duration_since(UNIX_EPOCH).ok())
        .unwrap_or_default();
    clock::nanoseconds(newest)
}

fn beside(folder: &Path, what: &str) -> PathBuf {
    let mut name = folder.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{what}"));
    folder.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_profile::{Meta, Observer, Slice};

    /// A sampled recording that is killed, and has logs.
    fn killed(name: &str, seen: impl FnOnce(&mut Writer, Profile)) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("nodewise-recover-{name}-{}", std::process::id()));
        let meta = Meta {
            observer: Observer::Faults,
            ..Meta::default()
        };
        let mut writer = Writer::create(&folder, &meta, true).unwrap();
        std::fs::create_dir(folder.join("raw")).unwrap();
        let profile = Profile {
            meta,
            ..Profile::default()
        };
        seen(&mut writer, profile);
        folder
    }

    #[test]
    fn what_was_sampled_before_a_kill_stays() {
        let folder = killed("after", |writer, profile| {
            writer.slice(Slice::default(), &[]).unwrap();
            writer.checkpoint(&profile).unwrap();
        });
        assert_eq!(recover(&folder).unwrap().profile.slices.len(), 1);
        assert!(!folder.join("raw").exists());
        assert_eq!(Reader::open(&folder).unwrap().profile().slices.len(), 1);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn of_samples_none_of_which_was_kept_nothing_is_made_and_nothing_goes() {
        let folder = killed("before", |_, _| ());
        let error = recover(&folder).map(|r| r.profile).unwrap_err().to_string();
        assert!(
            error.contains("before its first slice") && !error.contains('\n'),
            "{error}"
        );
        assert!(folder.join("raw").exists() && Reader::open(&folder).is_err());
        std::fs::remove_dir_all(folder).unwrap();
    }
}

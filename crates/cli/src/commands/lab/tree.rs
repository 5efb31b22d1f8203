//! Writes files of the guest to a folder: its sysfs, for `nodewise topo` and tests, and the files that commands made.

use crate::output::say;
use anyhow::{Context, ensure};
use nodewise_report::plural;
use std::path::{Component, Path, PathBuf};

/// Writes files of sysfs, named by their paths below `/sys`, into `folder`; on failure nothing is left.
pub fn capture(folder: &Path, files: &[(String, Vec<u8>)], force: bool) -> anyhow::Result<()> {
    let files = files
        .iter()
        .map(|(name, bytes)| (Path::new("sys").join(name), bytes.as_slice()));
    let count = write(folder, files, force.then_some("sys"))?;
    say!("wrote {}, {} of /sys", folder.display(), plural(count, "file"));
    Ok(())
}

/// Writes files from the guest, named by their paths there, into `folder`: each file or folder that was asked for under
/// its own name.
pub fn write_brought(
    folder: &Path,
    requested: &[PathBuf],
    files: &[(String, Vec<u8>)],
) -> anyhow::Result<()> {
    let named = |path: &str| {
        let of = requested.iter().find(|a| Path::new(path).starts_with(a));
        let above = of.and_then(|a| a.parent()).unwrap_or(Path::new("/"));
        Path::new(path)
            .strip_prefix(above)
            .map_or_else(|_| path.into(), Path::to_owned)
    };
    let files = files.iter().map(|(path, bytes)| (named(path), bytes.as_slice()));
    let count = write(folder, files, None)?;
    say!(
        "wrote {}, {} of the guest",
        folder.display(),
        plural(count, "file")
    );
    Ok(())
}

/// Writes files to a new folder. An existing folder is replaced only if it contains `replaced`.
fn write<'a>(
    folder: &Path,
    files: impl Iterator<Item = (PathBuf, &'a [u8])>,
    replaced: Option<&str>,
) -> anyhow::Result<usize> {
    let partial = partial_path(folder);
    let kept = fill(&partial, files).and_then(|count| {
        replace(&partial, folder, replaced)?;
        Ok(count)
    });
    kept.inspect_err(|_| drop(std::fs::remove_dir_all(&partial)))
}

/// An unused path for the incomplete folder.
fn partial_path(folder: &Path) -> PathBuf {
    let mut name = folder.as_os_str().to_owned();
    name.push(format!(".{}.partial", std::process::id()));
    name.into()
}

fn fill<'a>(folder: &Path, files: impl Iterator<Item = (PathBuf, &'a [u8])>) -> anyhow::Result<usize> {
    let make = |folder: &Path| std::fs::create_dir_all(folder);
    make(folder).with_context(|| format!("cannot write {}", folder.display()))?;
    let mut count = 0;
    for (below, bytes) in files {
        // The guest ran a program of unknown origin as root, so the paths it reports must not leave the folder.
        ensure!(
            below.components().all(|c| matches!(c, Component::Normal(_))),
            "the guest sent a file called {below:?}"
        );
        let path = folder.join(below);
        let parent = path.parent().unwrap_or(folder);
        make(parent)
            .and_then(|()| std::fs::write(&path, bytes))
            .with_context(|| format!("cannot write {}", path.display()))?;
        count += 1;
    }
    Ok(count)
}

fn replace(partial: &Path, folder: &Path, replaced: Option<&str>) -> anyhow::Result<()> {
    if replaced.is_some_and(|r| folder.join(r).is_dir()) {
        std::fs::remove_dir_all(folder).with_context(|| format!("cannot replace {}", folder.display()))?;
    }
    std::fs::rename(partial, folder).with_context(|| format!("cannot write {}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_is_whole_or_not_there() {
        let root = std::env::temp_dir().join(format!("nodewise-capture-{}", std::process::id()));
        std::fs::create_dir_all(&root).unwrap();
        let file = |name: &str| (name.to_owned(), b"0-1\n".to_vec());
        let folder = root.join("captured");

        let escaping = [file("devices/system/node/online"), file("../../etc/passwd")];
        assert!(capture(&folder, &escaping, false).is_err());
        assert_eq!(std::fs::read_dir(&root).unwrap().count(), 0);

        capture(&folder, &escaping[..1], false).unwrap();
        let read = std::fs::read_to_string(folder.join("sys/devices/system/node/online"));
        assert_eq!(read.unwrap(), "0-1\n");
        assert!(
            capture(&folder, &escaping[..1], false).is_err(),
            "a full folder stays"
        );
        capture(&folder, &escaping[..1], true).unwrap();

        let files = ["/tmp/prof/meta.json", "/srv/log", "/tmp/prof/raw/1"].map(file);
        let out = root.join("out");
        write_brought(&out, &["/tmp/prof".into(), "/srv/log".into()], &files).unwrap();
        for path in ["prof/meta.json", "prof/raw/1", "log"] {
            assert!(out.join(path).is_file(), "{path}");
        }
        assert!(write_brought(&out, &[], &files).is_err(), "nothing is replaced");
        std::fs::remove_dir_all(root).unwrap();
    }
}

//! The guest's sysfs as a folder, for `nodewise topo` and for tests.

use anyhow::{Context, ensure};
use std::path::{Component, Path, PathBuf};

/// Writes `files`, named by their paths below `/sys`, into `folder`: whole or not at all.
pub fn write(folder: &Path, files: &[(String, Vec<u8>)], force: bool) -> anyhow::Result<()> {
    let partial = beside(folder);
    let kept = fill(&partial, files).and_then(|()| replace(&partial, folder, force));
    kept.inspect_err(|_| drop(std::fs::remove_dir_all(&partial)))?;
    eprintln!("nodewise: wrote {}, {} files of /sys", folder.display(), files.len());
    Ok(())
}

/// A name that nobody has.
fn beside(folder: &Path) -> PathBuf {
    let mut name = folder.as_os_str().to_owned();
    name.push(format!(".{}.partial", std::process::id()));
    name.into()
}

fn fill(folder: &Path, files: &[(String, Vec<u8>)]) -> anyhow::Result<()> {
    for (name, bytes) in files {
        let below = Path::new(name);
        // The guest ran somebody's program as root: its word is no path to follow.
        ensure!(
            below.components().all(|c| matches!(c, Component::Normal(_))),
            "the guest sent a file called {name:?}"
        );
        let path = folder.join("sys").join(below);
        let parent = path.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent)
            .and_then(|()| std::fs::write(&path, bytes))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

fn replace(partial: &Path, folder: &Path, force: bool) -> anyhow::Result<()> {
    if force && folder.join("sys").is_dir() {
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
        assert!(write(&folder, &escaping, false).is_err());
        assert_eq!(std::fs::read_dir(&root).unwrap().count(), 0);

        write(&folder, &escaping[..1], false).unwrap();
        let read = std::fs::read_to_string(folder.join("sys/devices/system/node/online"));
        assert_eq!(read.unwrap(), "0-1\n");
        assert!(write(&folder, &escaping[..1], false).is_err(), "a full folder stays");
        write(&folder, &escaping[..1], true).unwrap();
        std::fs::remove_dir_all(root).unwrap();
    }
}

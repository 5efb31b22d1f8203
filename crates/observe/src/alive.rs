//! Finds the processes that still write to the raw files of a recording.

use crate::recording::image_name;
use nodewise_analysis::figures::and_more;
use nodewise_linux::Host;
use nodewise_linux::maps::Area;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

/// How often a recorder checks its program, independent of slices.
pub const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Number of checks during which processes that the command left behind may end.
pub const CHECKS_TO_END: u32 = 3;

/// Tolerance when times of processes and folders are compared, seconds: clock ticks, and corrections of the clock.
const SLACK_S: u64 = 2;

/// The processes that have the recording below `raw` mapped, ascending, including the recorder. The process identifier
/// in a folder's name proves nothing, as it may belong to another program by now. A mapping does, and it also shows
/// children without a folder and processes of other PID namespaces. A process whose mappings we may not read counts if
/// it is older than the folder with its identifier.
pub fn writers(raw: &Path) -> BTreeSet<u32> {
    // A process that was killed just now may need a moment to end.
    for _ in 1..CHECKS_TO_END {
        if current_writers(raw).is_empty() {
            return BTreeSet::new();
        }
        std::thread::sleep(CHECK_INTERVAL);
    }
    current_writers(raw)
}

fn current_writers(raw: &Path) -> BTreeSet<u32> {
    let host = Host::default();
    let raw = raw.canonicalize().unwrap_or_else(|_| raw.to_owned());
    let control = std::fs::metadata(raw.join("control")).map(|m| (m.dev(), m.ino()));
    // By path on file systems that report other device numbers for mappings than for files; by device and inode where
    // the process has another root.
    let ours = |area: &Area| {
        Path::new(&area.name).starts_with(&raw) || control.as_ref().is_ok_and(|c| *c == area.file)
    };
    let folders: BTreeSet<(u32, u64)> = folders(&raw).collect();
    let writes = |pid: u32| match host.maps(pid) {
        Ok(areas) => areas.iter().any(ours),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            let began = host.began(pid).unwrap_or(u64::MAX);
            let older = |(of, made): &(u32, u64)| *of == pid && began <= made.saturating_add(SLACK_S);
            folders.iter().any(older)
        }
        Err(_) => false,
    };
    let others = host.pids().unwrap_or_default().into_iter();
    others
        .filter(|&pid| pid != std::process::id() && writes(pid))
        .collect()
}

/// The processes that have folders below `raw`, with the creation time of the folder, Unix time in seconds.
fn folders(raw: &Path) -> impl Iterator<Item = (u32, u64)> {
    let entries = std::fs::read_dir(raw).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let (pid, _) = image_name(&entry.file_name().to_string_lossy())?;
        let metadata = entry.metadata().ok()?;
        // Without a creation time, the time of the last file in it is used.
        let made = metadata.created().or_else(|_| metadata.modified()).ok()?;
        Some((pid, made.duration_since(UNIX_EPOCH).ok()?.as_secs()))
    })
}

/// Lists the first few processes by number and name, and says where `all` are: `4711 (solve), 4712 (solve)`.
pub fn list(processes: &BTreeSet<u32>, all: &str) -> String {
    const MAX_NAMED_PROCESSES: usize = 8;
    let host = Host::default();
    let name = |pid: &u32| match host.status(*pid) {
        Ok(status) => format!("{pid} ({})", status.name),
        Err(_) => pid.to_string(),
    };
    let names: Vec<String> = processes.iter().take(MAX_NAMED_PROCESSES).map(name).collect();
    names.join(", ")
        + &and_more(
            processes.len().saturating_sub(MAX_NAMED_PROCESSES),
            "process",
            all,
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Control;
    use crate::slicing::Slicing;
    use std::process::Command;
    use std::time::Duration;

    #[test]
    fn a_process_of_the_same_number_is_another_unless_it_has_the_files_mapped() {
        let raw = std::env::temp_dir().join(format!("nodewise-alive-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&raw);
        std::fs::create_dir_all(&raw).unwrap();
        let mut other = Command::new("sleep").arg("60").spawn().unwrap();
        std::fs::create_dir(raw.join(format!("{}-0", other.id()))).unwrap();
        Control::create(&raw, Slicing::Time(Duration::from_secs(1))).unwrap();
        let found = writers(&raw);
        let script = "import mmap, sys; f = open(sys.argv[1]); m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ); \
                      f.close(); print(); sys.stdout.flush(); sys.stdin.read()";
        let mut maps = Command::new("python3")
            .args(["-c", script])
            .arg(raw.join("control"))
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        std::io::Read::read_exact(maps.stdout.as_mut().unwrap(), &mut [0]).unwrap();
        let found_it = writers(&raw);
        for child in [&mut other, &mut maps] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert_eq!(found, BTreeSet::new());
        assert_eq!(found_it, BTreeSet::from([maps.id()]));
        assert_eq!(writers(&raw), BTreeSet::new());
        std::fs::remove_dir_all(&raw).unwrap();
    }

    #[test]
    fn many_are_named_briefly() {
        let processes = BTreeSet::from_iter(u32::MAX - 10..u32::MAX);
        assert!(
            list(&processes, "raw").ends_with("4294967292 and 2 more processes (raw)"),
            "{}",
            list(&processes, "raw")
        );
        let own = std::process::id();
        assert!(list(&BTreeSet::from([own]), "").starts_with(&format!("{own} (")));
    }
}

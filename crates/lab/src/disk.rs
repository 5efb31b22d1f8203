//! A disk for the guest, with an empty file system: files on it are in the page cache, as on a real machine. It is
//! kept in memory and gone with the guest.

use crate::LabError;
use nodewise_analysis::figures::bytes as size;
use nodewise_linux::memfd;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};

/// Smallest size, bytes: ext4 takes some of it for itself.
const MIN_BYTES: u64 = 8 << 20;
/// Where Debian has it; `/sbin` is not on the search path of everybody.
const FORMATTERS: [&str; 3] = ["mke2fs", "/sbin/mke2fs", "/usr/sbin/mke2fs"];

/// Makes a disk of this size with an ext4 file system. Without a journal and reserved blocks, what is written to the
/// disk is what the command writes.
pub(crate) fn make(bytes: u64) -> Result<File, LabError> {
    if bytes < MIN_BYTES {
        return Err(LabError::usage(format!(
            "--disk: {} are too few for a file system; take 8M or more",
            size(bytes)
        )));
    }
    let failed = |e: std::io::Error| LabError::own(format!("cannot make the guest's disk: {e}"));
    let disk = memfd::create(c"nodewise-disk").map_err(failed)?;
    disk.set_len(bytes).map_err(failed)?;
    let path = format!("/proc/{}/fd/{}", std::process::id(), disk.as_raw_fd());
    for program in FORMATTERS {
        let formatted = Command::new(program)
            .args([
                "-q",
                "-F",
                "-t",
                "ext4",
                "-m",
                "0",
                "-O",
                "^has_journal",
                "-E",
                "nodiscard",
                &path,
            ])
            .stdin(Stdio::null())
            .output();
        return match formatted {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
            Err(e) => Err(failed(e)),
            Ok(done) if done.status.success() => Ok(disk),
            Ok(done) => Err(LabError::own(format!(
                "cannot make the guest's disk: {program}: {}",
                String::from_utf8_lossy(&done.stderr)
                    .trim()
                    .lines()
                    .last()
                    .unwrap_or("failed")
            ))),
        };
    }
    Err(LabError::own("--disk needs mke2fs: apt install e2fsprogs"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn a_disk_has_a_file_system_and_a_size() {
        let disk = match make(16 << 20) {
            Ok(disk) => disk,
            Err(error) if error.to_string().contains("apt install") => return,
            Err(error) => panic!("{error}"),
        };
        let mut magic = [0; 2];
        disk.read_exact_at(&mut magic, 1024 + 56).unwrap();
        assert_eq!((magic, disk.metadata().unwrap().len()), ([0x53, 0xef], 16 << 20));
        assert!(make(4096).unwrap_err().to_string().contains("8M or more"));
    }
}

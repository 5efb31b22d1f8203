//! Reads regular files up to a size limit.

// Why: docs/decisions/input.md

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// Size of the largest text file that is read (maps, machine files, manifests), bytes.
pub const MAX_TEXT_BYTES: u64 = 64 << 20;

/// Paths of this process's own descriptors, which a shell uses for `<(…)` and users for `-`. They may be pipes, because
/// the other end is already open.
const DESCRIPTOR_PATHS: [&str; 3] = ["/dev/fd/", "/dev/stdin", "/proc/self/fd/"];

/// Opens a regular file, or a path of one of this process's own descriptors; symbolic links are followed. Does not
/// block on other pipes or on devices.
///
/// # Errors
/// Errors of the kernel; `InvalidInput` if it is not a regular file, with a message that says what it is.
pub fn open(path: &Path) -> Result<File> {
    let own = path
        .to_str()
        .is_some_and(|p| DESCRIPTOR_PATHS.iter().any(|own| p.starts_with(own)));
    if own {
        return File::open(path);
    }
    // Opening a device may have side effects, so the type is checked before. It is checked again after opening, because
    // the path may have been replaced in between.
    refuse_others(&std::fs::metadata(path)?)?;
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    refuse_others(&file.metadata()?)?;
    Ok(file)
}

fn refuse_others(metadata: &std::fs::Metadata) -> Result<()> {
    let kind = metadata.file_type();
    let what = match () {
        () if kind.is_file() => return Ok(()),
        () if kind.is_dir() => "a directory",
        () if kind.is_fifo() => "a pipe",
        () if kind.is_socket() => "a socket",
        () => "a device",
    };
    let message = format!("it is {what}, not a regular file");
    Err(Error::new(ErrorKind::InvalidInput, message))
}

/// The content of a file of at most `most` bytes.
///
/// # Errors
/// As [`open`]; `FileTooLarge` if the file is larger.
pub fn bytes(path: &Path, most: u64) -> Result<Vec<u8>> {
    let file = open(path)?;
    let size = file.metadata()?.len();
    let mut all = Vec::new();
    if size <= most {
        all.reserve(size as usize);
        file.take(most.saturating_add(1)).read_to_end(&mut all)?;
    }
    if size > most || all.len() as u64 > most {
        let message = format!("it is larger than {most} bytes, the most that is read");
        return Err(Error::new(ErrorKind::FileTooLarge, message));
    }
    Ok(all)
}

/// The content of a text file of at most [`MAX_TEXT_BYTES`] bytes.
///
/// # Errors
/// As [`bytes`]; `InvalidData` if the content is not UTF-8.
pub fn text(path: &Path) -> Result<String> {
    String::from_utf8(bytes(path, MAX_TEXT_BYTES)?)
        .map_err(|_| Error::new(ErrorKind::InvalidData, "it is not text"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn what_has_no_end_is_refused_and_named() {
        let refused = |path: &str| text(Path::new(path)).unwrap_err().to_string();
        assert_eq!(refused("/dev/zero"), "it is a device, not a regular file");
        assert_eq!(refused("/"), "it is a directory, not a regular file");
        assert_eq!(
            text(Path::new("/nonexistent")).unwrap_err().kind(),
            ErrorKind::NotFound
        );
    }

    #[test]
    fn a_pipe_without_a_writer_is_not_waited_for() {
        let path = std::env::temp_dir().join(format!("nodewise-input-pipe-{}", std::process::id()));
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        let error = text(&path).unwrap_err();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(error.to_string(), "it is a pipe, not a regular file");
    }

    #[test]
    fn a_file_is_read_up_to_the_bound_and_not_beyond() {
        let path = std::env::temp_dir().join(format!("nodewise-input-{}", std::process::id()));
        std::fs::write(&path, b"12345678").unwrap();
        let link = path.with_extension("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let (whole, larger) = (bytes(&link, 8), bytes(&path, 7));
        [&path, &link]
            .iter()
            .for_each(|p| std::fs::remove_file(p).unwrap());
        assert_eq!(whole.unwrap(), b"12345678");
        assert_eq!(larger.unwrap_err().kind(), ErrorKind::FileTooLarge);
    }

    #[test]
    fn the_end_of_a_pipe_that_is_ours_is_read() {
        let (reading, writing) = std::io::pipe().unwrap();
        std::io::Write::write_all(&mut { writing }, b"abc").unwrap();
        let path = format!("/dev/fd/{}", reading.as_raw_fd());
        assert_eq!(text(Path::new(&path)).unwrap(), "abc");
    }
}

//! Replaces files so that readers see the old content or the new one, never a part.

use std::fs::{File, Permissions};
use std::io::Write;
use std::path::Path;

/// Replaces a file atomically. Links are followed; other than regular files (pipes, devices) are written to in place.
///
/// # Errors
/// An error of the file system; the file is unchanged then, and no temporary file is left.
pub fn replace(file: &Path, text: &[u8]) -> std::io::Result<()> {
    if file.symlink_metadata().is_err() {
        return write_beside(file, text, None);
    }
    match file.metadata() {
        // By its own name: what `/dev/fd/3` leads to may have no other.
        Ok(there) if !there.is_file() => {
            let mut open = std::fs::OpenOptions::new().write(true).open(file)?;
            open.write_all(text)
        }
        there => write_beside(&file.canonicalize()?, text, Some(there?.permissions())),
    }
}

/// Writes a temporary file with a unique name, then renames it.
fn write_beside(file: &Path, text: &[u8], permissions: Option<Permissions>) -> std::io::Result<()> {
    let mut partial = file.as_os_str().to_owned();
    partial.push(format!(".{}.partial", std::process::id()));
    let mut fresh = File::create_new(&partial)?;
    let written = fresh
        .write_all(text)
        .and_then(|()| permissions.map_or(Ok(()), |p| fresh.set_permissions(p)))
        .and_then(|()| std::fs::rename(&partial, file));
    written.inspect_err(|_| drop(std::fs::remove_file(&partial)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_followed_devices_stay_and_neighbours_are_not_touched() {
        use std::os::unix::fs::FileTypeExt;
        let folder = std::env::temp_dir().join(format!("nodewise-files-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (file, link) = (folder.join("file"), folder.join("link"));
        std::fs::write(&file, "old").unwrap();
        std::fs::write(folder.join("file.partial"), "precious").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let device = folder.join("device");
        std::os::unix::fs::symlink("/dev/null", &device).unwrap();

        replace(&link, b"new").unwrap();
        replace(&device, b"new").unwrap();
        let (mut reader, writer) = std::io::pipe().unwrap();
        let of_shell = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&writer));
        replace(Path::new(&of_shell), b"new").unwrap();
        drop(writer);
        assert_eq!(std::io::read_to_string(&mut reader).unwrap(), "new");
        replace(&folder.join("fresh"), b"new").unwrap();

        assert!(link.is_symlink() && device.is_symlink());
        assert!(
            std::fs::metadata("/dev/null")
                .unwrap()
                .file_type()
                .is_char_device()
        );
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
        assert_eq!(
            (read("file"), read("fresh")),
            ("new".to_owned(), "new".to_owned())
        );
        assert_eq!(read("file.partial"), "precious");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 5);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

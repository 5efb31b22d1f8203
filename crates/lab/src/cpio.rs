//! Writes the initramfs archive in `newc` format (Linux, driver-api/early-userspace/buffer-format).

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const FOLDER: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;
const LINK: u32 = 0o120_000;

/// Writes members one after the other; a folder must come before its contents.
pub(crate) struct Archive {
    to: BufWriter<File>,
    at: u64,
    members: u32,
}

impl Archive {
    pub fn new(to: File) -> Self {
        Self {
            to: BufWriter::with_capacity(1 << 20, to),
            at: 0,
            members: 0,
        }
    }

    pub fn folder(&mut self, path: &Path, permissions: u32) -> io::Result<()> {
        self.head(path.as_os_str(), FOLDER | permissions, 0)
    }

    pub fn link(&mut self, path: &Path, target: &Path) -> io::Result<()> {
        let target = target.as_os_str().as_bytes();
        self.head(path.as_os_str(), LINK | 0o777, target.len() as u64)?;
        self.bytes(target)
    }

    pub fn file(&mut self, path: &Path, permissions: u32, bytes: &[u8]) -> io::Result<()> {
        self.head(path.as_os_str(), REGULAR | permissions, bytes.len() as u64)?;
        self.bytes(bytes)
    }

    /// Copies a file of the host, with the length that it has now.
    pub fn copy(&mut self, path: &Path, permissions: u32, from: &File) -> io::Result<()> {
        let length = from.metadata()?.len();
        self.head(path.as_os_str(), REGULAR | permissions, length)?;
        // The standard library copies between two files inside the kernel.
        self.to.flush()?;
        let copied = io::copy(&mut io::Read::take(from, length), self.to.get_mut())?;
        if copied < length {
            return Err(io::Error::other("it became shorter while it was read"));
        }
        self.at += length;
        self.align()
    }

    /// Ends the archive, and rewinds the file to its beginning.
    pub fn finish(mut self) -> io::Result<File> {
        self.head(OsStr::new("TRAILER!!!"), 0, 0)?;
        let mut file = self.to.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.seek(SeekFrom::Start(0))?;
        Ok(file)
    }

    fn head(&mut self, name: &OsStr, mode: u32, length: u64) -> io::Result<()> {
        let name = name.as_bytes();
        let name = name.strip_prefix(b"/").unwrap_or(name);
        let length = u32::try_from(length).map_err(|_| io::Error::other("it is larger than 4 GiB"))?;
        self.members += 1;
        let fields = [
            self.members,
            mode,
            0,
            0,
            1,
            0,
            length,
            0,
            0,
            0,
            0,
            name.len() as u32 + 1,
            0,
        ];
        let mut head = b"070701".to_vec();
        for field in fields {
            write!(head, "{field:08x}")?;
        }
        head.extend(name);
        head.push(0);
        self.bytes(&head)
    }

    fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.to.write_all(bytes)?;
        self.at += bytes.len() as u64;
        self.align()
    }

    fn align(&mut self) -> io::Result<()> {
        let padding = (self.at.next_multiple_of(4) - self.at) as usize;
        self.to.write_all(&[0; 3][..padding])?;
        self.at += padding as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::process::{Command, Stdio};

    #[test]
    fn an_archive_is_what_cpio_reads() {
        let mut archive = Archive::new(nodewise_linux::memfd::create(c"test").unwrap());
        archive.folder(Path::new("/a"), 0o755).unwrap();
        archive.file(Path::new("/a/b"), 0o644, b"hello").unwrap();
        archive.link(Path::new("/a/c"), Path::new("b")).unwrap();
        let own = File::open("/proc/self/exe").unwrap();
        archive.copy(Path::new("/a/exe"), 0o755, &own).unwrap();
        let mut file = archive.finish().unwrap();
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        // The laboratory requires Debian's busybox anyway.
        let mut cpio = Command::new("busybox")
            .args(["cpio", "-t"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        cpio.stdin.take().unwrap().write_all(&bytes).unwrap();
        let list = cpio.wait_with_output().unwrap().stdout;
        assert_eq!(String::from_utf8(list).unwrap(), "a\na/b\na/c\na/exe\n");
    }
}

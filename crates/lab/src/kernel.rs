//! The guest's kernel: given by the user, cached, or fetched from the distribution (and never installed).

use crate::LabError;
use nodewise_linux::child::depend;
use nodewise_linux::memfd;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Packages that depend on the newest small kernel, in order of preference: Debian's, then Ubuntu's.
const METAPACKAGES: [&str; 3] = [
    "linux-image-cloud-amd64",
    "linux-image-kvm",
    "linux-image-virtual",
];
/// Offset and value of the mark of a bzImage; a pointer to its version follows (Linux, x86 boot protocol).
const BZIMAGE_MAGIC: (usize, &[u8]) = (0x202, b"HdrS");
const VERSION_AT: usize = 0x20e;
/// Offset of a bzImage's length: the number of real-mode sectors after the first (zero means four); the rest has its
/// length in units of 16 bytes. A signature may follow.
const SECTORS_AT: usize = 0x1f1;
const UNITS_AT: usize = 0x1f4;

/// A kernel that QEMU can load.
#[derive(Debug)]
pub(crate) struct Kernel {
    pub file: File,
    /// Version of the kernel: `6.1.0-56-cloud-amd64`.
    pub version: String,
}

impl Kernel {
    /// Finds the kernel given by its file or version, or else the distribution's, in the cache if it is there.
    pub fn find(given: Option<&Path>) -> Result<Self, LabError> {
        match given {
            Some(path) if !path.exists() && is_version(path) => {
                let version = path.to_string_lossy();
                // A folder of its own, so that it is not taken for the distribution's kernel because it is newer.
                let metapackages = format!("linux-image-{version}-cloud-amd64");
                Self::cached(&cache().join(version.as_ref()), &[&metapackages])
            }
            Some(path) if is_package(path)? => Self::unpacked(path),
            Some(path) => Self::open(path),
            None => Self::cached(&cache(), &METAPACKAGES),
        }
    }

    /// The newest kernel in a folder of the cache; else fetches the one that the first available of these packages
    /// depends on.
    fn cached(cache: &Path, metapackages: &[&str]) -> Result<Self, LabError> {
        std::fs::create_dir_all(cache).map_err(|e| LabError::io("make the cache", cache, &e))?;
        sweep(cache);
        match newest(cache) {
            Some(kernel) => Ok(kernel),
            None => Self::open(&fetch(cache, metapackages)?),
        }
    }

    fn open(path: &Path) -> Result<Self, LabError> {
        let file = File::open(path).map_err(|e| LabError::io("read the kernel", path, &e))?;
        Self::of(file, path)
    }

    /// Unpacks a package's kernel into memory, not into the cache: other runs do not use it.
    fn unpacked(package: &Path) -> Result<Self, LabError> {
        let (_, bytes) = extract(package)?;
        let file = memfd::create(c"vmlinuz").and_then(|mut f| f.write_all(&bytes).map(|()| f));
        let file = file.map_err(|e| LabError::io("unpack", package, &e))?;
        Self::of(file, package)
    }

    fn of(file: File, path: &Path) -> Result<Self, LabError> {
        let version = version(&file).ok_or_else(|| {
            LabError::own(format!(
                "{} is no whole kernel for x86-64: --kernel takes a version such as 6.12, a vmlinuz (bzImage) or a linux-image package",
                path.display()
            ))
        })?;
        Ok(Self { file, version })
    }
}

/// The version of the cached kernel that guests get, if there is one.
#[must_use]
pub fn cached_kernel() -> Option<String> {
    newest(&cache()).map(|kernel| kernel.version)
}

/// The version in a bzImage, without the name of its builder; `None` if the file is truncated.
fn version(file: &File) -> Option<String> {
    let mut head = vec![0; 1 << 16];
    let mut length = 0;
    while let Ok(got @ 1..) = file.read_at(&mut head[length..], length as u64) {
        length += got;
    }
    let (at, magic) = BZIMAGE_MAGIC;
    if head.get(at..at + magic.len()) != Some(magic) {
        return None;
    }
    let sectors = u64::from(head[SECTORS_AT]);
    let units = u32::from_le_bytes(head[UNITS_AT..UNITS_AT + 4].try_into().ok()?);
    let whole = (if sectors == 0 { 4 } else { sectors } + 1) * 512 + u64::from(units) * 16;
    if file.metadata().ok()?.len() < whole {
        return None;
    }
    let offset = u16::from_le_bytes([head[VERSION_AT], head[VERSION_AT + 1]]);
    let text = head.get(usize::from(offset) + 0x200..length)?;
    let word = text.split(|b| *b == b' ' || *b == 0).next()?;
    Some(String::from_utf8_lossy(word).into_owned())
}

/// Whether a path is a version as in package names: `6.12`.
fn is_version(path: &Path) -> bool {
    let parts = path.to_str().and_then(|text| text.split_once('.'));
    let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    parts.is_some_and(|(major, minor)| number(major) && number(minor))
}

fn is_package(path: &Path) -> Result<bool, LabError> {
    let mut magic = [0; 8];
    let mut file = File::open(path).map_err(|e| LabError::io("read the kernel", path, &e))?;
    Ok(file.read_exact(&mut magic).is_ok() && &magic == b"!<arch>\n")
}

/// The cache folder, `$XDG_CACHE_HOME/nodewise`.
fn cache() -> PathBuf {
    let set = |name| {
        std::env::var_os(name)
            .filter(|v| !v.is_empty())
            .map(PathBuf::from)
    };
    let root = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
    root.unwrap_or_else(std::env::temp_dir).join("nodewise")
}

/// Removes files that earlier processes left when they were killed: `download-PID`, `new-PID`.
fn sweep(cache: &Path) {
    let gone = |path: &PathBuf| {
        let name = path.file_name()?.to_str()?;
        let process = name.strip_prefix("download-").or(name.strip_prefix("new-"))?;
        process.parse::<u32>().ok()?;
        (!Path::new("/proc").join(process).exists()).then_some(())
    };
    let entries = std::fs::read_dir(cache).into_iter().flatten().flatten();
    for path in entries.map(|e| e.path()).filter(|p| gone(p).is_some()) {
        let _ = std::fs::remove_dir_all(&path).or_else(|_| std::fs::remove_file(&path));
    }
}

/// The newest kernel in a folder. Damaged ones are skipped; another one is then fetched.
fn newest(cache: &Path) -> Option<Kernel> {
    let entries = std::fs::read_dir(cache).ok()?.flatten().map(|e| e.path());
    let numbered = |path: PathBuf| {
        let name = path.file_name()?.to_str()?;
        Some((numbers(name.strip_prefix("vmlinuz-")?), path))
    };
    let mut kept: Vec<_> = entries.filter_map(numbered).collect();
    kept.sort_unstable();
    kept.iter().rev().find_map(|(_, path)| Kernel::open(path).ok())
}

/// The numbers in a version, for comparison: 6.10 is newer than 6.9.
fn numbers(version: &str) -> Vec<u64> {
    let parts = version.split(|c: char| !c.is_ascii_digit());
    parts.filter_map(|p| p.parse().ok()).collect()
}

/// A folder for a download, removed at the end.
struct Download(PathBuf);

impl Download {
    fn new(cache: &Path) -> Result<Self, LabError> {
        let path = cache.join(format!("download-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).map_err(|e| LabError::io("make", &path, &e))?;
        Ok(Self(path))
    }
}

impl Drop for Download {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn fetch(cache: &Path, metapackages: &[&str]) -> Result<PathBuf, LabError> {
    let package = metapackages.iter().find_map(|name| dependency(name)).ok_or_else(|| {
        LabError::own(format!(
            "no kernel for the guest: apt knows no {}; `apt-get update` renews its lists (backports have newer kernels), --kernel PATH takes \
             a vmlinuz or a linux-image package",
            metapackages[0]
        ))
    })?;
    let download = Download::new(cache)?;
    let mut apt = apt("apt-get");
    apt.args(["-qq", "download", &package])
        .current_dir(&download.0)
        .stderr(Stdio::piped());
    let apt = depend(&mut apt, Vec::new())
        .output()
        .map_err(|e| LabError::own(format!("cannot start apt-get: {e}")))?;
    let deb = std::fs::read_dir(&download.0)
        .ok()
        .and_then(|mut all| all.find_map(|e| Some(e.ok()?.path())));
    deb.map_or_else(
        || {
            let apt_errors = String::from_utf8_lossy(&apt.stderr).into_owned();
            let why = apt_errors.lines().find(|l| l.starts_with("E:")).unwrap_or("E: nothing came").to_owned();
            Err(LabError::own(format!(
                "cannot fetch the guest's kernel {package}: {}; once online it is kept, or --kernel PATH takes a vmlinuz or a linux-image package",
                why.trim_start_matches("E:").trim()
            )))
        },
        |deb| {
            let (name, bytes) = extract(&deb)?;
            keep(&cache.join(name), &bytes)
        },
    )
}

fn apt(program: &str) -> Command {
    let mut command = Command::new(program);
    command
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// The image package that a meta-package depends on.
fn dependency(metapackages: &str) -> Option<String> {
    let output = apt("apt-cache")
        .args(["depends", "--important", metapackages])
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut depends = text.lines().filter_map(|l| l.trim().strip_prefix("Depends: "));
    depends
        .find(|p| p.starts_with("linux-image-"))
        .map(ToOwned::to_owned)
}

/// The vmlinuz in a package: its file name and its contents.
fn extract(package: &Path) -> Result<(String, Vec<u8>), LabError> {
    let failed = |reason: &str| {
        LabError::own(format!(
            "{} holds no kernel that can be used: {reason}",
            package.display()
        ))
    };
    let mut dpkg = Command::new("dpkg-deb");
    dpkg.arg("--fsys-tarfile")
        .arg(package)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut dpkg = depend(&mut dpkg, Vec::new())
        .spawn()
        .map_err(|e| failed(&format!("cannot start dpkg-deb: {e}")))?;
    let member = dpkg
        .stdout
        .take()
        .and_then(|mut tar| find_member(&mut tar, "./boot/vmlinuz-"));
    let _ = (dpkg.kill(), dpkg.wait());
    let (path, bytes) = member.ok_or_else(|| failed("no boot/vmlinuz-* in it"))?;
    let name = path.rsplit('/').next().unwrap_or(&path);
    Ok((name.to_owned(), bytes))
}

/// Writes a temporary file and renames it, so that another process never sees a partial kernel.
fn keep(path: &Path, bytes: &[u8]) -> Result<PathBuf, LabError> {
    let temporary = path.with_file_name(format!("new-{}", std::process::id()));
    let written = File::create(&temporary)
        .and_then(|mut f| f.write_all(bytes))
        .and_then(|()| std::fs::rename(&temporary, path));
    written.map_err(|e| {
        let _ = std::fs::remove_file(&temporary);
        LabError::io("keep the kernel as", path, &e)
    })?;
    Ok(path.to_owned())
}

/// The first file of a tar stream whose name begins with `prefix` (POSIX ustar).
fn find_member(tar: &mut impl Read, prefix: &str) -> Option<(String, Vec<u8>)> {
    let mut header = [0; 512];
    loop {
        tar.read_exact(&mut header).ok()?;
        let text = |from: usize, to: usize| {
            let field = header[from..to].split(|b| *b == 0).next().unwrap_or(&[]);
            String::from_utf8_lossy(field).into_owned()
        };
        let (name, is_file) = (text(0, 100), matches!(header[156], b'0' | 0));
        if name.is_empty() {
            return None;
        }
        let size = u64::from_str_radix(text(124, 136).trim(), 8).ok()?;
        if is_file && name.starts_with(prefix) {
            let mut bytes = Vec::new();
            tar.take(size).read_to_end(&mut bytes).ok()?;
            return (bytes.len() as u64 == size).then_some((name, bytes));
        }
        std::io::copy(&mut tar.take(size.next_multiple_of(512)), &mut std::io::sink()).ok()?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn member(name: &str, bytes: &[u8]) -> Vec<u8> {
        let mut header = vec![0; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[124..136].copy_from_slice(format!("{:011o}\0", bytes.len()).as_bytes());
        header[156] = b'0';
        header.extend(bytes);
        header.resize(header.len().next_multiple_of(512), 0);
        header
    }

    #[test]
    fn a_member_is_found_behind_others() {
        let mut tar = member("./boot/config-6", b"CONFIG");
        tar.extend(member("./boot/vmlinuz-6.1", b"kernel"));
        let found = find_member(&mut tar.as_slice(), "./boot/vmlinuz-").unwrap();
        assert_eq!(found, ("./boot/vmlinuz-6.1".to_owned(), b"kernel".to_vec()));
        assert_eq!(find_member(&mut tar.as_slice(), "./boot/initrd"), None);
        assert_eq!(find_member(&mut &tar[..1030], "./boot/vmlinuz-"), None, "cut off");
    }

    /// A bzImage of this version, 4 KiB long according to its header.
    fn image(version: &str) -> Vec<u8> {
        let mut bytes = vec![0; 4096];
        bytes[SECTORS_AT] = 3;
        bytes[UNITS_AT..UNITS_AT + 4].copy_from_slice(&(2048_u32 / 16).to_le_bytes());
        bytes[BZIMAGE_MAGIC.0..BZIMAGE_MAGIC.0 + 4].copy_from_slice(BZIMAGE_MAGIC.1);
        bytes[VERSION_AT..VERSION_AT + 2].copy_from_slice(&0x400_u16.to_le_bytes());
        bytes[0x600..0x600 + version.len()].copy_from_slice(version.as_bytes());
        bytes
    }

    struct Folder(PathBuf);

    impl Folder {
        fn new(test: &str) -> Self {
            let path = std::env::temp_dir().join(format!("nodewise-kernel-{test}-{}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
            std::fs::write(self.0.join(name), bytes).unwrap();
            self.0.join(name)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            std::fs::remove_dir_all(&self.0).unwrap();
        }
    }

    #[test]
    fn the_newest_kernel_is_so_by_its_numbers_and_whole() {
        let cache = Folder::new("newest");
        let found = || newest(&cache.0).map(|kernel| kernel.version);
        assert_eq!(found(), None);
        for version in ["6.9.12-3-amd64", "6.10.0-1-amd64"] {
            cache.file(&format!("vmlinuz-{version}"), &image(version));
        }
        assert_eq!(found().as_deref(), Some("6.10.0-1-amd64"));
        cache.file("vmlinuz-6.10.0-1-amd64", &image("6.10.0-1-amd64")[..4095]);
        assert_eq!(found().as_deref(), Some("6.9.12-3-amd64"), "cut off");
        cache.file("vmlinuz-6.9.12-3-amd64", b"");
        assert_eq!(found(), None);
    }

    #[test]
    fn what_dead_processes_left_is_swept_and_nothing_else() {
        let cache = Folder::new("sweep");
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let (dead, alive) = (child.id(), std::process::id());
        for process in [dead, alive] {
            std::fs::create_dir(cache.0.join(format!("download-{process}"))).unwrap();
            cache.file(&format!("download-{process}/part.deb"), b"");
            cache.file(&format!("new-{process}"), b"");
        }
        cache.file("new-thing", b"");
        cache.file("vmlinuz-6.1", b"");
        sweep(&cache.0);
        let left = std::fs::read_dir(&cache.0)
            .unwrap()
            .flatten()
            .map(|e| e.file_name());
        let mut left: Vec<_> = left.map(|n| n.into_string().unwrap()).collect();
        left.sort();
        let own = (format!("download-{alive}"), format!("new-{alive}"));
        assert_eq!(left, [own.0.as_str(), &own.1, "new-thing", "vmlinuz-6.1"]);
    }

    #[test]
    fn a_package_is_used_and_not_kept() {
        let folder = Folder::new("package");
        for part in ["tree/boot", "tree/DEBIAN"] {
            std::fs::create_dir_all(folder.0.join(part)).unwrap();
        }
        folder.file("tree/boot/vmlinuz-6.1.7", &image("6.1.7"));
        let control =
            "Package: p\nVersion: 1\nArchitecture: all\nMaintainer: m <m@example.org>\nDescription: d\n";
        folder.file("tree/DEBIAN/control", control.as_bytes());
        let package = folder.0.join("p.deb");
        let built = Command::new("dpkg-deb")
            .arg("-b")
            .arg(folder.0.join("tree"))
            .arg(&package)
            .output();
        assert!(built.unwrap().status.success());
        assert_eq!(Kernel::find(Some(&package)).unwrap().version, "6.1.7");
        assert_ne!(cached_kernel().as_deref(), Some("6.1.7"));
    }

    #[test]
    fn what_is_no_kernel_is_refused_in_one_line() {
        for path in ["/proc/self/exe", "/nonexistent/vmlinuz"] {
            let error = Kernel::find(Some(Path::new(path))).unwrap_err();
            assert!(
                error.to_string().contains(path) && error.exit_status() == 125,
                "{error}"
            );
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_no_kernel_and_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
            let _ = find_member(&mut bytes.as_slice(), "./boot/");
        }
    }
}

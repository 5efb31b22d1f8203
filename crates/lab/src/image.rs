//! Builds the guest's file system image: programs and their files, at the same paths as on the host.

use crate::LabError;
use crate::closure::{kind, libraries, loaded};
use crate::cpio::Archive;
use nodewise_loader::Kind;
use nodewise_symbols::needs_avx512;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

/// Largest number of links that are followed for one path, as in the kernel.
const MAX_LINKS: u32 = 40;
/// The loader of glibc's own libraries, which do not name one.
const GLIBC_LOADER: &str = "/lib64/ld-linux-x86-64.so.2";

/// Files in which loaders look up libraries outside the default folders.
const LOADER_FILES: [&str; 2] = ["/etc/ld.so.cache", "/etc/ld-musl-x86_64.path"];

/// The folders of the system's libraries.
const SYSTEM_LIBRARIES: [&str; 4] = ["/lib", "/lib64", "/usr/lib", "/usr/lib64"];

#[derive(Debug)]
enum Entry {
    Folder,
    Link(PathBuf),
    Host(PathBuf),
    Bytes(u32, Vec<u8>),
}

/// Files to be packed, by absolute path. The paths are sorted, so a folder comes before its contents.
#[derive(Debug, Default)]
pub(crate) struct Image {
    entries: BTreeMap<PathBuf, Entry>,
    examined: BTreeSet<PathBuf>,
    environment: Vec<(OsString, OsString)>,
}

impl Image {
    /// An empty image; `environment` determines where libraries are searched.
    pub fn new(environment: &[(OsString, OsString)]) -> Self {
        Self {
            environment: environment.to_vec(),
            ..Self::default()
        }
    }

    /// Adds a file with the given contents.
    pub fn put(&mut self, path: &Path, permissions: u32, bytes: Vec<u8>) {
        self.parents(path);
        self.entries
            .insert(path.to_owned(), Entry::Bytes(permissions, bytes));
    }

    /// Adds an executable or library of ours at another path, without what only debuggers read.
    pub fn add_at(&mut self, path: &Path, from: &Path) -> Result<(), LabError> {
        let bytes = std::fs::read(from).map_err(|e| LabError::io("read", from, &e))?;
        self.put(path, 0o755, loaded(bytes));
        self.add_needs(from)
    }

    pub fn link(&mut self, path: &Path, target: &Path) {
        self.parents(path);
        self.entries
            .entry(path.to_owned())
            .or_insert_with(|| Entry::Link(target.to_owned()));
    }

    /// Adds a folder, without its contents; links on the way to it are kept.
    pub fn folder(&mut self, path: &Path) -> Result<(), LabError> {
        self.resolve(path, &mut 0).map(|_| ())
    }

    fn parents(&mut self, path: &Path) {
        for folder in path.ancestors().skip(1) {
            self.entries.entry(folder.to_owned()).or_insert(Entry::Folder);
        }
    }

    /// Adds an empty folder, whatever the host has at this path.
    pub fn bare_folder(&mut self, path: &Path) {
        self.entries.insert(path.to_owned(), Entry::Folder);
    }

    /// Adds a file or link of the host and what it needs to run, or a folder with its contents.
    pub fn add(&mut self, path: &Path) -> Result<(), LabError> {
        let real = self.resolve(path, &mut 0)?;
        if !self.examined.insert(real.clone()) {
            return Ok(());
        }
        if real.is_dir() {
            return self.add_folder(&real);
        }
        if real.is_file() {
            self.add_needs(&real)?;
        }
        Ok(())
    }

    fn add_folder(&mut self, folder: &Path) -> Result<(), LabError> {
        let failed = |e| LabError::io("read", folder, &e);
        for entry in std::fs::read_dir(folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let link = path.symlink_metadata().is_ok_and(|m| m.is_symlink());
            if link && !path.exists() {
                // A link that leads nowhere on the host does so in the guest, too.
                let target = std::fs::read_link(&path).map_err(failed)?;
                self.link(&path, &target);
            } else if path.is_file() || path.is_dir() {
                match self.add(&path) {
                    // A folder may contain programs that cannot run on the host either.
                    Err(error) if [126, 127].contains(&error.exit_status()) => {}
                    done => done?,
                }
            }
        }
        Ok(())
    }

    fn add_needs(&mut self, file: &Path) -> Result<(), LabError> {
        let executable = file.metadata().is_ok_and(|m| m.permissions().mode() & 0o111 != 0);
        let library = file.to_string_lossy().contains(".so");
        match kind(file) {
            Ok(Kind::Elf(program))
                if program.is_dynamic() && (library || executable && program.interpreter.is_some()) =>
            {
                let alone = program.interpreter.is_some();
                let loader = program.interpreter.unwrap_or_else(|| GLIBC_LOADER.into());
                self.add(&loader)?;
                for file in LOADER_FILES.map(Path::new).into_iter().filter(|f| f.exists()) {
                    self.add(file)?;
                }
                let libraries = match libraries(file, &self.environment) {
                    // The program that uses this library may know where its dependencies are, or not need them, as with
                    // a plug-in of a virtual machine.
                    Err(error) if !alone && error.exit_status() == 127 => return Ok(()),
                    found => found?,
                };
                for library in &libraries {
                    self.add(library)?;
                }
                libraries.iter().try_for_each(|l| check_instructions(l, file))?;
            }
            Ok(Kind::Script { interpreter, .. }) if executable && interpreter.exists() => {
                self.add(&interpreter)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Adds the folders and links on the way to a path; returns the path with all links resolved.
    fn resolve(&mut self, path: &Path, links: &mut u32) -> Result<PathBuf, LabError> {
        let mut at = PathBuf::from("/");
        self.entries.entry(at.clone()).or_insert(Entry::Folder);
        for component in path.components() {
            match component {
                Component::Normal(name) => at.push(name),
                Component::ParentDir => {
                    at.pop();
                    continue;
                }
                _ => continue,
            }
            let Ok(metadata) = at.symlink_metadata() else {
                self.entries.entry(at.clone()).or_insert(Entry::Folder);
                continue;
            };
            if metadata.is_symlink() {
                at = self.follow(&at, links)?;
            } else {
                let host = || {
                    if metadata.is_file() {
                        Entry::Host(at.clone())
                    } else {
                        Entry::Folder
                    }
                };
                self.entries.entry(at.clone()).or_insert_with(host);
            }
        }
        Ok(at)
    }

    fn follow(&mut self, link: &Path, links: &mut u32) -> Result<PathBuf, LabError> {
        *links += 1;
        if *links > MAX_LINKS {
            return Err(LabError::own(format!("{} leads in a circle", link.display())));
        }
        let target = std::fs::read_link(link).map_err(|e| LabError::io("read", link, &e))?;
        self.entries
            .entry(link.to_owned())
            .or_insert_with(|| Entry::Link(target.clone()));
        let folder = link.parent().unwrap_or(Path::new("/"));
        self.resolve(&folder.join(target), links)
    }

    /// Number of bytes in all files, without what an archive adds.
    pub fn bytes(&self) -> u64 {
        let length = |entry: &Entry| match entry {
            Entry::Host(path) => path.metadata().map_or(0, |m| m.len()),
            Entry::Bytes(_, bytes) => bytes.len() as u64,
            Entry::Folder | Entry::Link(_) => 0,
        };
        self.entries.values().map(length).sum()
    }

    /// Writes the archive to a file in memory.
    pub fn pack(&self) -> Result<File, LabError> {
        let memory = nodewise_linux::memfd::create(c"nodewise-image");
        let mut archive =
            Archive::new(memory.map_err(|e| LabError::own(format!("no memory for the image: {e}")))?);
        for (path, entry) in &self.entries {
            write(&mut archive, path, entry).map_err(|e| LabError::io("pack", path, &e))?;
        }
        archive
            .finish()
            .map_err(|e| LabError::own(format!("cannot pack the image: {e}")))
    }
}

/// Refuses a library with AVX-512 code. The system's libraries are permitted, because they choose their code by the
/// processor; others may not do so.
fn check_instructions(library: &Path, user: &Path) -> Result<(), LabError> {
    if SYSTEM_LIBRARIES.iter().any(|folder| library.starts_with(folder)) {
        return Ok(());
    }
    match needs_avx512(library) {
        Ok(Some(function)) => Err(LabError::not_executable(format!(
            "{} loads {}, which uses AVX-512, which no emulator here has (in {function}): build it with -mno-avx512f",
            user.display(),
            library.display()
        ))),
        _ => Ok(()),
    }
}

fn write(archive: &mut Archive, path: &Path, entry: &Entry) -> std::io::Result<()> {
    match entry {
        Entry::Folder if path == Path::new("/") => Ok(()),
        Entry::Folder => archive.folder(path, 0o755),
        Entry::Link(target) => archive.link(path, target),
        Entry::Bytes(permissions, bytes) => archive.file(path, *permissions, bytes),
        Entry::Host(from) => {
            let file = File::open(from)?;
            let permissions = file.metadata()?.permissions().mode() & 0o7777;
            archive.copy(path, permissions, &file)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("nodewise-image-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn links_stay_links_and_what_they_lead_to_comes_along() {
        let folder = Folder::new("links");
        let real = folder.0.join("real");
        std::fs::create_dir(&real).unwrap();
        std::fs::write(real.join("data"), "x").unwrap();
        symlink("real", folder.0.join("link")).unwrap();
        symlink("nowhere", real.join("dangling")).unwrap();
        let mut image = Image::default();
        image.add(&folder.0.join("link")).unwrap();
        assert!(matches!(&image.entries[&folder.0.join("link")], Entry::Link(t) if t == Path::new("real")));
        assert!(
            matches!(&image.entries[&real.join("dangling")], Entry::Link(t) if t == Path::new("nowhere"))
        );
        assert!(matches!(image.entries[&real.join("data")], Entry::Host(_)));
        assert_eq!(image.bytes(), 1);
    }

    #[test]
    fn what_lacks_a_library_is_refused_alone_and_packed_in_a_folder() {
        let folder = Folder::new("lacking");
        let program = folder.0.join("program");
        let mut bytes = std::fs::read("/bin/true").unwrap();
        let name = bytes.windows(9).position(|w| w == b"libc.so.6").unwrap();
        bytes[name..name + 9].copy_from_slice(b"libc.so.X");
        std::fs::write(&program, bytes).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let error = Image::default().add(&program).unwrap_err();
        assert_eq!(error.exit_status(), 127);
        assert!(
            error
                .to_string()
                .contains("needs libc.so.X, which is not found here"),
            "{error}"
        );
        let mut image = Image::default();
        image.add(&folder.0).unwrap();
        assert!(image.entries.contains_key(&program));
    }

    #[test]
    fn a_library_that_does_not_load_alone_is_packed() {
        let mut own = Image::default();
        own.add(&std::env::current_exe().unwrap()).unwrap();
        let libgcc = own.entries.keys().find(|p| p.ends_with("libgcc_s.so.1")).unwrap();
        let mut bytes = std::fs::read(libgcc).unwrap();
        let name = bytes.windows(9).position(|w| w == b"libc.so.6").unwrap();
        bytes[name..name + 9].copy_from_slice(b"libc.so.X");
        let folder = Folder::new("plug-in");
        let library = folder.0.join("libplug.so");
        std::fs::write(&library, bytes).unwrap();
        let mut image = Image::default();
        image.add(&library).unwrap();
        assert!(image.entries.contains_key(&library));
    }

    #[test]
    fn a_circle_of_links_is_said() {
        let folder = Folder::new("circle");
        let (a, b) = (folder.0.join("a"), folder.0.join("b"));
        symlink(&b, &a).unwrap();
        symlink(&a, &b).unwrap();
        let error = Image::default().add(&a).unwrap_err().to_string();
        assert!(error.contains("leads in a circle"), "{error}");
    }

    #[test]
    fn a_program_brings_its_loader_its_libraries_and_all_folders_on_the_way() {
        let mut image = Image::default();
        image.add(&std::env::current_exe().unwrap()).unwrap();
        let has = |end: &str| image.entries.keys().any(|p| p.ends_with(end));
        assert!(has("libc.so.6") && has("ld-linux-x86-64.so.2"));
        for path in image.entries.keys() {
            let parent = path.parent().map(|p| image.entries.get(p));
            assert!(
                !matches!(parent, Some(None | Some(Entry::Host(_) | Entry::Bytes(..)))),
                "{path:?}"
            );
        }
    }
}

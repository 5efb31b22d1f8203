//! What a program needs to start: its loader and libraries, or its script's interpreter.

use crate::LabError;
use nodewise_linux::script;
use object::elf::{self, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, ReadCache};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What the kernel would make of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An x86-64 executable or library; its loader, if it is linked dynamically or a library's.
    Elf {
        interpreter: Option<PathBuf>,
        dynamic: bool,
    },
    /// A script: its interpreter and the one argument that may follow.
    Script {
        interpreter: PathBuf,
        argument: Option<OsString>,
    },
    /// Anything else.
    Data,
}

const ELF_HEADER: usize = 64;

/// # Errors
/// Unreadable, or an executable for another kind of computer.
pub(crate) fn kind(path: &Path) -> Result<Kind, LabError> {
    let unreadable = |e| LabError::io("read", path, &e);
    let file = File::open(path).map_err(unreadable)?;
    let mut head = Vec::new();
    (&file)
        .take(script::LINE)
        .read_to_end(&mut head)
        .map_err(unreadable)?;
    if let Some((interpreter, argument)) = script::interpreter(&head) {
        return Ok(Kind::Script {
            interpreter,
            argument,
        });
    }
    if !head.starts_with(b"\x7fELF") {
        return Ok(Kind::Data);
    }
    elf(path, &head, file)
}

fn elf(path: &Path, head: &[u8], file: File) -> Result<Kind, LabError> {
    let machine = head.get(18..20).map(|b| u16::from_le_bytes([b[0], b[1]]));
    if head.get(4) != Some(&elf::ELFCLASS64.0) || machine != Some(elf::EM_X86_64.0) {
        return Err(LabError::not_executable(format!(
            "{} is not made for x86-64, the only kind of processor the lab emulates",
            path.display()
        )));
    }
    let damaged = |e: object::read::Error| LabError::not_executable(format!("{}: {e}", path.display()));
    let cache = ReadCache::new(file);
    let header = FileHeader64::<Endianness>::parse(&cache).map_err(damaged)?;
    let endian = header.endian().map_err(damaged)?;
    let segments = header.program_headers(endian, &cache).map_err(damaged)?;
    let interpreter = segments
        .iter()
        .find_map(|s| s.interpreter(endian, &cache).ok().flatten());
    Ok(Kind::Elf {
        interpreter: interpreter.map(|i| OsStr::from_bytes(i).into()),
        dynamic: segments.iter().any(|s| s.p_type(endian) == elf::PT_DYNAMIC),
    })
}

/// An ELF file without what follows its last loaded byte: debug information, symbols, sections.
/// Anything else stays as it is.
pub(crate) fn loaded(mut bytes: Vec<u8>) -> Vec<u8> {
    let end = || {
        let header = FileHeader64::<Endianness>::parse(&*bytes).ok()?;
        let endian = header.endian().ok()?;
        let segments = header.program_headers(endian, &*bytes).ok()?;
        let ends = segments
            .iter()
            .map(|s| s.p_offset(endian).saturating_add(s.p_filesz(endian)));
        ends.max()
            .filter(|e| *e >= ELF_HEADER as u64 && *e <= bytes.len() as u64)
    };
    if let Some(end) = end() {
        bytes.truncate(end as usize);
        // e_shoff, and e_shentsize to e_shstrndx: it has no sections now.
        bytes[40..48].fill(0);
        bytes[58..ELF_HEADER].fill(0);
    }
    bytes
}

/// The libraries a program or library loads at its start, as its loader finds them here.
///
/// # Errors
/// One of them is not found, or there is no such loader.
pub(crate) fn libraries(
    path: &Path,
    loader: &Path,
    environment: &[(OsString, OsString)],
) -> Result<Vec<PathBuf>, LabError> {
    let output = Command::new(loader)
        .arg("--list")
        .arg(path)
        .env_clear()
        .envs(environment.iter().map(|(k, v)| (k, v)))
        .env_remove("LD_PRELOAD")
        .stdin(Stdio::null())
        .output()
        .map_err(|e| {
            LabError::not_executable(format!(
                "{} needs the loader {}, which cannot run: {e}",
                path.display(),
                loader.display()
            ))
        })?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if !output.status.success() {
        let said = text(&output.stderr);
        let why = said
            .split_once("libraries: ")
            .map_or(said.as_str(), |(_, why)| why);
        return Err(LabError::not_found(format!(
            "{} needs a library that does not load here: {}; LD_LIBRARY_PATH says where libraries are",
            path.display(),
            why.lines().next().unwrap_or_default()
        )));
    }
    Ok(text(&output.stdout).lines().filter_map(listed).collect())
}

/// `libm.so.6 => /lib/libm.so.6 (0x…)` or `/lib64/ld-linux-x86-64.so.2 (0x…)`.
fn listed(line: &str) -> Option<PathBuf> {
    let (what, _) = line.trim().rsplit_once(" (0x")?;
    let path = what.split_once(" => ").map_or(what, |(_, path)| path);
    path.starts_with('/').then(|| path.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_needs_its_loader_and_libc() {
        let own = std::env::current_exe().unwrap();
        let Kind::Elf {
            interpreter: Some(loader),
            dynamic: true,
        } = kind(&own).unwrap()
        else {
            panic!("not dynamic")
        };
        let libraries = libraries(&own, &loader, &[]).unwrap();
        assert!(
            libraries.iter().any(|l| l.ends_with("libc.so.6")),
            "{libraries:?}"
        );
        assert!(libraries.iter().all(|l| l.is_absolute()));
    }

    #[test]
    fn a_program_without_its_sections_still_runs() {
        let bytes = std::fs::read("/bin/true").unwrap();
        let length = bytes.len();
        let trimmed = loaded(bytes);
        assert!(trimmed.len() < length);
        let file = nodewise_linux::memfd::create(c"true").unwrap();
        std::io::Write::write_all(&mut &file, &trimmed).unwrap();
        let path = format!(
            "/proc/{}/fd/{}",
            std::process::id(),
            std::os::fd::AsRawFd::as_raw_fd(&file)
        );
        assert!(Command::new(path).status().unwrap().success());
        assert_eq!(loaded(b"text".to_vec()), b"text");
    }

    #[test]
    fn the_loaders_lines_are_read() {
        assert_eq!(listed("\tlinux-vdso.so.1 (0x00007ffc)"), None);
        assert_eq!(
            listed("\tlibm.so.6 => /lib/libm.so.6 (0x00007f)"),
            Some("/lib/libm.so.6".into())
        );
        assert_eq!(
            listed("\t/lib64/ld-linux-x86-64.so.2 (0x1)"),
            Some("/lib64/ld-linux-x86-64.so.2".into())
        );
    }
}

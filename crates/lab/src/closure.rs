//! Files that a program needs to start: its loader and libraries, or its script's interpreter.

use crate::LabError;
use nodewise_loader::{Environment, Kind};
use object::Endianness;
use object::elf::FileHeader64;
use object::read::elf::{FileHeader, ProgramHeader};
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

const ELF_HEADER: usize = 64;

/// How the kernel would execute a file.
///
/// # Errors
/// If it cannot be read, or is an executable for another kind of processor.
pub(crate) fn kind(path: &Path) -> Result<Kind, LabError> {
    let kind = nodewise_loader::kind(path).map_err(|e| match e.kind() {
        ErrorKind::InvalidData => LabError::not_executable(format!("{}: {e}", path.display())),
        _ => LabError::io("read", path, &e),
    })?;
    match &kind {
        Kind::Elf(program) if !program.is_x86_64() => Err(LabError::not_executable(format!(
            "{} is not made for x86-64, the only kind of processor the lab emulates",
            path.display()
        ))),
        _ => Ok(kind),
    }
}

/// An ELF file without everything after its last loaded byte: debug information, symbols, sections. Other files are
/// returned unchanged.
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
        // Clears e_shoff, and e_shentsize to e_shstrndx: the file has no sections any more.
        bytes[40..48].fill(0);
        bytes[58..ELF_HEADER].fill(0);
    }
    bytes
}

/// The libraries that a program or library loads when it starts, as its loader finds them on this host.
///
/// # Errors
/// If one of them is not found.
pub(crate) fn libraries(path: &Path, environment: &[(OsString, OsString)]) -> Result<Vec<PathBuf>, LabError> {
    let mut environment = Environment::of(environment.iter().cloned());
    environment.preload = None;
    let libraries =
        nodewise_loader::libraries(path, &environment).map_err(|e| LabError::io("read", path, &e))?;
    match libraries.missing.first() {
        None => Ok(libraries.found),
        Some(missing) => Err(LabError::not_found(format!(
            "{} needs {}, which is not found here; LD_LIBRARY_PATH says where libraries are",
            path.display(),
            missing.name.display()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

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
}

//! Finds the program to be recorded, and checks whether it counts its accesses.

use crate::error::{Error, ErrorKind};
use nodewise_loader::{Foreign, INTERFACE, Kind, interpreted, kind};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The file that running `command` executes, by a search in `path`.
///
/// # Errors
/// There is no such file, or it is not executable.
pub fn find(command: &OsStr, path: Option<&OsStr>) -> Result<PathBuf, Error> {
    let name = Path::new(command);
    let not_found = || {
        Error::new(
            ErrorKind::NotFound,
            format!("{}: no such program", name.display()),
        )
    };
    let file = if name.components().count() > 1 {
        Some(name.to_owned()).filter(|f| f.exists())
    } else {
        let folders = path.map(std::env::split_paths).into_iter().flatten();
        folders.map(|f| f.join(name)).find(|f| is_executable(f))
    };
    let file = file.ok_or_else(not_found)?;
    if !is_executable(&file) {
        let message = format!("{}: not executable; chmod +x it", file.display());
        return Err(Error::new(ErrorKind::NotExecutable, message));
    }
    Ok(file)
}

/// Whether a program itself is linked with the runtime.
#[must_use]
pub fn is_instrumented(file: &Path) -> bool {
    matches!(kind(file), Ok(Kind::Elf(program)) if program.needs_runtime())
}

/// Refuses a program whose profile would be empty, or whose code our runtime does not fit. Scripts are accepted, as they may
/// start one that counts.
///
/// # Errors
/// The program is not built with `nodewise-cc`, or by a version with another interface to the runtime.
pub fn check_instrumented(file: &Path) -> Result<(), Error> {
    let unreadable = |e| {
        Error::new(
            ErrorKind::NotExecutable,
            format!("{}: cannot be read: {e}", file.display()),
        )
    };
    let program = match kind(file).map_err(unreadable)? {
        Kind::Elf(program) => program,
        Kind::Script { .. } | Kind::Data => return Ok(()),
    };
    if program.needs_runtime() {
        // One without code of ours may load libraries that have some.
        let Some(other) = program.interface.filter(|version| *version != INTERFACE) else {
            return Ok(());
        };
        let message = format!(
            "{}: built by another version of nodewise-cc, for interface {other} of its runtime; this version has {INTERFACE}: \
             rebuild all of it (make clean first)",
            file.display()
        );
        return Err(Error::new(ErrorKind::NotInstrumented, message));
    }
    let why = match program.foreign() {
        None => "does not count its accesses: rebuild all of it (make clean first) with CC=nodewise-cc \
                 CXX=nodewise-cxx, or, if it starts a program that does, add --via instrument, or add --via \
                 emulate to count it as it is, 10 to 50 times slower"
            .to_owned(),
        Some(Foreign::Static) => "is a static binary, and counting needs a shared library: rebuild it with \
                                  CC=nodewise-cc, without -static, or add --via emulate to count it as it is, \
                                  10 to 50 times slower"
            .to_owned(),
        Some(Foreign::Sanitizer(name)) => {
            format!("is built with {name} and does not count its accesses: rebuild it with CC=nodewise-cc instead")
        }
        Some(why) => format!("{why}: rebuild it for this one with CC=nodewise-cc, or add --via faults to sample it"),
    };
    Err(Error::new(
        ErrorKind::NotInstrumented,
        format!("{} {why}", file.display()),
    ))
}

/// Why the program at `file` takes no preloaded library and can only be observed from outside; static programs ignore
/// preloads.
#[must_use]
pub fn unreached(file: &Path) -> Option<String> {
    let (path, program) = interpreted(file).ok()??;
    let why = program.foreign().filter(|why| *why != Foreign::Static)?;
    Some(format!("{} {why}", path.display()))
}

fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(file).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_as_a_shell_finds_them() {
        let path = OsStr::new("/nonexistent:/bin");
        assert_eq!(find(OsStr::new("sh"), Some(path)).unwrap(), Path::new("/bin/sh"));
        assert_eq!(find(OsStr::new("/bin/sh"), None).unwrap(), Path::new("/bin/sh"));
        assert_eq!(
            find(OsStr::new("sh"), None).unwrap_err().kind(),
            ErrorKind::NotFound
        );
        assert_eq!(
            find(OsStr::new("./etc"), Some(path)).unwrap_err().kind(),
            ErrorKind::NotFound
        );
        assert_eq!(
            find(OsStr::new("/etc/passwd"), None).unwrap_err().kind(),
            ErrorKind::NotExecutable
        );
    }

    #[test]
    fn a_plain_program_is_refused_with_the_remedy() {
        let error = check_instrumented(Path::new("/bin/sh")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotInstrumented);
        assert!(error.to_string().contains("nodewise-cc"));
    }
}

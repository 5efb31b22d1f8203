//! Classifies files: programs, scripts, others.

use crate::Program;
use crate::script::{self, LINE_BYTES};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The kind of a file, by which the kernel decides how to execute it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An ELF program or library.
    Elf(Program),
    /// A script with an interpreter line.
    Script {
        /// Path of the interpreter, as written in the first line.
        interpreter: PathBuf,
        /// The optional single argument: the rest of the first line.
        argument: Option<OsString>,
    },
    /// A file of any other kind.
    Data,
}

/// Determines the kind of the file at `path`.
///
/// # Errors
/// The file cannot be read, or is a damaged ELF file (`InvalidData`).
pub fn kind(path: &Path) -> io::Result<Kind> {
    let file = File::open(path)?;
    let mut head = Vec::new();
    (&file).take(LINE_BYTES).read_to_end(&mut head)?;
    if let Some((interpreter, argument)) = script::interpreter(&head) {
        return Ok(Kind::Script {
            interpreter,
            argument,
        });
    }
    if !head.starts_with(b"\x7fELF") {
        return Ok(Kind::Data);
    }
    Program::read(&head, file).map(Kind::Elf)
}

impl Program {
    /// Reads the ELF file at `path`.
    ///
    /// # Errors
    /// The file cannot be read, or is not an ELF file.
    pub fn open(path: &Path) -> io::Result<Self> {
        match kind(path)? {
            Kind::Elf(program) => Ok(program),
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "not an ELF file")),
        }
    }
}

/// The ELF program that is run if `path` is executed, and its path: `path` itself or, for a script, its interpreter,
/// which may be a script again up to the kernel's limit. `None` if there is no such program.
///
/// # Errors
/// As [`kind`].
pub fn interpreted(path: &Path) -> io::Result<Option<(PathBuf, Program)>> {
    let mut at = path.to_owned();
    for _ in 0..=script::MAX_INTERPRETERS {
        match kind(&at)? {
            Kind::Elf(program) => return Ok(Some((at, program))),
            Kind::Script { interpreter, .. } => at = interpreter,
            Kind::Data => return Ok(None),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_a_program_a_script_or_neither() {
        let own = std::env::current_exe().unwrap();
        let Kind::Elf(program) = kind(&own).unwrap() else {
            panic!("not a program")
        };
        assert!(program.is_dynamic() && program.interpreter.is_some());
        assert_eq!(kind(Path::new("/etc/passwd")).unwrap(), Kind::Data);
        let script = std::env::temp_dir().join(format!("nodewise-kind-{}", std::process::id()));
        std::fs::write(&script, "#!/bin/sh -e\n").unwrap();
        let interpreter = PathBuf::from("/bin/sh");
        let argument = Some("-e".into());
        assert_eq!(
            kind(&script).unwrap(),
            Kind::Script {
                interpreter,
                argument
            }
        );
        assert_eq!(interpreted(&script).unwrap().unwrap().0, Path::new("/bin/sh"));
        std::fs::write(&script, format!("#!{}\n", script.display())).unwrap();
        assert_eq!(interpreted(&script).unwrap(), None);
        std::fs::write(&script, b"\x7fELF\x02\x01").unwrap();
        assert_eq!(kind(&script).unwrap_err().kind(), io::ErrorKind::InvalidData);
        std::fs::remove_file(&script).unwrap();
    }
}

//! Classifies files: programs, scripts, others.

use crate::Program;
use crate::script::{self, LINE};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// What the kernel would make of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An ELF program or library.
    Elf(Program),
    /// A script: its interpreter and the one argument that may follow.
    Script {
        /// As the first line names it.
        interpreter: PathBuf,
        /// The rest of the first line.
        argument: Option<OsString>,
    },
    /// A file of any other kind.
    Data,
}

/// What `path` is.
///
/// # Errors
/// Unreadable, or a damaged ELF file (`InvalidData`).
pub fn kind(path: &Path) -> io::Result<Kind> {
    let file = File::open(path)?;
    let mut head = Vec::new();
    (&file).take(LINE).read_to_end(&mut head)?;
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
    /// The ELF file at `path`.
    ///
    /// # Errors
    /// Unreadable, or no ELF file.
    pub fn open(path: &Path) -> io::Result<Self> {
        match kind(path)? {
            Kind::Elf(program) => Ok(program),
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "not an ELF file")),
        }
    }
}

/// The program that executing `path` runs in the end: itself, or its interpreter's, as far as the kernel goes; and
/// the file that it was read from. `None`: no program.
///
/// # Errors
/// As [`kind`].
pub fn interpreted(path: &Path) -> io::Result<Option<(PathBuf, Program)>> {
    let mut at = path.to_owned();
    for _ in 0..=script::MOST_INTERPRETERS {
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

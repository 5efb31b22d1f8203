//! Queries version and capabilities of QEMU.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// From this release on the plugin interface is version 2 or newer (QEMU 9.0).
const SECOND_INTERFACE: u32 = 9;

/// An emulator that was asked for its version.
#[derive(Clone, Debug)]
pub struct Qemu {
    /// Path of the program, or its name if it is on the search path.
    pub program: PathBuf,
    /// The name that it prints: `QEMU emulator` for system emulation, `qemu-x86_64` and the like for user mode.
    pub name: String,
    /// The version that it prints: `7.2.22`.
    pub version: String,
    /// Major and minor version.
    pub release: (u32, u32),
}

impl Qemu {
    /// Asks a program; `None` if it is no QEMU.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn ask(program: &Path) -> io::Result<Option<Self>> {
        let known = answer(program, "--version")?.and_then(|text| named(&text));
        Ok(known.map(|(name, version, release)| Self {
            program: program.to_owned(),
            name,
            version,
            release,
        }))
    }

    /// The version of the plugin interface, which decides the plugin to load.
    #[must_use]
    pub fn interface(&self) -> u32 {
        if self.release.0 >= SECOND_INTERFACE { 2 } else { 1 }
    }

    /// Whether it was built with support for plugins.
    #[must_use]
    pub fn loads_plugins(&self) -> bool {
        let help = answer(&self.program, "--help").ok().flatten();
        help.is_some_and(|text| text.contains("-plugin"))
    }
}

/// The program's output; `None` if it fails.
fn answer(program: &Path, question: &str) -> io::Result<Option<String>> {
    let output = Command::new(program)
        .arg(question)
        .stdin(Stdio::null())
        .output()?;
    let text = || String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(output.status.success().then(text))
}

/// `QEMU emulator version 7.2.22 (Debian …`
fn named(text: &str) -> Option<(String, String, (u32, u32))> {
    let (name, rest) = text.lines().next()?.split_once(" version ")?;
    let version = rest.split_whitespace().next()?;
    let mut numbers = version.split('.').map_while(|n| n.parse().ok());
    let release = (numbers.next()?, numbers.next()?);
    let is_qemu = name.to_ascii_lowercase().starts_with("qemu");
    is_qemu.then(|| (name.to_owned(), version.to_owned(), release))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_qemu_is_known_by_its_first_line() {
        let known = named("QEMU emulator version 7.2.22 (Debian 1:7.2)\nCopyright\n").unwrap();
        assert_eq!(known, ("QEMU emulator".into(), "7.2.22".into(), (7, 2)));
        assert_eq!(named("qemu-x86_64 version 10.0.2\n").unwrap().2, (10, 0));
        assert_eq!(named("qemu-x86_64 version 8.1.5\n").unwrap().2, (8, 1));
        assert_eq!(named("qemu-x86_64 version new\n"), None);
        for other in [
            "",
            "true (GNU coreutils) 9.1",
            "GNU bash, version 5.2.15",
            "QEMU emulator version x",
        ] {
            assert_eq!(named(other), None, "{other}");
        }
    }

    #[test]
    fn a_program_that_is_none_is_told_from_one_that_is_not_there() {
        assert!(Qemu::ask(Path::new("/bin/true")).unwrap().is_none());
        assert!(Qemu::ask(Path::new("/nonexistent/qemu")).is_err());
    }
}

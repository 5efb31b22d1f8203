//! Runs unmodified programs under QEMU's user mode: finds QEMU and the plugin, and checks what QEMU can run.

use crate::error::{Error, ErrorKind};
use crate::program::find;
use crate::slicing::Slicing;
use nodewise_linux::qemu::Qemu;
use nodewise_loader::{Foreign, Kind, MAX_INTERPRETERS, Program, RUNTIME, kind};
use nodewise_symbols::needs_avx512;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Name of the QEMU executable; a path in `NODEWISE_QEMU_USER` takes precedence.
pub const QEMU: &str = "qemu-x86_64";

/// A QEMU that can load our plugin.
#[derive(Clone, Debug)]
pub struct Emulator {
    qemu: PathBuf,
    version: String,
    plugin: PathBuf,
    preload: PathBuf,
}

/// The executable that is run; for a script that is its interpreter.
struct Target {
    file: PathBuf,
    arguments: Vec<OsString>,
}

impl Emulator {
    /// Uses the QEMU at `chosen`, else the one in `path`. `libraries` is the folder of our libraries.
    ///
    /// # Errors
    /// There is no QEMU, or it cannot load plugins.
    pub fn find(libraries: &Path, chosen: Option<&OsStr>, path: Option<&OsStr>) -> Result<Self, Error> {
        let qemu = find(chosen.unwrap_or(QEMU.as_ref()), path).map_err(|e| match chosen {
            Some(_) => e,
            None => unusable(format!("--via emulate needs {QEMU}: apt install qemu-user")),
        })?;
        let no_qemu = || unusable(format!("{} is no QEMU: it says no version", qemu.display()));
        let known = Qemu::ask(&qemu).ok().flatten();
        let qemu = known.filter(|q| q.name.starts_with("qemu")).ok_or_else(no_qemu)?;
        if !qemu.loads_plugins() {
            return Err(unusable(format!(
                "{} {} was built without plugins; Debian 12's qemu-user (7.2) has them: name another with \
                 NODEWISE_QEMU_USER=PATH",
                qemu.program.display(),
                qemu.version
            )));
        }
        let library = |name: String| {
            let path = libraries.join(&name);
            let missing = || {
                format!(
                    "{name} is missing in {}; `make build` makes it",
                    libraries.display()
                )
            };
            path.exists().then_some(path).ok_or_else(|| unusable(missing()))
        };
        Ok(Self {
            plugin: library(format!("libnodewise-emulate-{}.so", qemu.interface()))?,
            preload: library(RUNTIME.to_owned())?,
            qemu: qemu.program,
            version: qemu.version,
        })
    }

    /// The version that QEMU reports.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The command that runs `program`, whose file is `file`, with these arguments under QEMU and counts its accesses.
    /// `environment` holds variables for the program's dynamic linker that QEMU must not see.
    ///
    /// # Errors
    /// The program cannot be emulated.
    pub fn command(
        &self,
        program: &OsStr,
        file: &Path,
        arguments: &[OsString],
        slicing: Slicing,
        environment: impl Iterator<Item = (OsString, OsString)>,
    ) -> Result<Command, Error> {
        if slicing == Slicing::Region {
            return Err(unusable(
                "an emulator sees no end of a parallel region: --slice region needs --via instrument"
                    .to_owned(),
            ));
        }
        let target = Target::of(file)?;
        let mut command = Command::new(&self.qemu);
        // `max` has all features of the code generator: programs choose their code by the features of the CPU.
        command.args(["-cpu", "max", "-E", "NODEWISE_EMULATED=1"]);
        let mut preload = self.preload.clone().into_os_string();
        for (name, value) in environment.filter(|(name, _)| name.as_bytes().starts_with(b"LD_")) {
            command.env_remove(&name);
            if name == "LD_PRELOAD" {
                preload.push(":");
                preload.push(value);
            } else {
                command.arg("-E").arg(pair(&name, &value));
            }
        }
        command.arg("-E").arg(pair("LD_PRELOAD".as_ref(), &preload));
        let mut plugin = self.plugin.clone().into_os_string();
        plugin.push(",preload=");
        plugin.push(&self.preload);
        if matches!(slicing, Slicing::Accesses(_)) {
            plugin.push(",slices=accesses");
        }
        command.arg("-plugin").arg(plugin);
        let name = if target.arguments.is_empty() {
            program
        } else {
            target.file.as_os_str()
        };
        command.arg("-0").arg(name);
        command.arg(&target.file).args(&target.arguments).args(arguments);
        Ok(command)
    }
}

impl Target {
    fn of(file: &Path) -> Result<Self, Error> {
        let mut target = Self {
            file: file.to_owned(),
            arguments: Vec::new(),
        };
        for _ in 0..MAX_INTERPRETERS {
            let (interpreter, argument) = match kind(&target.file) {
                Ok(Kind::Script {
                    interpreter,
                    argument,
                }) => (interpreter, argument),
                Ok(Kind::Elf(program)) => {
                    check(&target.file, &program)?;
                    return Ok(target);
                }
                Ok(Kind::Data) => return Err(refused(&target.file, "is neither a program nor a script")),
                Err(error) => return Err(refused(&target.file, &format!("cannot be read: {error}"))),
            };
            if !interpreter.exists() {
                let missing = format!("asks for {}, which is not there", interpreter.display());
                return Err(refused(&target.file, &missing));
            }
            let script = std::mem::replace(&mut target.file, interpreter).into_os_string();
            target
                .arguments
                .splice(0..0, argument.into_iter().chain([script]));
        }
        Err(refused(
            file,
            "is a script whose interpreters are scripts, too many of them",
        ))
    }
}

/// Refuses programs that would not run or would not be counted.
fn check(file: &Path, program: &Program) -> Result<(), Error> {
    if !program.is_x86_64() {
        return Err(refused(file, "is no x86-64 program, and only those are emulated"));
    }
    match program.foreign() {
        Some(why @ Foreign::Loader(_)) => {
            let remedy =
                format!("{why}, and what counts is a library of glibc's: link it statically (-static)");
            return Err(refused(file, &remedy));
        }
        Some(Foreign::Sanitizer(name)) => {
            let remedy = format!("is built with {name}, whose room the emulator needs: record a plain build");
            return Err(refused(file, &remedy));
        }
        _ => {}
    }
    if program.needs_runtime() {
        return Err(refused(
            file,
            "counts its accesses itself: record it with --via instrument, or its plain build with --via emulate",
        ));
    }
    let wide = needs_avx512(file).map_err(|e| Error::new(ErrorKind::NotExecutable, e.to_string()))?;
    if let Some(function) = wide {
        return Err(refused(
            file,
            &format!("uses AVX-512 ({function}), which QEMU has not: build it with -march=x86-64-v3"),
        ));
    }
    Ok(())
}

fn pair(name: &OsStr, value: &OsStr) -> OsString {
    let mut pair = name.to_owned();
    pair.push("=");
    pair.push(value);
    pair
}

fn unusable(message: String) -> Error {
    Error::new(ErrorKind::NoEmulator, message)
}

fn refused(file: &Path, why: &str) -> Error {
    Error::new(ErrorKind::NotExecutable, format!("{} {why}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(file: &Path, slicing: Slicing) -> Result<Vec<String>, Error> {
        let emulator = Emulator {
            qemu: "/usr/bin/qemu-x86_64".into(),
            version: "7.2".to_owned(),
            plugin: "/lib/plugin.so".into(),
            preload: "/lib/rt.so".into(),
        };
        let environment = [
            ("LD_PRELOAD", "mine.so"),
            ("LD_LIBRARY_PATH", "/opt"),
            ("HOME", "/"),
        ];
        let environment = environment.map(|(n, v)| (n.into(), v.into()));
        let command = emulator.command(
            file.as_os_str(),
            file,
            &["x".into()],
            slicing,
            environment.into_iter(),
        )?;
        Ok(command
            .get_args()
            .map(|a| a.to_string_lossy().into_owned())
            .collect())
    }

    #[test]
    fn the_linkers_variables_reach_the_program_alone() {
        let arguments = command(Path::new("/bin/sh"), Slicing::Accesses(9))
            .unwrap()
            .join(" ");
        assert!(arguments.contains("-E LD_PRELOAD=/lib/rt.so:mine.so "));
        assert!(arguments.contains("-E LD_LIBRARY_PATH=/opt "));
        assert!(!arguments.contains("HOME"));
        assert!(
            arguments
                .ends_with("-plugin /lib/plugin.so,preload=/lib/rt.so,slices=accesses -0 /bin/sh /bin/sh x")
        );
    }

    #[test]
    fn a_script_is_its_interpreters_argument() {
        let script = std::env::temp_dir().join(format!("nodewise-script-{}", std::process::id()));
        std::fs::write(&script, "#! /bin/sh -e\nexit\n").unwrap();
        let arguments = command(&script, Slicing::Accesses(9)).unwrap().join(" ");
        std::fs::write(&script, "#!/nonexistent\n").unwrap();
        let missing = command(&script, Slicing::Accesses(9)).unwrap_err();
        std::fs::remove_file(&script).unwrap();
        assert!(arguments.ends_with(&format!("-0 /bin/sh /bin/sh -e {} x", script.display())));
        assert!(missing.to_string().contains("/nonexistent"));
    }

    #[test]
    fn what_cannot_be_emulated_is_refused_with_the_remedy() {
        let region = command(Path::new("/bin/sh"), Slicing::Region).unwrap_err();
        assert!(region.to_string().contains("--via instrument"));
        let none = Emulator::find(Path::new("/"), None, Some("/nonexistent".as_ref())).unwrap_err();
        assert!(none.to_string().contains("apt install qemu-user"));
        assert_eq!(none.kind(), ErrorKind::NoEmulator);
    }
}

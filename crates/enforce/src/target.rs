//! The executable that rules are for, and its libraries.

use crate::EnforceError;
use nodewise_loader::{Environment, Foreign, Kind, interpreted, kind};
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A dynamically linked executable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Path of the executable.
    pub path: PathBuf,
    /// Shared libraries that it loads at start, as the dynamic loader finds them.
    pub libraries: Vec<PathBuf>,
}

impl Target {
    /// The program in `command` for which rules recorded for `program` are meant: the first word with that file name
    /// (so that `numactl … ./app` and `mpirun … ./app` work), else the command itself.
    ///
    /// # Errors
    /// The program does not exist, or a preload would not reach it: it is a script, static, or set-user-ID.
    pub fn find(command: &[OsString], program: Option<&str>) -> Result<Self, EnforceError> {
        let first = command
            .first()
            .ok_or_else(|| EnforceError::new("no command given"))?;
        let named = |word: &&OsString| {
            Path::new(word)
                .file_name()
                .is_some_and(|f| Some(f) == program.map(AsRef::as_ref))
        };
        let wrapped = command
            .iter()
            .filter(named)
            .find_map(|w| which(w).filter(|p| is_elf(p)));
        let path = wrapped.or_else(|| which(first)).ok_or_else(|| missing(first))?;
        check(&path, program)?;
        let libraries = libraries(&path)?;
        Ok(Self { path, libraries })
    }

    /// Whether one of its libraries is an OpenMP runtime.
    #[must_use]
    pub fn uses_openmp(&self) -> bool {
        self.libraries
            .iter()
            .filter_map(|l| l.file_name()?.to_str())
            .any(|name| {
                ["libgomp", "libomp", "libiomp"]
                    .iter()
                    .any(|runtime| name.starts_with(runtime))
            })
    }
}

/// The error for a command word that is not the name of a program.
fn missing(word: &OsStr) -> EnforceError {
    let path = Path::new(word);
    match path.components().count() > 1 && path.exists() {
        true => EnforceError::not_executable(format!("{}: is not executable", path.display())),
        false => EnforceError::not_found(format!("{}: no such program", path.display())),
    }
}

/// The file of a command word: a path, or a name that is looked up in `PATH`.
pub(crate) fn which(word: &OsStr) -> Option<PathBuf> {
    let executable = |path: &PathBuf| {
        path.metadata()
            .is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
    };
    if word.as_encoded_bytes().contains(&b'/') {
        return Some(PathBuf::from(word)).filter(executable);
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders)
        .map(|f| f.join(word))
        .find(executable)
}

fn is_elf(path: &Path) -> bool {
    matches!(kind(path), Ok(Kind::Elf(_)))
}

/// Checks that the preload reaches the program.
fn check(path: &Path, program: Option<&str>) -> Result<(), EnforceError> {
    let refuse = |what: String| Err(EnforceError::new(format!("{}: {what}", path.display())));
    let elf = match kind(path).map_err(|e| EnforceError::io("read", path, &e))? {
        Kind::Elf(elf) => elf,
        Kind::Script { .. } | Kind::Data => {
            let program = program.unwrap_or("the program");
            return Err(EnforceError::script(format!(
                "{}: is a script; rules reach programs only: start {program} itself",
                path.display()
            )));
        }
    };
    match elf.foreign() {
        Some(Foreign::Static) => {
            return refuse("is statically linked, so nothing can be placed in it; link it dynamically, or use --policy round-robin, node:N or weighted".into());
        }
        Some(why) => {
            return Err(EnforceError::foreign(format!("{} {why}", path.display())));
        }
        None => {}
    }
    let mode = path
        .metadata()
        .map_err(|e| EnforceError::io("read", path, &e))?
        .mode();
    if mode & 0o6000 != 0 {
        return refuse(
            "is set-user-ID or set-group-ID: the loader ignores preloads for it; run a plain copy".into(),
        );
    }
    Ok(())
}

/// Why nothing can be preloaded into the first program that `command` starts, looking through scripts; a static program
/// that starts others hands the preload on.
pub(crate) fn unreached(command: &[OsString]) -> Option<String> {
    let (path, program) = interpreted(&which(command.first()?)?).ok()??;
    let why = program.foreign().filter(|why| *why != Foreign::Static)?;
    Some(format!("{} {why}", path.display()))
}

/// Whether the first program that `command` starts, looking through scripts, is linked statically.
pub(crate) fn is_static(command: &[OsString]) -> bool {
    let program = command
        .first()
        .and_then(|first| interpreted(&which(first)?).ok()?);
    program.is_some_and(|(_, program)| program.foreign() == Some(Foreign::Static))
}

/// Shared libraries that the dynamic loader maps at start.
fn libraries(path: &Path) -> Result<Vec<PathBuf>, EnforceError> {
    let mut environment = Environment::of(std::env::vars_os());
    environment.preload = None;
    nodewise_loader::libraries(path, &environment)
        .map(|l| l.found)
        .map_err(|e| EnforceError::io("read", path, &e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_behind_its_starter() {
        let command = ["env", "A=1", "sh", "-c", "true"].map(OsString::from);
        let target = Target::find(&command, Some("sh")).unwrap();
        assert!(target.path.ends_with("sh"), "{target:?}");
        assert!(
            target
                .libraries
                .iter()
                .any(|l| l.to_string_lossy().contains("libc.so"))
        );
        assert!(!target.uses_openmp());
    }

    #[test]
    fn what_a_preload_cannot_reach_is_refused() {
        let missing = Target::find(&["/nonexistent".into()], None).unwrap_err();
        assert!(missing.is_not_found());
        let passwd = Target::find(&["/etc/passwd".into()], None).unwrap_err();
        assert!(passwd.is_not_executable() && !passwd.is_not_found());
        let folder = std::env::temp_dir().join(format!("nodewise-target-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let script = folder.join("script");
        std::fs::write(&script, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
        let error = Target::find(&[script.clone().into()], Some("app")).unwrap_err();
        assert!(error.to_string().ends_with("start app itself"), "{error}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

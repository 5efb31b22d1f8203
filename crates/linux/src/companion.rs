//! Files that are installed together with the running program.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file of the installation that is missing.
#[derive(Debug, thiserror::Error)]
#[error("{name} is missing beside {}; `make build` makes it", program.display())]
pub struct Missing {
    name: String,
    program: PathBuf,
}

/// Finds a library or program that belongs to this one: next to it, in `lib` beside it, or in the installation's
/// folders.
///
/// # Errors
/// It is in none of these places.
pub fn find(name: &str) -> Result<PathBuf, Missing> {
    let program = std::env::current_exe().unwrap_or_default();
    let beside = program.parent().unwrap_or(Path::new("/"));
    let places = [
        beside.join("lib"),
        beside.to_owned(),
        beside.join("../lib/nodewise"),
    ];
    let found = places.iter().map(|p| p.join(name)).find(|p| p.exists());
    found.ok_or_else(|| Missing {
        name: name.to_owned(),
        program,
    })
}

/// Has the loader preload `libraries` into `command`, before what it preloads already by the command's environment or by
/// ours.
pub fn preload(command: &mut Command, libraries: &[PathBuf]) {
    let set = command.get_envs().find(|(name, _)| *name == "LD_PRELOAD");
    let others = match set {
        Some((_, value)) => value.map(OsStr::to_owned),
        None => std::env::var_os("LD_PRELOAD"),
    };
    let others = others.filter(|value| !value.is_empty());
    let all: Vec<OsString> = libraries.iter().map(|l| l.clone().into()).chain(others).collect();
    command.env("LD_PRELOAD", all.join(OsStr::new(":")));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_beside_is_found_and_what_does_not_is_named() {
        let own = std::env::current_exe().unwrap();
        let name = own.file_name().unwrap().to_str().unwrap();
        assert_eq!(find(name).unwrap(), own);
        let error = find("libnodewise-none.so").unwrap_err().to_string();
        assert!(
            error.starts_with("libnodewise-none.so is missing beside "),
            "{error}"
        );
    }
}

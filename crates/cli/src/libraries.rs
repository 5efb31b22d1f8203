//! Where the libraries are that run inside programs.

use anyhow::bail;
use std::path::{Path, PathBuf};

/// The folder that holds `name`: next to this program, or where an installation has it.
pub fn folder_of(name: &str) -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let beside = own.parent().unwrap_or(Path::new("/"));
    let places = [
        beside.join("lib"),
        beside.to_owned(),
        beside.join("../lib/nodewise"),
    ];
    match places.into_iter().find(|p| p.join(name).exists()) {
        Some(folder) => Ok(folder),
        None => bail!(
            "{name} is missing beside {}; `make build` makes it",
            own.display()
        ),
    }
}

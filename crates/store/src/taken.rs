//! Adds the parts that threads took in other runs of the command to a complete profile.

use crate::error::{Error, Result};
use crate::manifest::Manifest;
use crate::{tables, validate};
use nodewise_profile::TakenPart;
use std::path::Path;

/// Replaces the table of the parts that threads took in other runs.
///
/// # Errors
/// There is no profile, `taken` contradicts itself, or a file cannot be written.
pub fn set_taken(folder: &Path, taken: &[TakenPart]) -> Result<()> {
    validate::taken(taken).map_err(Error::invalid)?;
    let mut manifest = Manifest::read(folder)?;
    let old = manifest
        .tables
        .get(tables::TAKEN_TABLE)
        .map(|entry| entry.file.clone());
    let suffix = ["", "-2"]
        .into_iter()
        .find(|suffix| old.as_deref() != Some(&tables::file(tables::TAKEN_TABLE, suffix)));
    let entry = tables::write_taken(folder, suffix.unwrap_or_default(), taken)?;
    manifest.tables.insert(tables::TAKEN_TABLE.to_owned(), entry);
    manifest.write(folder, true)?;
    if let Some(old) = old {
        // A file that cannot be removed is harmless: the manifest does not list it.
        let _ = std::fs::remove_file(folder.join(old));
    }
    Ok(())
}

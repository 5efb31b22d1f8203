//! The folder in which placed processes find their table and leave their summaries.

use crate::{EnforceError, Plan};
use nodewise_linux::TemporaryFolder;
use nodewise_linux::process::own_user;
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Mode of the folder in which processes of other users report: they may create files there, but neither list nor remove
/// others' files.
const DROP_BOX: u32 = 0o1733;

/// Sets a file's mode if root starts the program, as servers commonly give up being root. What these processes write is read
/// as any user's input: regular files alone, up to a size, and bounds are checked.
fn for_other_users(path: &Path, mode: u32) -> io::Result<()> {
    let is_ours = |m: std::fs::Metadata| m.is_file() || m.is_dir(); // and not /dev/null
    match own_user() {
        0 if is_ours(path.metadata()?) => std::fs::set_permissions(path, PermissionsExt::from_mode(mode)),
        _ => Ok(()),
    }
}

/// Creates the file in which placed processes list their objects, empty; they append to it, as other users too if root
/// starts them.
///
/// # Errors
/// It cannot be written.
pub fn empty_list(file: &Path) -> io::Result<PathBuf> {
    std::fs::write(file, "")?;
    for_other_users(file, 0o622)?;
    file.canonicalize()
}

/// A temporary folder for the table and the summaries. It is this user's alone until it has the table.
#[derive(Debug)]
pub struct RunFolder {
    folder: TemporaryFolder,
    /// The file that lists objects; it is closed to other users again with the folder.
    objects: Option<PathBuf>,
}

impl RunFolder {
    /// Creates the folder in `TMPDIR` if that is set, else in memory, as each placed process creates a file in it.
    ///
    /// # Errors
    /// No folder can be written: one line with the remedy.
    pub fn new(plan: &Plan) -> Result<Self, EnforceError> {
        let (temporary, memory) = (std::env::temp_dir(), Path::new("/dev/shm"));
        let (first, second) = match std::env::var_os("TMPDIR") {
            Some(_) => (temporary.as_path(), memory),
            None => (memory, temporary.as_path()),
        };
        Self::below(first, plan)
            .or_else(|error| Self::below(second, plan).map_err(|_| error))
            .map_err(|e| {
                EnforceError::usage(format!(
                    "cannot write to {}: {e}; {}",
                    first.display(),
                    remedy(&e)
                ))
            })
    }

    fn below(parent: &Path, plan: &Plan) -> io::Result<Self> {
        let folder = TemporaryFolder::below(parent, "run")?;
        if let Some(table) = &plan.table {
            let file = folder.path().join("table");
            std::fs::write(&file, table.to_bytes())?;
            for_other_users(&file, 0o644)?;
        }
        for_other_users(folder.path(), DROP_BOX)?;
        Ok(Self {
            folder,
            objects: plan.objects.clone(),
        })
    }

    /// Its path, valid until this is dropped.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        if let Some(file) = &self.objects {
            let _ = for_other_users(file, 0o644);
        }
    }
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::FileTooLarge => "raise the limit on file sizes (ulimit -f)",
        _ => "set TMPDIR",
    }
}

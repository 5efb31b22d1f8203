//! Starts a command under a plan; shared by `run` and `balance`.

use crate::exit::OwnFailure;
use crate::output;
use nodewise_enforce::{EnforceError, Plan};
use nodewise_linux::process::own_user;
use nodewise_linux::{companion, lock};
use std::ffi::OsStr;
use std::fs::{DirBuilder, DirEntry, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Refuses standard output as the file for the list of objects, because the placed processes append to that file.
pub fn check_objects(file: Option<&PathBuf>) -> anyhow::Result<()> {
    output::check_named("--objects", file, "each process of the program appends its own")
}

/// Creates the file for the objects, empty; the processes append to it, as other users too if root starts them.
pub fn empty(file: &Path) -> anyhow::Result<PathBuf> {
    std::fs::write(file, "")
        .and_then(|()| for_other_users(file, 0o622))
        .and_then(|()| file.canonicalize())
        .map_err(|e| failure(125, format!("cannot write {}: {e}", file.display())))
}

/// Path of the library that is preloaded to place pages.
pub fn preload() -> anyhow::Result<PathBuf> {
    companion::find("libnodewise-preload.so").map_err(|e| failure(125, e.to_string()))
}

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

/// A temporary folder for the table and the summaries. Its owner removes it at the end; if the owner was killed, the
/// next run does.
pub struct Folder {
    path: PathBuf,
    /// A lock that is held as long as the owner lives.
    lock: File,
    /// The file that lists objects; it is closed to other users again with the folder.
    objects: Option<PathBuf>,
}

/// Age up to which an unlocked folder is kept: its owner may not have locked it yet.
const UNLOCKED_GRACE: Duration = Duration::from_secs(60);
const FOLDER_PREFIX: &str = "nodewise-run-";

impl Folder {
    /// Creates the folder in `TMPDIR` if that is set, else in memory, as each placed process creates a file in it.
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
        remove_abandoned(parent);
        let name = |n| parent.join(format!("{FOLDER_PREFIX}{}-{n}", std::process::id()));
        // A killed run may have left a folder with the process identifier that this process has now.
        let path = (0..).map(name).find(|path| !path.exists()).unwrap_or_default();
        // Ours alone until it is locked and has the table.
        DirBuilder::new().mode(0o700).create(&path)?;
        let folder = lock::open_folder(&path).map(|lock| Self {
            path,
            lock,
            objects: plan.objects.clone(),
        })?;
        if !lock::try_exclusive(&folder.lock)? {
            return Err(ErrorKind::WouldBlock.into());
        }
        if let Some(table) = &plan.table {
            let file = folder.path().join("table");
            std::fs::write(&file, table.to_bytes())?;
            for_other_users(&file, 0o644)?;
        }
        for_other_users(folder.path(), DROP_BOX)?;
        Ok(folder)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
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

/// Removes folders of killed runs, if permissions allow it.
fn remove_abandoned(parent: &Path) {
    let old = |entry: &DirEntry| {
        let made = entry.metadata().and_then(|m| m.modified());
        made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age > UNLOCKED_GRACE))
    };
    for entry in parent.read_dir().into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let numbers = name.strip_prefix(FOLDER_PREFIX).unwrap_or("none");
        let ours = numbers.chars().all(|c| c == '-' || c.is_ascii_digit());
        let folder = ours && entry.file_type().is_ok_and(|t| t.is_dir()) && old(&entry);
        if folder
            && lock::open_folder(&entry.path()).is_ok_and(|f| lock::try_exclusive(&f).is_ok_and(|free| free))
        {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// The error for a program that cannot be started; its status is 127 or 126 as in shells.
pub fn cannot_start(program: &OsStr, error: &std::io::Error) -> anyhow::Error {
    let status = if error.kind() == ErrorKind::NotFound {
        127
    } else {
        126
    };
    failure(status, format!("cannot start {}: {error}", program.display()))
}

#[allow(clippy::needless_pass_by_value)] // used with `map_err`
pub fn own_failure(error: EnforceError) -> anyhow::Error {
    let status = match (error.is_not_found(), error.is_not_executable()) {
        (true, _) => 127,
        (_, true) => 126,
        _ => 125,
    };
    failure(status, error.to_string())
}

/// A failure of our own with this exit status.
pub fn failure(status: u8, message: String) -> anyhow::Error {
    OwnFailure { status, message }.into()
}

//! Runs a recording for as long as the screen is shown.

use anyhow::Context;
use nodewise_linux::child;
use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A `nodewise record` process with a temporary folder; both are removed when this is dropped.
pub struct Recorder {
    process: Child,
    folder: PathBuf,
}

impl Recorder {
    pub fn start(pids: &[u32]) -> anyhow::Result<Self> {
        let folder = folder()?;
        let messages = File::create(folder.join("said"))?;
        let mut command = Command::new(std::env::current_exe()?);
        let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
        command.args(["record", "--pid", &pids.join(","), "-o"]);
        command.arg(folder.join("profile"));
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(messages);
        let process = child::depend(&mut command, Vec::new()).spawn();
        let process = process.inspect_err(|_| drop(std::fs::remove_dir_all(&folder)));
        Ok(Self {
            process: process.context("cannot start `nodewise record`")?,
            folder,
        })
    }

    /// Where the profile is written.
    pub fn profile(&self) -> PathBuf {
        self.folder.join("profile")
    }

    /// The last message of the process, once it has ended.
    pub fn ended(&mut self) -> Option<String> {
        self.process.try_wait().ok()??;
        let messages = std::fs::read_to_string(self.folder.join("said")).unwrap_or_default();
        let last = messages
            .lines()
            .rfind(|l| !l.trim().is_empty())
            .unwrap_or("it has ended");
        Some(last.trim_start_matches("nodewise: ").to_owned())
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Creates a new folder that only this user can read, as it will hold data of the user's programs.
fn folder() -> anyhow::Result<PathBuf> {
    let name = |n| std::env::temp_dir().join(format!("nodewise-top-{}-{n}", std::process::id()));
    let made = |path: &PathBuf| DirBuilder::new().mode(0o700).create(path);
    let exists = |path: &Path| path.symlink_metadata().is_ok();
    let path = (0..).map(name).find(|path| !exists(path)).unwrap_or_default();
    made(&path).with_context(|| format!("cannot write {}; set TMPDIR", path.display()))?;
    Ok(path)
}

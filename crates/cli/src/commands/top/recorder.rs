//! Runs a recording for as long as the screen is shown.

use anyhow::Context;
use nodewise_linux::{TemporaryFolder, child};
use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A `nodewise record` process with a temporary folder; both are removed when this is dropped.
pub struct Recorder {
    process: Child,
    folder: TemporaryFolder,
}

impl Recorder {
    pub fn start(pids: &[u32]) -> anyhow::Result<Self> {
        let folder = TemporaryFolder::new("top")?;
        let messages = File::create(folder.path().join("said"))?;
        let mut command = Command::new(std::env::current_exe()?);
        let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
        command.args(["record", "--pid", &pids.join(","), "-o"]);
        command.arg(folder.path().join("profile"));
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(messages);
        let process = child::depend(&mut command, Vec::new()).spawn();
        Ok(Self {
            process: process.context("cannot start `nodewise record`")?,
            folder,
        })
    }

    /// Where the profile is written.
    pub fn profile(&self) -> PathBuf {
        self.folder.path().join("profile")
    }

    /// The last message of the process, once it has ended.
    pub fn ended(&mut self) -> Option<String> {
        self.process.try_wait().ok()??;
        let messages = std::fs::read_to_string(self.folder.path().join("said")).unwrap_or_default();
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
    }
}

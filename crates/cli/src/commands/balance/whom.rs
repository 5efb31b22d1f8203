//! Whose pages are balanced, and whether we may.

use super::Arguments;
use anyhow::{Context, bail};
use nodewise_linux::Host;
use nodewise_linux::pages::{self, CallError};
use nodewise_observe::faults::Watch;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Where version 2 of control groups is.
const GROUPS: &str = "/sys/fs/cgroup";

/// Who is balanced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whom {
    /// A program that we start.
    Command(Vec<OsString>),
    /// Processes that run already.
    Processes(Vec<u32>),
    /// A control group, by its folder.
    Group(PathBuf),
}

impl Whom {
    pub fn of(arguments: &Arguments) -> anyhow::Result<Self> {
        if let Some(path) = &arguments.cgroup {
            return group(path).map(Self::Group);
        }
        match (arguments.pid.is_empty(), arguments.command.is_empty()) {
            (false, _) => Ok(Self::Processes(arguments.pid.clone())),
            (true, false) => Ok(Self::Command(arguments.command.clone())),
            (true, true) => bail!("balance what? --pid N, --cgroup PATH or -- CMD; see nodewise balance --help"),
        }
    }

    /// Observes them; a command is to be started next, by this thread.
    pub fn watch(&self, host: &Host, share: f64) -> anyhow::Result<Watch> {
        Ok(match self {
            Self::Command(_) => Watch::of_command(host, share)?,
            Self::Processes(pids) => {
                pids.iter().try_for_each(|pid| may_move(*pid))?;
                Watch::of_pids(host, pids, share)?
            }
            Self::Group(folder) => {
                let watch = Watch::of_group(host, folder, share)?;
                watch.processes().into_iter().try_for_each(may_move)?;
                watch
            }
        })
    }
}

/// A folder, or a group's name below where groups are.
fn group(path: &Path) -> anyhow::Result<PathBuf> {
    let below = Path::new(GROUPS).join(path.strip_prefix("/").unwrap_or(path));
    let found = [path.to_owned(), below]
        .into_iter()
        .find(|p| p.join("cgroup.procs").exists());
    found.with_context(|| {
        format!(
            "{}: no control group of version 2; give its folder below {GROUPS}",
            path.display()
        )
    })
}

/// The kernel asks the same of moving as of looking.
fn may_move(pid: u32) -> anyhow::Result<()> {
    match pages::query(pid, &[0]) {
        Err(CallError::Gone) => bail!("there is no process {pid} with memory of its own"),
        Err(CallError::Denied) => bail!(
            "process {pid} is another user's, or protected: its pages are moved with CAP_SYS_PTRACE only; run as its user, or as root"
        ),
        _ => Ok(()),
    }
}

//! The processes to balance, and the permissions that this needs.

use crate::error::LiveError;
use nodewise_linux::pages::{self, CallError};
use nodewise_linux::{Host, freeze};
use nodewise_observe::faults::{Sensor, Watch};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{fmt, io};

/// Where version 2 of control groups is.
const GROUPS: &str = "/sys/fs/cgroup";

/// The processes whose pages are balanced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A program that we start.
    Command(Vec<OsString>),
    /// Processes that run already.
    Processes(Vec<u32>),
    /// A control group, by its folder.
    Group(PathBuf),
}

impl Target {
    /// A control group of version 2, by its folder or its name below `/sys/fs/cgroup`.
    ///
    /// # Errors
    /// There is no such group.
    pub fn group(path: &Path) -> Result<Self, LiveError> {
        let below = Path::new(GROUPS).join(path.strip_prefix("/").unwrap_or(path));
        let found = [path.to_owned(), below]
            .into_iter()
            .find(|p| p.join("cgroup.procs").exists());
        found.map(Self::Group).ok_or_else(|| {
            LiveError::new(format!(
                "{}: no control group of version 2; give its folder below {GROUPS}",
                path.display()
            ))
        })
    }

    /// The target's processes that already run, with their children.
    pub(crate) fn running(&self, host: &Host) -> Vec<u32> {
        match self {
            Self::Command(_) => Vec::new(),
            Self::Processes(pids) => host.with_descendants(pids),
            Self::Group(folder) => {
                let text = std::fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
                text.lines().filter_map(|line| line.parse().ok()).collect()
            }
        }
    }

    /// Begins to observe the target; a command is started next, by this thread.
    pub(crate) fn watch(&self, host: &Host, share: f64, sensor: Sensor) -> Result<Watch, LiveError> {
        Ok(match self {
            Self::Command(_) => Watch::of_command(host, share, sensor)?,
            Self::Processes(pids) => {
                for pid in pids {
                    if !may_move(*pid)? {
                        return Err(LiveError::new(format!(
                            "there is no process {pid} with memory of its own"
                        )));
                    }
                }
                Watch::of_pids(host, pids, share, sensor)?
            }
            Self::Group(folder) => {
                let watch = Watch::of_group(host, folder, share, sensor)?;
                for pid in watch.processes() {
                    // A process that has ended meanwhile no longer belongs to the group.
                    may_move(pid)?;
                }
                watch
            }
        })
    }
}

/// Whether a process may be observed, for which the kernel requires the same permission as for moving its pages. False
/// if there is no such process or it has no memory of its own.
fn may_move(pid: u32) -> Result<bool, LiveError> {
    match pages::query(pid, &[0]) {
        Err(CallError::Gone) => Ok(false),
        Err(CallError::Denied) => Err(LiveError::new(format!(
            "process {pid} is another user's, or protected: its pages are moved with CAP_SYS_PTRACE only; run as its user, or as root"
        ))),
        _ => Ok(true),
    }
}

/// Checks that a process can be stopped: otherwise every batch of its moves would be refused. Processes that have
/// ended are ignored.
pub fn may_stop(pid: u32) -> Result<(), LiveError> {
    match freeze::may_stop(pid) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(LiveError::new(format!(
            "--freeze: process {pid} is another user's: it is stopped with CAP_KILL only; run as its user, as root, or without --freeze"
        ))),
        _ => Ok(()),
    }
}

/// `redis-server`, `pid 4242`, `system.slice/redis-server.service`.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(words) => {
                let program = words.first().map(Path::new).and_then(Path::file_name);
                f.write_str(&program.unwrap_or_default().to_string_lossy())
            }
            Self::Processes(pids) => {
                let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
                write!(f, "pid {}", pids.join(","))
            }
            Self::Group(folder) => write!(f, "{}", folder.strip_prefix(GROUPS).unwrap_or(folder).display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_ended_is_in_nobodys_way() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        assert!(!may_move(pid).unwrap());
        assert!(may_move(std::process::id()).unwrap());
        may_stop(pid).unwrap();
    }

    #[test]
    fn who_is_balanced_has_a_short_name() {
        let named = [
            (
                Target::Command(vec!["/usr/bin/redis-server".into(), "x".into()]),
                "redis-server",
            ),
            (Target::Processes(vec![7, 9]), "pid 7,9"),
            (
                Target::Group("/sys/fs/cgroup/system.slice/a.service".into()),
                "system.slice/a.service",
            ),
        ];
        for (target, name) in named {
            assert_eq!(target.to_string(), name);
        }
    }
}

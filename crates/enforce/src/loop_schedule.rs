//! A static schedule for the OpenMP loops of a program that asks for dynamic or guided ones.
//!
//! `libnodewise-schedule.so` is preloaded. Where the program calls the OpenMP runtime to deal a loop as work comes, the
//! library has the runtime deal it in blocks, so that the same thread has the same iterations in each run.

use crate::EnforceError;
use crate::target::{is_static, unreached};
use std::ffi::OsString;
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Bytes of the file in which a process says how many loops were dealt, at most, and how many such files are read.
const LONGEST_COUNT: u64 = 24;
const MOST_COUNTS: usize = 1 << 16;

/// A static schedule: OpenMP's `schedule(static)` or `schedule(static, N)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopSchedule {
    /// Number of consecutive iterations that a thread gets at a time; `None` for one block for each thread.
    chunk: Option<u32>,
}

impl LoopSchedule {
    /// The library that is to be preloaded.
    pub const LIBRARY: &str = "libnodewise-schedule.so";

    /// Reads `static` or `static,N`.
    ///
    /// # Errors
    /// One line: what is written otherwise.
    pub fn parse(text: &str) -> Result<Self, String> {
        let chunk = match text.split_once(',') {
            None if text == "static" => None,
            Some(("static", chunk)) => match chunk.trim().parse() {
                Ok(chunk @ 1..=0x7fff_ffff) => Some(chunk),
                _ => {
                    return Err(format!(
                        "`{text}`: N of static,N is a number of iterations from 1 on"
                    ));
                }
            },
            _ => {
                return Err(format!(
                    "`{text}`: known are static, and static,N with N iterations at a time"
                ));
            }
        };
        Ok(Self { chunk })
    }

    /// Refuses a command of which not even the first program can be reached.
    ///
    /// # Errors
    /// Nothing can be preloaded into that program.
    pub fn check(command: &[OsString]) -> Result<(), EnforceError> {
        Self::check_reached(command)?;
        match is_static(command) {
            true => Err(EnforceError::new(
                "--schedule: the program is linked statically: nothing can be preloaded",
            )),
            false => Ok(()),
        }
    }

    /// Refuses a command whose first program bears no preload, and notes what may keep it from loops. `uses_openmp`: whether that
    /// program is linked with an OpenMP runtime, if known.
    pub(crate) fn note(
        command: &[OsString],
        uses_openmp: Option<bool>,
    ) -> Result<Option<String>, EnforceError> {
        Self::check_reached(command)?;
        let note = match uses_openmp {
            _ if is_static(command) => {
                "--schedule: the program is linked statically; only those that it starts are reached"
            }
            Some(false) => {
                "--schedule: the program is linked with no OpenMP runtime; libraries that it opens, or programs that it starts, may be"
            }
            _ => return Ok(None),
        };
        Ok(Some(note.to_owned()))
    }

    fn check_reached(command: &[OsString]) -> Result<(), EnforceError> {
        match unreached(command) {
            Some(why) => Err(EnforceError::new(format!("--schedule: {why}"))),
            None => Ok(()),
        }
    }

    /// Has `command` deal its loops so. `library` is the path of [`Self::LIBRARY`].
    pub fn prepare(self, command: &mut Command, library: PathBuf) {
        let text = self.to_string();
        nodewise_linux::companion::preload(command, &[library]);
        // The second is for loops with schedule(runtime).
        command.env("NODEWISE_SCHEDULE", &text).env("OMP_SCHEDULE", &text);
    }
}

/// The number of loops with dynamic or guided schedules that were dealt statically, in the processes that have ended and said
/// so in `folder`, which the variable `NODEWISE_LOOPS` names. Other users may write there as well (see `RunFolder`), so links
/// are not followed and little is read.
#[must_use]
pub fn dealt_loops(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let counts = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("loops-"));
    let count = |entry: std::fs::DirEntry| {
        let file = nodewise_linux::page_cache::open(&entry.path(), false).ok()?;
        let mut text = String::new();
        file.take(LONGEST_COUNT).read_to_string(&mut text).ok()?;
        text.trim().parse::<u64>().ok()
    };
    counts
        .take(MOST_COUNTS)
        .filter_map(count)
        .fold(0, u64::saturating_add)
}

impl fmt::Display for LoopSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.chunk {
            None => f.write_str("static"),
            Some(chunk) => write!(f, "static,{chunk}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn static_schedules_are_read_and_written() {
        for text in ["static", "static,1", "static,64"] {
            assert_eq!(LoopSchedule::parse(text).unwrap().to_string(), text);
        }
        for text in [
            "",
            "dynamic",
            "static,",
            "static,0",
            "static,-1",
            "static,3000000000",
            "static8",
        ] {
            assert!(LoopSchedule::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_loops_of_all_processes_are_added() {
        let folder = nodewise_linux::TemporaryFolder::new("loops").unwrap();
        assert_eq!(dealt_loops(folder.path()), 0);
        for (name, text) in [
            ("loops-1", "3\n"),
            ("loops-22", "4\n"),
            ("loops-3", "torn"),
            ("summary", "5\n"),
        ] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        assert_eq!(dealt_loops(folder.path()), 7);
    }

    #[test]
    fn it_is_preloaded_before_what_the_command_has() {
        let mut command = Command::new("true");
        command.env("LD_PRELOAD", "mine.so");
        LoopSchedule { chunk: Some(4) }.prepare(&mut command, "/lib/ours.so".into());
        let set: Vec<_> = command
            .get_envs()
            .filter_map(|(k, v)| Some((k.to_str()?, v?.to_str()?)))
            .collect();
        assert_eq!(
            set,
            [
                ("LD_PRELOAD", "/lib/ours.so:mine.so"),
                ("NODEWISE_SCHEDULE", "static,4"),
                ("OMP_SCHEDULE", "static,4")
            ]
        );
    }
}

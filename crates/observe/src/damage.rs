//! Finds out which raw files of a recording cannot be read. A process that is killed leaves complete files, except for
//! the last line of its log; anything else that is missing was lost or overwritten later.

use crate::control::Control;
use crate::events::{self, Event};
use crate::recording::image_name;
use crate::thread_file;
use std::collections::HashSet;
use std::path::Path;

/// Size of the pool's file when complete.
const POOL_BYTES: u64 = (POOL_WORDS * 8) as u64;
const POOL_WORDS: usize =
    crate::layout::POOL_SLOTS * crate::layout::pool_entry::WORDS + crate::layout::REPEATS;

/// Amount of missing or invalid data, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// Lines of logs that cannot be parsed.
    lines: u64,
    /// Bytes that were written to logs and are missing.
    missing: u64,
    /// Counter files that no log assigns to a thread.
    unnamed: u64,
    /// Counter files that a log names, and files of small allocations, that are missing, truncated or overwritten.
    cut: u64,
    /// Whether `control` is missing, which would tell why a process stopped counting.
    no_control: bool,
}

impl Damage {
    /// Checks all files that ended processes left below `raw`.
    pub fn of(raw: &Path, control: Option<&Control>) -> Self {
        let mut damage = Self {
            no_control: control.is_none(),
            ..Self::default()
        };
        let mut logged = 0;
        for entry in std::fs::read_dir(raw).into_iter().flatten().flatten() {
            if image_name(&entry.file_name().to_string_lossy()).is_some() {
                logged += damage.add_image(&entry.path());
            }
        }
        damage.missing = control.map_or(0, Control::logged).saturating_sub(logged);
        damage
    }

    /// Checks the files of a process image; returns the bytes of complete lines in its log.
    fn add_image(&mut self, folder: &Path) -> u64 {
        let mut named = HashSet::new();
        let logged = events::read(&folder.join("events"), 0, u64::MAX, |line| {
            match Event::parse(line) {
                Some(Event::Counters { number, .. }) => {
                    named.insert(number);
                }
                Some(_) => {}
                None => self.lines += 1,
            }
        });
        for number in &named {
            let counters = thread_file::counters(&folder.join(format!("thread-{number}")));
            self.cut += u64::from(counters.is_err());
        }
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if let Some(number) = name.strip_prefix("thread-").and_then(|n| n.parse().ok()) {
                // A file that was being created when its process was killed has no counters yet.
                let holds = || thread_file::counters(&entry.path()).is_ok_and(|count| count > 0);
                self.unnamed += u64::from(!named.contains(&number) && holds());
            }
            if name == "pool" {
                let bytes = entry.metadata().map_or(0, |m| m.len());
                self.cut += u64::from((1..POOL_BYTES).contains(&bytes));
            }
        }
        logged.unwrap_or(0)
    }

    /// Describes the damage as part of a sentence; `None` if there is none.
    pub fn sentence(&self) -> Option<String> {
        let one = |count: u64, one: &str, many: &str| match count {
            0 => None,
            1 => Some(format!("1 {one}")),
            count => Some(format!("{count} {many}")),
        };
        let parts = [
            one(
                self.lines,
                "line of an event log that makes no sense",
                "lines of event logs that make no sense",
            ),
            one(
                self.missing,
                "byte that an event log lacks",
                "bytes that the event logs lack",
            ),
            one(
                self.unnamed,
                "file of counters that no log gives to a thread",
                "files of counters that no log gives to a thread",
            ),
            one(
                self.cut,
                "file of counters that is missing, cut or overwritten",
                "files of counters that are missing, cut or overwritten",
            ),
            self.no_control.then(|| "the control page".to_owned()),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| format!("raw files were damaged; not read: {}", parts.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_what_and_how_many() {
        assert_eq!(Damage::default().sentence(), None);
        let damage = Damage {
            lines: 1,
            cut: 2,
            ..Damage::default()
        };
        assert_eq!(
            damage.sentence().unwrap(),
            "raw files were damaged; not read: 1 line of an event log that makes no sense, 2 files of counters that are \
             missing, cut or overwritten"
        );
    }
}

//! The threads of running processes, and the events by which they are watched.

use super::attaching::Threads;
use super::following::lives;
use super::here::{Unavailable, sees_everybody};
use nodewise_linux::faults::{Record, Source};
use nodewise_linux::{Host, ReadError};

/// Up to this number of CPUs threads are watched one by one; each thread needs an event for each CPU.
const MAX_WATCHED_CPUS: usize = 64;
/// Up to this number of events at the start threads are watched one by one.
const MAX_WATCH_EVENTS: usize = 1024;

/// The threads of these processes; all of the processes must exist.
pub fn all_threads(host: &Host, pids: &[u32]) -> Result<Vec<u32>, Unavailable> {
    match pids.iter().find(|pid| !host.has_process(**pid)) {
        Some(gone) => Err(Unavailable::process(host, *gone)),
        None => threads(host, pids),
    }
}

/// The current threads of these processes.
pub fn threads(host: &Host, pids: &[u32]) -> Result<Vec<u32>, Unavailable> {
    let mut tids = Vec::new();
    each_alive(host, pids, |pid| {
        tids.extend(host.tasks(pid)?.iter().map(|t| t.tid));
        Ok(())
    })?;
    Ok(tids)
}

/// Calls `look` for each process and skips those that have ended; an error if none is left.
pub fn each_alive(
    host: &Host,
    pids: &[u32],
    mut look: impl FnMut(u32) -> Result<(), ReadError>,
) -> Result<(), Unavailable> {
    let mut alive = 0;
    for pid in pids {
        match look(*pid) {
            Ok(()) => alive += 1,
            Err(_) if !lives(host, *pid) => {}
            Err(_) => return Err(Unavailable::process(host, *pid)),
        }
    }
    match pids.first() {
        Some(first) if alive == 0 => Err(Unavailable::process(host, *first)),
        _ => Ok(()),
    }
}

/// Running processes to which events are being attached.
pub struct Attached<'a> {
    pub host: &'a Host,
    pub pids: &'a [u32],
    pub source: Option<Source>,
    /// Records that arrived meanwhile.
    pub records: Vec<Record>,
}

impl Threads for Attached<'_> {
    type Error = Unavailable;

    fn list(&mut self) -> Result<Vec<u32>, Unavailable> {
        threads(self.host, self.pids)
    }

    fn begun(&mut self) -> Vec<u32> {
        let before = self.records.len();
        if let Some(source) = &mut self.source {
            source.drain(&mut self.records);
        }
        let began = |r: &Record| match r {
            Record::Began { tid, .. } => Some(*tid),
            _ => None,
        };
        self.records[before..].iter().filter_map(began).collect()
    }

    fn watch(&mut self, tids: &[u32]) -> Result<(), Unavailable> {
        let watched = match &mut self.source {
            Some(source) => source.add_threads(tids),
            none => Source::of_threads(tids, 1).map(|source| *none = Some(source)),
        };
        watched.map_err(|e| Unavailable::events(self.host, &e))
    }
}

/// An event for each thread and CPU is cheapest, because the kernel then filters the faults. If that needs too many
/// events, all faults of the system are watched, where permitted.
pub fn crowded(host: &Host, threads: usize) -> Option<Source> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let many = threads * cpus > MAX_WATCH_EVENTS || cpus > MAX_WATCHED_CPUS;
    let everybody = || Source::of_everybody(1).ok();
    (many && sees_everybody(host)).then(everybody).flatten()
}

pub fn nodes(names: &[String]) -> usize {
    let is_node = |n: &&String| n.strip_prefix("node").is_some_and(|n| n.parse::<u32>().is_ok());
    names.iter().filter(is_node).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    fn sleeper() -> Child {
        Command::new("/bin/sleep").arg("600").spawn().unwrap()
    }

    #[test]
    fn who_ends_while_we_attach_is_passed_over_until_nobody_is_left() {
        let (mut first, mut second) = (sleeper(), sleeper());
        let (host, pids) = (Host::default(), [first.id(), second.id()]);
        assert_eq!(all_threads(&host, &pids).unwrap(), pids);
        first.kill().unwrap();
        first.wait().unwrap();
        assert_eq!(threads(&host, &pids).unwrap(), [second.id()]);
        let gone = Unavailable::process(&host, first.id());
        assert_eq!(all_threads(&host, &pids), Err(gone.clone()));
        second.kill().unwrap();
        second.wait().unwrap();
        assert_eq!(threads(&host, &pids), Err(gone));
    }
}

//! Binds threads of running processes to CPUs, and restores their affinity afterwards.

use nodewise_linux::affinity_guard::AffinityGuard;
use nodewise_linux::{Host, affinity};
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// The affinities that were set, and those that threads had before.
#[derive(Debug, Default)]
pub struct Affinities {
    /// CPUs that each thread might use before, by thread identifier.
    before: BTreeMap<u32, Vec<u32>>,
    /// The original CPUs by the CPUs that were set, for threads that a bound thread creates: they inherit its affinity.
    given: BTreeMap<Vec<u32>, Vec<u32>>,
    /// Restores them if this process is killed; started with the first thread that is bound.
    guard: Guard,
    /// Processes that the guard was told of, with the number of entries of `given` that it knows for each.
    noted: BTreeMap<u32, usize>,
}

/// Whether a guard process restores affinities if this one is killed.
#[derive(Debug, Default)]
enum Guard {
    /// Affinities are not to be restored.
    #[default]
    Unwanted,
    Wanted,
    Started(AffinityGuard),
}

impl Guard {
    fn started(&mut self) -> Option<&mut AffinityGuard> {
        match self {
            Self::Started(guard) => Some(guard),
            _ => None,
        }
    }
}

/// Result of restoring affinities, in threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// Threads whose affinity is as it was before.
    pub done: u64,
    /// Threads that others have bound meanwhile; their affinity is left alone.
    pub others: u64,
    /// Threads whose affinity the kernel refused to set.
    pub refused: u64,
}

impl Affinities {
    /// As the default, but a small guard process restores affinities if this one is killed meanwhile.
    #[must_use]
    pub fn guarded() -> Self {
        Self {
            guard: Guard::Wanted,
            ..Self::default()
        }
    }

    /// Binds a thread of a process to these CPUs; returns whether that changed its affinity.
    ///
    /// # Errors
    /// The kernel's error: the thread has ended, is another user's, or its cpuset has none of the CPUs.
    pub fn bind(&mut self, process: u32, tid: u32, cpus: &[u32]) -> io::Result<bool> {
        let now = affinity::cpus_of(tid)?;
        if now == cpus {
            return Ok(false);
        }
        // A thread created by a bound one is restored to its creator's original CPUs.
        let before = self.given.get(&now).cloned().unwrap_or(now);
        if matches!(self.guard, Guard::Wanted) {
            // If no guard can be started, threads stay bound when we are killed.
            self.guard = AffinityGuard::start().map_or(Guard::Unwanted, Guard::Started);
        }
        // The guard is told first, as we may be killed at any moment.
        if let Some(guard) = self.guard.started() {
            guard.note(process, cpus, &before);
            self.noted.entry(process).or_default();
        }
        affinity::bind(tid, cpus)?;
        self.given.entry(cpus.to_vec()).or_insert_with(|| before.clone());
        self.before.entry(tid).or_insert(before);
        Ok(true)
    }

    /// Makes the guard restore this process's threads as well: threads and processes that a bound thread has created
    /// inherit its CPUs.
    pub fn note(&mut self, process: u32) {
        let Some(guard) = self.guard.started() else { return };
        if self.noted.insert(process, self.given.len()) == Some(self.given.len()) {
            return;
        }
        for (given, before) in &self.given {
            guard.note(process, given, before);
        }
    }

    /// Whether these CPUs equal a list that was set for some thread, reduced to the CPUs in `usable` (those online).
    #[must_use]
    pub fn are_ours(&self, cpus: &[u32], usable: &[u32]) -> bool {
        let left = |given: &&Vec<u32>| given.iter().filter(|c| usable.contains(c)).eq(cpus);
        self.given.keys().any(|given| left(&given))
    }

    /// Forgets the threads that are not in `alive`: they have ended, and their identifiers may be reused.
    pub fn keep(&mut self, alive: &BTreeSet<u32>) {
        self.before.retain(|tid, _| alive.contains(tid));
        let Some(guard) = self.guard.started() else { return };
        self.noted.retain(|process, _| {
            let is_alive = alive.contains(process);
            if !is_alive {
                guard.forget(*process);
            }
            is_alive
        });
    }

    /// Restores the affinity of all threads of these processes; threads created since get their creator's original one.
    /// Threads that others have bound meanwhile keep theirs.
    pub fn restore(&mut self, host: &Host, pids: &[u32]) -> Restored {
        let mut restored = Restored::default();
        let tasks = |pid: &u32| host.names(&format!("proc/{pid}/task")).unwrap_or_default();
        for tid in pids.iter().flat_map(tasks).filter_map(|t| t.parse().ok()) {
            self.restore_thread(tid, &mut restored);
        }
        (self.before, self.given, self.noted) = Default::default();
        if let Some(guard) = self.guard.started() {
            guard.forget_all();
        }
        restored
    }

    /// As [`Affinities::restore`], for one process; the state of other processes is kept.
    pub fn release(&mut self, host: &Host, pid: u32) -> Restored {
        let mut restored = Restored::default();
        let tasks = host.names(&format!("proc/{pid}/task")).unwrap_or_default();
        for tid in tasks.iter().filter_map(|t| t.parse().ok()) {
            self.restore_thread(tid, &mut restored);
            self.before.remove(&tid);
        }
        self.noted.remove(&pid);
        if let Some(guard) = self.guard.started() {
            guard.forget(pid);
        }
        restored
    }

    fn restore_thread(&self, tid: u32, restored: &mut Restored) {
        let Ok(now) = affinity::cpus_of(tid) else {
            return; // the thread has ended
        };
        let bound = self.before.get(&tid);
        let Some(inherited) = self.given.get(&now) else {
            restored.others += u64::from(bound.is_some_and(|before| *before != now));
            return;
        };
        let before = bound.unwrap_or(inherited);
        if *before == now {
            return;
        }
        match affinity::bind(tid, before) {
            Ok(()) => restored.done += 1,
            Err(_) => restored.refused += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Child, Command, Stdio};

    fn sleeper() -> Child {
        Command::new("/bin/sleep").arg("600").spawn().unwrap()
    }

    fn end(mut child: Child) {
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn threads_get_back_what_they_had_and_who_was_bound_by_others_keeps_that() {
        let (one, two) = (sleeper(), sleeper());
        let before = affinity::cpus_of(one.id()).unwrap();
        let (first, last) = (&before[..1], &before[before.len() - 1..]);
        let mut affinities = Affinities::default();
        assert_eq!(affinities.bind(one.id(), one.id(), &before).ok(), Some(false));
        for each in [&one, &two] {
            let changed = affinities.bind(each.id(), each.id(), first).unwrap();
            assert_eq!(changed, before.len() > 1);
            assert_eq!(affinity::cpus_of(each.id()).unwrap(), first);
        }
        assert_eq!(affinities.are_ours(first, &before), before.len() > 1);
        assert!(!affinities.are_ours(first, &[]));
        affinity::bind(two.id(), last).unwrap();
        let pids = [one.id(), two.id()];
        let restored = affinities.restore(&Host::default(), &pids);
        if before.len() > 1 {
            assert_eq!((restored.done, restored.others, restored.refused), (1, 1, 0));
            assert_eq!(affinity::cpus_of(two.id()).unwrap(), last);
        }
        assert_eq!(affinity::cpus_of(one.id()).unwrap(), before);
        assert_eq!(affinities.restore(&Host::default(), &pids), Restored::default());
        end(one);
        end(two);
    }

    #[test]
    fn children_of_bound_threads_are_given_back_what_those_had() {
        let before = affinity::allowed_cpus().unwrap();
        if before.len() < 2 {
            return;
        }
        let mut shell = Command::new("/bin/sh")
            .args(["-c", "read line; sleep 600 & echo $!; wait"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut affinities = Affinities::default();
        affinities.bind(shell.id(), shell.id(), &before[..1]).unwrap();
        shell.stdin.take().unwrap().write_all(b"\n").unwrap();
        let mut line = String::new();
        BufReader::new(shell.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let born: u32 = line.trim().parse().unwrap();
        let inherited = affinity::cpus_of(born).unwrap();
        affinities.bind(born, born, &before[1..2]).unwrap();
        let restored = affinities.restore(&Host::default(), &[shell.id(), born]);
        let given = [born, shell.id()].map(|tid| affinity::cpus_of(tid).unwrap());
        Command::new("kill").arg(born.to_string()).status().unwrap();
        end(shell);
        assert_eq!((inherited, restored.done), (before[..1].to_vec(), 2));
        assert_eq!(given, [before.clone(), before]);
    }

    #[test]
    fn who_is_gone_is_an_error_and_nothing_to_restore() {
        let mut affinities = Affinities::default();
        assert!(affinities.bind(1, u32::MAX >> 2, &[0]).is_err());
        let nobody = affinities.restore(&Host::default(), &[u32::MAX >> 2]);
        assert_eq!(nobody, Restored::default());
    }
}

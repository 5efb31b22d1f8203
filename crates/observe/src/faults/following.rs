//! Keeps track of the followed processes and their children: from their start, or from when we attached, until they
//! end.

use super::kind::Kind;
use super::residents::Residents;
use nodewise_linux::faults::{Fault, Record};
use nodewise_linux::pagemap::Pagemap;
use nodewise_linux::{Host, ReadError, clock};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// Number of names kept of threads that have ended; the oldest are forgotten first.
const MAX_NAMES: usize = 1 << 16;
/// How often the kernel's per-thread counters of moved pages are read, if it does not report each move.
const MOVES_INTERVAL: Duration = Duration::from_secs(1);
/// Reading them takes at most 1/400 of the time: with a thousand threads it takes 15 ms.
const MOVES_DIVISOR: u32 = 400;

/// Whether a thread is a companion that the preload created in the program (`runtime/preload/companion.c`).
#[must_use]
pub fn is_companion(pid: u32, tid: u32, name: &str) -> bool {
    tid != pid && name == "nodewise"
}

/// The processes whose faults are recorded, with the state of their pages and threads.
pub struct Following {
    processes: BTreeMap<u32, FollowedProcess>,
    /// Whether every process that faults is followed.
    everybody: bool,
    kernel_tells_copies: bool,
    kernel_tells_moves: bool,
    names: HashMap<u32, String>,
    /// Moved pages by process, including those that have ended.
    moved: HashMap<u32, u64>,
    /// Whether the kernel has counted moves for all threads so far.
    moves_known: bool,
    /// When the counters are read next.
    moves_due: Duration,
}

struct FollowedProcess {
    residents: Residents,
    cpu_ns: u64,
    /// CPU time that has been reported by [`Following::cpu_since`] already.
    settled_ns: u64,
    ended: bool,
    /// For each thread, the kernel's last count of pages moved.
    moved: HashMap<u32, u64>,
}

impl FollowedProcess {
    fn new(residents: Residents, cpu_ns: u64) -> Self {
        Self {
            residents,
            cpu_ns,
            settled_ns: cpu_ns,
            ended: false,
            moved: HashMap::new(),
        }
    }
}

impl Following {
    pub fn new(everybody: bool, kernel_tells_copies: bool, kernel_tells_moves: bool) -> Self {
        Self {
            processes: BTreeMap::new(),
            everybody,
            kernel_tells_copies,
            kernel_tells_moves,
            names: HashMap::new(),
            moved: HashMap::new(),
            moves_known: true,
            moves_due: clock::monotonic() + MOVES_INTERVAL,
        }
    }

    /// Adds a running process, and looks up its resident pages.
    pub fn add_running(&mut self, host: &Host, pid: u32) -> Result<(), ReadError> {
        let areas = host.maps(pid)?;
        let written = areas.iter().filter(|a| a.permissions.contains('w'));
        let residents =
            Residents::of_running(Pagemap::of(pid).ok().as_ref(), written.map(|a| (a.start, a.end)));
        let mut process = FollowedProcess::new(residents, cpu_ns(pid).unwrap_or(0));
        for task in host.tasks(pid)? {
            if let Counted::Pages(moved) = moved_by(host, pid, task.tid) {
                process.moved.insert(task.tid, moved);
            }
            self.names.insert(task.tid, task.name);
        }
        self.processes.insert(pid, process);
        Ok(())
    }

    /// Adds a process that was just created.
    pub fn add_fresh(&mut self, pid: u32) {
        self.processes
            .entry(pid)
            .or_insert_with(|| FollowedProcess::new(Residents::default(), 0));
    }

    /// Handles the creation of a thread or child; returns whether its process is followed.
    pub fn begin(&mut self, pid: u32, parent: u32) -> bool {
        if self.processes.contains_key(&pid) {
            return true;
        }
        let tells = self.kernel_tells_copies;
        let inherited = match self.processes.get_mut(&parent) {
            Some(parent) => parent.residents.fork(tells),
            None if self.everybody => Residents::default(),
            None => return false,
        };
        self.processes.insert(pid, FollowedProcess::new(inherited, 0));
        true
    }

    /// Classifies a fault; `None` if its process is not followed.
    pub fn classify(&mut self, host: &Host, fault: &Fault) -> Option<Kind> {
        if self.everybody
            && !self.processes.contains_key(&fault.pid)
            && self.add_running(host, fault.pid).is_err()
        {
            self.add_fresh(fault.pid); // the process has ended
        }
        Some(self.processes.get_mut(&fault.pid)?.residents.classify(fault))
    }

    /// Handles the kernel's other records.
    pub fn handle(&mut self, record: &Record) {
        match record {
            Record::Named {
                pid,
                tid,
                name,
                executed,
            } => {
                let Some(process) = self.processes.get_mut(pid) else {
                    return;
                };
                if *executed {
                    process.residents = Residents::default();
                }
                if self.names.len() < MAX_NAMES {
                    self.names.insert(*tid, name.clone());
                }
            }
            Record::Mapped {
                pid, address, bytes, ..
            } => {
                if let Some(process) = self.processes.get_mut(pid) {
                    process.residents.map(*address, address.saturating_add(*bytes));
                }
            }
            Record::Moved { pid, pages, .. } if self.processes.contains_key(pid) => {
                *self.moved.entry(*pid).or_default() += pages;
            }
            Record::Ended { pid, tid } => {
                if let Some(process) = self.processes.get_mut(pid) {
                    process.moved.remove(tid);
                }
            }
            _ => {}
        }
    }

    /// Updates CPU time, residency and life of each process; appends the processes that have ended to `ended`.
    pub fn refresh(&mut self, host: &Host, ended: &mut Vec<u32>) {
        let now = clock::monotonic();
        let read_moves = !self.kernel_tells_moves && now >= self.moves_due;
        let mut reading = Duration::ZERO;
        for (&pid, process) in &mut self.processes {
            match cpu_ns(pid) {
                Some(used) if used > process.cpu_ns || lives(host, pid) => process.cpu_ns = used,
                _ => {
                    process.ended = true;
                    ended.push(pid);
                }
            }
            if process.residents.is_stale()
                && let Ok(pagemap) = Pagemap::of(pid)
            {
                process
                    .residents
                    .refresh(&pagemap, || clock::nanoseconds(clock::monotonic()));
            }
            if read_moves {
                let began = clock::own_cpu_time();
                let (moved, known) = process.newly_moved(host, pid);
                reading += clock::own_cpu_time().saturating_sub(began);
                *self.moved.entry(pid).or_default() += moved;
                self.moves_known &= known;
            }
        }
        if read_moves {
            self.moves_due = now + MOVES_INTERVAL.max(reading * MOVES_DIVISOR);
        }
    }

    pub fn kernel_tells_moves(&self) -> bool {
        self.kernel_tells_moves
    }

    /// Reads the kernel's per-thread counts of one process now, unless it reports each move.
    pub fn count_moves(&mut self, host: &Host, pid: u32) {
        if let Some(process) = self.processes.get_mut(&pid).filter(|_| !self.kernel_tells_moves) {
            let (moved, known) = process.newly_moved(host, pid);
            *self.moved.entry(pid).or_default() += moved;
            self.moves_known &= known;
        }
    }

    /// CPU time that the processes used since the last call; processes that have ended are then forgotten.
    pub fn cpu_since(&mut self) -> u64 {
        let mut used = 0;
        self.processes.retain(|_, process| {
            used += process.cpu_ns.saturating_sub(process.settled_ns);
            process.settled_ns = process.cpu_ns;
            !process.ended
        });
        used
    }

    pub fn follows(&self, pid: u32) -> bool {
        self.processes.contains_key(&pid)
    }

    pub fn processes(&self) -> Vec<u32> {
        self.processes.keys().copied().collect()
    }

    pub fn name(&self, tid: u32) -> Option<&str> {
        self.names.get(&tid).map(String::as_str)
    }

    /// Whether a fault was made by a companion thread.
    pub fn is_companion(&self, fault: &Fault) -> bool {
        self.name(fault.tid)
            .is_some_and(|name| is_companion(fault.pid, fault.tid, name))
    }

    /// Pages moved in all processes; `None` if the kernel does not count them for all.
    pub fn moved(&self) -> Option<u64> {
        self.moves_known.then(|| self.moved.values().sum())
    }

    pub fn moved_of(&self, pid: u32) -> u64 {
        self.moved.get(&pid).copied().unwrap_or(0)
    }
}

impl FollowedProcess {
    /// The increase of the counts of the process's threads, and whether every thread has a count.
    fn newly_moved(&mut self, host: &Host, pid: u32) -> (u64, bool) {
        let tasks = host.names(&format!("proc/{pid}/task")).unwrap_or_default();
        let (mut risen, mut known) = (0, true);
        for tid in tasks.iter().filter_map(|t| t.parse().ok()) {
            match moved_by(host, pid, tid) {
                Counted::Pages(now) => {
                    let before = self.moved.insert(tid, now).unwrap_or(0);
                    risen += now.saturating_sub(before);
                }
                Counted::Ended => {}
                Counted::Not => known = false,
            }
        }
        (risen, known)
    }
}

fn cpu_ns(pid: u32) -> Option<u64> {
    clock::cpu_time(pid).map(clock::nanoseconds)
}

/// Whether the process still has a running thread, not only zombies.
pub fn lives(host: &Host, pid: u32) -> bool {
    let tasks = host.names(&format!("proc/{pid}/task")).unwrap_or_default();
    tasks.iter().any(|tid| {
        let stat = host
            .read(&format!("proc/{pid}/task/{tid}/stat"))
            .unwrap_or_default();
        let state = stat
            .rsplit_once(") ")
            .map(|(_, rest)| rest.as_bytes().first().copied());
        state.is_some_and(|s| !matches!(s, Some(b'Z' | b'X') | None))
    })
}

/// The kernel's count of pages moved for a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counted {
    Pages(u64),
    Ended,
    /// The kernel has no scheduler statistics, or we may not read those of the thread.
    Not,
}

/// Reads `numa_pages_migrated` of a thread.
fn moved_by(host: &Host, pid: u32, tid: u32) -> Counted {
    let count = host.scheduler_figure(pid, tid, "numa_pages_migrated");
    match count.and_then(|pages| pages.try_into().ok()) {
        Some(pages) => Counted::Pages(pages),
        None if host.names(&format!("proc/{pid}/task/{tid}")).is_ok() => Counted::Not,
        None => Counted::Ended,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_that_the_kernel_does_not_count_are_unknown_and_not_none() {
        let root = std::env::temp_dir().join(format!("nodewise-following-{}", std::process::id()));
        let thread = root.join("proc/7/task/7");
        std::fs::create_dir_all(&thread).unwrap();
        let host = Host::at(&root);
        assert_eq!(moved_by(&host, 7, 7), Counted::Not);
        assert_eq!(moved_by(&host, 7, 8), Counted::Ended);
        std::fs::write(
            thread.join("sched"),
            "se.load : 1\nnuma_pages_migrated    :   12\n",
        )
        .unwrap();
        assert_eq!(moved_by(&host, 7, 7), Counted::Pages(12));
        let mut process = FollowedProcess::new(Residents::default(), 0);
        assert_eq!(process.newly_moved(&host, 7), (12, true));
        std::fs::write(thread.join("sched"), "se.load : 1\n").unwrap();
        assert_eq!(process.newly_moved(&host, 7), (0, false));
        std::fs::remove_dir_all(root).unwrap();
    }
}

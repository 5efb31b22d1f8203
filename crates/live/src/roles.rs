//! Finds out which thread of a placed program works on which data while it runs, and sends it there.
//!
//! A map says on which nodes data is; which thread works on it may be another one in each run. So a *look* clears the
//! soft-dirty bits of the process: the next write to each page faults once, and the kernel reports who it was. Threads
//! that write mostly to memory on one node belong there ([`nodewise_control::roles`]). The first look comes as soon as
//! the program has threads that work; further ones watch whether that changes, ever more rarely while it does not.

mod places;
mod process;

use nodewise_enforce::{PlacedObjects, Table};
use nodewise_linux::faults::{Record, Source};
use nodewise_linux::mempolicy::nodes_of_pages;
use nodewise_linux::{Host, affinity, soft_dirty};
use nodewise_profile::BASE_PAGE_SHIFT;
use places::{Places, Seated};
use process::{DRAIN, Process};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Longest time for which writes are watched before threads are sent.
const LOOK: Duration = Duration::from_secs(1);
/// How long the last threads are waited for, before those that are known are sent.
const PATIENCE: Duration = Duration::from_millis(100);
/// From when on threads of which nothing is known make room for those that are known.
const MAKES_ROOM: Duration = Duration::from_millis(500);
/// Faults whose pages are looked up at a time.
const AT_ONCE: usize = 4096;

/// What following threads came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FollowedThreads {
    /// Looks at who writes what.
    pub looks: u32,
    /// Threads of which it was seen on which node their data is.
    pub known: usize,
    /// How often a thread was sent to another node.
    pub moves: u32,
    /// From the start of the program's first further thread until all but one were known.
    pub found_after: Option<Duration>,
    /// CPU time that looks have cost the program at most, estimated.
    pub cost: Duration,
    /// CPU time of the processes looked at, when they were last.
    pub cpu: Duration,
    /// Why some process was not looked at.
    pub refused: Option<String>,
}

/// Follows the threads of one command.
pub struct ThreadFollower<'a> {
    table: &'a Table,
    places: Places,
    folder: PathBuf,
    host: Host,
    source: Source,
    records: Vec<Record>,
    processes: BTreeMap<u32, Process>,
    look: Option<Look>,
    known: BTreeSet<u32>,
    /// Why a process that has ended was not looked at.
    why: Option<&'static str>,
    found: FollowedThreads,
}

impl<'a> ThreadFollower<'a> {
    /// For what the calling thread starts next, placed by `table` and reporting in `folder`.
    ///
    /// # Errors
    /// What is missing, and how to get it.
    pub fn new(table: &'a Table, folder: PathBuf) -> Result<Self, String> {
        if !soft_dirty::works() {
            return Err("this kernel does not tell who writes to a page (CONFIG_MEM_SOFT_DIRTY)".into());
        }
        let source = Source::of_children(1).map_err(|error| match error.kind() {
            std::io::ErrorKind::PermissionDenied => {
                "page faults may not be observed; sysctl kernel.perf_event_paranoid=2".to_owned()
            }
            _ => format!("page faults cannot be observed: {error}"),
        })?;
        Ok(Self {
            table,
            places: Places::of(table),
            folder,
            host: Host::default(),
            source,
            records: Vec::new(),
            processes: BTreeMap::new(),
            look: None,
            known: BTreeSet::new(),
            why: None,
            found: FollowedThreads::default(),
        })
    }

    /// To be called again after the pause that it returns, while the command runs.
    pub fn step(&mut self) -> Duration {
        let now = Instant::now();
        self.source.drain(&mut self.records);
        if let Some(look) = self.look.take() {
            let settled = self.decide(&look, now);
            self.records.clear();
            if !settled && now.duration_since(look.since) < LOOK {
                self.look = Some(look);
                return DRAIN;
            }
            if let Some(process) = self.processes.get_mut(&look.objects.pid) {
                process.looked(now);
            }
        }
        self.records.clear();
        self.source.set_running(false);
        self.begin(now)
    }

    /// What it came to, when the command has ended.
    #[must_use]
    pub fn finish(mut self) -> FollowedThreads {
        self.forget(|_| false);
        if self.found.looks == 0 {
            self.found.refused = self.found.refused.take().or(self.why.map(str::to_owned));
        }
        self.found.known = self.known.len();
        self.found
    }

    /// Settles the accounts of processes that have ended.
    fn forget(&mut self, is_alive: impl Fn(u32) -> bool) {
        self.processes.retain(|pid, process| {
            let keep = is_alive(*pid);
            if !keep {
                self.found.cpu += process.cpu();
                self.why = self.why.or(process.why());
            }
            keep
        });
    }

    /// Begins a look at a process for which it is time.
    fn begin(&mut self, now: Instant) -> Duration {
        let running = PlacedObjects::of_running(&self.folder, self.table);
        self.forget(|pid| running.iter().any(|objects| objects.pid == pid));
        let rests = self.processes.values().map(|p| p.rest(now));
        let mut pause = rests.min().unwrap_or(DRAIN);
        for objects in running {
            let pid = objects.pid;
            let process = self.processes.entry(pid).or_insert_with(|| Process::new(now));
            if !process.look_may_begin(&self.host, pid, now) || objects.is_empty() {
                pause = pause.min(process.rest(now));
                continue;
            }
            let own = match () {
                () if !is_placed(&self.host, pid) => Some("another process has its number"),
                () if objects.binds_threads => Some("the program has bound threads itself"),
                () if soft_dirty::is_used_by(&self.host, pid) => {
                    Some("the program uses its own soft-dirty bits, which looking at its threads would clear")
                }
                () => None,
            };
            if let Some(why) = own {
                self.found.refused = Some(why.into());
                process.never();
                continue;
            }
            self.source.set_running(true);
            match soft_dirty::clear(pid) {
                Ok(took) => {
                    self.found.looks += 1;
                    self.found.cost += process.begins(took, now);
                    self.look = Some(Look { since: now, objects });
                    return DRAIN;
                }
                Err(error) => {
                    self.source.set_running(false);
                    self.found.refused = Some(format!("its soft-dirty bits cannot be cleared: {error}"));
                    process.never();
                }
            }
        }
        pause.clamp(DRAIN, Duration::from_secs(1))
    }

    /// Sends the threads of a process to the data that they were seen to use; whether all of them are known that are at
    /// work.
    fn decide(&mut self, look: &Look, now: Instant) -> bool {
        let (table, pid) = (self.table, look.objects.pid);
        let Some(process) = self.processes.get_mut(&pid) else {
            return true;
        };
        let faults: Vec<(u32, u64)> = self
            .records
            .iter()
            .filter_map(|record| match record {
                Record::Fault(fault) if fault.pid == pid => Some((fault.tid, fault.address)),
                _ => None,
            })
            .collect();
        // Where the memory is decides, not where it is wanted: what was touched first stays behind a thread that goes.
        let seen = &faults[..faults.len().min(AT_ONCE)];
        let addresses: Vec<u64> = seen.iter().map(|(_, address)| *address).collect();
        let nodes = nodes_of_pages(pid, &addresses).unwrap_or_default();
        for ((tid, address), node) in seen.iter().zip(nodes) {
            if let Some(node) = node.and_then(|number| table.node_of_kernel(number)) {
                let weight = look.objects.weight(table, address >> BASE_PAGE_SHIFT);
                process.saw(*tid, node, weight);
            }
        }
        let mut threads = process.bound(&self.host, pid, &self.places, now);
        process.keep(&threads);
        let tids = threads.iter().map(|t| t.tid);
        let known: Vec<u32> = tids.filter(|tid| process.is_fresh(*tid)).collect();
        // The main thread often only waits.
        let settled = known.len() + 1 >= threads.len();
        if settled && !known.is_empty() {
            self.found.found_after.get_or_insert(process.age(now));
        }
        self.known.extend(known);
        let age = now.duration_since(look.since);
        if !settled && age < PATIENCE {
            return false;
        }
        // A thread that made room would have to stay where it went for a second.
        if !settled && age < MAKES_ROOM {
            threads.iter_mut().for_each(Seated::stay_if_unknown);
        }
        let moves = self.places.moves(&threads);
        if !moves.is_empty() && PlacedObjects::binds_threads_now(&self.folder, pid) {
            return true; // it has begun to bind them itself
        }
        for (tid, cpu) in moves {
            if affinity::bind(tid, &[cpu]).is_ok() {
                process.moved(tid, now);
                self.found.moves += 1;
            }
        }
        settled
    }
}

/// Whether a process has our library: one that was killed leaves its report, and another may have its number by now.
fn is_placed(host: &Host, pid: u32) -> bool {
    let maps = host.read(&format!("proc/{pid}/maps")).unwrap_or_default();
    maps.contains("libnodewise-preload")
}

/// A look under way.
struct Look {
    since: Instant,
    objects: PlacedObjects,
}

//! Role detection: while a placed program runs, finds out which thread works on which data, and moves it to that data's
//! node.
//!
//! A placement says on which nodes data is, but which thread works on it may differ from run to run. A *look* therefore
//! clears the soft-dirty bits of the process: the next write to each page faults once, and the kernel reports which
//! thread it was. A thread that writes mostly to memory of one node belongs there ([`nodewise_analysis::assign_threads`]). The
//! first look comes as soon as the program has several threads at work. Later ones detect changes; the interval between
//! them doubles while nothing changes.

mod places;
mod process;

use nodewise_enforce::{PlacedObjects, Table};
use nodewise_linux::faults::{Record, Source};
use nodewise_linux::mempolicy::nodes_of_pages;
use nodewise_linux::{Host, affinity, soft_dirty};
use nodewise_profile::BASE_PAGE_SHIFT;
use places::{BoundThread, Places};
use process::{DRAIN, Process};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Longest duration of a look.
const LOOK: Duration = Duration::from_secs(1);
/// How long a look waits for the last threads to show a role before it moves those whose role is known.
const WAIT_FOR_ROLES: Duration = Duration::from_millis(100);
/// From this duration on, threads of unknown role may be moved away to make room for threads of known role.
const DISPLACE_AFTER: Duration = Duration::from_millis(500);
/// The largest number of faults whose pages are looked up in one step.
const AT_ONCE: usize = 4096;

/// Totals of role detection for a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FollowedThreads {
    /// Number of looks at the writes of a process.
    pub looks: u32,
    /// Number of threads whose data was found to be on one node.
    pub known: usize,
    /// Number of moves of a thread to another node.
    pub moves: u32,
    /// Time from the start of the program's second thread until the roles of all threads but one were known.
    pub found_after: Option<Duration>,
    /// Upper estimate of the CPU time that looks cost the program.
    pub cost: Duration,
    /// CPU time of the processes, as of the last time each was examined.
    pub cpu: Duration,
    /// The reason if some process was not looked at.
    pub refused: Option<String>,
}

/// Detects the roles of one command's threads and moves them.
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
    /// The reason if a process that has ended was not looked at.
    why: Option<&'static str>,
    found: FollowedThreads,
}

impl<'a> ThreadFollower<'a> {
    /// Prepares for the command that the calling thread starts next, which is placed by `table` and reports in
    /// `folder`.
    ///
    /// # Errors
    /// One line: what is missing, and how to get it.
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

    /// Does what is due. Call it again after the returned pause, while the command runs.
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

    /// The totals, once the command has ended.
    #[must_use]
    pub fn finish(mut self) -> FollowedThreads {
        self.forget(|_| false);
        if self.found.looks == 0 {
            self.found.refused = self.found.refused.take().or(self.why.map(str::to_owned));
        }
        self.found.known = self.known.len();
        self.found
    }

    /// Drops processes that have ended, and adds their CPU time to the totals.
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

    /// Begins a look at a process if one is due and can be paid for. Returns the pause until the next step.
    fn begin(&mut self, now: Instant) -> Duration {
        let running = PlacedObjects::of_running(&self.folder, self.table);
        self.forget(|pid| running.iter().any(|objects| objects.pid == pid));
        let rests = self.processes.values().map(|p| p.rest(now));
        let mut pause = rests.min().unwrap_or(DRAIN);
        for objects in running {
            let pid = objects.pid;
            let process = self.processes.entry(pid).or_insert_with(|| Process::new(now));
            if !process.begin_look_if_due(&self.host, pid, now) || objects.is_empty() {
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
                process.exclude();
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
                    process.exclude();
                }
            }
        }
        pause.clamp(DRAIN, Duration::from_secs(1))
    }

    /// Moves the threads of a process to the nodes of the data that they were seen to write. Returns whether the roles
    /// of all threads but one are known.
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
        // The actual node of a page decides, not its node in the placement: pages that the placement leaves to first
        // touch stay behind when their thread is moved.
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
        // One unknown thread is permitted: the main thread often only waits.
        let settled = known.len() + 1 >= threads.len();
        if settled && !known.is_empty() {
            self.found.found_after.get_or_insert(process.age(now));
        }
        self.known.extend(known);
        let age = now.duration_since(look.since);
        if !settled && age < WAIT_FOR_ROLES {
            return false;
        }
        // Threads of unknown role keep their place at first: one that makes room cannot be moved again for a second.
        if !settled && age < DISPLACE_AFTER {
            threads.iter_mut().for_each(BoundThread::stay_if_unknown);
        }
        let moves = self.places.moves(&threads);
        if !moves.is_empty() && PlacedObjects::binds_threads_now(&self.folder, pid) {
            return true; // the program has begun to bind its threads itself
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

/// Whether a process has loaded our library. A killed process leaves its report behind, and its id may be in use again.
fn is_placed(host: &Host, pid: u32) -> bool {
    let maps = host.read(&format!("proc/{pid}/maps")).unwrap_or_default();
    maps.contains("libnodewise-preload")
}

/// A look that is under way.
struct Look {
    since: Instant,
    objects: PlacedObjects,
}

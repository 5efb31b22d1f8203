//! Finds out which thread of a placed program works on which data while it runs, and sends it there.
//!
//! A map says on which nodes data is; which thread works on it may be another one in each run. So a *look* clears the
//! soft-dirty bits of the process: the next write to each page faults once, and the kernel reports who it was. Threads
//! that write to placed pages of one node belong there ([`nodewise_control::roles`]). The first look comes as soon as
//! the program has threads that work; further ones watch whether that changes, ever more rarely while it does not.

mod process;

use nodewise_control::roles::{Observed, assign};
use nodewise_enforce::{PlacedObjects, Table};
use nodewise_linux::faults::{Record, Source};
use nodewise_linux::{Host, affinity, soft_dirty};
use nodewise_machine::NodeId;
use process::Process;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long who writes what is watched at a time.
const LOOK: Duration = Duration::from_millis(50);
/// Between drains of the buffers meanwhile.
const DRAIN: Duration = Duration::from_millis(5);
/// Between checks whether there is a process with threads to look at.
const CHECK: Duration = Duration::from_millis(20);
/// A thread that was moved stays for so long.
const STAYS: Duration = Duration::from_secs(1);

/// What following threads came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FollowedThreads {
    /// Looks at who writes what.
    pub looks: u32,
    /// Threads of which it was seen on which node their data is.
    pub known: usize,
    /// How often a thread was sent to another node.
    pub moves: u32,
    /// From the start of the program's first further thread to the first look that knew most of them.
    pub found_after: Option<Duration>,
    /// CPU time that looks have cost the program, estimated.
    pub cost: Duration,
    /// CPU time of the processes looked at, when they were last.
    pub cpu: Duration,
    /// Why some process was not looked at.
    pub refused: Option<String>,
}

/// Follows the threads of one command.
pub struct ThreadFollower<'a> {
    table: &'a Table,
    folder: PathBuf,
    host: Host,
    source: Source,
    records: Vec<Record>,
    processes: BTreeMap<u32, Process>,
    /// The process looked at, since when, and the objects it had then.
    look: Option<(u32, Instant, PlacedObjects)>,
    known: BTreeSet<u32>,
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
            folder,
            host: Host::default(),
            source,
            records: Vec::new(),
            processes: BTreeMap::new(),
            look: None,
            known: BTreeSet::new(),
            found: FollowedThreads::default(),
        })
    }

    /// To be called again after the pause that it returns, while the command runs.
    pub fn step(&mut self) -> Duration {
        let now = Instant::now();
        self.source.drain(&mut self.records);
        if let Some((pid, since, _)) = &self.look {
            if now.duration_since(*since) < LOOK {
                return DRAIN;
            }
            self.source.set_running(false);
            let pid = *pid;
            let (_, _, objects) = self.look.take().expect("matched above");
            self.decide(pid, &objects, now);
        }
        self.records.clear();
        self.source.set_running(false);
        self.begin(now)
    }

    /// What it came to, when the command has ended.
    #[must_use]
    pub fn finish(mut self) -> FollowedThreads {
        self.found.known = self.known.len();
        self.found.cpu = self.processes.values().map(Process::cpu).sum();
        self.found
    }

    /// Begins a look at a process for which it is time.
    fn begin(&mut self, now: Instant) -> Duration {
        let mut pause = self
            .processes
            .values()
            .map(|p| p.rest(now))
            .min()
            .unwrap_or(CHECK);
        for objects in PlacedObjects::of_running(&self.folder, self.table) {
            let pid = objects.pid;
            let process = self.processes.entry(pid).or_insert_with(|| Process::new(now));
            if !process.is_due(&self.host, pid, now) || objects.is_empty() {
                pause = pause.min(process.rest(now));
                continue;
            }
            let own = match () {
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
                    self.look = Some((pid, now, objects));
                    return DRAIN;
                }
                Err(_) => {
                    self.source.set_running(false);
                    process.never();
                }
            }
        }
        pause.clamp(CHECK, Duration::from_secs(1))
    }

    /// Sends the threads of a process to the data that they were seen to use.
    fn decide(&mut self, pid: u32, objects: &PlacedObjects, now: Instant) {
        let table = self.table;
        let Some(process) = self.processes.get_mut(&pid) else {
            return;
        };
        let mut faults = 0;
        for record in &self.records {
            let Record::Fault(fault) = record else { continue };
            if fault.pid != pid {
                continue;
            }
            faults += 1;
            if let Some(node) = objects.wanted(table, fault.address >> 12) {
                process.saw(fault.tid, node, table.node_count());
            }
        }
        self.found.cost += process.paid(faults);
        let places: Vec<(u32, NodeId)> = table.places().collect();
        let mut tids = Vec::new();
        let mut threads = Vec::new();
        for (tid, cpu) in process.bound(&self.host, pid, &places) {
            let node = |&(c, node): &(u32, NodeId)| (c == cpu).then_some(node);
            let Some(now) = places.iter().find_map(node) else {
                continue;
            };
            tids.push((tid, cpu));
            threads.push(Observed {
                by_node: process.seen(tid).to_vec(),
                now,
            });
        }
        let mut by_node = vec![0; table.node_count()];
        places.iter().for_each(|(_, node)| by_node[node.index()] += 1);
        let known = threads.iter().filter(|t| t.belongs().is_some()).count();
        self.known.extend(
            tids.iter()
                .zip(&threads)
                .filter(|(_, t)| t.belongs().is_some())
                .map(|((tid, _), _)| *tid),
        );
        if self.found.found_after.is_none() && 2 * known > threads.len().saturating_sub(1) {
            self.found.found_after = Some(process.age(now));
        }
        let to = assign(&threads, &by_node);
        let mut users: BTreeMap<u32, u32> = places.iter().map(|(cpu, _)| (*cpu, 0)).collect();
        for ((_, cpu), (thread, to)) in tids.iter().zip(threads.iter().zip(&to)) {
            *users.entry(*cpu).or_default() += u32::from(thread.now == *to);
        }
        let mut moved = false;
        for (&(tid, _), (thread, to)) in tids.iter().zip(threads.iter().zip(to)) {
            if thread.now == to || !process.may_move(tid, now, STAYS) {
                continue;
            }
            let there = places.iter().filter(|(_, node)| *node == to).map(|(cpu, _)| *cpu);
            let Some(cpu) = there.min_by_key(|cpu| users[cpu]) else {
                continue;
            };
            if affinity::bind(tid, &[cpu]).is_ok() {
                *users.entry(cpu).or_default() += 1;
                process.moved(tid, cpu, now);
                self.found.moves += 1;
                moved = true;
            }
        }
        process.looked(moved, now);
    }
}

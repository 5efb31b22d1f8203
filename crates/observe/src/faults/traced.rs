//! Converts samples of processes to the rows and tables of a profile.

use super::{Kind, Touch, Watch, mapped};
use crate::checkpoints::Checkpoints;
use crate::error::Error;
use crate::image::Image;
use crate::tables::Tables;
use crate::{objects, rows};
use nodewise_linux::{Host, clock};
use nodewise_machine::Machine;
use nodewise_profile::{
    Access, BASE_PAGE_SHIFT, BASE_PAGE_SIZE, FirstTouch, Frame, Meta, ObjectId, PageNumber, Profile, Slice,
    SliceId, Thread, ThreadId,
};
use nodewise_store::Writer;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Number of first touches kept for a process without samples.
const MAX_PENDING_TOUCHES: usize = 1 << 20;
/// Time after which a process that has samples and no log is taken for one that will not log.
const LOG_TIMEOUT: Duration = Duration::from_secs(2);
/// Time between two readings of a process's mappings when samples fall outside known ones.
const MAPPINGS_INTERVAL: Duration = Duration::from_secs(1);

/// A profile that is being made from samples.
pub struct Traced {
    host: Host,
    raw: Option<PathBuf>,
    writer: Writer,
    tables: Tables,
    processes: BTreeMap<u32, TracedProcess>,
    /// First touches of processes without samples, which may never get any; and samples of processes that may still
    /// begin to log.
    waiting: HashMap<u32, Vec<Touch>>,
    /// Since when the samples of a process wait for its log.
    waits_since: HashMap<u32, Duration>,
    /// The node of each CPU, by the kernel's number.
    nodes: HashMap<u32, u16>,
    touched: HashSet<PageNumber>,
    counts: HashMap<(PageNumber, ThreadId), ReadsAndWrites>,
    accesses: u64,
    last_end: u64,
    checkpoints: Checkpoints,
}

#[derive(Default)]
struct ReadsAndWrites {
    object: ObjectId,
    reads: u64,
    writes: u64,
}

/// A process with samples.
struct TracedProcess {
    image: Image,
    /// Its log's folder below `raw`; a new one means that it runs another program.
    folder: Option<PathBuf>,
    /// The profile's threads for each thread: one for each node that it ran on, in that order.
    threads: HashMap<u32, Vec<(Option<u16>, ThreadId)>>,
    mapped: Option<Duration>,
}

impl Traced {
    /// A profile that is written to `writer`.
    #[must_use]
    pub fn new(host: &Host, writer: Writer) -> Self {
        Self {
            host: host.clone(),
            raw: None,
            writer,
            tables: Tables::default(),
            processes: BTreeMap::new(),
            waiting: HashMap::new(),
            waits_since: HashMap::new(),
            nodes: nodes_of_cpus(host),
            touched: HashSet::new(),
            counts: HashMap::new(),
            accesses: 0,
            last_end: 0,
            checkpoints: Checkpoints::new(0), // the program waits for none
        }
    }

    /// Reads logs of allocations below this folder: programs that load our library write them.
    pub fn log_below(&mut self, raw: &Path) {
        self.raw = Some(raw.to_owned());
    }

    /// Takes the touches of the last look.
    pub fn take(&mut self, watch: &Watch) {
        let fresh: HashSet<u32> = watch.executed().iter().map(|(pid, _)| *pid).collect();
        self.find_folders(|pid| number_now(watch, pid), &fresh);
        let mut executed = watch.executed().iter().peekable();
        for (number, touch) in watch.touches().iter().enumerate() {
            while let Some((pid, _)) = executed.next_if(|(_, at)| *at <= number) {
                self.execute(*pid);
            }
            self.touch(touch, watch);
        }
        executed.for_each(|(pid, _)| self.execute(*pid));
        self.take_waiting(watch, LOG_TIMEOUT);
        for pid in watch.ends() {
            self.waiting.remove(pid);
            self.waits_since.remove(pid);
            if let Some(process) = self.processes.get_mut(pid) {
                process.image.close();
            }
        }
    }

    /// The process executes another program, with other addresses. One that logs is recognised by its new folder.
    fn execute(&mut self, pid: u32) {
        self.waiting.remove(&pid);
        self.waits_since.remove(&pid);
        if self.processes.get(&pid).is_some_and(|p| p.folder.is_none()) {
            self.processes.remove(&pid);
        }
    }

    fn touch(&mut self, touch: &Touch, watch: &Watch) {
        let pid = touch.fault.pid;
        match touch.kind {
            Kind::First if !self.processes.contains_key(&pid) => {
                let waiting = self.waiting.entry(pid).or_default();
                if waiting.len() < MAX_PENDING_TOUCHES {
                    waiting.push(*touch);
                }
            }
            // Without a unique number its pages could not be distinguished from those of another program.
            Kind::Hint if touch.process.is_none_or(|number| !watch.is_unique(number)) => {}
            Kind::Hint if !self.is_known(pid) && self.wait_for_log(pid) => {
                self.waiting.entry(pid).or_default().push(*touch);
            }
            Kind::Hint | Kind::First => {
                if !self.processes.contains_key(&pid) {
                    self.begin(pid, None, touch.process);
                }
                for earlier in self.waiting.remove(&pid).unwrap_or_default() {
                    self.count(&earlier, watch);
                }
                self.count(touch, watch);
            }
            Kind::Copy | Kind::Unknown => {}
        }
    }

    /// Whether the process's threads are in its log, or it has none.
    fn is_known(&self, pid: u32) -> bool {
        let known = |p: &TracedProcess| p.folder.is_none() || !p.image.threads.is_empty();
        self.processes.get(&pid).is_some_and(known)
    }

    /// Whether samples of a process have to wait for its log; the first call starts the wait of [`LOG_TIMEOUT`]. A
    /// program is sampled from its first instruction on, but logs its threads and objects only after our library is
    /// loaded.
    fn wait_for_log(&mut self, pid: u32) -> bool {
        let room = self
            .waiting
            .get(&pid)
            .is_none_or(|w| w.len() < MAX_PENDING_TOUCHES);
        let now = clock::monotonic();
        self.raw.is_some() && room && now - *self.waits_since.entry(pid).or_insert(now) < LOG_TIMEOUT
    }

    /// Counts samples that have waited long enough, or whose log has appeared.
    fn take_waiting(&mut self, watch: &Watch, patience: Duration) {
        let now = clock::monotonic();
        let ready = |(pid, since): (&u32, &Duration)| {
            let ends = watch.ends().contains(pid) || now - *since >= patience;
            (ends || self.is_known(*pid)).then_some(*pid)
        };
        let ready: Vec<u32> = self.waits_since.iter().filter_map(ready).collect();
        for pid in ready {
            self.waits_since.remove(&pid);
            let earlier = self.waiting.remove(&pid).unwrap_or_default();
            if !self.processes.contains_key(&pid) {
                self.begin(pid, None, earlier.iter().find_map(|t| t.process));
            }
            for earlier in earlier {
                self.count(&earlier, watch);
            }
        }
    }

    fn count(&mut self, touch: &Touch, watch: &Watch) {
        let fault = &touch.fault;
        let address = fault.address & !(BASE_PAGE_SIZE - 1);
        let Some(process) = self.processes.get_mut(&fault.pid) else {
            return;
        };
        if touch.kind == Kind::First && process.is_stranger(fault.tid) {
            return; // perhaps a companion that has not set its name yet
        }
        let Some(number) = process
            .image
            .ordinal
            .or(touch.process)
            .or_else(|| watch.number(fault.pid))
        else {
            return;
        };
        process.image.ordinal = Some(number);
        if touch.process.is_some_and(|of| of != number) {
            return; // a sample of the program that the process ran before
        }
        let page = PageNumber::of_address(number, address);
        let node = self.nodes.get(&fault.cpu).copied();
        let thread = process.thread(&mut self.tables, fault.tid, node, watch.name(fault.tid));
        let object = process.object(&self.host, &mut self.tables, address);
        if touch.kind == Kind::First {
            self.first_touch(page, object, thread);
            return;
        }
        let counts = self.counts.entry((page, thread)).or_default();
        counts.object = object;
        *(if fault.write == Some(true) {
            &mut counts.writes
        } else {
            &mut counts.reads
        }) += 1;
        self.accesses += 1;
    }

    fn first_touch(&mut self, page: PageNumber, object: ObjectId, thread: ThreadId) {
        if !self.touched.insert(page) {
            return; // memory that was freed and is used again
        }
        let slice = SliceId::from_index(self.tables.profile.slices.len());
        self.tables.profile.first_touches.push(FirstTouch {
            page,
            len: 1,
            object,
            thread,
            slice,
            ..FirstTouch::default()
        });
    }

    /// CPU time that reading the symbols of programs and libraries took since the last call.
    pub fn take_reading(&mut self) -> Duration {
        self.tables.library.take_reading()
    }

    fn begin(&mut self, pid: u32, folder: Option<PathBuf>, number: Option<u16>) {
        let mut image = Image::new(folder.clone().unwrap_or_default(), pid);
        image.ordinal = number;
        let threads = HashMap::new();
        self.processes.insert(
            pid,
            TracedProcess {
                image,
                folder,
                threads,
                mapped: None,
            },
        );
    }

    /// Finds the folders of programs that log allocations; the newest folder belongs to the program that runs. `fresh`
    /// are the processes that executed another program meanwhile.
    fn find_folders(&mut self, number: impl Fn(u32) -> Option<u16>, fresh: &HashSet<u32>) {
        let Some(raw) = &self.raw else {
            return;
        };
        let entries = std::fs::read_dir(raw).into_iter().flatten().flatten();
        let mut newest: BTreeMap<u32, (u32, PathBuf)> = BTreeMap::new();
        for entry in entries {
            let name = entry.file_name();
            let Some((pid, sequence)) = crate::recording::image_name(&name.to_string_lossy()) else {
                continue;
            };
            let known = newest.entry(pid).or_insert_with(|| (sequence, entry.path()));
            if sequence > known.0 {
                *known = (sequence, entry.path());
            }
        }
        for (pid, (_, folder)) in newest {
            match self.processes.get_mut(&pid) {
                Some(known) if known.folder.as_ref() == Some(&folder) => {}
                // It was sampled while it was being loaded: it is the same program.
                Some(early) if early.folder.is_none() && !fresh.contains(&pid) => {
                    early.open_log(folder, &mut self.tables);
                }
                _ => {
                    if let Some(number) = number(pid) {
                        self.begin(pid, Some(folder), Some(number));
                    }
                }
            }
        }
        for process in self
            .processes
            .values_mut()
            .filter(|p| p.folder.is_some() && !p.image.is_closed())
        {
            // If a log cannot be read, samples are still recorded.
            let _ = process.image.follow(&mut self.tables);
        }
    }

    /// Ends a slice at `now`, nanoseconds since the start.
    ///
    /// # Errors
    /// The profile cannot be written.
    pub fn cut(&mut self, now: u64) -> Result<(), Error> {
        let mut by_thread: BTreeMap<ThreadId, Vec<Access>> = BTreeMap::new();
        for ((page, thread), counts) in self.counts.drain() {
            by_thread.entry(thread).or_default().push(Access {
                object: counts.object,
                thread,
                page,
                len: 1,
                reads: counts.reads,
                writes: counts.writes,
                lines: counts.reads + counts.writes,
                ..Access::default()
            });
        }
        let mut all = Vec::new();
        by_thread
            .into_values()
            .for_each(|fresh| rows::compress(fresh, &mut all));
        rows::sort(&mut all);
        let ended = Slice {
            start_ns: self.last_end,
            end_ns: now.max(self.last_end),
        };
        self.writer.slice(ended, &all)?;
        self.last_end = ended.end_ns;
        self.tables.profile.slices.push(ended);
        Ok(())
    }

    /// Makes the slices and moves so far readable, in case we are killed: after a slice, unless the last checkpoint was
    /// recent. `describe` completes the metadata.
    ///
    /// # Errors
    /// The profile cannot be written.
    pub fn checkpoint(&mut self, describe: impl FnOnce(&mut Meta)) -> Result<(), Error> {
        let Some(begun) = self.checkpoints.begin() else {
            return Ok(());
        };
        describe(&mut self.tables.profile.meta);
        self.join_first_touches();
        for process in self.processes.values() {
            process.complete_further_rows(&mut self.tables);
        }
        self.writer.checkpoint(&self.tables.profile)?;
        self.checkpoints.end(&begun);
        Ok(())
    }

    fn join_first_touches(&mut self) {
        let touches = std::mem::take(&mut self.tables.profile.first_touches);
        self.tables.first_touches(touches);
    }

    /// Reads the CPU time of running threads.
    pub fn look_at_threads(&mut self) {
        for (pid, process) in &self.processes {
            for task in self.host.tasks(*pid).unwrap_or_default() {
                if let Some((_, thread)) = process.threads.get(&task.tid).and_then(|rows| rows.first()) {
                    self.tables.profile.threads[thread.index()].cpu_ns = task.cpu_ns;
                }
            }
        }
    }

    /// Number of samples so far.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.accesses
    }

    /// Number of slices so far.
    #[must_use]
    pub fn slices(&self) -> usize {
        self.tables.profile.slices.len()
    }

    /// Number of processes with samples.
    #[must_use]
    pub fn processes(&self) -> usize {
        self.processes.len()
    }

    /// The object that owns a page of a process with samples.
    pub fn object(&mut self, pid: u32, page: PageNumber) -> Option<ObjectId> {
        let process = self.processes.get_mut(&pid)?;
        let address = page.virtual_number() << BASE_PAGE_SHIFT;
        let is_this = process.image.ordinal == Some(page.process());
        is_this.then(|| process.object(&self.host, &mut self.tables, address))
    }

    /// The metadata and tables that will be written; not the accesses.
    pub fn profile_mut(&mut self) -> &mut Profile {
        &mut self.tables.profile
    }

    /// Completes the tables, writes them and returns them.
    ///
    /// # Errors
    /// The profile cannot be written.
    pub fn finish(mut self) -> Result<Profile, Error> {
        self.find_folders(|_| None, &HashSet::new());
        self.join_first_touches();
        let extents = objects::extents(&self.tables.profile.first_touches);
        for process in self.processes.values() {
            objects::finish(&process.image, &mut self.tables, &extents);
            process.complete_further_rows(&mut self.tables);
        }
        self.tables.finish();
        self.writer.finish(&self.tables.profile)?;
        Ok(self.tables.profile)
    }
}

impl TracedProcess {
    fn open_log(&mut self, folder: PathBuf, tables: &mut Tables) {
        self.image.open_log(folder.clone());
        self.folder = Some(folder);
        // If a log cannot be read, samples are still recorded.
        let _ = self.image.follow(tables);
        for (tid, rows) in &self.threads {
            self.image.set_thread_id(tables, *tid, rows[0].1);
        }
    }

    /// Whether the process's log names threads, but not this one.
    fn is_stranger(&self, tid: u32) -> bool {
        self.folder.is_some() && !self.image.threads.iter().any(|t| t.tid == tid)
    }

    /// The profile's thread for a thread on a node.
    fn thread(&mut self, tables: &mut Tables, tid: u32, node: Option<u16>, name: Option<&str>) -> ThreadId {
        let rows = self.threads.get(&tid).map_or(&[][..], Vec::as_slice);
        if let Some((_, known)) = rows.iter().find(|(on, _)| *on == node || node.is_none()) {
            return *known;
        }
        let id = match rows.first() {
            None => self.first_row(tables, tid, name),
            Some((_, first)) => tables.thread_like(*first),
        };
        tables.profile.threads[id.index()].node = node;
        self.threads.entry(tid).or_default().push((node, id));
        id
    }

    /// The first of a thread's numbers: its position in the log, or a new one.
    fn first_row(&mut self, tables: &mut Tables, tid: u32, name: Option<&str>) -> ThreadId {
        let logged = self.image.threads.iter().position(|t| t.tid == tid);
        let id = match logged {
            Some(place) => self.image.thread(tables, place as u32),
            None => {
                let function = name.unwrap_or_default().to_owned();
                tables.thread(
                    self.image.ordinal.unwrap_or(0),
                    Frame {
                        function,
                        ..Frame::default()
                    },
                )
            }
        };
        tables.profile.threads[id.index()].tid = tid;
        id
    }

    /// Copies what became known of a thread to its numbers on further nodes.
    fn complete_further_rows(&self, tables: &mut Tables) {
        for rows in self.threads.values() {
            let first = tables.profile.threads[rows[0].1.index()].clone();
            for (node, id) in &rows[1..] {
                tables.profile.threads[id.index()] = Thread {
                    node: *node,
                    cpu_ns: 0,
                    ..first.clone()
                };
            }
        }
    }

    fn object(&mut self, host: &Host, tables: &mut Tables, address: u64) -> ObjectId {
        let unknown = |image: &mut Image| image.claims.owner(address).is_none();
        if self.folder.is_none() && unknown(&mut self.image) {
            let now = clock::monotonic();
            if self.mapped.is_none_or(|at| now - at >= MAPPINGS_INTERVAL) {
                self.mapped = Some(now);
                let areas = host.maps(self.image.pid).unwrap_or_default();
                mapped::claim(&mut self.image, tables, &areas);
            }
        }
        objects::owner(&mut self.image, tables, address)
    }
}

/// The number of the program that a process was running at the last look.
fn number_now(watch: &Watch, pid: u32) -> Option<u16> {
    let executed = watch.executed().iter().rfind(|(of, _)| *of == pid);
    let since = &watch.touches()[executed.map_or(0, |(_, at)| *at)..];
    let seen = since.iter().rfind(|t| t.fault.pid == pid && t.process.is_some());
    seen.and_then(|t| t.process).or_else(|| watch.number(pid))
}

/// The node of each CPU, by the kernel's numbers.
fn nodes_of_cpus(host: &Host) -> HashMap<u32, u16> {
    let machine = Machine::from_sysfs(&host.sys(), "this");
    let cpus = machine.map(|m| m.cpus()).unwrap_or_default().into_iter();
    cpus.filter_map(|(cpu, node)| Some((cpu.0, u16::try_from(node.0).ok()?)))
        .collect()
}

#[cfg(test)]
mod tests;

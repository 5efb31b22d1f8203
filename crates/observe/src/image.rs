//! One process image: applies its log, reads its counters, and assigns its pages to objects.

use crate::claims::{Claims, Content};
use crate::code::Loaded;
use crate::coverage::Samples;
use crate::events::{self, Event};
use crate::lineage;
use crate::pool::Pool;
use crate::program::RUNTIME;
use crate::tables::Tables;
use crate::thread_file::{Delta, ThreadFile, Touch};
use crate::{objects, rows};
use nodewise_profile::{
    Access, BASE_PAGE_SIZE, FirstTouch, Frame, ObjectId, PageNumber, Region, RegionId, RegionKind, SiteId,
    SliceId, ThreadId,
};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::PathBuf;

/// The first thread's stack grows; the kernel keeps this number of bytes below it free.
const MAIN_STACK: u64 = 128 << 20;
/// Largest distance of the stack's end above the environment table, bytes.
const ENVIRONMENT: u64 = 2 << 20;
/// Bytes that a thread library keeps above a thread's first frame: its own and thread-local data.
const ABOVE_STACK: u64 = 64 << 10;

/// A thread, according to the log.
#[derive(Clone, Debug, Default)]
pub struct ThreadRecord {
    pub tid: u32,
    pub openmp: Option<u32>,
    pub start: u64,
    pub id: Option<ThreadId>,
}

/// A process image, and how far its raw files have been read.
pub struct Image {
    pub folder: PathBuf,
    pub pid: u32,
    /// Number of the image in the profile, set when its first page is seen: images without accesses have none.
    pub ordinal: Option<u16>,
    pub(crate) claims: Claims,
    pub(crate) modules: Vec<Loaded>,
    pub(crate) threads: Vec<ThreadRecord>,
    pub(crate) names: Vec<String>,
    pub(crate) objects: HashMap<Content, ObjectId>,
    pub(crate) pool: Pool,
    pub(crate) brk: u64,
    closed: bool,
    inherited: bool,
    files: BTreeMap<u32, ThreadFile>,
    unread: Option<(usize, String)>,
    log_read: u64,
    regions: HashMap<u32, RegionId>,
    sequences: HashMap<(SiteId, u32), u32>,
    gone: Vec<(u64, u64)>,
    sites: HashMap<u64, SiteId>,
    /// For objects allocated repeatedly at their address: index of their entry in the pool's file.
    pub(crate) repeats: HashMap<u64, usize>,
    /// Number of repeated allocations that the log reported line by line, by address.
    pub(crate) again: HashMap<u64, u64>,
}

impl Image {
    /// The image that writes to `folder`.
    pub fn new(folder: PathBuf, pid: u32) -> Self {
        Self {
            pool: Pool::new(&folder),
            folder,
            pid,
            closed: false,
            inherited: false,
            ordinal: None,
            claims: Claims::default(),
            modules: Vec::new(),
            threads: Vec::new(),
            names: Vec::new(),
            objects: HashMap::new(),
            brk: 0,
            files: BTreeMap::new(),
            unread: None,
            log_read: 0,
            regions: HashMap::new(),
            sequences: HashMap::new(),
            gone: Vec::new(),
            sites: HashMap::new(),
            repeats: HashMap::new(),
            again: HashMap::new(),
        }
    }

    /// Reads the process's log in this folder from now on.
    pub(crate) fn open_log(&mut self, folder: PathBuf) {
        self.pool = Pool::new(&folder);
        self.folder = folder;
    }

    /// Sets the profile's number of a thread before the log names the thread.
    pub(crate) fn set_thread_id(&mut self, tables: &mut Tables, tid: u32, id: ThreadId) {
        let Some(place) = self.threads.iter().position(|t| t.tid == tid && t.id.is_none()) else {
            return;
        };
        self.threads[place].id = Some(id);
        tables.profile.threads[id.index()].start = self.start_routine(tables, place);
    }

    /// Accesses that its threads could not count.
    pub fn dropped(&self) -> u64 {
        self.files.values().map(ThreadFile::dropped).sum()
    }

    /// Reads everything since the last call: appends rows, and adds first touches to the tables. `ordinal` is the
    /// number that the image gets when its first page is seen.
    ///
    /// # Errors
    /// A raw file cannot be read.
    pub fn advance(
        &mut self,
        tables: &mut Tables,
        slice: SliceId,
        ordinal: u16,
        into: &mut Vec<Access>,
    ) -> io::Result<()> {
        self.read_log(tables)?;
        let (mut deltas, mut touches) = (Vec::new(), Vec::new());
        self.unread = None;
        for (&number, file) in &mut self.files {
            match file.look() {
                Ok((counted, touched)) => {
                    deltas.push((number, counted));
                    touches.push((number, touched));
                }
                Err(error) => {
                    let threads = self.unread.take().map_or(0, |u| u.0) + file.threads();
                    self.unread = Some((threads, error.to_string()));
                }
            }
        }
        // Pages and objects are logged before they are counted, so the log is read after the counters.
        self.read_log(tables)?;
        if self.ordinal.is_none() && deltas.iter().any(|d| !d.1.is_empty()) {
            self.ordinal = Some(ordinal);
        }
        for (thread, number, deltas) in self.by_thread(&deltas, |file, d: &Delta| file.counted_by(d.counter))
        {
            self.take_deltas(tables, (thread, number), deltas, into);
        }
        for (thread, _, touches) in self.by_thread(&touches, |file, t: &Touch| file.touched_by(t.entry)) {
            self.take_touches(tables, slice, thread, touches);
        }
        for (start, end) in std::mem::take(&mut self.gone) {
            self.claims.clear(start, end);
        }
        Ok(())
    }

    /// Entries read from the files, grouped by the thread that wrote them: thread, file, entries.
    fn by_thread<'a, E>(
        &self,
        read: &'a [(u32, Vec<E>)],
        owner: impl Fn(&ThreadFile, &E) -> u32,
    ) -> Vec<(u32, u32, &'a [E])> {
        let mut parts = Vec::new();
        for (number, entries) in read {
            let Some(file) = self.files.get(number) else {
                continue;
            };
            for part in entries.chunk_by(|a, b| owner(file, a) == owner(file, b)) {
                parts.push((owner(file, &part[0]), *number, part));
            }
        }
        parts.sort_by_key(|p| p.0);
        parts
    }

    /// Number of threads whose counters the last call could not read, and why.
    pub fn unread(&self) -> Option<(usize, &str)> {
        self.unread
            .as_ref()
            .map(|(threads, why)| (*threads, why.as_str()))
    }

    /// Reads only the log, of a program that does not count: its allocations and threads.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn follow(&mut self, tables: &mut Tables) -> io::Result<()> {
        self.read_log(tables)?;
        for (start, end) in std::mem::take(&mut self.gone) {
            self.claims.clear(start, end);
        }
        Ok(())
    }

    /// Releases the raw files of a process that has ended and was read completely.
    pub fn close(&mut self) {
        self.files.clear();
        self.closed = true;
    }

    /// Whether the image was read completely.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Completes threads by what the log told after they got their numbers.
    pub fn finish_threads(&self, tables: &mut Tables, samples: &Samples) {
        for record in &self.threads {
            if let Some(id) = record.id {
                let thread = &mut tables.profile.threads[id.index()];
                (thread.tid, thread.openmp) = (record.tid, record.openmp);
                thread.cpu_ns = samples.cpu_time(self.pid, record.tid);
            }
        }
    }

    /// The profile's number of a thread, assigned in order of creation when first needed.
    pub(crate) fn thread(&mut self, tables: &mut Tables, ordinal: u32) -> ThreadId {
        let wanted = ordinal as usize;
        if self.threads.len() <= wanted {
            self.threads.resize(wanted + 1, ThreadRecord::default());
        }
        for i in 0..=wanted {
            if self.threads[i].id.is_none() {
                let start = self.start_routine(tables, i);
                self.threads[i].id = Some(tables.thread(self.ordinal.unwrap_or(0), start));
            }
        }
        self.threads[wanted].id.unwrap_or_default()
    }

    fn start_routine(&self, tables: &mut Tables, ordinal: usize) -> Frame {
        match self.threads[ordinal].start {
            0 if ordinal == 0 => Frame {
                function: "main".to_owned(),
                ..Frame::default()
            },
            start => tables
                .library
                .frames(&self.modules, start)
                .pop()
                .unwrap_or_default(),
        }
    }

    fn take_deltas(
        &mut self,
        tables: &mut Tables,
        (thread, number): (u32, u32),
        deltas: &[Delta],
        into: &mut Vec<Access>,
    ) {
        let id = self.thread(tables, thread);
        let mut fresh = Vec::with_capacity(deltas.len());
        for delta in deltas {
            let known = self.object(number, delta.counter).and_then(|o| *o);
            let object = known.unwrap_or_else(|| {
                let found = objects::owner(self, tables, delta.address);
                if let Some(object) = self.object(number, delta.counter) {
                    *object = Some(found);
                }
                found
            });
            fresh.push(Access {
                region: self.region(delta.region),
                object,
                thread: id,
                page: self.page(delta.address),
                len: 1,
                reads: delta.reads,
                writes: delta.writes,
                lines: delta.lines,
                ..Access::default()
            });
        }
        rows::compress(fresh, into);
    }

    /// The object of a counter's page, once found.
    fn object(&mut self, number: u32, counter: usize) -> Option<&mut Option<ObjectId>> {
        self.files.get_mut(&number)?.object(counter)
    }

    fn take_touches(&mut self, tables: &mut Tables, slice: SliceId, thread: u32, touches: &[Touch]) {
        if self.ordinal.is_none() {
            return;
        }
        let id = self.thread(tables, thread);
        let fresh = touches
            .iter()
            .map(|touch| FirstTouch {
                page: self.page(touch.address),
                len: 1,
                object: objects::owner(self, tables, touch.address),
                thread: id,
                site: self.site_of_code(tables, touch.code),
                slice,
                region: self.region(touch.region),
            })
            .collect();
        tables.first_touches(fresh);
    }

    fn page(&self, address: u64) -> PageNumber {
        PageNumber::of_address(self.ordinal.unwrap_or(0), address)
    }

    fn region(&self, id: u32) -> RegionId {
        self.regions.get(&id).copied().unwrap_or_default()
    }

    fn site_of_code(&mut self, tables: &mut Tables, code: u64) -> SiteId {
        let modules = &self.modules;
        *self.sites.entry(code).or_insert_with(|| {
            let site = tables.library.touch_site(modules, code);
            tables.site(site)
        })
    }

    // ---- The log. ----

    fn read_log(&mut self, tables: &mut Tables) -> io::Result<()> {
        let path = self.folder.join("events");
        self.log_read = events::read(&path, self.log_read, u64::MAX, |line| {
            if let Some(event) = Event::parse(line) {
                self.apply(tables, event);
            }
        })?;
        Ok(())
    }

    fn apply(&mut self, tables: &mut Tables, event: Event<'_>) {
        match event {
            Event::Process { brk, stack } => {
                self.brk = brk;
                if stack > 0 {
                    let what = Content::Stack { ordinal: 0 };
                    self.claims
                        .insert(stack.saturating_sub(MAIN_STACK), stack + ENVIRONMENT, what);
                }
            }
            Event::Parent { bytes, folder } => self.inherit(tables, folder, bytes),
            Event::Module { bias, segments, path } => self.load(tables, bias, &segments, path),
            Event::Thread { ordinal, start } => self.record(ordinal).start = start,
            Event::Start {
                ordinal,
                tid,
                stack,
                bytes,
            } => {
                self.record(ordinal).tid = tid;
                if bytes > 0 {
                    self.claims
                        .insert(stack, stack + bytes, Content::Stack { ordinal });
                } else if stack > 0 {
                    self.claim_stack(stack, ordinal);
                }
            }
            Event::Tls {
                ordinal,
                address,
                bytes,
                bias,
            } => {
                objects::claim_tls(self, tables, ordinal, address, bytes, bias);
            }
            Event::Counters {
                ordinal,
                number,
                counter,
                touch,
            } => {
                let file = self.files.entry(number);
                let file = file.or_insert_with(|| ThreadFile::new(&self.folder, number));
                file.hand_to(ordinal, counter, touch);
            }
            Event::OpenMp { ordinal, number } => self.record(ordinal).openmp = Some(number),
            Event::Region {
                id,
                line,
                function,
                file,
            } => {
                let frame = Frame {
                    function: function.to_owned(),
                    file: file.to_owned(),
                    line,
                };
                self.regions.insert(
                    id,
                    tables.region(Region {
                        kind: RegionKind::OpenMp,
                        frame,
                    }),
                );
            }
            Event::Outlined { id, address } => {
                let frame = tables
                    .library
                    .frames(&self.modules, address)
                    .pop()
                    .unwrap_or_default();
                let kind = RegionKind::OpenMp;
                self.regions.insert(id, tables.region(Region { kind, frame }));
            }
            Event::Heap {
                address,
                bytes,
                mapped,
                ordinal,
                chain,
            } => {
                let what = self.allocation(tables, (ordinal, &chain), address, bytes, false);
                self.claims.insert(address, address + mapped, what);
            }
            Event::Again {
                before,
                address,
                bytes,
                mapped,
            } if before == address => objects::again(self, tables, address, bytes, mapped),
            Event::Again {
                before,
                address,
                bytes,
                mapped,
            } => {
                if let Some(what) = self.claims.at(before).and_then(|c| c.what.moved(address, bytes)) {
                    self.claims.insert(address, address + mapped, what);
                }
            }
            Event::Repeats { number, address } => {
                self.repeats.insert(address, number);
            }
            Event::Map {
                address,
                bytes,
                path: Some(path),
                ..
            } => {
                let name = self.name(path);
                self.claims
                    .insert(address, address + bytes, Content::File { name });
            }
            Event::Map {
                address,
                bytes,
                ordinal,
                chain,
                path: None,
            } => {
                let what = self.allocation(tables, (ordinal, &chain), address, bytes, true);
                self.claims.insert(address, address + bytes, what);
            }
            Event::Gone { address, bytes } => self.gone.push((address, address + bytes)),
            Event::Arena { address, bytes } => self.pool.add_arena(address, address + bytes),
        }
    }

    /// Claims a thread's stack, of which one address is known: it is a mapping that ends a little above.
    fn claim_stack(&mut self, address: u64, ordinal: u32) {
        let found = self.claims.owner(address & !(BASE_PAGE_SIZE - 1)).copied();
        let stack = found.filter(|c| matches!(c.what, Content::Allocation { mapped: true, .. }));
        if let Some(claim) = stack.filter(|c| c.end.saturating_sub(address) <= ABOVE_STACK) {
            self.claims
                .insert(claim.start, claim.end, Content::Stack { ordinal });
        }
    }

    fn record(&mut self, ordinal: u32) -> &mut ThreadRecord {
        let index = ordinal as usize;
        if self.threads.len() <= index {
            self.threads.resize(index + 1, ThreadRecord::default());
        }
        &mut self.threads[index]
    }

    /// Adds a loaded segment of a module file; segments of one module are joined. Returns the module's index.
    pub(crate) fn module(&mut self, file: usize, bias: u64, start: u64, end: u64) -> u32 {
        let known = self.modules.iter().position(|m| m.file == file && m.bias == bias);
        let place = known.unwrap_or(self.modules.len());
        if known.is_none() {
            self.modules.push(Loaded {
                bias,
                start,
                end,
                file,
            });
        }
        let module = &mut self.modules[place];
        (module.start, module.end) = (module.start.min(start), module.end.max(end));
        place as u32
    }

    pub(crate) fn name(&mut self, path: &str) -> u32 {
        let known = self.names.iter().position(|n| n == path);
        let index = known.unwrap_or_else(|| {
            self.names.push(path.to_owned());
            self.names.len() - 1
        });
        index as u32
    }

    fn allocation(
        &mut self,
        tables: &mut Tables,
        (ordinal, chain): (u32, &[u64]),
        address: u64,
        bytes: u64,
        mapped: bool,
    ) -> Content {
        let (site, column) = tables.library.allocation_site(&self.modules, chain);
        let site = tables.site(site);
        let next = self.sequences.entry((site, ordinal)).or_default();
        let sequence = *next;
        *next += 1;
        Content::Allocation {
            site,
            ordinal,
            sequence,
            column,
            bytes,
            mapped,
            address,
        }
    }

    fn load(&mut self, tables: &mut Tables, bias: u64, segments: &[events::Segment], path: &str) {
        let module = self.modules.len() as u32;
        let start = segments.iter().map(|s| s.address).min().unwrap_or(bias);
        let end = segments.iter().map(|s| s.address + s.bytes).max().unwrap_or(bias);
        self.modules.push(Loaded {
            bias,
            start,
            end,
            file: tables.library.file(path),
        });
        let ours = path.rsplit('/').next() == Some(RUNTIME); // data of our runtime belongs to no object of the program
        for segment in segments {
            let what = if segment.writable && !ours {
                Content::Segment { module }
            } else {
                Content::Image { module }
            };
            self.claims
                .insert(segment.address, segment.address + segment.bytes, what);
        }
    }

    /// A forked child inherits what its parent had at that time, and the parent what its own parent had.
    fn inherit(&mut self, tables: &mut Tables, folder: &str, bytes: u64) {
        if std::mem::replace(&mut self.inherited, true) {
            return; // a log has only one parent
        }
        let mut before: Option<Self> = None;
        for (folder, bytes) in lineage::ancestors(&self.folder, folder, bytes).into_iter().rev() {
            let mut ancestor = Self::new(folder, 0);
            let path = ancestor.folder.join("events");
            let result = events::read(&path, 0, bytes, |line| match Event::parse(line) {
                Some(Event::Counters { .. }) | None => {}
                Some(Event::Parent { .. }) => ancestor.copy_parent(before.take()),
                Some(event) => ancestor.apply(tables, event),
            });
            for (start, end) in std::mem::take(&mut ancestor.gone) {
                ancestor.claims.clear(start, end);
            }
            before = result.is_ok().then_some(ancestor);
        }
        self.copy_parent(before);
    }

    /// Copies the state of a parent.
    fn copy_parent(&mut self, parent: Option<Self>) {
        let Some(parent) = parent else { return };
        self.claims = parent.claims.without_objects();
        self.modules = parent.modules;
        self.names = parent.names;
        self.regions = parent.regions;
        self.sequences = parent.sequences;
        self.repeats = parent.repeats;
        self.brk = parent.brk;
        self.pool.inherit(&parent.pool);
    }
}

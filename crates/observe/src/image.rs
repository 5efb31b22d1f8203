//! One process image: its log applied, its counters read, its pages given to objects.

use crate::claims::{Claims, What};
use crate::code::Loaded;
use crate::coverage::Samples;
use crate::events::{self, Event};
use crate::pool::Pool;
use crate::program::RUNTIME;
use crate::tables::Tables;
use crate::thread_file::{Delta, ThreadFile, Touch};
use crate::{objects, rows};
use nodewise_profile::{
    Access, BASE_PAGE_SIZE, FirstTouch, Frame, ObjectId, PageNumber, Region, RegionId, RegionKind, SiteId,
    SliceId, ThreadId,
};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

/// The stack of the first thread grows; the kernel keeps this much free below it.
const MAIN_STACK: u64 = 128 << 20;
/// How far above the end of the environment's table the stack may go.
const ENVIRONMENT: u64 = 2 << 20;
/// What a thread library keeps above the first frame of a thread: its own data and the thread-local.
const ABOVE_STACK: u64 = 64 << 10;

/// A thread as the log tells of it.
#[derive(Clone, Debug, Default)]
pub struct ThreadRecord {
    pub tid: u32,
    pub openmp: Option<u32>,
    pub start: u64,
    pub id: Option<ThreadId>,
}

/// A process image and how far it has been read.
pub struct Image {
    pub folder: PathBuf,
    pub pid: u32,
    /// Set when its first page is seen: images without accesses do not count.
    pub ordinal: Option<u16>,
    pub(crate) claims: Claims,
    pub(crate) modules: Vec<Loaded>,
    pub(crate) threads: Vec<ThreadRecord>,
    pub(crate) names: Vec<String>,
    pub(crate) objects: HashMap<What, ObjectId>,
    pub(crate) pool: Pool,
    pub(crate) brk: u64,
    closed: bool,
    files: HashMap<u32, ThreadFile>,
    log_read: u64,
    regions: HashMap<u32, RegionId>,
    sequences: HashMap<(SiteId, u32), u32>,
    gone: Vec<(u64, u64)>,
    sites: HashMap<u64, SiteId>,
}

impl Image {
    /// The image that writes to `folder`.
    pub fn new(folder: PathBuf, pid: u32) -> Self {
        Self {
            pool: Pool::new(&folder),
            folder,
            pid,
            closed: false,
            ordinal: None,
            claims: Claims::default(),
            modules: Vec::new(),
            threads: Vec::new(),
            names: Vec::new(),
            objects: HashMap::new(),
            brk: 0,
            files: HashMap::new(),
            log_read: 0,
            regions: HashMap::new(),
            sequences: HashMap::new(),
            gone: Vec::new(),
            sites: HashMap::new(),
        }
    }

    /// Its log has come, in this folder; until then it was a stranger.
    pub(crate) fn has_log(&mut self, folder: PathBuf) {
        self.pool = Pool::new(&folder);
        self.folder = folder;
    }

    /// A thread that was given its number before the log named it.
    pub(crate) fn know_thread(&mut self, tables: &mut Tables, tid: u32, id: ThreadId) {
        let Some(place) = self.threads.iter().position(|t| t.tid == tid && t.id.is_none()) else {
            return;
        };
        self.threads[place].id = Some(id);
        tables.profile.threads[id.index()].start = self.start_routine(tables, place);
    }

    /// Why the process stopped recording, if it did.
    pub fn truncated(&self) -> Option<String> {
        std::fs::read_to_string(self.folder.join("truncated")).ok()
    }

    /// Accesses its threads could not count.
    pub fn dropped(&self) -> u64 {
        self.files.values().map(ThreadFile::dropped).sum()
    }

    /// Everything since the last call: rows are appended, first touches go to the tables. `ordinal`
    /// is what the image is to be called if this is the first that is seen of it.
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
        for (&thread, file) in &mut self.files {
            touches.push((thread, file.touches()?));
            deltas.push((thread, file.deltas()?));
        }
        // What the counters speak of was logged before it was counted.
        self.read_log(tables)?;
        if self.ordinal.is_none() && deltas.iter().any(|d| !d.1.is_empty()) {
            self.ordinal = Some(ordinal);
        }
        deltas.sort_unstable_by_key(|d| d.0);
        for (thread, deltas) in deltas {
            self.take_deltas(tables, thread, &deltas, into);
        }
        for (thread, touches) in touches {
            self.take_touches(tables, slice, thread, &touches);
        }
        for (start, end) in std::mem::take(&mut self.gone) {
            self.claims.clear(start, end);
        }
        Ok(())
    }

    /// Reads the log alone: of a program that nobody counts, what it allocates and starts.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn follow(&mut self, tables: &mut Tables) -> io::Result<()> {
        self.read_log(tables)?;
        for (start, end) in std::mem::take(&mut self.gone) {
            self.claims.clear(start, end);
        }
        Ok(())
    }

    /// Lets go of the raw files of a process that has ended and has been read.
    pub fn close(&mut self) {
        self.files.clear();
        self.closed = true;
    }

    /// Whether there is nothing more to come.
    pub fn closed(&self) -> bool {
        self.closed
    }

    /// What the log told about threads after they got their numbers.
    pub fn finish_threads(&self, tables: &mut Tables, samples: &Samples) {
        for record in &self.threads {
            if let Some(id) = record.id {
                let thread = &mut tables.profile.threads[id.index()];
                (thread.tid, thread.openmp) = (record.tid, record.openmp);
                thread.cpu_ns = samples.cpu_time(self.pid, record.tid);
            }
        }
    }

    /// The profile's number of a thread, given when first asked for, in the order of creation.
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

    fn take_deltas(&mut self, tables: &mut Tables, thread: u32, deltas: &[Delta], into: &mut Vec<Access>) {
        if deltas.is_empty() {
            return;
        }
        let id = self.thread(tables, thread);
        let mut fresh = Vec::with_capacity(deltas.len());
        for delta in deltas {
            let known = self.files.get_mut(&thread).and_then(|f| *f.object(delta.counter));
            let object = known.unwrap_or_else(|| {
                let found = objects::owner(self, tables, delta.address);
                if let Some(file) = self.files.get_mut(&thread) {
                    *file.object(delta.counter) = Some(found);
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

    fn take_touches(&mut self, tables: &mut Tables, slice: SliceId, thread: u32, touches: &[Touch]) {
        if touches.is_empty() || self.ordinal.is_none() {
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
                    let what = What::Stack { ordinal: 0 };
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
                    self.claims.insert(stack, stack + bytes, What::Stack { ordinal });
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
            Event::Counters { ordinal, address } => {
                if let Ok(file) = ThreadFile::open(&self.folder, ordinal, address) {
                    self.files.insert(ordinal, file);
                }
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
                let what = self.allocation(tables, ordinal, &chain, bytes, false);
                self.claims.insert(address, address + mapped, what);
            }
            Event::Map {
                address,
                bytes,
                path: Some(path),
                ..
            } => {
                let name = self.name(path);
                self.claims.insert(address, address + bytes, What::File { name });
            }
            Event::Map {
                address,
                bytes,
                ordinal,
                chain,
                path: None,
            } => {
                let what = self.allocation(tables, ordinal, &chain, bytes, true);
                self.claims.insert(address, address + bytes, what);
            }
            Event::Gone { address, bytes } => self.gone.push((address, address + bytes)),
            Event::Arena { address, bytes } => self.pool.add_arena(address, address + bytes),
        }
    }

    /// Only an address on it is known: it is a mapping that ends a little above.
    fn claim_stack(&mut self, address: u64, ordinal: u32) {
        let found = self.claims.owner(address & !(BASE_PAGE_SIZE - 1)).copied();
        let stack = found.filter(|c| matches!(c.what, What::Allocation { mapped: true, .. }));
        if let Some(claim) = stack.filter(|c| c.end.saturating_sub(address) <= ABOVE_STACK) {
            self.claims
                .insert(claim.start, claim.end, What::Stack { ordinal });
        }
    }

    fn record(&mut self, ordinal: u32) -> &mut ThreadRecord {
        let index = ordinal as usize;
        if self.threads.len() <= index {
            self.threads.resize(index + 1, ThreadRecord::default());
        }
        &mut self.threads[index]
    }

    /// A loaded part of a module file, by its place in the list; parts of one module are one.
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
        ordinal: u32,
        chain: &[u64],
        bytes: u64,
        mapped: bool,
    ) -> What {
        let site = tables.library.site(&self.modules, chain);
        let site = tables.site(site);
        let next = self.sequences.entry((site, ordinal)).or_default();
        let sequence = *next;
        *next += 1;
        What::Allocation {
            site,
            ordinal,
            sequence,
            bytes,
            mapped,
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
        let ours = path.rsplit('/').next() == Some(RUNTIME); // its data is none of the program's objects
        for segment in segments {
            let what = if segment.writable && !ours {
                What::Segment { module }
            } else {
                What::Image { module }
            };
            self.claims
                .insert(segment.address, segment.address + segment.bytes, what);
        }
    }

    /// A forked child has what its parent had when it forked.
    fn inherit(&mut self, tables: &mut Tables, folder: &str, bytes: u64) {
        let Some(raw) = self.folder.parent().map(Path::to_owned) else {
            return;
        };
        if folder.contains('/') {
            return;
        }
        let mut parent = Self::new(raw.join(folder), 0);
        let path = parent.folder.join("events");
        let result = events::read(&path, 0, bytes, |line| match Event::parse(line) {
            Some(Event::Counters { .. }) | None => {}
            Some(event) => parent.apply(tables, event),
        });
        if result.is_err() {
            return;
        }
        for (start, end) in std::mem::take(&mut parent.gone) {
            parent.claims.clear(start, end);
        }
        self.claims = parent.claims.renewed();
        self.modules = parent.modules;
        self.names = parent.names;
        self.regions = parent.regions;
        self.sequences = parent.sequences;
        self.brk = parent.brk;
        self.pool.inherit(&parent.pool);
    }
}

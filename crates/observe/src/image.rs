//! One process image: the state that was read from its log and counters.

mod read;

use crate::claims::{Claims, Content};
use crate::code::Loaded;
use crate::coverage::Samples;
use crate::pool::Pool;
use crate::tables::Tables;
use crate::thread_file::ThreadFile;
use nodewise_linux::named::Kind;
use nodewise_profile::{BASE_PAGE_SIZE, CounterUse, Frame, ObjectId, PageNumber, RegionId, SiteId, ThreadId};
use std::collections::{BTreeMap, HashMap};
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
    /// Where each of the names was mapped first, and its size: see [`Image::mapped_whole`].
    mapped_files: HashMap<u32, (u64, u64)>,
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
    /// Shared counters from which threads take numbers, by instruction and address: the site, and the threads, each
    /// with whether it took more than one number.
    counters: BTreeMap<(u32, u64), (SiteId, BTreeMap<u32, bool>)>,
    gone: Vec<(u64, u64)>,
    /// The module that is our own library, loaded into the program.
    runtime: Option<u32>,
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
            mapped_files: HashMap::new(),
            objects: HashMap::new(),
            brk: 0,
            files: BTreeMap::new(),
            unread: None,
            log_read: 0,
            regions: HashMap::new(),
            sequences: HashMap::new(),
            counters: BTreeMap::new(),
            gone: Vec::new(),
            runtime: None,
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

    /// Number of threads whose counters the last call could not read, and why.
    pub fn unread(&self) -> Option<(usize, &str)> {
        self.unread
            .as_ref()
            .map(|(threads, why)| (*threads, why.as_str()))
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
        self.finish_tickets(tables);
    }

    /// Adds to the tables which threads took numbers from counters that threads of this process share.
    fn finish_tickets(&self, tables: &mut Tables) {
        let mut found: BTreeMap<(SiteId, ThreadId), bool> = BTreeMap::new();
        let shared = self.counters.values().filter(|(_, threads)| threads.len() > 1);
        for (site, threads) in shared.filter(|(site, _)| *site != SiteId::default()) {
            for (ordinal, again) in threads {
                let record = self.threads.get(*ordinal as usize);
                if let Some(thread) = record.and_then(|r| r.id) {
                    // Two instructions of one line, as in an unrolled loop, count as two numbers.
                    let entry = found.entry((*site, thread));
                    entry.and_modify(|taken| *taken = true).or_insert(*again);
                }
            }
        }
        let ticket = |((site, thread), again)| CounterUse { site, thread, again };
        tables.profile.tickets.extend(found.into_iter().map(ticket));
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

    /// What a mapping of a file, or of memory that has a name, holds; `path` is the kernel's name of it.
    pub(crate) fn file(&mut self, tables: &mut Tables, path: &str, (from, to): (u64, u64)) -> Content {
        let name = self.name(&Kind::called(path));
        let what = Content::File { name };
        let whole_size = || {
            let size = std::fs::metadata(path).map_or(0, |file| file.len());
            let all = size.div_ceil(BASE_PAGE_SIZE) == (to - from).div_ceil(BASE_PAGE_SIZE);
            if all { size } else { 0 }
        };
        let first = self
            .mapped_files
            .entry(name)
            .or_insert_with(|| (from, whole_size()));
        if first.0 != from {
            // A recording has the pages of all mappings of a file in the order of their addresses.
            first.1 = 0;
            if let Some(known) = self.objects.get(&what) {
                tables.profile.objects[known.index()].bytes = 0;
            }
        }
        what
    }

    /// The size of a file if one mapping maps all of it, else 0.
    pub(crate) fn mapped_whole(&self, name: u32) -> u64 {
        self.mapped_files.get(&name).map_or(0, |file| file.1)
    }

    fn name(&mut self, path: &str) -> u32 {
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
        let (site, origin) = tables.library.allocation_site(&self.modules, chain);
        let site = tables.site(site);
        let next = self.sequences.entry((site, ordinal)).or_default();
        let sequence = *next;
        *next += 1;
        Content::Allocation {
            site,
            ordinal,
            sequence,
            origin,
            bytes,
            mapped,
            address,
        }
    }
}

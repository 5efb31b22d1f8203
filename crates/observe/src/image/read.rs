//! Reads an image's raw files: its counters, and its log, event by event.

use super::{ABOVE_STACK, ENVIRONMENT, Image, MAIN_STACK};
use crate::claims::Content;
use crate::code::Loaded;
use crate::events::{self, Event};
use crate::lineage;
use crate::tables::Tables;
use crate::thread_file::{Delta, ThreadFile, Touch};
use crate::{objects, rows};
use nodewise_loader::RUNTIME;
use nodewise_profile::{
    Access, BASE_PAGE_SIZE, FirstTouch, Frame, ObjectId, Region, RegionKind, Schedule, SliceId,
};
use std::collections::BTreeMap;
use std::io;

impl Image {
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
            if known.is_none() && self.is_runtime_data(delta.address) {
                continue;
            }
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

    /// Whether an address is in the data of our own library, which the emulated loader relocates: such accesses are not
    /// the program's.
    fn is_runtime_data(&self, address: u64) -> bool {
        let Some(runtime) = self.runtime else {
            return false;
        };
        let claim = self.claims.covering(address);
        claim.is_some_and(|c| c.what == Content::Image { module: runtime })
    }

    fn take_touches(&mut self, tables: &mut Tables, slice: SliceId, thread: u32, touches: &[Touch]) {
        if self.ordinal.is_none() {
            return;
        }
        let id = self.thread(tables, thread);
        let mut fresh = Vec::with_capacity(touches.len());
        for touch in touches {
            if self.is_runtime_data(touch.address) {
                continue;
            }
            fresh.push(FirstTouch {
                page: self.page(touch.address),
                len: 1,
                object: objects::owner(self, tables, touch.address),
                thread: id,
                site: self.site_of_code(tables, touch.code),
                slice,
                region: self.region(touch.region),
            });
        }
        tables.first_touches(fresh);
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
            Event::CounterUse {
                instruction,
                ordinal,
                counter,
                chain,
            } => {
                let modules = &self.modules;
                let counter = self.counters.entry((instruction, counter)).or_insert_with(|| {
                    let site = tables.library.site(modules, &chain);
                    (tables.site(site), BTreeMap::new())
                });
                let again = counter.1.entry(ordinal);
                again.and_modify(|again| *again = true).or_default();
            }
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
                        schedule: None,
                    }),
                );
            }
            Event::Schedule { id, number } => {
                if let Some(region) = self.regions.get(&id) {
                    tables.profile.regions[region.index()].schedule =
                        tables.dealt(Schedule::from_number(number));
                }
            }
            Event::Outlined { id, address } => {
                let frame = tables
                    .library
                    .frames(&self.modules, address)
                    .pop()
                    .unwrap_or_default();
                let asked = tables.library.schedule(&self.modules, address);
                let schedule = tables.dealt(asked);
                let kind = RegionKind::OpenMp;
                self.regions.insert(
                    id,
                    tables.region(Region {
                        kind,
                        frame,
                        schedule,
                    }),
                );
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
                let what = self.file(tables, path, (address, address + bytes));
                self.claims.insert(address, address + bytes, what);
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
        let ours = path.rsplit('/').next() == Some(RUNTIME);
        if ours {
            self.runtime = Some(module);
        }
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
        self.runtime = parent.runtime;
        self.names = parent.names;
        self.regions = parent.regions;
        self.sequences = parent.sequences;
        self.repeats = parent.repeats;
        self.brk = parent.brk;
        self.pool.inherit(&parent.pool);
    }
}

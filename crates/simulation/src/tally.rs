//! The pass over the rows: traffic of each CPU to each memory node, under every mapping at once.

use nodewise_placement::{Context, Mapping};
use nodewise_profile::{Access, PageNumber, Profile, RegionId, SliceId};

/// Lines fetched, and lines that go back dirty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    pub lines: u64,
    pub dirty: u64,
}

/// One region of one slice.
#[derive(Clone, Debug)]
pub(crate) struct Phase {
    pub region: RegionId,
    /// Accesses by CPU slot.
    pub accesses: Vec<u64>,
    /// Lines of all CPUs.
    pub lines: u64,
    /// `[slot][policy][node]`.
    pub cells: Vec<Cell>,
}

/// One slice, complete.
pub(crate) struct SliceTally<'a> {
    pub slice: SliceId,
    pub phases: &'a [Phase],
    /// Threads, but the main ones, that also ran in an earlier slice: they were alive together.
    pub alive: usize,
}

/// Every mapping in one table, so that a row costs one cache line whatever the number of policies.
struct Placed {
    /// `[page][policy]`.
    nodes: Vec<u16>,
    /// Pages before each block on each node, `[block][policy][node]`: long runs cost no more.
    before: Vec<u32>,
    policies: usize,
    node_count: usize,
    pages: usize,
}

const BLOCK: usize = 128;

impl Placed {
    fn new(mappings: &[Mapping], pages: usize, node_count: usize) -> Self {
        let policies = mappings.len();
        let mut nodes = vec![0u16; pages * policies];
        for (p, mapping) in mappings.iter().enumerate() {
            assert_eq!(
                mapping.nodes.len(),
                pages,
                "`{}` is parallel to the histogram",
                mapping.policy
            );
            for (page, node) in mapping.nodes.iter().enumerate() {
                nodes[page * policies + p] = u16::try_from(node.0).expect("fewer than 65,536 nodes");
            }
        }
        let width = policies * node_count;
        let mut before = Vec::with_capacity((pages / BLOCK + 1) * width);
        let mut running = vec![0u32; width];
        for page in 0..pages {
            if page % BLOCK == 0 {
                before.extend_from_slice(&running);
            }
            for p in 0..policies {
                running[p * node_count + usize::from(nodes[page * policies + p])] += 1;
            }
        }
        before.extend_from_slice(&running);
        Self {
            nodes,
            before,
            policies,
            node_count,
            pages,
        }
    }

    /// Adds the pages `from..to` to `counts`, `[policy][node]`.
    fn count(&self, from: usize, to: usize, counts: &mut [u64]) {
        let (first, last) = (from.div_ceil(BLOCK), to / BLOCK);
        if first >= last {
            return self.count_each(from, to, counts);
        }
        self.count_each(from, first * BLOCK, counts);
        let width = counts.len();
        let (a, b) = (
            &self.before[first * width..][..width],
            &self.before[last * width..][..width],
        );
        for ((count, a), b) in counts.iter_mut().zip(a).zip(b) {
            *count += u64::from(b - a);
        }
        self.count_each(last * BLOCK, to, counts);
    }

    fn count_each(&self, from: usize, to: usize, counts: &mut [u64]) {
        for nodes in self.nodes[from * self.policies..to * self.policies].chunks_exact(self.policies) {
            for (count, &node) in counts.chunks_exact_mut(self.node_count).zip(nodes) {
                count[usize::from(node)] += 1;
            }
        }
    }
}

pub(crate) struct Tally<'a> {
    pages: &'a [PageNumber],
    shift: u32,
    placed: Placed,
    /// CPU slot of each thread.
    slots: Vec<u32>,
    slot_count: usize,
    slice: Option<SliceId>,
    /// The last slice each thread ran in; main threads never count as alive, they may just wait.
    last_ran: Vec<Option<SliceId>>,
    main: Vec<bool>,
    alive: usize,
    /// By region; `None` where the slice has not been.
    phases: Vec<Option<Phase>>,
    /// Where the last row was found: rows ascend, so the next is near.
    cursor: usize,
    counts: Vec<u64>,
}

/// CPU slot of each thread, and the node of each slot: threads that share a CPU share its time.
pub(crate) fn slots(context: &Context<'_>) -> (Vec<u32>, Vec<usize>) {
    let affinity = context.affinity;
    let mut used: Vec<_> = affinity
        .cpus
        .iter()
        .copied()
        .zip(affinity.nodes.iter().copied())
        .collect();
    used.sort_unstable();
    used.dedup_by_key(|u| u.0);
    let slot = |cpu| used.binary_search_by_key(cpu, |u| u.0).expect("listed above") as u32;
    (
        affinity.cpus.iter().map(slot).collect(),
        used.iter().map(|u| u.1.index()).collect(),
    )
}

impl<'a> Tally<'a> {
    pub fn new(context: &Context<'a>, mappings: &[Mapping]) -> Self {
        let node_count = context.machine.node_count();
        let (slots, nodes) = slots(context);
        Self {
            pages: &context.histogram.pages,
            shift: context.histogram.shift,
            placed: Placed::new(mappings, context.histogram.len(), node_count),
            slots,
            slot_count: nodes.len(),
            slice: None,
            last_ran: vec![None; context.affinity.cpus.len()],
            main: main_threads(context.profile, context.affinity.cpus.len()),
            alive: 0,
            phases: Vec::new(),
            cursor: 0,
            counts: vec![0; mappings.len() * node_count],
        }
    }

    /// Adds rows; whenever a slice ends, `emit` gets its phases.
    pub fn add(&mut self, rows: &[Access], emit: &mut dyn FnMut(&SliceTally<'_>)) {
        for row in rows {
            if self.slice != Some(row.slice) {
                self.finish(emit);
                self.slice = Some(row.slice);
            }
            self.row(row);
        }
    }

    /// Ends the current slice.
    pub fn finish(&mut self, emit: &mut dyn FnMut(&SliceTally<'_>)) {
        let phases: Vec<Phase> = self.phases.iter_mut().filter_map(Option::take).collect();
        if let Some(slice) = self.slice.filter(|_| !phases.is_empty()) {
            emit(&SliceTally {
                slice,
                phases: &phases,
                alive: self.alive,
            });
        }
        (self.slice, self.cursor, self.alive) = (None, 0, 0);
    }

    fn ran(&mut self, thread: usize) {
        let last = std::mem::replace(&mut self.last_ran[thread], self.slice);
        if last.is_some() && last != self.slice && !self.main[thread] {
            self.alive += 1;
        }
    }

    fn row(&mut self, row: &Access) {
        let Some(&slot) = self.slots.get(row.thread.index()) else {
            return;
        };
        self.ran(row.thread.index());
        let width = self.counts.len();
        let phase = phase(&mut self.phases, row.region, self.slot_count, width);
        phase.accesses[slot as usize] += row.total();
        phase.lines += row.lines * u64::from(row.len);
        if row.lines == 0 {
            return;
        }
        let mask = (1u64 << self.shift) - 1;
        let first = row.page.align_down(self.shift);
        let Some(index) = find(self.pages, self.cursor, first) else {
            return;
        };
        self.cursor = index;
        let cells = &mut phase.cells[slot as usize * width..][..width];
        let add = Cell {
            lines: row.lines,
            dirty: row.lines.min(row.writes),
        };
        if row.len == 1 {
            return self.placed.add_page(index, 1, add, cells);
        }
        // Base pages of the run that lie in its first page; whole pages after it; the rest.
        let head = (mask + 1 - (row.page.0 & mask)).min(u64::from(row.len));
        let (whole, tail) = (
            (u64::from(row.len) - head) >> self.shift,
            (u64::from(row.len) - head) & mask,
        );
        let end = (index + 1 + whole as usize).min(self.pages.len());
        self.placed.add_page(index, head, add, cells);
        self.placed
            .add_run(index + 1, end, mask + 1, add, cells, &mut self.counts);
        if tail > 0 && end < self.pages.len() {
            self.placed.add_page(end, tail, add, cells);
        }
    }
}

/// The first thread of each process.
fn main_threads(profile: &Profile, threads: usize) -> Vec<bool> {
    let process = |t: usize| profile.threads.get(t).map_or(0, |t| t.process);
    (0..threads)
        .map(|t| t == 0 || process(t) != process(t - 1))
        .collect()
}

fn phase(phases: &mut Vec<Option<Phase>>, region: RegionId, slots: usize, width: usize) -> &mut Phase {
    let index = region.index();
    if phases.len() <= index {
        phases.resize(index + 1, None);
    }
    phases[index].get_or_insert_with(|| Phase {
        region,
        lines: 0,
        accesses: vec![0; slots],
        cells: vec![Cell::default(); slots * width],
    })
}

impl Placed {
    /// Adds `weight` base pages of one page.
    fn add_page(&self, page: usize, weight: u64, add: Cell, cells: &mut [Cell]) {
        let (lines, dirty) = (add.lines * weight, add.dirty * weight);
        let nodes = &self.nodes[page * self.policies..][..self.policies];
        for (row, &node) in cells.chunks_exact_mut(self.node_count).zip(nodes) {
            let cell = &mut row[usize::from(node)];
            cell.lines += lines;
            cell.dirty += dirty;
        }
    }

    /// Adds the pages `from..to`, each `weight` base pages.
    fn add_run(
        &self,
        from: usize,
        to: usize,
        weight: u64,
        add: Cell,
        cells: &mut [Cell],
        counts: &mut [u64],
    ) {
        if to <= from {
            return;
        }
        debug_assert!(to <= self.pages);
        counts.fill(0);
        self.count(from, to, counts);
        for (cell, &pages) in cells.iter_mut().zip(&*counts) {
            cell.lines += add.lines * pages * weight;
            cell.dirty += add.dirty * pages * weight;
        }
    }
}

/// The index of `page`: a step or a gallop from the cursor, a search when it lies behind.
fn find(pages: &[PageNumber], cursor: usize, page: PageNumber) -> Option<usize> {
    let ahead = pages.get(cursor..).unwrap_or_default();
    match ahead.first() {
        Some(&here) if here == page => return Some(cursor),
        Some(&here) if here < page => {}
        _ => return pages.binary_search(&page).ok(),
    }
    let mut reach = 1;
    while ahead.get(reach).is_some_and(|&p| p < page) {
        reach *= 2;
    }
    let window = &ahead[reach / 2..ahead.len().min(reach + 1)];
    window.binary_search(&page).ok().map(|i| cursor + reach / 2 + i)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::NodeId;

    #[test]
    fn a_galloping_search_finds_what_a_binary_search_finds() {
        let pages: Vec<_> = (0..500u64).map(|i| PageNumber(i * i)).collect();
        for cursor in [0, 3, 250, 499, 500] {
            for page in (0..250_100)
                .step_by(37)
                .map(PageNumber)
                .chain(pages.iter().copied())
            {
                assert_eq!(find(&pages, cursor, page), pages.binary_search(&page).ok());
            }
        }
    }

    #[test]
    fn counting_by_blocks_equals_counting_page_by_page() {
        let map = |f: fn(u32) -> u32| Mapping {
            policy: String::new(),
            nodes: (0..1000).map(|i| NodeId(f(i))).collect(),
        };
        let placed = Placed::new(&[map(|i| i % 3), map(|i| i / 400)], 1000, 3);
        for (from, to) in [
            (0, 1000),
            (1, 999),
            (5, 6),
            (127, 129),
            (128, 256),
            (300, 300),
            (100, 640),
        ] {
            let (mut blocks, mut each) = (vec![0; 6], vec![0; 6]);
            placed.count(from, to, &mut blocks);
            placed.count_each(from, to, &mut each);
            assert_eq!(blocks, each, "{from}..{to}");
        }
    }
}

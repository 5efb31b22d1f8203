//! The pass over the access table: counts the traffic of each CPU to each memory node under every mapping.

use crate::counts::Counts;
use crate::placed::Placed;
use crate::traffic::{Cell, Phase};
use crate::{Parameters, Traffic};
use nodewise_machine::NodeId;
use nodewise_placement::{Context, Mapping};
use nodewise_profile::{Access, PageNumber, Profile, RegionId, SliceId};

/// The complete tally of one slice.
pub(crate) struct SliceTally<'a> {
    pub slice: SliceId,
    pub phases: &'a [Phase],
    /// Number of threads, except main threads, that also ran in an earlier slice, and so were alive concurrently.
    pub alive: usize,
    /// Accesses by page and node, if mappings may change.
    pub counts: Option<&'a Counts>,
    /// The mappings of all policies during the slice.
    pub placed: &'a Placed,
}

/// New homes of pages under one policy, ascending by page.
pub(crate) type Moves = (usize, Vec<(u32, NodeId)>);

/// Handles a complete slice, and returns the moves before the next one.
type Emit<'e> = dyn FnMut(&SliceTally<'_>) -> Vec<Moves> + 'e;

/// Counts, slice by slice and region by region, the lines that each CPU has to fetch from each node under every mapping, and the
/// accesses behind them. [`crate::phase`] makes time of them.
pub(crate) struct Tally<'a> {
    pages: &'a [PageNumber],
    shift: u32,
    placed: Placed,
    /// CPU slot of each thread.
    slots: Vec<u32>,
    slice: Option<SliceId>,
    /// The last slice in which each thread ran. Main threads never count as alive, as they may only wait.
    last_ran: Vec<Option<SliceId>>,
    main: Vec<bool>,
    alive: usize,
    /// By region; `None` if the slice has no access in it.
    phases: Vec<Option<Phase>>,
    /// The regions with accesses in the slice.
    regions: Vec<RegionId>,
    /// Index at which the last row was found; rows ascend, so the next one is near.
    cursor: usize,
    /// Scratch space for counts of a row's pages.
    counts: Vec<u64>,
    /// Cells of a CPU, `[policy][node]`.
    cells: usize,
    /// Accesses by page and node, if mappings may change.
    accesses: Option<Counts>,
    /// Node of each slot.
    nodes: Vec<usize>,
    traffic: Traffic,
    /// What the counts by page count: accesses or lines.
    counted: Traffic,
}

/// CPU slot of each thread, and the node of each slot: threads that share a CPU share its time.
pub(crate) fn slots(context: &Context<'_>) -> (Vec<u32>, Vec<usize>) {
    let (slots, nodes) = context.affinity.used_cpus();
    (slots, nodes.into_iter().map(NodeId::index).collect())
}

impl<'a> Tally<'a> {
    /// With `follow`, slices contain accesses by page and node. `copies`: as for [`Placed::new`].
    pub fn new(
        context: &Context<'a>,
        mappings: &[&Mapping],
        copies: &[Option<&[NodeId]>],
        follow: bool,
        parameters: &Parameters,
    ) -> Self {
        let node_count = context.machine.node_count();
        let (slots, nodes) = slots(context);
        let placed = Placed::new(mappings, context.histogram.len(), node_count, copies);
        Self {
            pages: &context.histogram.pages,
            shift: context.histogram.shift,
            counts: vec![0; placed.scratch()],
            cells: mappings.len() * node_count,
            placed,
            slots,
            slice: None,
            last_ran: vec![None; context.affinity.cpus.len()],
            main: main_threads(context.profile, context.affinity.cpus.len()),
            alive: 0,
            phases: Vec::new(),
            regions: Vec::new(),
            cursor: 0,
            accesses: follow.then(|| Counts::new(context.histogram.len(), node_count)),
            nodes,
            traffic: parameters.traffic,
            counted: parameters.counted,
        }
    }

    /// The node that stands for copies in moves.
    pub fn copied(&self) -> NodeId {
        self.placed.copied()
    }

    /// Moves pages before the next slice.
    pub fn begin(&mut self, moves: Vec<Moves>) {
        for (policy, pages) in moves {
            self.placed.apply(policy, &pages);
        }
    }

    /// Adds rows. Whenever a slice ends, calls `emit` with its phases.
    pub fn add(&mut self, rows: &[Access], emit: &mut Emit<'_>) {
        for row in rows {
            if self.slice != Some(row.slice) {
                self.finish(emit);
                self.slice = Some(row.slice);
            }
            self.row(row);
        }
    }

    /// Ends the current slice.
    pub fn finish(&mut self, emit: &mut Emit<'_>) {
        self.accesses.iter_mut().for_each(Counts::settle);
        self.regions.sort_unstable();
        let ran = self.regions.drain(..);
        let phases: Vec<Phase> = ran.filter_map(|r| self.phases[r.index()].take()).collect();
        if let Some(slice) = self.slice.filter(|_| !phases.is_empty()) {
            let moves = emit(&SliceTally {
                slice,
                phases: &phases,
                alive: self.alive,
                counts: self.accesses.as_ref(),
                placed: &self.placed,
            });
            self.begin(moves);
        }
        self.accesses.iter_mut().for_each(Counts::clear);
        (self.slice, self.cursor, self.alive) = (None, 0, 0);
    }

    fn ran(&mut self, thread: usize) {
        let last = std::mem::replace(&mut self.last_ran[thread], self.slice);
        if last.is_some() && last != self.slice && !self.main[thread] {
            self.alive += 1;
        }
    }

    /// Adds the accesses of one thread to a run of pages to the phase of their region.
    fn row(&mut self, row: &Access) {
        let Some(&slot) = self.slots.get(row.thread.index()) else {
            return;
        };
        self.ran(row.thread.index());
        let index = row.region.index();
        if self.phases.len() <= index {
            self.phases.resize(index + 1, None);
        }
        let phase = self.phases[index].get_or_insert_with(|| {
            self.regions.push(row.region);
            Phase::new(row.region, self.cells)
        });
        phase.lines += row.lines * u64::from(row.len);
        let cells = phase.add(slot, row.total());
        let lines = match self.traffic {
            Traffic::Lines => row.lines,
            Traffic::Accesses => row.accesses_per_page(),
        };
        if lines == 0 && self.accesses.is_none() {
            return;
        }
        let first = row.page.align_down(self.shift);
        let Some(index) = find(self.pages, self.cursor, first) else {
            return;
        };
        self.cursor = index;
        let run = Stretch::of(row, index, self.shift, self.pages.len());
        if let Some(accesses) = &mut self.accesses {
            let each = match self.counted {
                Traffic::Lines => row.lines,
                Traffic::Accesses => row.accesses_per_page(),
            };
            let node = self.nodes[slot as usize];
            run.parts(|pages, weight| accesses.add(pages.start, pages.end, node, each * weight));
        }
        if lines > 0 {
            let add = Cell {
                lines,
                dirty: match self.traffic {
                    Traffic::Lines => lines.min(row.writes),
                    // A store is one transfer in one direction.
                    Traffic::Accesses => 0,
                },
            };
            let reader = self.nodes[slot as usize];
            run.parts(|pages, weight| {
                let add = Cell {
                    lines: add.lines * weight,
                    dirty: add.dirty * weight,
                };
                self.placed.add(pages, reader, add, cells, &mut self.counts);
            });
        }
    }
}

/// The pages of a row: base pages in its first page, whole pages after that, and the rest.
pub(crate) struct Stretch {
    first: usize,
    /// Index after the last whole page.
    end: usize,
    /// Number of pages in the histogram.
    pages: usize,
    head: u64,
    whole: u64,
    tail: u64,
}

impl Stretch {
    pub fn of(row: &Access, first: usize, shift: u32, pages: usize) -> Self {
        let (size, len) = (1u64 << shift, u64::from(row.len));
        let head = (size - (row.page.0 & (size - 1))).min(len);
        Self {
            first,
            end: (first + 1 + ((len - head) >> shift) as usize).min(pages),
            pages,
            head,
            whole: size,
            tail: (len - head) & (size - 1),
        }
    }

    /// Calls `visit` with ranges of pages, and the number of base pages of the run in each of them.
    pub fn parts(&self, mut visit: impl FnMut(std::ops::Range<usize>, u64)) {
        visit(self.first..self.first + 1, self.head);
        if self.end > self.first + 1 {
            visit(self.first + 1..self.end, self.whole);
        }
        if self.tail > 0 && self.end < self.pages {
            visit(self.end..self.end + 1, self.tail);
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

/// The index of `page`: by galloping search from the cursor, or by binary search if it is before the cursor.
pub(crate) fn find(pages: &[PageNumber], cursor: usize, page: PageNumber) -> Option<usize> {
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
}

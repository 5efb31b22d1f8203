//! The film: for each time step and column of the strip, the dominant node, accesses and locality.

use crate::packed::{Packed, share};
use crate::strip::{Positions, Strip};
use crate::sums::{NODES, narrow};
use nodewise_analysis::{Affinity, Histogram, Visitor};
use nodewise_machine::NodeId;
use nodewise_profile::{Access, PageNumber, Slice};
use serde_json::{Map, Value, json};

/// Largest number of time steps; consecutive slices are merged.
const MAX_STEPS: usize = 128;
/// Largest number of columns.
const MAX_COLUMNS: usize = 512;
/// Marks a cell without accesses in the step.
const NO_ACCESS: u8 = 255;

/// Builds a film from the rows of the access table.
pub struct FilmBuilder<'a> {
    histogram: &'a Histogram,
    affinity: &'a Affinity,
    /// The home of each page under first-touch, which determines the accesses that are local.
    homes: &'a [NodeId],
    nodes: usize,
    slices: &'a [Slice],
    positions: Positions,
    steps: usize,
    columns: usize,
    /// The current step; its accesses by column and node; and its local accesses by column.
    step: usize,
    counts: Vec<u64>,
    local: Vec<u64>,
    /// Index in the histogram of the last row's first page: rows ascend within a slice.
    at: usize,
    dominant: Vec<u8>,
    accesses: Vec<u64>,
    local_shares: Vec<u8>,
}

impl Visitor for FilmBuilder<'_> {
    fn rows(&mut self, rows: &[Access]) {
        for row in rows {
            let step = row.slice.index() * self.steps / self.slices.len().max(1);
            self.turn_to(step.min(self.steps - 1));
            self.add(row);
        }
    }

    fn end(&mut self) {
        self.turn_to(self.steps);
    }
}

/// A film in packed form.
#[derive(Clone, Debug)]
pub struct Film(pub(crate) Vec<u8>);

impl<'a> FilmBuilder<'a> {
    /// For a run on a machine with `nodes` nodes; `homes` is the node of each page of the histogram under first touch.
    #[must_use]
    pub fn new(
        histogram: &'a Histogram,
        affinity: &'a Affinity,
        homes: &'a [NodeId],
        nodes: usize,
        slices: &'a [Slice],
    ) -> Self {
        let nodes = nodes.min(NODES);
        let columns = histogram.len().min(MAX_COLUMNS);
        let steps = slices.len().clamp(1, MAX_STEPS);
        Self {
            histogram,
            affinity,
            homes,
            nodes,
            slices,
            positions: Strip::of(histogram).positions(),
            steps,
            columns,
            step: 0,
            counts: vec![0; columns * nodes],
            local: vec![0; columns],
            at: 0,
            dominant: Vec::with_capacity(steps * columns),
            accesses: Vec::with_capacity(steps * columns),
            local_shares: Vec::with_capacity(steps * columns),
        }
    }

    /// Finishes all steps before `step`.
    fn turn_to(&mut self, step: usize) {
        while self.step < step {
            for (counts, local) in self.counts.chunks(self.nodes.max(1)).zip(&self.local) {
                let accesses = counts.iter().sum();
                let most = (0..counts.len()).rev().max_by_key(|n| counts[*n]);
                self.dominant.push(match accesses {
                    0 => NO_ACCESS,
                    _ => most.unwrap_or_default() as u8,
                });
                self.accesses.push(accesses);
                self.local_shares.push(share(*local, accesses));
            }
            self.counts.fill(0);
            self.local.fill(0);
            self.step += 1;
        }
    }

    fn add(&mut self, row: &Access) {
        let histogram = self.histogram;
        let node = usize::from(narrow(self.affinity.node(row.thread)));
        let large = 1 << histogram.shift;
        let (mut page, end) = (row.page.0, row.page.0 + u64::from(row.len));
        let mut index = self.seek(PageNumber(page).align_down(histogram.shift));
        self.at = index;
        while page < end && index < histogram.len() {
            let next = (PageNumber(page).align_down(histogram.shift).0 + large).min(end);
            let accesses = (next - page) * row.accesses_per_page();
            // Column c begins at position ⌊c · pages / columns⌋.
            let column = ((self.positions.of(index) + 1) * self.columns - 1) / histogram.len();
            self.counts[column * self.nodes + node] += accesses;
            if usize::from(narrow(self.homes[index])) == node {
                self.local[column] += accesses;
            }
            (page, index) = (next, index + 1);
        }
    }

    /// Index of a page, searched forwards from the last row, or from the start in a new slice.
    fn seek(&self, page: PageNumber) -> usize {
        let pages = &self.histogram.pages;
        match pages.get(self.at) {
            Some(last) if *last == page => self.at,
            Some(last) if *last < page => self.at + pages[self.at..].partition_point(|p| *p < page),
            _ => pages.partition_point(|p| *p < page),
        }
    }

    /// The film, once all rows were added.
    #[must_use]
    pub fn finish(self) -> Film {
        let slices = self.slices;
        let seconds = |ns: u64| ns as f64 * 1e-9;
        let first = |step: usize| (step * slices.len()).div_ceil(self.steps);
        let of = |step: usize| slices.get(first(step)..first(step + 1)).unwrap_or_default();
        let starts = (0..self.steps).map(|s| of(s).first().map_or(0.0, |t| seconds(t.start_ns)));
        let ends = (0..self.steps).map(|s| of(s).last().map_or(0.0, |t| seconds(t.end_ns)));
        let facts = Map::from_iter([
            ("steps".to_owned(), Value::from(self.steps)),
            ("width".to_owned(), Value::from(self.columns)),
            ("start".to_owned(), json!(starts.collect::<Vec<f64>>())),
            ("end".to_owned(), json!(ends.collect::<Vec<f64>>())),
        ]);
        let mut packed = Packed::default();
        packed.bytes("dominant", &self.dominant);
        packed.counts("accesses", &self.accesses);
        packed.bytes("local", &self.local_shares);
        Film(packed.finish(facts))
    }
}

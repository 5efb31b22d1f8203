//! The run in time over the whole strip: one pass over the accesses, a step at a time.

use crate::packed::{Packed, share};
use crate::strip::Positions;
use crate::sums::Pages;
use nodewise_profile::{Access, AccessSource, PageNumber, Slice};
use serde_json::{Map, Value, json};

/// Most steps; slices next to each other become one.
const STEPS: usize = 128;
/// Most columns.
const COLUMNS: usize = 512;
/// Nobody accessed it in this step.
const NOTHING: u8 = 255;

/// The film of a run; the first mapping says what is local.
///
/// # Errors
/// When the accesses cannot be read to their end.
pub fn film<S: AccessSource>(
    source: &S,
    pages: &Pages,
    positions: &Positions,
    slices: &[Slice],
) -> Result<Vec<u8>, S::Error> {
    let steps = slices.len().clamp(1, STEPS);
    let mut film = Film::new(pages, positions, steps);
    source.visit(&mut |rows| {
        for row in rows {
            let step = row.slice.index() * steps / slices.len().max(1);
            film.turn_to(step.min(steps - 1));
            film.add(row);
        }
    })?;
    film.turn_to(steps);
    Ok(film.pack(slices))
}

struct Film<'a> {
    pages: &'a Pages,
    positions: &'a Positions,
    steps: usize,
    columns: usize,
    /// The step under way, and what it has: accesses by column and node, and local ones by column.
    step: usize,
    counts: Vec<u64>,
    local: Vec<u64>,
    /// Where the last row began, in the histogram: rows ascend within a slice.
    at: usize,
    dominant: Vec<u8>,
    accesses: Vec<u64>,
    local_shares: Vec<u8>,
}

impl<'a> Film<'a> {
    fn new(pages: &'a Pages, positions: &'a Positions, steps: usize) -> Self {
        let columns = pages.histogram.len().min(COLUMNS);
        Self {
            pages,
            positions,
            steps,
            columns,
            step: 0,
            counts: vec![0; columns * pages.shape.nodes],
            local: vec![0; columns],
            at: 0,
            dominant: Vec::with_capacity(steps * columns),
            accesses: Vec::with_capacity(steps * columns),
            local_shares: Vec::with_capacity(steps * columns),
        }
    }

    /// Writes down the steps before this one.
    fn turn_to(&mut self, step: usize) {
        while self.step < step {
            for (counts, local) in self.counts.chunks(self.pages.shape.nodes.max(1)).zip(&self.local) {
                let accesses = counts.iter().sum();
                let most = (0..counts.len()).rev().max_by_key(|n| counts[*n]);
                self.dominant.push(match accesses {
                    0 => NOTHING,
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
        let histogram = &self.pages.histogram;
        let node = self.pages.affinity.node(row.thread).index();
        let large = 1 << histogram.shift;
        let (mut page, end) = (row.page.0, row.page.0 + u64::from(row.len));
        let mut index = self.seek(PageNumber(page).align_down(histogram.shift));
        self.at = index;
        while page < end && index < histogram.len() {
            let next = (PageNumber(page).align_down(histogram.shift).0 + large).min(end);
            let accesses = (next - page) * row.accesses_per_page();
            // Column c begins at position ⌊c · pages / columns⌋.
            let column = ((self.positions.of(index) + 1) * self.columns - 1) / histogram.len();
            self.counts[column * self.pages.shape.nodes + node] += accesses;
            if usize::from(self.pages.homes[0][index]) == node {
                self.local[column] += accesses;
            }
            (page, index) = (next, index + 1);
        }
    }

    /// Where a page is; rows go up, and back to the start with each slice.
    fn seek(&self, page: PageNumber) -> usize {
        let pages = &self.pages.histogram.pages;
        match pages.get(self.at) {
            Some(last) if *last == page => self.at,
            Some(last) if *last < page => self.at + pages[self.at..].partition_point(|p| *p < page),
            _ => pages.partition_point(|p| *p < page),
        }
    }

    fn pack(self, slices: &[Slice]) -> Vec<u8> {
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
        packed.finish(facts)
    }
}

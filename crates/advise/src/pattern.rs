//! How threads use an object's pages.

use nodewise_analysis::{Histogram, PageView};
use nodewise_profile::ThreadId;

/// The pattern of an object's accesses over its pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// One thread uses it.
    OneThread,
    /// Contiguous blocks, one a thread, in order: Majo & Gross's x-wise.
    Block,
    /// The same blocks again in each of `repeat` parts: their y-wise.
    RepeatedBlock {
        /// Parts.
        repeat: u32,
    },
    /// Pages have owners, in no order that a schedule would give.
    Irregular,
    /// Many threads read each page, nobody writes after initialisation.
    ReadShared,
    /// Many threads read scattered words of each page.
    Gather,
    /// Many threads read and write each page.
    Uniform,
}

impl Pattern {
    /// The stable name used in reports and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OneThread => "one-thread",
            Self::Block => "x-wise",
            Self::RepeatedBlock { .. } => "y-wise",
            Self::Irregular => "irregular",
            Self::ReadShared => "read-shared",
            Self::Gather => "gather",
            Self::Uniform => "uniform",
        }
    }
}

/// A page belongs to a thread that makes this share of its accesses.
const OWNED: f64 = 0.7;
/// An object is owned page by page when this share of its accesses is to such pages.
const MOSTLY: f64 = 0.75;
/// Written this little, an object counts as read-only: its initialisation remains.
const HARDLY_WRITTEN: f64 = 0.1;
/// Accesses a line below this: words are picked, not swept.
const PICKED: f64 = 3.0;

/// What is known of an object from its pages.
#[derive(Debug, Default)]
pub(crate) struct Shape {
    /// Owner of each page that has one, in page order.
    owners: Vec<ThreadId>,
    owned: u64,
    pub accesses: u64,
    pub writes: u64,
    pub lines: u64,
    threads: std::collections::BTreeSet<ThreadId>,
}

impl Shape {
    pub fn add(&mut self, page: PageView<'_>) {
        let total: u64 = page.entries.iter().map(|e| e.accesses()).sum();
        self.accesses += total;
        for entry in page.entries {
            self.writes += entry.writes;
            self.lines += u64::from(entry.lines);
            self.threads.insert(entry.thread);
        }
        if let Some(top) = page.entries.iter().max_by_key(|e| e.accesses())
            && top.accesses() as f64 >= OWNED * total as f64
        {
            self.owned += total;
            self.owners.push(top.thread);
        }
    }

    /// Threads that touched it.
    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    pub fn pattern(&self) -> Pattern {
        if self.threads.len() <= 1 {
            return Pattern::OneThread;
        }
        if self.owned as f64 >= MOSTLY * self.accesses as f64 {
            return self.owned_pattern();
        }
        let swept = self.accesses as f64 >= PICKED * self.lines as f64;
        match (self.writes as f64) < HARDLY_WRITTEN * self.accesses as f64 {
            true if swept => Pattern::ReadShared,
            true => Pattern::Gather,
            false => Pattern::Uniform,
        }
    }

    /// Counts how often ownership starts again from the lowest thread: once for blocks.
    fn owned_pattern(&self) -> Pattern {
        let mut blocks = self.owners.clone();
        blocks.dedup();
        let distinct: std::collections::BTreeSet<_> = blocks.iter().collect();
        if distinct.len() == 1 {
            return Pattern::OneThread;
        }
        let restarts = blocks.windows(2).filter(|w| w[1] < w[0]).count() + 1;
        // Perfect repetition has as many blocks as parts times owners; disorder has more restarts.
        let expected = restarts * distinct.len();
        match blocks.len() as f64 / expected as f64 {
            _ if restarts == 1 => Pattern::Block,
            fill if fill > 0.8 => Pattern::RepeatedBlock {
                repeat: restarts as u32,
            },
            _ if blocks.len() <= distinct.len() * 5 / 4 => Pattern::Block,
            _ => Pattern::Irregular,
        }
    }
}

/// Shapes of all objects of a histogram, by object.
pub(crate) fn shapes(histogram: &Histogram, objects: usize) -> Vec<Shape> {
    let mut shapes: Vec<Shape> = std::iter::repeat_with(Shape::default).take(objects).collect();
    for index in 0..histogram.len() {
        let page = histogram.page(index);
        if let Some(shape) = shapes.get_mut(page.object.index()) {
            shape.add(page);
        }
    }
    shapes
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_analysis::Entry;
    use nodewise_profile::{ObjectId, PageNumber};

    fn shape(pages: usize, cells: impl Fn(usize) -> Vec<(u32, u64, u64, u32)>) -> Shape {
        let mut shape = Shape::default();
        for index in 0..pages {
            let entries: Vec<_> = cells(index)
                .into_iter()
                .map(|(t, reads, writes, lines)| Entry {
                    reads,
                    writes,
                    lines,
                    thread: ThreadId(t),
                })
                .collect();
            shape.add(PageView {
                index,
                page: PageNumber(index as u64),
                object: ObjectId(1),
                entries: &entries,
            });
        }
        shape
    }

    #[test]
    fn blocks_are_recognised_despite_shared_borders_and_an_initialising_master() {
        let blocks = shape(64, |i| {
            let owner = (i / 16) as u32;
            let mut cells = vec![(0, 0, 512, 64)];
            cells.push((owner, 5120, 512, 640));
            if i % 16 == 0 && i > 0 {
                cells.push((owner - 1, 512, 0, 64));
            }
            cells
        });
        assert_eq!(blocks.pattern(), Pattern::Block);
    }

    #[test]
    fn blocks_that_start_again_are_repeated() {
        let planes = shape(64, |i| vec![((i % 8 / 2) as u32, 512, 0, 64)]);
        assert_eq!(planes.pattern(), Pattern::RepeatedBlock { repeat: 8 });
    }

    #[test]
    fn owners_in_no_order_are_irregular() {
        let scattered = shape(256, |i| vec![((i * i * 31 % 97 % 8) as u32, 512, 0, 64)]);
        assert_eq!(scattered.pattern(), Pattern::Irregular);
    }

    #[test]
    fn shared_pages_differ_by_writes_and_by_how_much_of_a_line_is_used() {
        let all =
            |reads, writes, lines| shape(8, move |_| (0..8).map(|t| (t, reads, writes, lines)).collect());
        assert_eq!(all(512, 0, 64).pattern(), Pattern::ReadShared);
        assert_eq!(all(100, 0, 90).pattern(), Pattern::Gather);
        assert_eq!(all(512, 512, 64).pattern(), Pattern::Uniform);
        assert_eq!(shape(8, |_| vec![(3, 1, 1, 1)]).pattern(), Pattern::OneThread);
    }
}

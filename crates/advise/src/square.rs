//! Latin squares: the block and node of each page of an array. As in libnodewise, a page belongs to the block of its
//! middle byte.

use nodewise_analysis::{Division, Remedy};
use nodewise_profile::{Object, PageNumber};

const PAGE: f64 = 4096.0;
/// Number of points of a page that are examined if it holds several blocks: one per cache line.
const POINTS_PER_PAGE: u32 = 64;

/// An array cut into blocks. The node index of a block is the sum of its block coordinates modulo the number of nodes.
#[derive(Clone, Debug)]
pub(crate) struct LatinSquare {
    first: PageNumber,
    bytes: f64,
    /// For each dimension that is cut, the bytes after which its blocks repeat: the whole array for the first
    /// dimension, a row for the second.
    rounds: Vec<f64>,
    nodes: usize,
}

impl LatinSquare {
    /// The blocks of an array under this remedy, for `nodes` nodes.
    pub fn of(object: &Object, remedy: Remedy, dealing: &[&Division], nodes: usize) -> Self {
        let bytes = object.bytes.max(1) as f64;
        let dimensions = match remedy {
            Remedy::BlockExclusive { dimensions } => dimensions,
            _ => 1,
        };
        let round = |d: usize| {
            let mut over = dealing.iter().filter(|p| p.pattern.dimension() == Some(d));
            let parts = if d == 0 { 1 } else { over.next()?.repeat };
            Some(bytes / f64::from(parts))
        };
        let dealt = (0..3).filter(|d| dimensions >> d & 1 == 1);
        Self {
            first: object.first_page,
            bytes,
            rounds: dealt.filter_map(round).collect(),
            nodes,
        }
    }

    /// Index of the node of a byte.
    fn at(&self, byte: f64) -> usize {
        let last = self.nodes - 1;
        let block = |round: &f64| (((byte / round).fract() * self.nodes as f64) as usize).min(last);
        self.rounds.iter().map(block).sum::<usize>() % self.nodes
    }

    /// The range of the array's bytes in the `1 << shift` base pages from `page` on.
    fn held(&self, page: PageNumber, shift: u32) -> [f64; 2] {
        let begin = (page.0 as f64 - self.first.0 as f64) * PAGE;
        let end = begin + PAGE * f64::from(1u32 << shift);
        [begin, end].map(|byte| byte.clamp(0.0, self.bytes))
    }

    /// Index of the node of a page of `1 << shift` base pages.
    pub fn home(&self, page: PageNumber, shift: u32) -> usize {
        let [begin, end] = self.held(page, shift);
        self.at(f64::midpoint(begin, end).min(self.bytes - 1.0))
    }

    /// The nodes whose items a base page holds, each with its share of the page.
    pub fn owners(&self, page: PageNumber) -> Vec<(usize, f64)> {
        let [begin, end] = self.held(page, 0);
        let run = self.rounds.iter().copied().fold(f64::INFINITY, f64::min) / self.nodes as f64;
        let (one, other) = (self.at(begin), self.at((end - 1.0).max(begin)));
        if one == other && run >= PAGE {
            return vec![(one, 1.0)];
        }
        let mut points = vec![0u32; self.nodes];
        for point in 0..POINTS_PER_PAGE {
            let within = (f64::from(point) + 0.5) / f64::from(POINTS_PER_PAGE);
            points[self.at(begin + (end - begin) * within)] += 1;
        }
        let share = |(node, points): (usize, u32)| (node, f64::from(points) / f64::from(POINTS_PER_PAGE));
        points
            .into_iter()
            .enumerate()
            .filter(|p| p.1 > 0)
            .map(share)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A matrix with rows of `row` bytes, cut for four nodes.
    fn rows(row: f64) -> LatinSquare {
        LatinSquare {
            first: PageNumber(10),
            bytes: 1024.0 * row,
            rounds: vec![1024.0 * row, row],
            nodes: 4,
        }
    }

    #[test]
    fn blocks_of_whole_pages_have_one_owner_who_is_their_home() {
        let square = rows(4.0 * PAGE);
        for page in [10, 11, 12, 13, 10 + 1024, 10 + 4095] {
            let page = PageNumber(page);
            assert_eq!(square.owners(page), [(square.home(page, 0), 1.0)]);
        }
        assert_eq!(square.home(PageNumber(11 + 1024), 0), 2);
    }

    #[test]
    fn a_page_of_two_blocks_goes_to_its_middle_and_half_of_it_is_another_nodes() {
        let square = rows(2.0 * PAGE);
        assert_eq!(square.owners(PageNumber(10)), [(0, 0.5), (1, 0.5)]);
        assert_eq!(square.home(PageNumber(10), 0), 1);
        assert_eq!(square.home(PageNumber(11), 0), 3);
    }
}

//! The node of each page of an object under a distribution.
//!
//! `runtime/distribution.h` is the C version that runs inside the placed process; a property test in `nodewise-enforce`
//! checks that both agree.

use crate::Distribution;
use nodewise_machine::NodeId;

/// A page, with the properties that distributions depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectPage {
    /// Index in the object.
    pub index: u64,
    /// Pages of the object, at least 1.
    pub pages: u64,
    /// Virtual page number, in units of the decision's page size.
    pub number: u64,
    /// Index in the object in units of the decision's page size.
    pub turn: u64,
    /// Ordinal of the thread that allocated the object.
    pub thread: u32,
}

impl Distribution {
    /// The node of `page`, where `threads` holds the node of each thread; `None` is first touch.
    ///
    /// The middle of a page decides in block distributions, so that a page with a block boundary inside goes to the
    /// owner of its larger part.
    #[must_use]
    pub fn node(&self, page: ObjectPage, threads: &[NodeId]) -> Option<NodeId> {
        match self {
            Self::FirstTouch => None,
            Self::Node(node) => Some(*node),
            Self::Interleave(nodes) => {
                let turn = page.number.checked_rem(nodes.len() as u64)?;
                nodes.get(turn as usize).copied()
            }
            Self::Dealt(dealt) => dealt.node(page),
            Self::Block(parts) => block(parts, page),
            Self::ByThread { repeat } => {
                let thread = block_thread(*repeat, threads.len() as u64, page)?;
                threads.get(thread).copied()
            }
            Self::Allocator => {
                let thread = (page.thread as usize).checked_rem(threads.len())?;
                threads.get(thread).copied()
            }
        }
    }
}

/// The ends of contiguous parts, as shares of the object; the last is 1.
#[must_use]
pub fn cumulative(parts: &[(NodeId, f64)]) -> Vec<(NodeId, f64)> {
    let last = parts.len().saturating_sub(1);
    let mut sum = 0.0;
    let mut end = |(i, &(node, share)): (usize, &(NodeId, f64))| {
        sum += share;
        (node, if i == last { 1.0 } else { sum })
    };
    parts.iter().enumerate().map(&mut end).collect()
}

fn block(parts: &[(NodeId, f64)], page: ObjectPage) -> Option<NodeId> {
    let middle = page.index as f64 + 0.5;
    let ends = cumulative(parts);
    let part = ends.iter().find(|(_, until)| middle < until * page.pages as f64);
    part.or(ends.last()).map(|p| p.0)
}

/// The object is divided into `repeat × threads` equal blocks, dealt to threads in turn; the thread whose block holds
/// the page's middle.
fn block_thread(repeat: u32, threads: u64, page: ObjectPage) -> Option<usize> {
    let blocks = u128::from(repeat) * u128::from(threads);
    let block = (2 * u128::from(page.index) + 1) * blocks / (2 * u128::from(page.pages.max(1)));
    Some(block.checked_rem(u128::from(threads))? as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(text: &str, pages: u64, threads: &[u32]) -> Vec<u32> {
        let rule: Distribution = text.parse().unwrap();
        let threads: Vec<_> = threads.iter().copied().map(NodeId).collect();
        let page = |index| ObjectPage {
            index,
            pages,
            number: 1000 + index,
            turn: index,
            thread: 1,
        };
        (0..pages)
            .filter_map(|i| rule.node(page(i), &threads))
            .map(|n| n.0)
            .collect()
    }

    #[test]
    fn blocks_by_thread_are_equal_and_ascending() {
        assert_eq!(
            nodes("block by thread", 8, &[0, 0, 1, 1]),
            [0, 0, 0, 0, 1, 1, 1, 1]
        );
        assert_eq!(nodes("block by thread", 6, &[0, 1, 2]), [0, 0, 1, 1, 2, 2]);
    }

    #[test]
    fn every_repetition_is_dealt_to_all_threads() {
        assert_eq!(
            nodes("block by thread repeat 2", 8, &[0, 1]),
            [0, 0, 1, 1, 0, 0, 1, 1]
        );
    }

    #[test]
    fn shares_cut_the_object_in_proportion() {
        assert_eq!(
            nodes("block 2:0.5 0:0.25 1:0.25", 8, &[]),
            [2, 2, 2, 2, 0, 0, 1, 1]
        );
    }

    #[test]
    fn interleave_goes_by_virtual_page_number() {
        assert_eq!(nodes("interleave 3,5", 4, &[]), [3, 5, 3, 5]);
        assert_eq!(nodes("allocator", 2, &[4, 7]), [7, 7]);
        assert_eq!(nodes("first-touch", 2, &[4, 7]), [0u32; 0]);
    }
}

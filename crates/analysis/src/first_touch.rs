//! The kernel's default placement: each page on the node of the thread that touches it first.

use crate::{Affinity, Histogram, NodeCounts};
use nodewise_machine::NodeId;
use nodewise_profile::{FirstTouch, ObjectId, Profile};
use std::collections::BTreeMap;

/// The first touch of each page of a histogram, `None` where none was recorded. For a large page it is the earliest
/// touch of any base page inside it, by slice, then by address.
#[must_use]
pub fn first_touches<'p>(profile: &'p Profile, histogram: &Histogram) -> Vec<Option<&'p FirstTouch>> {
    let size = 1 << histogram.shift;
    let touches = &profile.first_touches;
    let mut next = 0;
    let first_touch = |page: u64| {
        while touches
            .get(next)
            .is_some_and(|t| t.page.0 + u64::from(t.len) <= page)
        {
            next += 1;
        }
        touches[next..]
            .iter()
            .take_while(|t| t.page.0 < page + size)
            .min_by_key(|t| t.slice)
    };
    histogram.pages.iter().map(|p| p.0).map(first_touch).collect()
}

/// The node of each page of a histogram under first touch; for pages without a recorded first touch, the node with the
/// most accesses.
#[must_use]
pub fn first_touch_nodes(
    profile: &Profile,
    histogram: &Histogram,
    affinity: &Affinity,
    nodes: usize,
) -> Vec<NodeId> {
    let mut counts = NodeCounts::new(nodes);
    let touches = first_touches(profile, histogram);
    let node = |(i, touch): (usize, Option<&FirstTouch>)| match touch {
        Some(touch) => affinity.node(touch.thread),
        None => counts.load(histogram.page(i).entries, affinity).dominant().0,
    };
    touches.into_iter().enumerate().map(node).collect()
}

/// For each object, the number of pages whose first touch was recorded but that are not in the histogram.
pub(crate) fn unseen(profile: &Profile, histogram: &Histogram) -> BTreeMap<ObjectId, u64> {
    let mut unseen = BTreeMap::new();
    let mut next = 0;
    for touch in &profile.first_touches {
        let large = |page: u64| page >> histogram.shift;
        // Rows ascend by page, and several may lie in one large page, which counts once.
        let (first, end) = (
            large(touch.page.0).max(next),
            large(touch.page.0.saturating_add(u64::from(touch.len.max(1)) - 1)) + 1,
        );
        next = next.max(end);
        let below = |page: u64| histogram.pages.partition_point(|p| large(p.0) < page);
        let seen = (below(end) - below(first.min(end))) as u64;
        *unseen.entry(touch.object).or_default() += end.saturating_sub(first) - seen;
    }
    unseen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{histogram, thread_per_node};
    use nodewise_profile::{PageNumber, SliceId, ThreadId};

    fn touch(page: u64, len: u32, thread: u32, slice: u32) -> FirstTouch {
        let (page, thread, slice) = (PageNumber(page), ThreadId(thread), SliceId(slice));
        FirstTouch {
            page,
            len,
            thread,
            slice,
            ..FirstTouch::default()
        }
    }

    #[test]
    fn pages_go_to_the_first_toucher_or_else_to_the_heaviest_user() {
        let profile = Profile {
            first_touches: vec![touch(0, 2, 1, 0), touch(3, 1, 2, 0)],
            ..Profile::default()
        };
        let histogram = histogram(&[vec![9, 0, 0], vec![9, 0, 0], vec![9, 10, 0], vec![9, 0, 0]]);
        let nodes = first_touch_nodes(&profile, &histogram, &thread_per_node(3), 3);
        assert_eq!(nodes, [1, 1, 1, 2].map(NodeId));
    }

    #[test]
    fn a_large_page_is_taken_whole_by_the_earliest_touch() {
        let profile = Profile {
            first_touches: vec![touch(0, 100, 1, 3), touch(100, 300, 2, 1), touch(400, 200, 0, 1)],
            ..Profile::default()
        };
        let histogram = histogram(&[vec![1, 1, 1]]).coarsened(9);
        assert_eq!(
            first_touches(&profile, &histogram)[0].unwrap().thread,
            ThreadId(2)
        );
    }
}

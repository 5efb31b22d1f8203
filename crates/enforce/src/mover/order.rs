//! Which pairs of nodes move first, and how much comes to nodes that are too full for all of it.

use super::kernel::Kernel;
use super::plan::Pair;
use super::queue::first_part;
use super::run::{BASE, Run};
use std::collections::BTreeSet;

/// Pages come to a node that is too full for all of them only once others have left it, and no more than it has room for then:
/// asked for more, the kernel reclaims memory, and reports failed allocations.
pub struct Order<'a> {
    /// Pairs that move at once.
    pub first: Vec<&'a Pair>,
    /// Those to full nodes that other pages leave.
    pub then: Vec<&'a Pair>,
    full: BTreeSet<u32>,
}

impl<'a> Order<'a> {
    pub fn of(kernel: &dyn Kernel, pairs: &'a [Pair]) -> Self {
        let coming = |node| -> u64 { pairs.iter().filter(|p| p.to == node).map(Pair::pages).sum() };
        let leaves = |node| pairs.iter().any(|p| p.from == node);
        let waits = |node| leaves(node) && kernel.spare(node).is_some_and(|free| free >> BASE < coming(node));
        let nodes: BTreeSet<u32> = pairs.iter().map(|p| p.to).collect();
        let full: BTreeSet<u32> = nodes.into_iter().filter(|node| waits(*node)).collect();
        let (first, then) = pairs.iter().partition(|p| !full.contains(&p.to));
        Self { first, then, full }
    }

    /// What of these pairs may come now, and what is too much for nodes that were full: others may have taken meanwhile what
    /// pages left there.
    pub fn within_room<'p>(
        &self,
        kernel: &dyn Kernel,
        pairs: impl IntoIterator<Item = &'p Pair>,
    ) -> (Vec<Pair>, Vec<Pair>) {
        let (mut coming, mut over): (Vec<Pair>, Vec<Pair>) = (Vec::new(), Vec::new());
        for pair in pairs {
            let taken: u64 = coming.iter().filter(|p| p.to == pair.to).map(Pair::pages).sum();
            let room = match self.full.contains(&pair.to) {
                true => kernel.spare(pair.to).map_or(u64::MAX, |free| free >> BASE),
                false => u64::MAX,
            };
            let (fits, rest) = split(&pair.runs, room.saturating_sub(taken));
            for (to, runs) in [(&mut coming, fits), (&mut over, rest)] {
                if !runs.is_empty() {
                    to.push(Pair { runs, ..*pair });
                }
            }
        }
        (coming, over)
    }
}

/// The first runs, of at most `room` pages of 4 KiB without dividing what may be a huge page, and the rest.
fn split(runs: &[Run], mut room: u64) -> (Vec<Run>, Vec<Run>) {
    let (mut fits, mut rest) = (Vec::new(), Vec::new());
    for run in runs {
        let part = first_part(run, room);
        let taken = if part.pages() <= room { part.count } else { 0 };
        // What follows a run that does not fit whole stays too, so that pages keep their order.
        room = if taken == run.count {
            room - part.pages()
        } else {
            0
        };
        let address = run.address + (u64::from(taken) << run.shift);
        let parts = [
            (&mut fits, run.address, taken),
            (&mut rest, address, run.count - taken),
        ];
        for (to, address, count) in parts.into_iter().filter(|p| p.2 > 0) {
            to.push(Run {
                address,
                count,
                ..*run
            });
        }
    }
    (fits, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_is_no_more_than_fits_and_divides_no_huge_page() {
        let runs = [
            Run {
                address: 1 << 21,
                count: 1024,
                shift: BASE,
            },
            Run {
                address: 1 << 30,
                count: 3,
                shift: 21,
            },
        ];
        let all = |runs: &[Run]| -> Vec<u64> { runs.iter().flat_map(|r| r.addresses()).collect() };
        for (room, fit) in [
            (0, 0),
            (511, 0),
            (700, 512),
            (1024, 1024),
            (1600, 1024 + 512),
            (u64::MAX, 1024 + 3 * 512),
        ] {
            let (fits, rest) = split(&runs, room);
            assert_eq!(fits.iter().map(Run::pages).sum::<u64>(), fit, "room for {room}");
            assert_eq!([all(&fits), all(&rest)].concat(), all(&runs));
        }
    }
}

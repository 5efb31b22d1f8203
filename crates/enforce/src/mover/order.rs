//! Which pairs of nodes move first, and how much comes to nodes that are too full for all of it.

use super::kernel::Kernel;
use super::plan::Pair;
use super::queue::first_part;
use super::run::{BASE, Run};
use std::collections::{BTreeMap, BTreeSet};

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
        let coming = |node| -> u64 {
            let to = pairs.iter().filter(|p| p.to == node);
            to.flat_map(|p| &p.runs).map(free_pages).sum()
        };
        let leaves = |node| pairs.iter().any(|p| p.from == node);
        let waits = |node| leaves(node) && kernel.spare(node).is_some_and(|free| free >> BASE < coming(node));
        let nodes: BTreeSet<u32> = pairs.iter().map(|p| p.to).collect();
        let full: BTreeSet<u32> = nodes.into_iter().filter(|node| waits(*node)).collect();
        let (first, then) = pairs.iter().partition(|p| !full.contains(&p.to));
        Self { first, then, full }
    }

    /// What of these pairs may come now, and what is too much for nodes that were full.
    pub fn within_room(&self, kernel: &dyn Kernel, pairs: &[Pair]) -> (Vec<Pair>, Vec<Pair>) {
        let spare = |node: &u32| (*node, kernel.spare(*node).map_or(u64::MAX, |free| free >> BASE));
        let mut room: BTreeMap<u32, u64> = self.full.iter().map(spare).collect();
        let (mut coming, mut over): (Vec<Pair>, Vec<Pair>) = (Vec::new(), Vec::new());
        for pair in pairs {
            let (fits, rest) = match room.get_mut(&pair.to) {
                Some(room) => split(&pair.runs, room),
                None => (pair.runs.clone(), Vec::new()),
            };
            for (to, runs) in [(&mut coming, fits), (&mut over, rest)] {
                if !runs.is_empty() {
                    to.push(Pair { runs, ..*pair });
                }
            }
        }
        (coming, over)
    }
}

/// Pages of 4 KiB that a run takes of a node's free memory: pages of hugetlbfs come from the node's pool.
fn free_pages(run: &Run) -> u64 {
    if run.shift == BASE { run.pages() } else { 0 }
}

/// The runs and parts of runs for which there is room, in pages of 4 KiB, without dividing what may be a huge page; and the
/// rest. `room` is less by what fits.
fn split(runs: &[Run], room: &mut u64) -> (Vec<Run>, Vec<Run>) {
    let (mut fits, mut rest) = (Vec::new(), Vec::new());
    for run in runs {
        let taken = match first_part(run, *room) {
            _ if run.shift > BASE => run.count,
            part if part.pages() <= *room => part.count,
            _ => 0,
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
        *room -= free_pages(&Run { count: taken, ..*run });
    }
    (fits, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_is_no_more_than_fits_and_divides_no_huge_page() {
        let run = |address, count, shift| Run {
            address,
            count,
            shift,
        };
        // Two that may be huge pages, one of hugetlbfs, and small ones.
        let runs = [
            run(1 << 21, 1024, BASE),
            run(1 << 30, 3, 21),
            run((1 << 31) + 4096, 300, BASE),
        ];
        let all = |runs: &[Run]| {
            let mut all: Vec<u64> = runs.iter().flat_map(|r| r.addresses()).collect();
            all.sort_unstable();
            all
        };
        for (room, fit) in [
            (0, 0),
            (200, 200),
            (511, 300),
            (700, 512 + 188),
            (1100, 1024 + 76),
            (u64::MAX, 1324),
        ] {
            let mut left = room;
            let (fits, rest) = split(&runs, &mut left);
            assert_eq!(fits.iter().map(free_pages).sum::<u64>(), fit, "room for {room}");
            assert_eq!(left, room - fit);
            assert!(fits.contains(&runs[1]), "hugetlbfs has a pool of its own");
            assert_eq!(all(&[fits, rest].concat()), all(&runs));
        }
    }
}

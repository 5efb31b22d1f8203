//! Replays recorded page moves.

use nodewise_machine::NodeId;
use nodewise_placement::{MigrationPolicy, Move, Observed, Reason};
use nodewise_profile::Migration;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Proposes recorded moves, whatever it observes: each after the slice with its number. Pages without accesses are left
/// out.
pub(crate) struct Recorded {
    /// Recorded moves, ascending by slice.
    migrations: Vec<Migration>,
    /// Number of moves proposed so far.
    done: usize,
    /// Number of the slice that has just ended.
    slice: Arc<AtomicU32>,
}

impl Recorded {
    pub fn new(migrations: &[Migration], slice: Arc<AtomicU32>) -> Self {
        let mut migrations = migrations.to_vec();
        migrations.sort_by_key(|m| m.slice);
        Self {
            migrations,
            done: 0,
            slice,
        }
    }
}

impl MigrationPolicy for Recorded {
    fn name(&self) -> String {
        "replay".into()
    }

    fn decide(&mut self, observed: &dyn Observed) -> Vec<Move> {
        let now = self.slice.load(Ordering::Relaxed);
        let due = self.migrations[self.done..].partition_point(|m| m.slice.0 <= now);
        let due = &self.migrations[self.done..self.done + due];
        self.done += due.len();
        // Only the last move of a page in a slice counts.
        let mut last = std::collections::BTreeMap::new();
        for migration in due {
            let first = migration.page.align_down(observed.page_shift());
            let end = migration.page.offset(u64::from(migration.len));
            let from = lower_bound(observed, |index| observed.page(index) < first);
            for index in (from..observed.len()).take_while(|i| observed.page(*i) < end) {
                last.insert(index, migration);
            }
        }
        let proposal = |(index, migration): (usize, &Migration)| {
            let (from, to) = (observed.home(index), NodeId(u32::from(migration.to)));
            (from != to && to.index() < observed.nodes()).then(|| Move {
                index,
                page: observed.page(index),
                from,
                to,
                reason: Reason {
                    to_count: migration.to_count,
                    home_count: migration.home_count,
                    count_threshold: migration.count_threshold,
                    evidence: f64::INFINITY,
                    regardless: true,
                    partner: None,
                },
            })
        };
        last.into_iter().filter_map(proposal).collect()
    }
}

/// The first index for which `below` does not hold.
fn lower_bound(observed: &dyn Observed, below: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, observed.len());
    while low < high {
        let middle = low + (high - low) / 2;
        if below(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_profile::{PageNumber, SliceId};

    /// Two pages, both on node 0.
    struct Pages;

    impl Observed for Pages {
        fn nodes(&self) -> usize {
            2
        }

        fn len(&self) -> usize {
            2
        }

        fn page(&self, index: usize) -> PageNumber {
            PageNumber(index as u64)
        }

        fn home(&self, _: usize) -> NodeId {
            NodeId(0)
        }

        fn counts(&self, _: usize, counts: &mut [u64]) {
            counts.fill(0);
        }

        fn first(&self, _: usize) -> Option<NodeId> {
            None
        }
    }

    #[test]
    fn a_move_is_made_after_the_slice_it_carries() {
        let each = |page: u64, slice: u32| Migration {
            page: PageNumber(page),
            len: 1,
            slice: SliceId(slice),
            to: 1,
            by: "dominant".into(),
            ..Migration::default()
        };
        let clock = Arc::new(AtomicU32::new(0));
        let mut recorded = Recorded::new(&[each(0, 1), each(1, 3)], Arc::clone(&clock));
        let after = |slice: u32| {
            clock.store(slice, Ordering::Relaxed);
            let moves = recorded.decide(&Pages);
            moves.iter().map(|m| m.page.0).collect::<Vec<_>>()
        };
        let schedule: Vec<_> = (0..5).map(after).collect();
        assert_eq!(schedule, [vec![], vec![0], vec![], vec![1], vec![]]);
    }
}

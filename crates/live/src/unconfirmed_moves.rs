//! Moves whose result is unknown: kernels before 6.6 do not report the node of a page that is marked for sampling.

use crate::event::MovedPages;
use nodewise_placement::Move;
use nodewise_profile::PageNumber;
use std::collections::HashMap;
use std::ops::Range;

/// Intervals for which a page found at the target of its move counts as moved by us.
const LIFE: u64 = 2;

/// Moves of unknown result, up to a limit.
pub struct UnconfirmedMoves {
    moves: HashMap<PageNumber, Attempt>,
    most: usize,
    interval: u64,
}

#[derive(Clone, Copy, Debug)]
struct Attempt {
    made: Move,
    interval: u64,
    /// Pages of the process that the kernel had moved when the move was made.
    kernel_moved: u64,
}

impl UnconfirmedMoves {
    pub fn new(most: usize) -> Self {
        Self {
            moves: HashMap::new(),
            most,
            interval: 0,
        }
    }

    /// Begins an interval and drops moves that are too old.
    pub fn begin_interval(&mut self) {
        self.interval += 1;
        let now = self.interval;
        self.moves.retain(|_, attempt| now - attempt.interval < LIFE);
    }

    pub fn note(&mut self, made: Move, kernel_moved: u64) {
        if self.moves.len() < self.most {
            let interval = self.interval;
            self.moves.insert(
                made.page,
                Attempt {
                    made,
                    interval,
                    kernel_moved,
                },
            );
        }
    }

    pub fn contains(&self, page: PageNumber) -> bool {
        self.moves.contains_key(&page)
    }

    pub fn forget(&mut self, page: PageNumber) {
        self.moves.remove(&page);
    }

    pub fn forget_all(&mut self, pages: &Range<PageNumber>) {
        self.moves.retain(|page, _| !pages.contains(page));
    }

    /// Takes our move of a page that was found on another node, if it was ours: the page is at its target, and the kernel
    /// has moved none of its process since. `kernel_moved`: pages of the process that the kernel has moved so far, if
    /// known.
    pub fn take_ours(&mut self, found: &MovedPages, kernel_moved: Option<u64>) -> Option<Move> {
        let attempt = self.moves.remove(&found.page)?;
        let ours = (attempt.made.from, attempt.made.to) == (found.from, found.to);
        (ours && Some(attempt.kernel_moved) == kernel_moved).then_some(attempt.made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::NodeId;
    use nodewise_placement::Reason;

    fn sent(page: u64) -> Move {
        Move {
            index: 0,
            page: PageNumber::of_address(1, page << 12),
            from: NodeId(0),
            to: NodeId(1),
            reason: Reason::default(),
        }
    }

    fn found(
        unconfirmed: &mut UnconfirmedMoves,
        page: u64,
        to: u32,
        kernel_moved: Option<u64>,
    ) -> Option<Move> {
        let (page, from, to) = (sent(page).page, NodeId(0), NodeId(to));
        unconfirmed.take_ours(
            &MovedPages {
                pid: 1,
                page,
                count: 1,
                from,
                to,
            },
            kernel_moved,
        )
    }

    fn unconfirmed() -> UnconfirmedMoves {
        let mut unconfirmed = UnconfirmedMoves::new(3);
        (0..9).for_each(|page| unconfirmed.note(sent(page), 7));
        unconfirmed
    }

    #[test]
    fn a_page_that_turns_up_where_it_was_sent_is_ours_once() {
        let mut unconfirmed = unconfirmed();
        assert_eq!(found(&mut unconfirmed, 0, 1, Some(7)), Some(sent(0)));
        assert_eq!(found(&mut unconfirmed, 0, 1, Some(7)), None);
        assert_eq!(found(&mut unconfirmed, 1, 2, Some(7)), None);
    }

    #[test]
    fn what_the_kernel_may_have_moved_is_not_ours() {
        let mut unconfirmed = unconfirmed();
        assert_eq!(found(&mut unconfirmed, 0, 1, Some(8)), None);
        assert_eq!(found(&mut unconfirmed, 1, 1, None), None);
    }

    #[test]
    fn who_turns_up_late_has_come_by_anybody() {
        let mut unconfirmed = unconfirmed();
        unconfirmed.begin_interval();
        assert_eq!(found(&mut unconfirmed, 0, 1, Some(7)), Some(sent(0)));
        unconfirmed.begin_interval();
        assert_eq!(found(&mut unconfirmed, 1, 1, Some(7)), None);
    }

    #[test]
    fn no_more_are_remembered_than_may_be() {
        assert_eq!(
            (0..9)
                .filter(|page| unconfirmed().contains(sent(*page).page))
                .count(),
            3
        );
        let mut unconfirmed = unconfirmed();
        unconfirmed.forget_all(&(PageNumber::of_address(1, 0)..PageNumber::of_address(2, 0)));
        assert!(!unconfirmed.contains(sent(0).page));
    }
}

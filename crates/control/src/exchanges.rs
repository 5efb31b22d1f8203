//! Judges exchanges of pages between fast memory and the rest by the accesses that come after them.
//!
//! Where all pages are accessed alike, some have more samples than others by chance. Exchanging those gains nothing, costs the
//! moves, and leaves fast memory short of the pages that are on their way. So both pages of each exchange are followed: if the
//! page that came is not accessed more from then on than the one that left for it, counts do not tell what will be accessed, and
//! exchanges pause. Only the first samples after an exchange count: what was right then may be wrong in the program's next
//! phase, and says nothing about exchanges made there. In a pause the pages that would have been exchanged are followed
//! instead, so that exchanges resume as soon as they would pay, and not after a time that somebody has to choose.

use nodewise_profile::PageNumber;
use std::collections::{HashMap, VecDeque};

/// Samples of followed pages from which on exchanges are judged.
const ENOUGH: u64 = 512;
/// By this factor the accesses to the pages that come have to exceed those to the pages that leave.
const PAYS: f64 = 1.1;
/// To resume, they have to by this many standard deviations more: without a gain, each judgement is a new chance to err.
const DEVIATIONS: f64 = 2.0;
/// Number of samples for which the two pages of an exchange are followed.
const SAMPLES_EACH: u8 = 4;
/// Largest number of exchanges that are followed; the oldest are dropped first.
const FOLLOWED: usize = 1024;

/// Samples of one kind of page: their number, the sum of their weights, and of their squares.
#[derive(Clone, Copy, Debug, Default)]
struct Accesses {
    samples: u64,
    weight: f64,
    squares: f64,
}

/// A page that is followed.
#[derive(Clone, Copy, Debug)]
struct Followed {
    /// Whether it is the one that came, or would have.
    came: bool,
    partner: PageNumber,
    /// Samples of the two pages so far; kept with the one that came.
    samples: u8,
}

/// The exchanges of one policy.
#[derive(Clone, Debug, Default)]
pub(crate) struct Exchanges {
    followed: HashMap<PageNumber, Followed>,
    /// The pages that came, in order; some of them are no longer followed.
    order: VecDeque<PageNumber>,
    came: Accesses,
    left: Accesses,
    paused: bool,
}

impl Exchanges {
    /// Whether exchanges are to be made.
    pub fn pay(&self) -> bool {
        !self.paused
    }

    /// Follows the pages of an exchange. Pages of which one is followed already stay with their partners while exchanges pause,
    /// and change them otherwise: they have been moved again.
    pub fn follow(&mut self, comes: PageNumber, leaves: PageNumber) {
        let known = [comes, leaves].map(|page| self.followed.contains_key(&page));
        if self.paused && known.contains(&true) {
            return;
        }
        self.forget(comes);
        self.forget(leaves);
        let side = |came, partner| Followed {
            came,
            partner,
            samples: 0,
        };
        self.followed.insert(comes, side(true, leaves));
        self.followed.insert(leaves, side(false, comes));
        self.order.push_back(comes);
        while self.followed.len() > 2 * FOLLOWED || self.order.len() > 4 * FOLLOWED {
            let oldest = self.order.pop_front();
            oldest.into_iter().for_each(|page| self.forget(page));
        }
    }

    /// No longer follows a page and its partner.
    pub fn forget(&mut self, page: PageNumber) {
        if let Some(one) = self.followed.remove(&page) {
            self.followed.remove(&one.partner);
        }
    }

    /// A sample of a page. Judges when there are enough.
    pub fn sampled(&mut self, page: PageNumber, weight: u32) {
        let Some(one) = self.followed.get(&page).copied() else {
            return;
        };
        let side = if one.came { &mut self.came } else { &mut self.left };
        side.samples += 1;
        side.weight += f64::from(weight);
        side.squares += f64::from(weight).powi(2);
        let came = if one.came { page } else { one.partner };
        let pair = self.followed.get_mut(&came).map_or(SAMPLES_EACH, |pair| {
            pair.samples += 1;
            pair.samples
        });
        if pair >= SAMPLES_EACH {
            self.forget(came);
        }
        if self.came.samples + self.left.samples >= ENOUGH {
            self.judge();
        }
    }

    /// A count that all of these pages have together: one sample, as they are not independent.
    pub fn sampled_together(&mut self, pages: &[PageNumber], weight: u32) {
        if let Some(page) = pages.iter().find(|page| self.followed.contains_key(page)) {
            self.sampled(*page, weight);
        }
    }

    fn judge(&mut self) {
        // The kernel samples no pages of a program of one thread on the node that it runs on: nothing to compare then.
        if self.came.samples.min(self.left.samples) == 0 {
            (self.came, self.left) = Default::default();
            return;
        }
        let gain = self.came.weight - PAYS * self.left.weight;
        // The number of samples is Poisson distributed, so the variance of their sum is the sum of their squares.
        let deviation = (self.came.squares + PAYS * PAYS * self.left.squares).sqrt();
        let pauses = match self.paused {
            false => gain < 0.0,
            true => gain <= DEVIATIONS * deviation,
        };
        (self.came, self.left) = Default::default();
        if pauses != self.paused {
            self.paused = pauses;
            // What was exchanged and what would have been are not compared with each other.
            self.followed.clear();
            self.order.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Rounds in which even pages are exchanged for odd ones, and then sampled with these weights.
    fn exchanged(exchanges: &mut Exchanges, rounds: u64, came: u32, left: u32) {
        for _ in 0..rounds {
            for pair in 0..64 {
                exchanges.follow(PageNumber(2 * pair), PageNumber(2 * pair + 1));
                exchanges.sampled(PageNumber(2 * pair), came);
                exchanges.sampled(PageNumber(2 * pair + 1), left);
            }
        }
    }

    #[test]
    fn what_gains_nothing_pauses_until_it_would_gain() {
        let mut exchanges = Exchanges::default();
        exchanged(&mut exchanges, 40, 4, 2);
        assert!(exchanges.pay());
        exchanged(&mut exchanges, 5, 4, 4);
        assert!(!exchanges.pay());
        exchanged(&mut exchanges, 40, 4, 4);
        assert!(!exchanges.pay());
        exchanged(&mut exchanges, 5, 4, 1);
        assert!(exchanges.pay());
    }

    #[test]
    fn pages_that_have_one_count_together_are_one_sample() {
        let mut exchanges = Exchanges::default();
        for pair in 0..ENOUGH {
            exchanges.follow(PageNumber(2 * pair), PageNumber(2 * pair + 1));
        }
        let of_side = |side| {
            (0..ENOUGH)
                .map(|pair| PageNumber(2 * pair + side))
                .collect::<Vec<_>>()
        };
        exchanges.sampled_together(&of_side(0), 4);
        exchanges.sampled_together(&of_side(1), 4);
        assert_eq!((exchanges.came.samples, exchanges.left.samples), (1, 1));
    }

    #[test]
    fn without_samples_of_both_or_any_weight_nothing_changes() {
        let mut exchanges = Exchanges::default();
        for _ in 0..2 * ENOUGH {
            exchanges.follow(PageNumber(0), PageNumber(1));
            exchanges.sampled(PageNumber(1), 5);
        }
        assert!(exchanges.pay(), "those that came are never sampled");
        exchanged(&mut exchanges, 5, 4, 4);
        assert!(!exchanges.pay());
        exchanged(&mut exchanges, 40, 0, 0);
        assert!(!exchanges.pay());
    }

    #[test]
    fn what_was_exchanged_long_ago_has_no_say() {
        let mut exchanges = Exchanges::default();
        exchanged(&mut exchanges, 2, 4, 2);
        // The program's next phase uses the pages that left, and none was exchanged since.
        for _ in 0..ENOUGH {
            (0..64).for_each(|pair| exchanges.sampled(PageNumber(2 * pair + 1), 8));
        }
        assert!(exchanges.pay());
    }

    #[test]
    fn a_page_that_moves_again_is_followed_with_its_new_partner() {
        let mut exchanges = Exchanges::default();
        exchanges.follow(PageNumber(1), PageNumber(2));
        exchanges.follow(PageNumber(2), PageNumber(3));
        assert_eq!(exchanges.followed.len(), 2);
        exchanges.forget(PageNumber(3));
        assert_eq!(exchanges.followed.len(), 0);
        for pair in 0..2 * FOLLOWED as u64 {
            exchanges.follow(PageNumber(2 * pair), PageNumber(2 * pair + 1));
        }
        assert_eq!(exchanges.followed.len(), 2 * FOLLOWED);
    }

    proptest! {
        #[test]
        fn chance_rarely_resumes(weights in prop::collection::vec((any::<bool>(), 1u32..9), ENOUGH as usize)) {
            let mut exchanges = Exchanges { paused: true, ..Exchanges::default() };
            for (came, weight) in &weights {
                exchanges.follow(PageNumber(0), PageNumber(1));
                exchanges.sampled(PageNumber(u64::from(!*came)), *weight);
            }
            let sum = |which: bool| weights.iter().filter(|w| w.0 == which).map(|w| f64::from(w.1)).sum::<f64>();
            prop_assert!(exchanges.paused || sum(true) > 1.15 * sum(false));
        }
    }
}

//! Which of a policy's proposals are carried out.

// Why: docs/decisions/live-loop.md

use crate::budget::{Budget, Rate};
use crate::failed_pages::FailedPages;
use crate::ledger::History;
use nodewise_machine::NodeId;
use nodewise_placement::{Move, Observed, Reason, Rows};
use nodewise_profile::PageNumber;
use serde::Serialize;
use std::cmp::Ordering;
use std::collections::HashSet;
use std::ops::Range;

/// Proposals of one step that were not carried out, counted by the first reason that applied. JSON documents contain it
/// with these field names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HeldBack {
    /// Fewer accesses than [`Settings::minimum_samples`](crate::Settings::minimum_samples), or a difference between nodes that
    /// is not significant.
    pub few_samples: u64,
    /// The page is in cooldown after a move or a failure. Policies with a
    /// [tier](nodewise_placement::MigrationPolicy::tier) pass over such pages.
    pub resting: u64,
    /// Over the rate limit, [`Settings::pages_per_second`](crate::Settings::pages_per_second).
    pub rate: u64,
    /// Over the cost budget for the run time so far.
    pub budget: u64,
    /// Exchanges of pages between fast memory and the rest while those made before have gained nothing.
    pub no_gain: u64,
}

impl HeldBack {
    /// Pages by cause, in the words of profiles and reports.
    #[must_use]
    pub fn causes(&self) -> Vec<(String, u64)> {
        let all = [
            ("few samples", self.few_samples),
            ("resting", self.resting),
            ("rate", self.rate),
            ("budget", self.budget),
            ("no gain", self.no_gain),
        ];
        all.map(|(cause, pages)| (cause.to_owned(), pages)).into()
    }

    /// Adds those of another step.
    pub fn add(&mut self, other: &Self) {
        self.few_samples += other.few_samples;
        self.resting += other.resting;
        self.rate += other.rate;
        self.budget += other.budget;
        self.no_gain += other.no_gain;
    }

    /// Sum over all reasons.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.few_samples + self.resting + self.rate + self.budget + self.no_gain
    }
}

/// What moves are held to.
pub(crate) struct Limits<'a> {
    pub(crate) cooldowns: &'a Cooldowns<'a>,
    /// Accesses from which on a page may move.
    pub(crate) minimum_samples: f64,
    pub(crate) rate: &'a Rate,
    pub(crate) budget: &'a Budget,
    pub(crate) page_bytes: u64,
}

/// Drops proposals that are not significant (unless counts are `exact`), whose pages are in cooldown, or that exceed rate or
/// budget, and counts why. Of pairs both moves stay, or neither.
pub(crate) fn filter(moves: &mut Vec<Move>, exact: bool, limits: &Limits<'_>) -> HeldBack {
    let mut held_back = HeldBack::default();
    moves.retain(|m| may_move(m, exact, limits, &mut held_back));
    let paired = retain_pairs(moves);
    limit(moves, paired, limits, &mut held_back);
    held_back
}

/// Whether a proposal is significant and its page not in cooldown; otherwise counts why.
fn may_move(each: &Move, exact: bool, limits: &Limits<'_>, held_back: &mut HeldBack) -> bool {
    let few = each.reason.evidence < limits.minimum_samples;
    if few || !(exact || is_significant(&each.reason, limits.cooldowns.moves(each.page))) {
        held_back.few_samples += 1;
        return false;
    }
    let in_cooldown = limits.cooldowns.contains(each.page);
    held_back.resting += u64::from(in_cooldown);
    !in_cooldown
}

/// Truncates the moves to what rate and budget allow, keeping those of most benefit, and both of each pair.
fn limit(moves: &mut Vec<Move>, paired: bool, limits: &Limits<'_>, held_back: &mut HeldBack) {
    let rate = limits.rate.allows();
    let batches = 1 + u32::from(paired);
    let affordable = limits.budget.affordable(limits.page_bytes, batches);
    let (mut most, wanted) = (rate.min(affordable), moves.len() as u64);
    if wanted <= most {
        return;
    }
    held_back.rate = wanted.saturating_sub(rate);
    held_back.budget = wanted - most - held_back.rate;
    if most > 0 && paired {
        moves.sort_unstable_by(by_benefit);
        let splits = moves[most as usize - 1].reason.partner == Some(moves[most as usize].index);
        most = match (splits, most) {
            (false, _) => most,
            (true, 1) => 2, // else none would ever move
            (true, _) => most - 1,
        };
    } else if most > 0 {
        moves.select_nth_unstable_by(most as usize - 1, by_benefit);
    }
    moves.truncate(most as usize);
    moves.sort_unstable_by_key(|m| m.index);
}

/// Which pages are in cooldown.
pub(crate) struct Cooldowns<'a> {
    history: &'a History,
    stayed: &'a FailedPages,
    intervals: u32,
    now: u64,
}

impl<'a> Cooldowns<'a> {
    pub(crate) fn new(history: &'a History, stayed: &'a FailedPages, intervals: u32, now: u64) -> Self {
        Self {
            history,
            stayed,
            intervals,
            now,
        }
    }

    fn contains(&self, page: PageNumber) -> bool {
        let past = self.history.of(page);
        past.is_some_and(|past| past.in_cooldown(self.now, self.intervals))
            || self.stayed.in_cooldown(page, self.now)
    }

    /// Moves that the page has made, as far as remembered.
    fn moves(&self, page: PageNumber) -> u16 {
        self.history.of(page).map_or(0, |past| past.moves)
    }
}

/// Pages with what the controller knows of their cooldowns.
pub(crate) struct Offered<'a> {
    pub(crate) observed: &'a dyn Observed,
    pub(crate) cooldowns: &'a Cooldowns<'a>,
}

impl Observed for Offered<'_> {
    fn nodes(&self) -> usize {
        self.observed.nodes()
    }

    fn len(&self) -> usize {
        self.observed.len()
    }

    fn page(&self, index: usize) -> PageNumber {
        self.observed.page(index)
    }

    fn home(&self, index: usize) -> NodeId {
        self.observed.home(index)
    }

    fn counts(&self, index: usize, counts: &mut [u64]) {
        self.observed.counts(index, counts);
    }

    fn read(&self, pages: Range<usize>, rows: &mut Rows) {
        self.observed.read(pages, rows);
    }

    fn free(&self, node: NodeId) -> Option<u64> {
        self.observed.free(node)
    }

    fn in_cooldown(&self, index: usize) -> bool {
        self.cooldowns.contains(self.observed.page(index))
    }

    fn first(&self, index: usize) -> Option<NodeId> {
        self.observed.first(index)
    }

    fn page_shift(&self) -> u32 {
        self.observed.page_shift()
    }

    fn exact(&self) -> bool {
        self.observed.exact()
    }
}

/// The 95 % quantile of the standard normal distribution.
const CHANCE: f64 = 1.644_854;

/// One-sided test at the 5 % level (normal approximation of the binomial) that the new node accesses the page more than
/// its home. Since a page is tested again in every interval, twice the variance is assumed once it has moved twice.
/// Moves with `regardless` set are not tested: policies that spread pages do not claim that the new node uses them more.
fn is_significant(reason: &Reason, moves: u16) -> bool {
    let home = reason.home_count.unwrap_or(0.0);
    let (more, both) = (reason.to_count - home, reason.to_count + home);
    let doubt = if moves < 2 { 1.0 } else { 2.0 };
    reason.regardless || more * more > CHANCE * CHANCE * doubt * both
}

/// Orders moves by descending benefit: accesses of the new node minus those of the home (of the policy's threshold where
/// the home's are unknown), then by the number of samples.
pub(crate) fn by_benefit(a: &Move, b: &Move) -> Ordering {
    let gain =
        |m: &Move| (m.reason.to_count - m.reason.home_count.unwrap_or(m.reason.count_threshold)).max(0.0);
    let better = gain(b).total_cmp(&gain(a));
    let surer = || b.reason.evidence.total_cmp(&a.reason.evidence);
    // The moves of a pair have the same reason, and are neighbours.
    let pair = |m: &Move| m.reason.partner.map_or(m.index, |partner| partner.min(m.index));
    better
        .then_with(surer)
        .then(pair(a).cmp(&pair(b)))
        .then(a.index.cmp(&b.index))
}

/// Drops moves whose partners are not among them; returns whether any have partners.
fn retain_pairs(moves: &mut Vec<Move>) -> bool {
    let paired = moves.iter().filter(|m| m.reason.partner.is_some());
    let paired: HashSet<usize> = paired.map(|m| m.index).collect();
    moves.retain(|m| m.reason.partner.is_none_or(|partner| paired.contains(&partner)));
    !paired.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_both_nodes_use_alike_stays() {
        let says = |to_count: f64, home: f64| {
            let reason = Reason {
                to_count,
                home_count: Some(home),
                ..Reason::default()
            };
            let holds = [0, 1, 2, 3, 9].map(|moves| is_significant(&reason, moves));
            assert!(holds.is_sorted_by(|surer, less| surer >= less));
            holds[0]
        };
        assert!(says(3.0, 0.0) && says(7.0, 2.0) && says(600.0, 400.0));
        assert!(!says(2.0, 0.0) && !says(5.0, 2.0) && !says(505.0, 495.0));
        assert!(!says(3.0, 5.0));
        let spread = Reason {
            regardless: true,
            ..Reason::default()
        };
        assert!(is_significant(&spread, 9));
        // Of 20 draws from two equal nodes: how often the difference is taken for significant, by the binomial
        // distribution.
        let choose = |k: u64| (0..k).fold(1.0, |c, i| c * (20 - i) as f64 / (i + 1) as f64);
        let enough = (0..=20).filter(|k| *k > 10 && says(*k as f64, 20.0 - *k as f64));
        let chance = enough.map(choose).sum::<f64>() / f64::from(1 << 20);
        assert!((0.02..0.07).contains(&chance), "{chance}");
    }
}

//! Filters the proposals of a policy and accounts for the moves made.

// Why: docs/decisions/live-loop.md

use crate::budget::{Budget, Rate};
use crate::failed_pages::FailedPages;
use crate::ledger::History;
use crate::{BatchResult, Ledger, PageResult, Settings};
use nodewise_machine::NodeId;
use nodewise_placement::{MigrationPolicy, Move, Observed, Reason, Rows, Tier};
use nodewise_profile::PageNumber;
use serde::Serialize;
use std::cmp::Ordering;
use std::collections::HashSet;
use std::ops::Range;

/// Proposals of one step that were not carried out, counted by the first reason that applied. JSON documents contain it
/// with these field names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HeldBack {
    /// Fewer accesses than [`Settings::minimum_samples`], or a difference between nodes that is not significant.
    pub few_samples: u64,
    /// The page is in cooldown after a move or a failure. Policies with a [tier](MigrationPolicy::tier) pass over such
    /// pages.
    pub resting: u64,
    /// Over the rate limit, [`Settings::pages_per_second`].
    pub rate: u64,
    /// Over the cost budget for the run time so far.
    pub budget: u64,
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
        ];
        all.map(|(cause, pages)| (cause.to_owned(), pages)).into()
    }

    /// Adds those of another step.
    pub fn add(&mut self, other: &Self) {
        self.few_samples += other.few_samples;
        self.resting += other.resting;
        self.rate += other.rate;
        self.budget += other.budget;
    }

    /// Sum over all reasons.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.few_samples + self.resting + self.rate + self.budget
    }
}

/// The moves of one interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// Moves to make, ascending by page; those that leave a policy's [tier](MigrationPolicy::tier) before all others.
    pub moves: Vec<Move>,
    /// Proposals that were filtered out, by reason.
    pub held_back: HeldBack,
    /// Messages between nodes that these moves cost.
    pub messages: u64,
    /// Whether access counts are to be halved after the moves: another half-life has passed.
    pub halve: bool,
}

/// A move whose result is not known yet.
#[derive(Clone, Copy, Debug)]
struct Pending {
    page: PageNumber,
    from: NodeId,
    to: NodeId,
    /// Whether the home accessed the page most; `None` without exact counts.
    incorrect: Option<bool>,
}

/// Calls a policy once an interval and limits the moves it proposes.
///
/// Its clock is the sum of the positive differences between the times it is called with; pauses are left out.
pub struct Controller {
    policy: Box<dyn MigrationPolicy>,
    settings: Settings,
    ledger: Ledger,
    history: History,
    stayed: FailedPages,
    budget: Budget,
    rate: Rate,
    last_ns: Option<u64>,
    intervals: u64,
    paused: bool,
    pending: Vec<Pending>,
}

impl Controller {
    /// A controller whose run time starts with the first step.
    #[must_use]
    pub fn new(policy: Box<dyn MigrationPolicy>, settings: Settings) -> Self {
        Self {
            policy,
            ledger: Ledger::default(),
            history: History::new(settings.remembered_pages),
            stayed: FailedPages::new(settings.remembered_pages, settings.cooldown),
            budget: Budget::new(
                settings.budget,
                settings.seconds_per_gb,
                settings.seconds_per_batch,
            ),
            rate: Rate::new(&settings),
            settings,
            last_ns: None,
            intervals: 0,
            paused: false,
            pending: Vec::new(),
        }
    }

    /// Decides one interval at time `now_ns` (any origin). Moves of the previous step that were not reported with
    /// [`Controller::record`] count as not tried.
    pub fn step(&mut self, now_ns: u64, observed: &dyn Observed) -> Decision {
        self.discard_pending(now_ns);
        if self.paused {
            return Decision::default();
        }
        self.intervals += 1;
        let mut held_back = HeldBack::default();
        let (cooldown, now) = (self.settings.cooldown, self.intervals);
        let cooldowns = Cooldowns::new(&self.history, &self.stayed, cooldown, now);
        let mut moves = match self.policy.tier() {
            Some(_) => self.policy.decide(&Offered { observed, cooldowns }),
            None => self.policy.decide(observed),
        };
        let exact = observed.exact();
        moves.retain(|m| self.may_move(m, exact, &mut held_back));
        let paired = retain_pairs(&mut moves);
        self.limit(&mut moves, paired, &mut held_back);
        if let Some(tier) = self.policy.tier() {
            moves.sort_by_key(|m| tier.nodes().contains(&m.to));
        }
        let pages = moves.len() as u64;
        self.rate.take(pages);
        self.budget.reserve(pages, self.settings.page_bytes);
        let messages = self.policy.messages(observed.nodes(), moves.len());
        self.ledger.messages += messages;
        // Where the fastest memory goes to the pages with the most accesses, others leave it wherever they are used.
        let exact = exact && self.policy.tier().is_none();
        self.pending = pending(&moves, observed, exact);
        let half_life = u64::from(self.settings.half_life);
        Decision {
            moves,
            held_back,
            messages,
            halve: half_life > 0 && self.intervals.is_multiple_of(half_life),
        }
    }

    /// Whether each of the last step's moves leaves the node that accesses the page most, until they are recorded; `None`
    /// without exact counts.
    pub fn incorrect(&self) -> impl Iterator<Item = Option<bool>> {
        self.pending.iter().map(|p| p.incorrect)
    }

    /// Records the results of the last step's moves; a second call for the same step has no effect.
    pub fn record(&mut self, now_ns: u64, outcome: &BatchResult) {
        self.advance_clock(now_ns);
        let (pending, mut moved) = (std::mem::take(&mut self.pending), 0);
        if pending.is_empty() {
            return;
        }
        for (i, each) in pending.iter().enumerate() {
            let result = outcome.result(i);
            // No back-off for moves that were not tried, nor for pages that no longer exist.
            let in_cooldown = i < outcome.results.len() && !result.arrived() && result != PageResult::Gone;
            let before = match in_cooldown {
                true => self.stayed.note(each.page, result, self.intervals),
                false => self.stayed.forget(each.page),
            };
            self.ledger.record_result(result, before);
            if result == PageResult::Moved {
                moved += 1;
                self.enter(each);
            }
        }
        let bytes = moved * self.settings.page_bytes;
        self.ledger.bytes += bytes;
        self.budget.spend(outcome.took_ns, bytes);
        self.ledger.spent_ns = self.budget.spent_ns;
    }

    /// Corrects a page whose last move was recorded as [failed](PageResult::Busy) and that was moved after all.
    pub fn arrived_after_all(&mut self, page: PageNumber, from: NodeId, to: NodeId) {
        let before = self.stayed.forget(page);
        self.ledger.record_result(PageResult::Moved, before);
        self.enter(&Pending {
            page,
            from,
            to,
            incorrect: None,
        });
        self.ledger.bytes += self.settings.page_bytes;
    }

    fn enter(&mut self, moved: &Pending) {
        let Pending {
            page,
            from,
            to,
            incorrect,
        } = *moved;
        self.ledger.enter(to, self.history.of(page), incorrect);
        self.ledger.forgotten += self.history.note(page, from, self.intervals);
    }

    /// Budget left for moving, nanoseconds; `None`: unlimited.
    #[must_use]
    pub fn allowance_ns(&self) -> Option<u64> {
        self.budget.left_ns()
    }

    /// Truncates the last step to its first `tried` moves, because they cost more than predicted.
    pub(crate) fn hold_back(&mut self, decision: &mut Decision, tried: usize) {
        let left = (decision.moves.len() - tried) as u64;
        decision.held_back.budget += left;
        self.rate.give_back(left);
        decision.moves.truncate(tried);
        self.pending.truncate(tried);
    }

    /// Drops moves from the last step that are not to be made after all; `kept`: whether the move at this place stays.
    pub(crate) fn drop_moves(&mut self, decision: &mut Decision, kept: impl Fn(usize) -> bool) {
        let before = decision.moves.len();
        let (mut at, mut also) = (0..before, 0..before);
        decision.moves.retain(|_| at.next().is_some_and(&kept));
        self.pending.retain(|_| also.next().is_some_and(&kept));
        self.rate.give_back((before - decision.moves.len()) as u64);
    }

    /// Counts of all moves so far.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The limits that it was created with.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The memory for the pages with the most accesses, if the policy [ranks pages](MigrationPolicy::tier).
    #[must_use]
    pub fn tier(&self) -> Option<&Tier> {
        self.policy.tier()
    }

    /// The policy's name as written.
    #[must_use]
    pub fn policy(&self) -> String {
        self.policy.name()
    }

    /// Measured cost of moving a GB (10⁹ bytes), seconds; the assumed one before anything was measured.
    #[must_use]
    pub fn seconds_per_gb(&self) -> f64 {
        self.budget.seconds_per_gb()
    }

    /// Predicted cost of moving this many pages in one batch, nanoseconds.
    #[must_use]
    pub fn predicted_ns(&self, pages: u64) -> f64 {
        self.budget.predicted_ns(pages * self.settings.page_bytes)
    }

    /// Run time that counts for the budget, nanoseconds.
    #[must_use]
    pub fn run_ns(&self) -> u64 {
        self.budget.run_ns()
    }

    /// Decides nothing until [`Controller::resume`]; the time does not count as run time.
    pub fn pause(&mut self) {
        self.paused = true;
    }

    /// Ends a pause; the next step starts the clock again.
    pub fn resume(&mut self) {
        self.paused = false;
        self.last_ns = None;
    }

    /// Whether it is paused.
    #[must_use]
    pub fn paused(&self) -> bool {
        self.paused
    }

    fn discard_pending(&mut self, now_ns: u64) {
        if self.pending.is_empty() {
            self.advance_clock(now_ns);
        } else {
            self.record(now_ns, &BatchResult::default());
        }
    }

    /// Advances the clock to `now_ns`, unless that is in the past.
    fn advance_clock(&mut self, now_ns: u64) {
        let passed = now_ns.saturating_sub(self.last_ns.replace(now_ns).unwrap_or(now_ns));
        if !self.paused {
            self.budget.add_run_time(passed);
            self.rate.add_run_time(passed);
        }
    }

    /// Whether a proposal is significant and its page not in cooldown; otherwise counts why.
    fn may_move(&self, each: &Move, exact: bool, held_back: &mut HeldBack) -> bool {
        let past = self.history.of(each.page);
        let moves = past.map_or(0, |p| p.moves);
        let few = each.reason.evidence < f64::from(self.settings.minimum_samples);
        if few || !(exact || is_significant(&each.reason, moves)) {
            held_back.few_samples += 1;
            return false;
        }
        let in_cooldown = self.cooldowns().contains(each.page);
        held_back.resting += u64::from(in_cooldown);
        !in_cooldown
    }

    fn cooldowns(&self) -> Cooldowns<'_> {
        Cooldowns::new(
            &self.history,
            &self.stayed,
            self.settings.cooldown,
            self.intervals,
        )
    }

    /// Truncates the moves to what rate and budget allow, keeping those of most benefit, and both of each pair.
    fn limit(&self, moves: &mut Vec<Move>, paired: bool, held_back: &mut HeldBack) {
        let rate = self.rate.allows();
        let batches = 1 + u32::from(paired);
        let affordable = self.budget.affordable(self.settings.page_bytes, batches);
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
}

/// Which pages are in cooldown.
struct Cooldowns<'a> {
    history: &'a History,
    stayed: &'a FailedPages,
    intervals: u32,
    now: u64,
}

impl<'a> Cooldowns<'a> {
    fn new(history: &'a History, stayed: &'a FailedPages, intervals: u32, now: u64) -> Self {
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
}

/// Pages with what the controller knows of their cooldowns.
struct Offered<'a> {
    observed: &'a dyn Observed,
    cooldowns: Cooldowns<'a>,
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

/// The facts about the moves that [`Controller::record`] needs. If counts are `exact`, a move is incorrect when the page's
/// home accessed it more than any other node did.
fn pending(moves: &[Move], observed: &dyn Observed, exact: bool) -> Vec<Pending> {
    let mut counts = vec![0; observed.nodes()];
    let mut wrong = |m: &Move| {
        observed.counts(m.index, &mut counts);
        let home = std::mem::take(&mut counts[m.from.index()]);
        counts.iter().all(|c| *c < home)
    };
    let each = |m: &Move| Pending {
        page: m.page,
        from: m.from,
        to: m.to,
        incorrect: exact.then(|| wrong(m)),
    };
    moves.iter().map(each).collect()
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

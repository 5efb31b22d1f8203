//! One interval of the control loop: decide, move, record; and the account of all moves.

// Why: docs/decisions/live-loop.md

use crate::budget::{Budget, Rate};
use crate::exchanges::Exchanges;
use crate::failed_pages::FailedPages;
use crate::filter::{Cooldowns, Limits, Offered, by_benefit, filter};
use crate::ledger::History;
use crate::{Actuator, BatchResult, HeldBack, Ledger, Observer, PageResult, Settings};
use nodewise_machine::NodeId;
use nodewise_placement::{MigrationPolicy, Move, Observed, Tier};
use nodewise_profile::PageNumber;

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

/// The decision and the results of one interval.
#[derive(Clone, Debug)]
pub struct Interval {
    /// The moves that were decided, without those into a tier for which there was no room.
    pub decision: Decision,
    /// Results of the moves that were tried.
    pub outcome: BatchResult,
}

/// A move whose result is not known yet.
#[derive(Clone, Copy, Debug)]
struct Pending {
    page: PageNumber,
    from: NodeId,
    to: NodeId,
    /// Whether the home accessed the page most; `None` without exact counts.
    incorrect: Option<bool>,
    /// The page that leaves fast memory for this one.
    leaves_for_it: Option<PageNumber>,
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
    exchanges: Exchanges,
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
            exchanges: Exchanges::default(),
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
        let (cooldown, now) = (self.settings.cooldown, self.intervals);
        let cooldowns = &Cooldowns::new(&self.history, &self.stayed, cooldown, now);
        let mut moves = match self.policy.tier() {
            Some(_) => self.policy.decide(&Offered { observed, cooldowns }),
            None => self.policy.decide(observed),
        };
        let exact = observed.exact();
        let limits = Limits {
            cooldowns,
            minimum_samples: f64::from(self.settings.minimum_samples),
            rate: &self.rate,
            budget: &self.budget,
            page_bytes: self.settings.page_bytes,
        };
        let mut held_back = filter(&mut moves, exact, &limits);
        if let Some(tier) = self.policy.tier() {
            moves.sort_by_key(|m| tier.nodes().contains(&m.to));
            held_back.no_gain = self.hold_exchanges(&mut moves, observed);
        }
        let pages = moves.len() as u64;
        self.rate.take(pages);
        self.budget.reserve(pages, self.settings.page_bytes);
        let messages = self.policy.messages(observed.nodes(), moves.len());
        self.ledger.messages += messages;
        // Where the fastest memory goes to the pages with the most accesses, others leave it wherever they are used.
        let exact = exact && self.policy.tier().is_none();
        self.pending = pending(&moves, observed, exact, self.policy.tier());
        let half_life = u64::from(self.settings.half_life);
        Decision {
            moves,
            held_back,
            messages,
            halve: half_life > 0 && self.intervals.is_multiple_of(half_life),
        }
    }

    /// Drops exchanges while they do not pay, follows what they would have exchanged, and returns how many moves were dropped.
    fn hold_exchanges(&mut self, moves: &mut Vec<Move>, observed: &dyn Observed) -> u64 {
        if self.exchanges.pay() {
            return 0;
        }
        for each in moves.iter() {
            if let Some(leaves) = leaves_for(each, self.policy.tier(), observed) {
                self.exchanges.follow(each.page, leaves);
            }
        }
        let before = moves.len();
        moves.retain(|m| m.reason.partner.is_none());
        (before - moves.len()) as u64
    }

    /// Takes in samples, each with its page, the node that accessed it and its weight: for policies with a
    /// [tier](MigrationPolicy::tier), exchanges of pages are judged by the accesses that follow. Without samples, as where
    /// counts are exact, they are not judged.
    pub fn sampled(&mut self, samples: &[(PageNumber, NodeId, u32)]) {
        if self.policy.tier().is_some() {
            for (page, _, weight) in samples {
                self.exchanges.sampled(*page, *weight);
            }
        }
    }

    /// As [`Controller::sampled`], of pages that have one count together.
    pub fn sampled_together(&mut self, pages: &[PageNumber], weight: u32) {
        if self.policy.tier().is_some() {
            self.exchanges.sampled_together(pages, weight);
        }
    }

    /// Whether each of the last step's moves leaves the node that accesses the page most, until they are recorded; `None`
    /// without exact counts.
    pub fn incorrect(&self) -> impl Iterator<Item = Option<bool>> {
        self.pending.iter().map(|p| p.incorrect)
    }

    /// Enters the results of the last step's moves: in the ledger, in what moving costs, and in the history of pages that moved.
    /// A page that stayed where it was is in cooldown, unless it is gone or was not tried. A second call for the same step has no
    /// effect.
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
                self.exchanges.forget(each.page);
                if let Some(leaves) = each.leaves_for_it {
                    self.exchanges.follow(each.page, leaves);
                }
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
            leaves_for_it: None,
        });
        self.ledger.bytes += self.settings.page_bytes;
    }

    fn enter(&mut self, moved: &Pending) {
        let Pending {
            page,
            from,
            to,
            incorrect,
            ..
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
    fn hold_back(&mut self, decision: &mut Decision, tried: usize) {
        let left = (decision.moves.len() - tried) as u64;
        decision.held_back.budget += left;
        self.rate.give_back(left);
        decision.moves.truncate(tried);
        self.pending.truncate(tried);
    }

    /// Drops moves from the last step that are not to be made after all; `kept`: whether the move at this place stays.
    fn drop_moves(&mut self, decision: &mut Decision, kept: impl Fn(usize) -> bool) {
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
}

/// The page that leaves a tier for the one of this move, which comes into it.
fn leaves_for(comes: &Move, tier: Option<&Tier>, observed: &dyn Observed) -> Option<PageNumber> {
    let partner = comes
        .reason
        .partner
        .filter(|_| tier.is_some_and(|t| t.nodes().contains(&comes.to)))?;
    Some(observed.page(partner))
}

/// The facts about the moves that [`Controller::record`] needs. If counts are `exact`, a move is incorrect when the page's
/// home accessed it more than any other node did.
fn pending(moves: &[Move], observed: &dyn Observed, exact: bool, tier: Option<&Tier>) -> Vec<Pending> {
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
        leaves_for_it: leaves_for(m, tier, observed),
    };
    moves.iter().map(each).collect()
}

/// Runs one interval: the policy proposes and the filter drops (`step`); the rest is moved in growing parts
/// within the budget (`make`); results are entered (`record`); the observer learns which pages are elsewhere or gone, halves its
/// counts if it is time, and begins the next interval. `now` returns the time in nanoseconds from any origin.
pub fn run_interval(
    controller: &mut Controller,
    now: &mut dyn FnMut() -> u64,
    observer: &mut dyn Observer,
    actuator: &mut dyn Actuator,
) -> Interval {
    let mut decision = controller.step(now(), observer.observed());
    let outcome = match decision.moves.is_empty() {
        true => BatchResult::default(),
        false => make(controller, &mut decision, actuator),
    };
    controller.hold_back(&mut decision, outcome.results.len());
    controller.record(now(), &outcome);
    let mut gone = Vec::new();
    for (i, each) in decision.moves.iter().enumerate() {
        match outcome.result(i) {
            PageResult::Gone => gone.push(each.page),
            result if result.arrived() => observer.moved(each),
            _ => {}
        }
    }
    if !gone.is_empty() {
        gone.sort_unstable(); // what leaves a tier comes before what comes into it
        observer.forget(&gone);
    }
    if decision.halve {
        observer.halve();
    }
    observer.begin();
    Interval { decision, outcome }
}

/// Size of the first part of a batch, bytes: measures the current cost of moving.
const TRIAL_BYTES: u64 = 256 << 10;
/// Largest factor by which a part exceeds the part before.
const GROWTH: f64 = 8.0;

/// Makes the moves in parts of growing size, each of which takes at most half of the remaining budget by the measured
/// cost of the parts before. Moves without a result were not tried.
/// `allowed_ns`: what they may cost. `scarce`: whether they go to memory that is full as a rule.
fn carry_out(
    controller: &Controller,
    moves: &[Move],
    allowed_ns: Option<u64>,
    scarce: bool,
    actuator: &mut dyn Actuator,
) -> BatchResult {
    let Some(allowed) = allowed_ns else {
        return apply(moves, scarce, actuator);
    };
    let trial = (TRIAL_BYTES / controller.settings().page_bytes).max(1) as usize;
    let (mut all, mut next) = (BatchResult::default(), trial);
    while next >= trial && all.results.len() < moves.len() {
        let rest = &moves[all.results.len()..];
        let part = &rest[..next.min(rest.len())];
        let outcome = apply(part, scarce, actuator);
        all.results.extend((0..part.len()).map(|i| outcome.result(i)));
        all.took_ns = all.took_ns.saturating_add(outcome.took_ns);
        let (done, left) = (
            all.results.len() as f64,
            allowed.saturating_sub(all.took_ns) as f64,
        );
        next = (0.5 * left * done / all.took_ns.max(1) as f64).min(GROWTH * done) as usize;
    }
    all
}

/// Makes moves. To scarce memory only those for which there is room now, of most benefit first: other programs allocate memory
/// meanwhile, and a move that finds none is a warning in the kernel's log.
fn apply(moves: &[Move], scarce: bool, actuator: &mut dyn Actuator) -> BatchResult {
    let Some(free) = scarce.then(|| actuator.free()).flatten() else {
        return actuator.apply(moves);
    };
    let fits = fitting(moves, free);
    let each = moves.iter().zip(&fits).filter(|(_, fits)| **fits);
    let tried: Vec<Move> = each.map(|(each, _)| *each).collect();
    let outcome = match tried.is_empty() {
        true => BatchResult::default(),
        false => actuator.apply(&tried),
    };
    let mut results = (0..tried.len()).map(|i| outcome.result(i));
    let result = |fits: &bool| fits.then(|| results.next()).flatten().unwrap_or(PageResult::Full);
    BatchResult {
        results: fits.iter().map(result).collect(),
        took_ns: outcome.took_ns,
    }
}

/// Makes the moves of a decision. What leaves a tier is moved first, so that there is room for what comes into it; no more
/// comes than there is room for then.
fn make(controller: &mut Controller, decision: &mut Decision, actuator: &mut dyn Actuator) -> BatchResult {
    let leaves = |m: &Move| {
        controller
            .tier()
            .is_some_and(|tier| !tier.nodes().contains(&m.to))
    };
    let leaving = decision.moves.partition_point(leaves);
    let (allowed, ranks) = (controller.allowance_ns(), controller.tier().is_some());
    if leaving == 0 {
        return carry_out(controller, &decision.moves, allowed, ranks, actuator);
    }
    let share = if leaving < decision.moves.len() { 2 } else { 1 };
    let (first, for_first) = (&decision.moves[..leaving], allowed.map(|ns| ns / share));
    let mut all = carry_out(controller, first, for_first, false, actuator);
    if all.results.len() < leaving || leaving == decision.moves.len() {
        return all;
    }
    if let Some(free) = actuator.free() {
        let fit = fitting(&decision.moves[leaving..], free);
        controller.drop_moves(decision, |i| i < leaving || fit[i - leaving]);
    }
    let left = allowed.map(|ns| ns.saturating_sub(all.took_ns));
    let outcome = carry_out(controller, &decision.moves[leaving..], left, true, actuator);
    all.results.extend(outcome.results);
    all.took_ns = all.took_ns.saturating_add(outcome.took_ns);
    all
}

/// Which of the moves find room on their nodes, those of most benefit first.
fn fitting(moves: &[Move], mut free: Vec<u64>) -> Vec<bool> {
    let mut order: Vec<usize> = (0..moves.len()).collect();
    order.sort_unstable_by(|a, b| by_benefit(&moves[*a], &moves[*b]));
    let mut fits = vec![false; moves.len()];
    for i in order {
        let room = free.get_mut(moves[i].to.index()).filter(|room| **room > 0);
        fits[i] = room.is_some();
        room.into_iter().for_each(|room| *room -= 1);
    }
    fits
}

#[cfg(test)]
mod tests;

//! Which proposals are made true, and when.

use crate::budget::{Budget, Rate};
use crate::ledger::History;
use crate::stayed::Stayed;
use crate::{BatchResult, Ledger, PageResult, Settings};
use nodewise_machine::NodeId;
use nodewise_placement::{MigrationPolicy, Move, Observed, Reason};
use nodewise_profile::PageNumber;
use std::cmp::Ordering;

/// Proposals of one step that were not taken up, by the first reason that applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeldBack {
    /// Too few accesses to judge the page by, or to tell two nodes' from chance.
    pub few_samples: u64,
    /// The page moved a short while ago, or could not.
    pub resting: u64,
    /// Too many pages for this time.
    pub rate: u64,
    /// Too costly for the run time so far.
    pub budget: u64,
}

impl HeldBack {
    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.few_samples + self.resting + self.rate + self.budget
    }
}

/// What to do now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// Ascending by page.
    pub moves: Vec<Move>,
    /// What the policy proposed besides.
    pub held_back: HeldBack,
    /// Messages between nodes that these moves cost.
    pub messages: u64,
    /// A half-life has passed: counts are to be halved after the moves.
    pub halve: bool,
}

/// A move on its way.
#[derive(Clone, Copy, Debug)]
struct Pending {
    page: PageNumber,
    from: NodeId,
    to: NodeId,
    /// Whether it is wrong, as far as exact counts say.
    incorrect: Option<bool>,
}

/// Asks a policy once an interval and keeps it within limits.
///
/// Its time is that of the caller, summed up from one call to the next: what goes backwards adds
/// nothing, and neither does a pause.
pub struct Controller {
    policy: Box<dyn MigrationPolicy>,
    settings: Settings,
    ledger: Ledger,
    history: History,
    stayed: Stayed,
    budget: Budget,
    rate: Rate,
    last_ns: Option<u64>,
    intervals: u64,
    paused: bool,
    pending: Vec<Pending>,
}

impl Controller {
    /// Under way from the first step on.
    #[must_use]
    pub fn new(policy: Box<dyn MigrationPolicy>, settings: Settings) -> Self {
        Self {
            policy,
            ledger: Ledger::default(),
            history: History::new(settings.remembered_pages),
            stayed: Stayed::new(settings.remembered_pages, settings.rest),
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

    /// What to move now, `now_ns` after any origin. Moves of an earlier step that nobody has spoken of
    /// with [`Controller::done`] since are taken for left.
    pub fn step(&mut self, now_ns: u64, observed: &dyn Observed) -> Decision {
        self.settle_left(now_ns);
        if self.paused {
            return Decision::default();
        }
        self.intervals += 1;
        let mut held_back = HeldBack::default();
        let mut moves = self.policy.decide(observed);
        let exact = observed.exact();
        moves.retain(|m| self.ready(m, exact, &mut held_back));
        self.limit(&mut moves, &mut held_back);
        let pages = moves.len() as u64;
        self.rate.take(pages);
        self.budget.reserve(pages, self.settings.page_bytes);
        let messages = self.policy.messages(observed.nodes(), moves.len());
        self.ledger.messages += messages;
        self.pending = pending(&moves, observed);
        let half_life = u64::from(self.settings.half_life);
        Decision {
            moves,
            held_back,
            messages,
            halve: half_life > 0 && self.intervals.is_multiple_of(half_life),
        }
    }

    /// What became of the last step's moves; a second call without a step in between says nothing.
    pub fn record(&mut self, now_ns: u64, outcome: &BatchResult) {
        self.pass(now_ns);
        let (pending, mut moved) = (std::mem::take(&mut self.pending), 0);
        if pending.is_empty() {
            return;
        }
        for (i, each) in pending.iter().enumerate() {
            let result = outcome.result(i);
            // What nobody tried may be tried at once, and what is gone comes back as another page.
            let rests = i < outcome.results.len() && !result.arrived() && result != PageResult::Gone;
            let before = match rests {
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

    /// A page that had [stayed](PageResult::Busy) when it was last to move turned out to have come.
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

    /// Time that may be spent on moving now, nanoseconds; `None`: any.
    #[must_use]
    pub fn allowance_ns(&self) -> Option<u64> {
        self.budget.left_ns()
    }

    /// Of the last step's moves only the first `tried` were: they cost more than predicted.
    pub(crate) fn hold_back(&mut self, decision: &mut Decision, tried: usize) {
        let left = (decision.moves.len() - tried) as u64;
        decision.held_back.budget += left;
        self.rate.give_back(left);
        decision.moves.truncate(tried);
        self.pending.truncate(tried);
    }

    /// What was done so far.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The limits.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The policy's name as written.
    #[must_use]
    pub fn policy(&self) -> String {
        self.policy.name()
    }

    /// What moving a GB costs by what was measured so far, seconds.
    #[must_use]
    pub fn seconds_per_gb(&self) -> f64 {
        self.budget.seconds_per_gb()
    }

    /// What moving so many pages at once is taken to cost by what was measured so far, nanoseconds.
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

    /// Goes on.
    pub fn resume(&mut self) {
        self.paused = false;
        self.last_ns = None;
    }

    /// Whether it is paused.
    #[must_use]
    pub fn paused(&self) -> bool {
        self.paused
    }

    fn settle_left(&mut self, now_ns: u64) {
        if self.pending.is_empty() {
            self.pass(now_ns);
        } else {
            self.record(now_ns, &BatchResult::default());
        }
    }

    /// Time passes, if it does.
    fn pass(&mut self, now_ns: u64) {
        let passed = now_ns.saturating_sub(self.last_ns.replace(now_ns).unwrap_or(now_ns));
        if !self.paused {
            self.budget.ran(passed);
            self.rate.ran(passed);
        }
    }

    /// Whether a page may move at all.
    fn ready(&self, each: &Move, exact: bool, held_back: &mut HeldBack) -> bool {
        let past = self.history.of(each.page);
        let moves = past.map_or(0, |p| p.moves);
        let few = each.reason.evidence < f64::from(self.settings.minimum_samples);
        if few || !(exact || beyond_chance(&each.reason, moves)) {
            held_back.few_samples += 1;
            return false;
        }
        let moved = past.is_some_and(|past| {
            let rest = u64::from(self.settings.rest) << (past.moves - 1).min(31);
            past.age(self.intervals) <= rest
        });
        let rests = moved || self.stayed.rests(each.page, self.intervals);
        held_back.resting += u64::from(rests);
        !rests
    }

    /// Keeps the most worthwhile ones, as many as rate and budget allow.
    fn limit(&self, moves: &mut Vec<Move>, held_back: &mut HeldBack) {
        let rate = self.rate.allows();
        let most = rate.min(self.budget.affordable(self.settings.page_bytes));
        let wanted = moves.len() as u64;
        if wanted <= most {
            return;
        }
        held_back.rate = wanted.saturating_sub(rate);
        held_back.budget = wanted - most - held_back.rate;
        if most > 0 {
            moves.select_nth_unstable_by(most as usize - 1, worthwhile_first);
        }
        moves.truncate(most as usize);
        moves.sort_unstable_by_key(|m| m.index);
    }
}

/// The 95 % quantile of the normal distribution.
const CHANCE: f64 = 1.644_854;

/// Whether samples would show so much more from the new node than from the home only about one time in twenty, if
/// both used the page alike. As each page is asked again and again, one that has moved twice has to be surer: twice
/// the variance. Where pages are spread nobody says that the new node uses it more.
fn beyond_chance(reason: &Reason, moves: u16) -> bool {
    let home = reason.home_count.unwrap_or(0.0);
    let (more, both) = (reason.to_count - home, reason.to_count + home);
    let doubt = if moves < 2 { 1.0 } else { 2.0 };
    reason.regardless || more * more > CHANCE * CHANCE * doubt * both
}

/// By how much the new node's accesses exceed the home's, or what they had to where that is unknown;
/// then by what the judgement rests on.
fn worthwhile_first(a: &Move, b: &Move) -> Ordering {
    let gain = |m: &Move| (m.reason.to_count - m.reason.home_count.unwrap_or(m.reason.against)).max(0.0);
    let better = gain(b).total_cmp(&gain(a));
    let surer = || b.reason.evidence.total_cmp(&a.reason.evidence);
    better.then_with(surer).then(a.index.cmp(&b.index))
}

/// What of the moves is needed until their outcome is known. One is wrong when the page's home accessed
/// it more than any other node did.
fn pending(moves: &[Move], observed: &dyn Observed) -> Vec<Pending> {
    let mut counts = vec![0; observed.nodes()];
    let mut wrong = |m: &Move| {
        observed.counts(m.index, &mut counts);
        let home = std::mem::take(&mut counts[m.from.index()]);
        counts.iter().all(|c| *c < home)
    };
    let exact = observed.exact();
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
            let holds = [0, 1, 2, 3, 9].map(|moves| beyond_chance(&reason, moves));
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
        assert!(beyond_chance(&spread, 9));
        // Of 20 fair draws, by the binomial: how often the other node's are enough.
        let choose = |k: u64| (0..k).fold(1.0, |c, i| c * (20 - i) as f64 / (i + 1) as f64);
        let enough = (0..=20).filter(|k| *k > 10 && says(*k as f64, 20.0 - *k as f64));
        let chance = enough.map(choose).sum::<f64>() / f64::from(1 << 20);
        assert!((0.02..0.07).contains(&chance), "{chance}");
    }
}

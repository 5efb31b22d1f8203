//! Which proposals are made true, and when.

use crate::{Ledger, Outcome, Settings};
use nodewise_placement::{MigrationPolicy, Move, Observed};

/// Proposals of one step that were not taken up, by the first reason that applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeldBack {
    /// Too few accesses to judge the page by.
    pub few_samples: u64,
    /// The page moved a short while ago.
    pub resting: u64,
    /// Too many pages for this time.
    pub rate: u64,
    /// Too costly for the run time so far.
    pub budget: u64,
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

/// Asks a policy once an interval and keeps it within limits.
pub struct Controller {
    policy: Box<dyn MigrationPolicy>,
    settings: Settings,
    ledger: Ledger,
    paused: bool,
}

impl Controller {
    /// Under way from the first step on.
    #[must_use]
    pub fn new(policy: Box<dyn MigrationPolicy>, settings: Settings) -> Self {
        Self {
            policy,
            settings,
            ledger: Ledger::default(),
            paused: false,
        }
    }

    /// What to move now. `now_ns` may go backwards: no time has passed then.
    pub fn step(&mut self, _now_ns: u64, observed: &dyn Observed) -> Decision {
        if self.paused {
            return Decision::default();
        }
        Decision {
            moves: self.policy.decide(observed),
            ..Decision::default()
        }
    }

    /// What became of the last step's moves.
    pub fn done(&mut self, _now_ns: u64, _outcome: &Outcome) {}

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
        self.settings.seconds_per_gb
    }

    /// Decides nothing until [`Controller::resume`]; the time does not count as run time.
    pub fn pause(&mut self) {
        self.paused = true;
    }

    /// Goes on.
    pub fn resume(&mut self) {
        self.paused = false;
    }

    /// Whether it is paused.
    #[must_use]
    pub fn paused(&self) -> bool {
        self.paused
    }
}

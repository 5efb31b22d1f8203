//! One turn of the loop.

use crate::{Controller, Decision, Fate, Outcome};
use nodewise_placement::{Move, Observed};

/// What observes a program: live, simulated, replayed.
pub trait Observer {
    /// What was seen so far, older counts discounted.
    fn observed(&self) -> &dyn Observed;

    /// A page is somewhere else now; its counts begin anew, as its new home has seen none of them.
    fn moved(&mut self, moved: &Move);

    /// Halves all counts.
    fn halve(&mut self);

    /// A new interval begins.
    fn begin(&mut self) {}
}

/// What moves pages: Linux, the simulator, nothing.
pub trait Actuator {
    /// Makes these moves, ascending by page, as far as it can.
    fn apply(&mut self, moves: &[Move]) -> Outcome;
}

/// Moves nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct DryRun;

impl Actuator for DryRun {
    fn apply(&mut self, moves: &[Move]) -> Outcome {
        Outcome {
            fates: vec![Fate::Left; moves.len()],
            took_ns: 0,
        }
    }
}

/// What one turn decided and did.
#[derive(Clone, Debug)]
pub struct Interval {
    /// What was to be done.
    pub decision: Decision,
    /// What was.
    pub outcome: Outcome,
}

/// Decide, move, learn; `now` says the time, nanoseconds from any origin.
pub fn run_interval(
    controller: &mut Controller,
    now: &mut dyn FnMut() -> u64,
    observer: &mut dyn Observer,
    actuator: &mut dyn Actuator,
) -> Interval {
    let decision = controller.step(now(), observer.observed());
    let outcome = if decision.moves.is_empty() {
        Outcome::default()
    } else {
        actuator.apply(&decision.moves)
    };
    controller.done(now(), &outcome);
    for (i, each) in decision.moves.iter().enumerate() {
        if matches!(outcome.fate(i), Fate::Moved | Fate::There) {
            observer.moved(each);
        }
    }
    if decision.halve {
        observer.halve();
    }
    observer.begin();
    Interval { decision, outcome }
}

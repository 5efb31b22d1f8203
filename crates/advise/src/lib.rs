//! The verdict: which placement is worth it, which object is to blame, what to change.
//!
//! **Purpose.** From a simulation to one honest sentence ("leave it alone" among the possible ones),
//! and from histogram, first touches and regions to blame and a source snippet per object.
//!
//! **Constraints.** Pure. A gain is claimed only where the whole predicted range lies on its side;
//! a stock command line is preferred when it comes within [`CLOSE`] of the best placement. Of sampled
//! profiles nothing is claimed that needs counts: no time, no load, no snippet.
//!
//! **Non-goals.** Printing (see `nodewise-report`), measuring (see the `tune` command).

#![forbid(unsafe_code)]

mod advice;
mod blame;
mod distribution;
mod matched;
mod next;
mod sampled;
mod snippet;
mod square;
mod stock;
mod verdict;

pub use blame::{Blame, FirstTouched, Pass, UsedBy, blame};
pub use distribution::{Distribution, schedule};
pub use matched::Matched;
pub use next::Asked;
pub use stock::{StockCommand, omp_places, shell_line, stock_command};
pub use verdict::{CLOSE, Outcome, Verdict, WORTH_IT, verdict};

use nodewise_analysis::Usage;
use nodewise_placement::{Context, Mapping};
use nodewise_simulation::Simulation;

/// Everything there is to say about a profile on a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// What to do, in one sentence.
    pub verdict: Verdict,
    /// Objects, the one that costs most first.
    pub blame: Vec<Blame>,
}

/// Verdict and blame; `first_touch` is the mapping of `simulation.predictions[0]`, `matched` the
/// program with matching loops, `asked` goes into the command to copy.
#[must_use]
pub fn advise(
    context: &Context<'_>,
    simulation: &Simulation,
    first_touch: &Mapping,
    usage: &Usage,
    matched: Option<&Matched>,
    asked: &Asked,
) -> Advice {
    let mut blame = blame(context, simulation, first_touch, usage, matched);
    if context.profile.meta.observer.is_sampled() {
        sampled::restate(context, &mut blame);
    }
    Advice {
        verdict: verdict(context, simulation, &blame, matched, asked),
        blame,
    }
}

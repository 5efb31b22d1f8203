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
mod spot;
mod square;
mod stock;
mod verdict;

pub use blame::{Blame, FirstTouched, Pass, UsedBy, blame};
pub use distribution::{Distribution, schedule};
pub use matched::Matched;
pub use next::Asked;
pub use spot::WHAT as FEW_LINES;
pub use stock::{StockCommand, omp_places, shell_line, stock_command};
pub use verdict::{CLOSE, Outcome, Verdict, WORTH_IT, verdict};

use nodewise_analysis::{Samples, Spot, Usage, spots};
use nodewise_placement::{Context, Mapping};
use nodewise_simulation::Simulation;

/// Everything there is to say about a profile on a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// What to do, in one sentence.
    pub verdict: Verdict,
    /// Objects, the one that costs most first.
    pub blame: Vec<Blame>,
    /// What samples say, where accesses are samples.
    pub samples: Option<Samples>,
    /// Pages that several threads use, most of whose accesses are to a few lines.
    pub spots: Vec<Spot>,
}

/// Verdict and blame; `first_touch` is the mapping of `simulation.predictions[0]`, `matched` the
/// program with matching loops, `asked` goes into the command to copy; `samples` is what a profile of samples says.
#[must_use]
pub fn advise(
    context: &Context<'_>,
    simulation: &Simulation,
    first_touch: &Mapping,
    usage: &Usage,
    matched: Option<&Matched>,
    asked: &Asked,
    samples: Option<Samples>,
) -> Advice {
    let mut blame = blame(context, simulation, first_touch, usage, matched);
    let spots = match &samples {
        Some(samples) => {
            sampled::restate(samples, &mut blame);
            Vec::new()
        }
        None => spots(context.histogram),
    };
    spot::mark(context.histogram, &spots, &mut blame);
    let program = samples.as_ref().map(|s| &s.program);
    let mut verdict = verdict(context, simulation, &blame, matched, asked, program);
    verdict.reasons.extend(spot::reason(&spots));
    Advice {
        verdict,
        blame,
        samples,
        spots,
    }
}

//! The conclusion about a program.

use nodewise_simulation::Range;

/// The kinds of verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A placement is predicted to pay.
    Place,
    /// A stock command line does as well as the best placement.
    Stock,
    /// No placement is predicted to pay, but loops that match their data are.
    Match,
    /// No placement is predicted to pay.
    LeaveAlone,
    /// The program is not bound by memory.
    NotMemoryBound,
    /// Too little was seen to say.
    Unknown,
}

/// The conclusion, and what to do next.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Its kind.
    pub outcome: Outcome,
    /// The policy it recommends; `first-touch` when nothing is to be done.
    pub policy: String,
    /// Predicted gain of that policy over first-touch: speed-up minus one.
    pub gain: Range,
    /// One sentence.
    pub sentence: String,
    /// A command to copy.
    pub next: Option<String>,
    /// What the sentence rests on, a sentence each.
    pub reasons: Vec<String>,
}

//! The verdict: the conclusion about a program.

use nodewise_simulation::Range;
use serde::Serialize;

/// The kind of a verdict; its JSON value is the name in kebab case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum VerdictKind {
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
    /// Whether a placement pays depends on an unknown quantity; the verdict names it, and how to determine it.
    Undecided,
    /// Too little was recorded for a verdict.
    Unknown,
}

impl VerdictKind {
    /// Whether the verdict recommends a change.
    #[must_use]
    pub fn is_to_act(self) -> bool {
        matches!(self, Self::Place | Self::Stock | Self::Match)
    }
}

/// The conclusion about a program, and the command to run next.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// The kind of conclusion.
    pub outcome: VerdictKind,
    /// The policy it recommends; `first-touch` when nothing is to be done.
    pub policy: String,
    /// Predicted gain of that policy over first-touch: speed-up minus one.
    #[serde(skip)]
    pub gain: Range,
    /// The conclusion in one sentence.
    pub sentence: String,
    /// A command to copy.
    pub next: Option<String>,
    /// The next steps in words, if no command can be copied unchanged.
    pub then: Option<String>,
    /// The reasons for the conclusion, one sentence each.
    pub reasons: Vec<String>,
}

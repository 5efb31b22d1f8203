//! What is written to the file; keys are in `docs/validate.md`. `tools/merge-validation` reads it.

use crate::{Ran, Rule, Site, Summary};
use nodewise_tune::NotScored;
use serde::Serialize;
use std::collections::BTreeMap;

/// Version of the document.
pub const SCHEMA: u32 = 1;
/// What the file is.
pub(crate) const KIND: &str = "nodewise-validation";

/// How the figures were obtained, for readers of the file without this version of nodewise.
pub(crate) const HOW: [(&str, &str); 8] = [
    (
        "machine.toml",
        "as `nodewise topo --measure --quick` measures it, or the file that was given; its sources \
         say which figure is what",
    ),
    (
        "rule",
        "sizes follow caches, memory, CPUs and the time limit, and were fixed before anything ran",
    ),
    (
        "predicted_seconds",
        "from the instrumented build's recording and the machine alone, before any timed run: the typical value; \
         predicted_range is where the model's unknowns may take it",
    ),
    (
        "seconds",
        "wall time of each run of the plain build under `nodewise run`, its start included; \
         placements in turn, every other round backwards",
    ),
    (
        "calibrated",
        "predicted again with the measured median of first-touch known: that time over the predicted speed-up",
    ),
    (
        "pages",
        "bytes by node of the mapping that was predicted, and of an untimed run in numa_maps; \
         a point counts if they agree by 90 %",
    ),
    (
        "error",
        "predicted over the measured median, less one; summed up as sizes: median and 90th percentile",
    ),
    (
        "pairs",
        "two placements of a program whose medians differ by 5 %: \
         right if predicted_seconds differ by 1 % in the same direction",
    ),
];

/// Everything that was found on one machine.
#[derive(Clone, Debug, Serialize)]
pub struct Document {
    /// What this is: `nodewise-validation`.
    pub kind: &'static str,
    /// Version of these keys: [`SCHEMA`].
    pub schema: u32,
    /// Version of nodewise that ran.
    pub nodewise: &'static str,
    /// Day of the measurements, UTC.
    pub date: String,
    /// Whether times are those of a virtual machine or an emulator: then they say nothing about hardware.
    #[serde(rename = "virtual")]
    pub is_virtual: bool,
    /// Why predictions are not held against measurements.
    pub not_scored: Option<NotScored>,
    /// This machine, as its kernel shows it.
    pub site: Site,
    /// What was predicted for.
    pub machine: DescribedMachine,
    /// What sizes followed from.
    pub rule: Rule,
    /// How it was run.
    pub settings: Settings,
    /// Each program, in order.
    pub programs: Vec<Ran>,
    /// Programs that there was no time for.
    pub left_out: Vec<&'static str>,
    /// How far predictions were off; none where they are not scored.
    pub summary: Option<Summary>,
    /// Remarks that are necessary to interpret the figures.
    pub notes: Vec<String>,
    /// Duration of it all, the measurement of the machine included.
    pub seconds: f64,
    /// How figures were got, by their key.
    pub how: BTreeMap<&'static str, &'static str>,
}

/// The machine that was predicted for.
#[derive(Clone, Debug, Serialize)]
pub struct DescribedMachine {
    /// Its name, made of the processor's model.
    pub name: String,
    /// `measured` here and now, or from a `file`.
    pub how: &'static str,
    /// The machine file's text.
    pub toml: String,
    /// Whether time was up before all was measured.
    pub cut_short: bool,
}

/// How programs were run.
#[derive(Clone, Debug, Serialize)]
pub struct Settings {
    /// Threads of every program, one for each CPU.
    pub threads: usize,
    /// How they were bound.
    pub affinity: &'static str,
    /// Rounds that were asked for.
    pub runs: u32,
    /// No further round started after this.
    pub time_limit_seconds: f64,
}

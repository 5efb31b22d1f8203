//! The document that `nodewise validate` writes; the keys are documented in `docs/validate.md`.
//! `tools/merge-validation` reads it.

use crate::{ProgramResult, Rule, Site, Summary};
use nodewise_tune::NotScored;
use serde::Serialize;
use std::collections::BTreeMap;

/// Version of the document's keys.
pub const SCHEMA: u32 = 1;
/// Value of the key `kind`, which identifies the file format.
pub(crate) const KIND: &str = "nodewise-validation";

/// How the figures were obtained, by key, for readers of the file who do not have this version of nodewise.
pub(crate) const METHODS: [(&str, &str); 8] = [
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

/// The results of a validation on one machine.
#[derive(Clone, Debug, Serialize)]
pub struct Document {
    /// Name of the file format: `nodewise-validation`.
    pub kind: &'static str,
    /// Version of these keys: [`SCHEMA`].
    pub schema: u32,
    /// Version of nodewise that made the measurements.
    pub nodewise: &'static str,
    /// Day of the measurements, UTC.
    pub date: String,
    /// Whether times were measured on a virtual machine or an emulator, and thus say nothing about hardware.
    #[serde(rename = "virtual")]
    pub is_virtual: bool,
    /// The reason if predictions are not compared with measurements.
    pub not_scored: Option<NotScored>,
    /// This machine, as its kernel describes it.
    pub site: Site,
    /// The machine description that predictions used.
    pub machine: DescribedMachine,
    /// The rule by which the sizes of programs were chosen.
    pub rule: Rule,
    /// How the programs were run.
    pub settings: Settings,
    /// Results of each program, in order.
    pub programs: Vec<ProgramResult>,
    /// Names of programs that were left out for lack of time.
    pub left_out: Vec<&'static str>,
    /// Errors of the predictions; `null` if they are not compared with measurements.
    pub summary: Option<Summary>,
    /// Remarks that are necessary to interpret the figures.
    pub notes: Vec<String>,
    /// Total duration, including the measurement of the machine, seconds.
    pub seconds: f64,
    /// How the figures were obtained, by key.
    pub how: BTreeMap<&'static str, &'static str>,
}

/// The machine description that predictions used.
#[derive(Clone, Debug, Serialize)]
pub struct DescribedMachine {
    /// Name of the machine, derived from the processor's model.
    pub name: String,
    /// Source of the description: `measured` or `file`.
    pub how: &'static str,
    /// Text of the machine file.
    pub toml: String,
    /// Whether the time limit ended the measurement before it was complete.
    pub cut_short: bool,
}

/// How programs were run.
#[derive(Clone, Debug, Serialize)]
pub struct Settings {
    /// Number of threads of every program, one for each CPU.
    pub threads: usize,
    /// How threads were bound.
    pub affinity: &'static str,
    /// Requested number of rounds.
    pub runs: u32,
    /// Time limit after which no further round started, seconds.
    pub time_limit_seconds: f64,
}

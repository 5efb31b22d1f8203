//! The model that all writers share. Its field names are the keys of `nodewise report --json`.
//!
//! Fractions run from 0 to 1; times are in seconds; sizes in bytes; pages are counted in units of
//! [`Report::page_size`].

use crate::copies::Copied;
use crate::moves::{Migration, Moves};
use crate::roles::{OtherRuns, Roles};
use crate::sampling::{Sampled, Sampling};
use nodewise_advise::{FirstTouched, UsedBy, Verdict};
use nodewise_machine::Source;
use serde::Serialize;

/// Version of the JSON: grows when a key changes its meaning or goes away, not when one is added.
pub const SCHEMA: u32 = 1;

/// All content of a report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Version of the format, [`SCHEMA`].
    pub schema: u32,
    /// The version of nodewise that wrote it.
    pub nodewise: String,
    /// The conclusion of the report.
    pub verdict: Verdict,
    /// The recorded program and its host.
    pub program: Program,
    /// The share of the program whose accesses were counted.
    pub coverage: Coverage,
    /// How accesses were sampled; `null` if they were counted.
    pub sampling: Option<Sampling>,
    /// The machine that metrics and predictions refer to.
    pub machine: Machine,
    /// The assumed assignment of threads to nodes.
    pub affinity: Affinity,
    /// Page size of all metrics and decisions, bytes.
    pub page_size: u64,
    /// Sums over the recording.
    pub totals: Totals,
    /// Exclusivity of the application under the affinity (Diener eq. 2).
    pub application_exclusivity: f64,
    /// Pages and accesses by sharing class (Majo & Gross 3.1).
    pub sharing: Vec<Sharing>,
    /// One entry for each policy, in the requested order; first-touch is the baseline.
    pub policies: Vec<Policy>,
    /// Policies that copy what is only read, if any object suits or one was asked for.
    pub copies: Vec<Policy>,
    /// Memory objects, the costliest first.
    pub objects: Vec<Object>,
    /// Objects with pages whose accesses go to a few cache lines, largest share first; empty if accesses are samples.
    pub few_lines: Vec<FewLines>,
    /// Figures of each time slice.
    pub slices: Vec<Slice>,
    /// The page moves that would keep each page on the node that uses it most (Diener II-C).
    pub dynamicity: Dynamicity,
    /// How the threads of other runs took the parts of the data; `null` if no other run was recorded.
    pub roles: Option<Roles>,
    /// That `roles` are not known although threads of another run may take other parts, and what tells.
    pub roles_unknown: Option<String>,
    /// Totals of recorded or simulated moves; `null` if nothing was moved or prevented from moving.
    pub moves: Option<Moves>,
    /// The first 10,000 recorded or simulated moves, in order of time.
    pub migrations: Vec<Migration>,
    /// Limits and assumptions, one sentence each.
    pub notes: Vec<String>,
}

/// What was recorded, and how.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Program {
    /// The command and its arguments.
    pub command: Vec<String>,
    /// Threads that accessed memory.
    pub threads: usize,
    /// Unix time of the start, seconds.
    pub started_at: u64,
    /// Wall time of the recorded run.
    pub wall_seconds: f64,
    /// Wall time of the plain build on the recording host, when measured.
    pub plain_wall_seconds: Option<f64>,
    /// Where the counts came from: `instrument`, `emulate`, `faults`, `synthetic`.
    pub observer: String,
    /// Whether counts are exact rather than sampled.
    pub exact: bool,
    /// The static schedule by which OpenMP's dynamic and guided loops were dealt instead (`record --schedule`).
    pub loop_schedule: Option<String>,
    /// How slices were cut: `1s`, `accesses:1000000`, `region`.
    pub slicing: String,
    /// Exit status as a shell reports it.
    pub exit_status: Option<i32>,
    /// Why the profile is cut short, if it is.
    pub truncated: Option<String>,
    /// The machine on which it was recorded.
    pub host: Host,
}

/// Largest length of a title, in characters.
const MAX_TITLE_LENGTH: usize = 120;

impl Program {
    /// The command, with the program's name instead of its path, shortened to a line or two.
    #[must_use]
    pub fn title(&self) -> String {
        let name = |c: &String| c.rsplit('/').next().unwrap_or_default().to_owned();
        let mut words: Vec<String> = self.command.clone();
        words.iter_mut().take(1).for_each(|w| *w = name(w));
        let whole = words.join(" ");
        match whole.char_indices().nth(MAX_TITLE_LENGTH) {
            Some((end, _)) => format!("{}…", &whole[..end]),
            None => whole,
        }
    }
}

/// The machine on which a program was recorded.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Host {
    /// Model name of the CPU.
    pub model: String,
    /// CPUs the run could use.
    pub cpus: u32,
    /// Number of memory nodes.
    pub nodes: u32,
}

/// The share of CPU time in code whose accesses are counted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Coverage {
    /// Share of the program's own user-mode CPU time; `null` if sampling was not permitted or the run was too short.
    pub share: Option<f64>,
    /// Number of samples from which the shares were computed.
    pub samples: u64,
    /// Share of CPU time in instrumented code.
    pub instrumented: f64,
    /// Share of CPU time in threading runtimes.
    pub waiting: f64,
    /// Share of CPU time in code that is not instrumented.
    pub missed: f64,
    /// Share of CPU time in the kernel.
    pub kernel: f64,
    /// The largest contributors to `missed`.
    pub missed_modules: Vec<MissedModule>,
}

/// Code whose accesses were not counted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MissedModule {
    /// File name of the module.
    pub name: String,
    /// Share of CPU time.
    pub share: f64,
}

/// The machine that metrics and predictions refer to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Machine {
    /// As given to `--machine`.
    pub name: String,
    /// Description in one line.
    pub title: String,
    /// The memory nodes, in order.
    pub nodes: Vec<Node>,
    /// Largest remote latency divided by smallest local latency.
    pub numa_factor: f64,
    /// Idle load latency, nanoseconds, `[cpu_node][memory_node]`.
    pub latency_ns: Vec<Vec<f64>>,
    /// The sources of the machine's figures, and which figures are assumptions.
    pub sources: Vec<Source>,
}

/// A memory node of the machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Node {
    /// Number of CPUs of the node.
    pub cpus: usize,
    /// Size of its memory, bytes.
    pub memory: u64,
    /// Controller bandwidth, MB/s (10⁶ bytes).
    pub bandwidth: f64,
}

/// The assignment of threads to nodes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Affinity {
    /// As given to `--affinity`.
    pub name: String,
    /// Node of each thread.
    pub thread_nodes: Vec<u32>,
}

/// Sums over the whole program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Number of pages touched.
    pub pages: u64,
    /// Number of load instructions.
    pub reads: u64,
    /// Number of store instructions.
    pub writes: u64,
    /// Number of loads and stores.
    pub accesses: u64,
}

/// Pages and accesses of one sharing class.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sharing {
    /// `private`, `non-shared`, `node-shared`, `uniformly shared`.
    pub class: String,
    /// Number of pages in the class.
    pub pages: u64,
    /// Number of accesses to these pages.
    pub accesses: u64,
}

/// Figures of one policy on the machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Policy {
    /// As written on the command line.
    pub policy: String,
    /// Exclusivity of the application (Diener et al., eq. 2); it depends on the affinity alone.
    pub application_exclusivity: f64,
    /// Page balance over nodes, 0 to 1 (Diener et al., eq. 3).
    pub page_balance: f64,
    /// Access balance by home node (Diener et al., eq. 5); `null` if accesses are samples.
    pub access_balance: Option<f64>,
    /// Access balance by accessing node (Diener et al., eq. 4 as printed); no mapping changes it. `null` if accesses
    /// are samples.
    pub access_balance_as_printed: Option<f64>,
    /// Share of accesses that the accessing thread's own node serves.
    pub local_fraction: f64,
    /// If accesses are samples: lower and upper bound of the share of local accesses; else `null`.
    pub local_range: Option<[f64; 2]>,
    /// Local fractions that another run is expected to have; `null` if no other run was recorded.
    pub other_runs: Option<OtherRuns>,
    /// Pages whose home differs from their first-touch node.
    pub migrations: u64,
    /// Predicted wall time, typical value. This field and the next three are `null` if accesses are samples.
    pub seconds: Option<f64>,
    /// Smallest and largest plausible value of `seconds`.
    pub seconds_range: Option<[f64; 2]>,
    /// Predicted time of first-touch divided by that of this policy, typical value.
    pub speedup: Option<f64>,
    /// Smallest and largest value of `speedup` over all scenarios, widened by the model's own error. Both times of a
    /// quotient are of the same scenario, that is, of the same values of the uncertain parameters.
    pub speedup_range: Option<[f64; 2]>,
    /// What it copies, if it makes copies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copies: Option<Copied>,
}

/// How the threads of one region divide an object among them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Division {
    /// The function of the region; empty for serial code.
    pub region: String,
    /// `file:line` of the region.
    pub site: String,
    /// `x-wise`, `y-wise`, `z-wise`, `strided`, `uniform` …
    pub pattern: String,
    /// Number of repetitions of the sequence of blocks over the pages that have owners; 1 for patterns without such a
    /// sequence, whether or not their blocks repeat.
    pub repeat: u32,
    /// Whether the blocks are in descending order of thread numbers.
    pub inverse: bool,
    /// Share of the region's accesses to the object that the pattern accounts for.
    pub explained: f64,
    /// Share of the object's accesses made in the region.
    pub share: f64,
    /// Share of these accesses that are reads.
    pub read_fraction: f64,
    /// Number of threads that use the object in the region.
    pub threads: usize,
    /// Another pattern that would explain the same pages, and the recording that would distinguish them; `null` if
    /// there is none.
    pub doubt: Option<String>,
    /// The schedule that the region's loop should have once the object is distributed as advised.
    pub schedule: Option<String>,
}

/// Pages that different regions use from different nodes (Majo & Gross 3.1, Figure 5(e)).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UniformSharing {
    /// Share of the object's pages.
    pub share: f64,
    /// `share` if threads were bound in the order of their numbers, instead of by the affinity of the report.
    pub share_in_order: f64,
    /// The remedy: `block-exclusive` or `static-inverse`; `null` if none exists that leaves the loops unchanged.
    pub remedy: Option<String>,
}

/// Figures of one memory object.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Object {
    /// Variable or allocating function; numbered if several objects have the same name, as in `grid #2`.
    pub name: String,
    /// `heap`, `static`, `stack` …
    pub kind: String,
    /// Where it was allocated.
    pub site: String,
    /// Requested size, bytes; for an array that is allocated repeatedly, the largest.
    pub bytes: u64,
    /// Number of allocations that were merged into this object, each freed before the next.
    pub allocations: u64,
    /// Number of pages touched.
    pub pages: u64,
    /// Number of loads and stores.
    pub accesses: u64,
    /// Share of accesses that are reads; `null` if accesses are samples.
    pub read_fraction: Option<f64>,
    /// The best placement is predicted to save a share of the run time under first-touch; this is the object's part of
    /// that share, and the parts of all objects sum to it. `null` if accesses are samples.
    pub cost_share: Option<f64>,
    /// Exclusivity over the object's pages, weighted by accesses; if accesses are samples, the mean over the pages with
    /// enough samples.
    pub exclusivity: f64,
    /// Confidence of `exclusivity`, if accesses are samples.
    pub sampled: Option<Sampled>,
    /// Local fraction under first-touch. If accesses are samples, it is the share of samples, which differs from that
    /// of the accesses.
    pub local_fraction: f64,
    /// If accesses are samples: lower and upper bound of the share of the object's accesses that are local under
    /// first-touch; else `null`.
    pub local_range: Option<[f64; 2]>,
    /// The sharing class of most of its accesses.
    pub sharing: String,
    /// How the object's pages are divided among threads: `x-wise`, `uniform` …
    pub pattern: String,
    /// How each region divides the object, the busiest region first.
    pub patterns: Vec<Division>,
    /// The object's pages that different regions use from different nodes, if any.
    pub uniform_sharing: Option<UniformSharing>,
    /// The distribution of libnodewise that suits the object, even if it saves little.
    pub distribution: Option<String>,
    /// The threads that touched the object first.
    pub first_touch: Option<FirstTouched>,
    /// The threads that use the object most.
    pub used_by: Option<UsedBy>,
    /// The diagnosis, in one sentence.
    pub blame: String,
    /// The remedy, in one sentence.
    pub advice: String,
    /// Code that implements the advice.
    pub snippet: Option<String>,
}

/// Pages of an object that several threads use, with most accesses to a few cache lines: threads that wait for a flag
/// or a lock, or variables that all threads use. They contribute to every share of accesses, although accesses that
/// hit the cache cost little.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FewLines {
    /// Name of the object; `null` if the pages belong to none.
    pub object: Option<String>,
    /// Number of such pages.
    pub pages: usize,
    /// Share of all accesses that go to these pages.
    pub share: f64,
}

/// Figures of one time slice.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Slice {
    /// Start of the slice, in seconds since the recording began.
    pub start_seconds: f64,
    /// End of the slice, in seconds since the recording began.
    pub end_seconds: f64,
    /// Loads plus stores in the slice.
    pub accesses: u64,
    /// Exclusivity of the application in this slice alone.
    pub exclusivity: f64,
    /// Local fraction under first-touch, of the accesses or, if accesses are samples, of the samples.
    pub local_fraction: f64,
    /// If accesses are samples: lower and upper bound of the share of the slice's accesses that are local; else `null`.
    pub local_range: Option<[f64; 2]>,
    /// Access balance by home node under first-touch (Diener et al., eq. 5); `null` if accesses are samples.
    pub access_balance: Option<f64>,
    /// Number of pages that would have to move in the slice to stay on the node that uses them most.
    pub migrations: u64,
}

/// Moves that would keep every page on the node that uses it most (Diener II-C).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Dynamicity {
    /// Number of all moves.
    pub migrations: u64,
    /// Pages by number of moves: entry `i` counts pages that moved `i` times.
    pub pages_by_moves: Vec<u64>,
}

impl Object {
    /// Whether the program's loops divide the object differently, and a remedy for that exists.
    #[must_use]
    pub fn is_mismatched(&self) -> bool {
        self.uniform_sharing.as_ref().is_some_and(|u| u.remedy.is_some())
    }
}

impl Report {
    /// The figures of first-touch, the baseline of all speed-ups.
    #[must_use]
    pub fn first_touch(&self) -> Option<&Policy> {
        self.policies.iter().find(|p| p.policy == "first-touch")
    }

    /// Whether the machine has only one memory node, so that all placements are equal.
    #[must_use]
    pub fn has_one_node(&self) -> bool {
        self.machine.nodes.len() < 2
    }

    /// Whether the verdict recommends this policy.
    #[must_use]
    pub fn recommends(&self, policy: &Policy) -> bool {
        self.program.exact && self.verdict.policy == policy.policy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_of_a_thousand_files_is_cut() {
        let titled = |arguments: usize| {
            let mut command = vec!["/usr/bin/javac".to_owned()];
            command.extend((0..arguments).map(|n| format!("é{n}.java")));
            Program {
                command,
                threads: 1,
                started_at: 0,
                wall_seconds: 0.0,
                plain_wall_seconds: None,
                observer: String::new(),
                exact: true,
                loop_schedule: None,
                slicing: String::new(),
                exit_status: None,
                truncated: None,
                host: Host {
                    model: String::new(),
                    cpus: 1,
                    nodes: 1,
                },
            }
            .title()
        };
        assert_eq!(titled(2), "javac é0.java é1.java");
        let long = titled(1000);
        assert!(
            long.chars().count() == MAX_TITLE_LENGTH + 1 && long.ends_with('…'),
            "{long}"
        );
    }
}

//! The model that all writers share. Its field names are the keys of `nodewise report --json`.
//!
//! Fractions run from 0 to 1; times are in seconds; sizes in bytes; pages are counted in units of
//! [`Report::page_size`].

use crate::moves::{Migration, Moves};
use crate::roles::{OtherRuns, Roles};
use crate::sampling::{Sampled, Sampling};
use nodewise_advise::{FirstTouched, UsedBy, Verdict};
use nodewise_machine::Source;
use serde::Serialize;

/// Version of the JSON: grows when a key changes its meaning or goes away, not when one is added.
pub const SCHEMA: u32 = 1;

/// Everything one report says.
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
    /// How much of it was seen.
    pub coverage: Coverage,
    /// What the counts rest on, where they are samples.
    pub sampling: Option<Sampling>,
    /// What it is judged for.
    pub machine: Machine,
    /// Which thread is taken to run where.
    pub affinity: Affinity,
    /// Page size of all metrics and decisions, bytes.
    pub page_size: u64,
    /// Sums over the recording.
    pub totals: Totals,
    /// Exclusivity of the application under the affinity (Diener eq. 2).
    pub application_exclusivity: f64,
    /// Pages and accesses by sharing class (Majo & Gross 3.1).
    pub sharing: Vec<Sharing>,
    /// One entry a policy, in the order asked for; first-touch is the baseline.
    pub policies: Vec<Policy>,
    /// Memory objects, the costliest first.
    pub objects: Vec<Object>,
    /// Objects with pages whose accesses are to a few lines, the largest share first; none where accesses are samples.
    pub few_lines: Vec<FewLines>,
    /// The run in time.
    pub slices: Vec<Slice>,
    /// How often pages would have to move to stay where they are used most (Diener II-C).
    pub dynamicity: Dynamicity,
    /// Which threads took which parts in other runs; `null` where none was recorded.
    pub roles: Option<Roles>,
    /// What recorded moves amount to; `null` where nothing was moved or held back.
    pub moves: Option<Moves>,
    /// Recorded moves in order of time, the first 10,000.
    pub migrations: Vec<Migration>,
    /// Limits and assumptions, a sentence each.
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
    /// How slices were cut: `1s`, `accesses:1000000`, `region`.
    pub slicing: String,
    /// Exit status as a shell gives it.
    pub exit_status: Option<i32>,
    /// Why the profile is cut short, if it is.
    pub truncated: Option<String>,
    /// The machine on which it was recorded.
    pub host: Host,
}

/// Characters of a title.
const TITLE: usize = 120;

impl Program {
    /// The command without the program's folders, and no longer than a line or two.
    #[must_use]
    pub fn title(&self) -> String {
        let name = |c: &String| c.rsplit('/').next().unwrap_or_default().to_owned();
        let mut words: Vec<String> = self.command.clone();
        words.iter_mut().take(1).for_each(|w| *w = name(w));
        let whole = words.join(" ");
        match whole.char_indices().nth(TITLE) {
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
    /// Of the program's own user-mode work; `null` when sampling was not permitted, or the run was too short.
    pub share: Option<f64>,
    /// Samples it rests on.
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

/// The machine that figures are for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Machine {
    /// As given to `--machine`.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// The memory nodes, in order.
    pub nodes: Vec<Node>,
    /// Largest remote over smallest local latency.
    pub numa_factor: f64,
    /// Idle load latency, nanoseconds, `[cpu_node][memory_node]`.
    pub latency_ns: Vec<Vec<f64>>,
    /// Where figures come from and which are assumptions.
    pub sources: Vec<Source>,
}

/// A memory node of the machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Node {
    /// CPUs next to it.
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

/// One policy on the machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Policy {
    /// As written on the command line.
    pub policy: String,
    /// Diener eq. 2; depends on the affinity alone.
    pub application_exclusivity: f64,
    /// Page balance over nodes, 0 to 1 (Diener et al., eq. 3).
    pub page_balance: f64,
    /// Diener eq. 5, by home node; `null` where accesses are samples.
    pub access_balance: Option<f64>,
    /// The same with eq. 4 as printed, by the node that accesses: no mapping changes it; `null` where accesses are samples.
    pub access_balance_as_printed: Option<f64>,
    /// Accesses served by the accessing thread's own node.
    pub local_fraction: f64,
    /// Where accesses are samples: least and largest share of the accesses that can be local; else `null`.
    pub local_range: Option<[f64; 2]>,
    /// Local fractions that another run is expected to have; `null` where none was recorded.
    pub other_runs: Option<OtherRuns>,
    /// Pages whose home differs from their first-touch node.
    pub migrations: u64,
    /// Predicted wall time, typical; `null` where accesses are samples, and so the next three.
    pub seconds: Option<f64>,
    /// Its smallest and largest plausible value.
    pub seconds_range: Option<[f64; 2]>,
    /// Predicted time of first-touch over this one's, typical.
    pub speedup: Option<f64>,
    /// Its smallest and largest plausible value, like compared with like.
    pub speedup_range: Option<[f64; 2]>,
}

/// How one region divides an object over its threads.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Division {
    /// The function of the region; empty for serial code.
    pub region: String,
    /// `file:line` of the region.
    pub site: String,
    /// `x-wise`, `y-wise`, `z-wise`, `strided`, `uniform` …
    pub pattern: String,
    /// Parts in which blocks begin again; 1 where they do not.
    pub repeat: u32,
    /// Blocks descend as threads ascend.
    pub inverse: bool,
    /// Share of the region's accesses to the object that the pattern accounts for.
    pub explained: f64,
    /// Share of the object's accesses made in the region.
    pub share: f64,
    /// Share of them that are reads.
    pub read_fraction: f64,
    /// Threads that use the object there.
    pub threads: usize,
    /// What else would show the same pages, and which recording would tell; `null` where nothing does.
    pub doubt: Option<String>,
    /// The schedule its loop should have once the object is distributed as advised.
    pub schedule: Option<String>,
}

/// Pages that regions give to different nodes (Majo & Gross 3.1, Figure 5(e)).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UniformSharing {
    /// Share of the object's pages.
    pub share: f64,
    /// The same with threads bound in the order of their numbers, whatever the affinity judged.
    pub share_in_order: f64,
    /// What removes it: `block-exclusive`, `static-inverse`; `null` where nothing does that keeps the loops.
    pub remedy: Option<String>,
}

/// Figures of one memory object.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Object {
    /// Variable, or allocating function; numbered where others have the same, `grid #2`.
    pub name: String,
    /// `heap`, `static`, `stack` …
    pub kind: String,
    /// Where it was allocated.
    pub site: String,
    /// Bytes asked for; of an array allocated again and again, the most.
    pub bytes: u64,
    /// How often it was allocated, freed in between.
    pub allocations: u64,
    /// Number of pages touched.
    pub pages: u64,
    /// Number of loads and stores.
    pub accesses: u64,
    /// Share of accesses that are reads; `null` where accesses are samples.
    pub read_fraction: Option<f64>,
    /// Its part of the share of the run time that the best placement is predicted to save over
    /// first-touch; over all objects these add up to the whole of it. `null` where accesses are samples.
    pub cost_share: Option<f64>,
    /// Exclusivity over its pages, weighted by accesses; of samples, the mean over the judged pages.
    pub exclusivity: f64,
    /// How surely that is known, where accesses are samples.
    pub sampled: Option<Sampled>,
    /// Local fraction under first-touch; of samples, their share, which is not that of the accesses.
    pub local_fraction: f64,
    /// Of samples: least and largest share of its accesses that can be local under first-touch, as far as they
    /// tell; else `null`.
    pub local_range: Option<[f64; 2]>,
    /// The sharing class of most of its accesses.
    pub sharing: String,
    /// How its pages are dealt over threads: `x-wise`, `uniform` …
    pub pattern: String,
    /// How each region divides it, the busiest first.
    pub patterns: Vec<Division>,
    /// Whether regions give its pages to different nodes.
    pub uniform_sharing: Option<UniformSharing>,
    /// The distribution of libnodewise that suits it, whatever that is worth.
    pub distribution: Option<String>,
    /// Who touched it first.
    pub first_touch: Option<FirstTouched>,
    /// Who uses it most.
    pub used_by: Option<UsedBy>,
    /// What happened, in one sentence.
    pub blame: String,
    /// What to do about it, in one sentence.
    pub advice: String,
    /// Code that does it.
    pub snippet: Option<String>,
}

/// Pages of an object that several threads use, most of whose accesses are to a few lines: waiting for a flag or a
/// lock, or variables that all threads use. They weigh in every share of accesses; what caches hold costs little.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FewLines {
    /// Name of the object; `null` where they belong to none.
    pub object: Option<String>,
    /// Number of such pages.
    pub pages: usize,
    /// Their share of all accesses.
    pub share: f64,
}

/// Figures of one time slice.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Slice {
    /// Since the recording began.
    pub start_seconds: f64,
    /// Since the recording began.
    pub end_seconds: f64,
    /// Loads plus stores in the slice.
    pub accesses: u64,
    /// Of the application, in this slice alone.
    pub exclusivity: f64,
    /// Under first-touch; of samples, their share.
    pub local_fraction: f64,
    /// Of samples: least and largest share of the slice's accesses that can be local; else `null`.
    pub local_range: Option<[f64; 2]>,
    /// Diener eq. 5 under first-touch, by home node; `null` where accesses are samples.
    pub access_balance: Option<f64>,
    /// Pages that would have to move in it.
    pub migrations: u64,
}

/// Moves that would keep every page where it is used most.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Dynamicity {
    /// Number of all moves.
    pub migrations: u64,
    /// Pages by number of moves: entry `i` counts pages that moved `i` times.
    pub pages_by_moves: Vec<u64>,
}

impl Object {
    /// Whether its loops divide it differently, and others would not.
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

    /// Whether the machine has but one memory node: nothing can be placed better or worse.
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
        assert!(long.chars().count() == TITLE + 1 && long.ends_with('…'), "{long}");
    }
}

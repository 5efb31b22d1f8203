//! Arguments that select a profile and a machine: shared by `report`, `serve`, `top`, `map` and `simulate`.

use crate::output::say;
use nodewise_pipeline::Selection;
use std::path::PathBuf;
use std::time::Duration;

#[derive(clap::Args, Clone, Debug)]
#[group(skip)]
pub struct Arguments {
    /// Profile directory, or one that holds profiles: then the latest [default: the latest here]
    #[arg(value_name = "DIR")]
    pub profile: Option<PathBuf>,
    /// A shipped machine's name, a machine file, or `this`
    #[arg(long, value_name = "M", default_value = "this")]
    pub machine: String,
    /// Thread affinity: sharing-aware (all nodes; threads that share pages on one node), asym (fewest nodes, best
    /// links), recorded (nodes on which threads were sampled), compact, identity, scatter, cpus:LIST, likwid:EXPR,
    /// hwloc:EXPR, file:FILE; auto: recorded on the machine that was sampled, otherwise sharing-aware
    #[arg(long, value_name = "A", default_value = "auto")]
    pub affinity: String,
    /// Page size of decisions: 4K, 2M as with transparent huge pages, or another power of two up to 1G
    #[arg(long, value_name = "SIZE", default_value = "4K", value_parser = crate::arguments::decision_size)]
    pub page_size: u32,
    /// Another recording of the same command: threads are compared by the parts that they take (see `record --repeat`)
    #[arg(long, value_name = "DIR")]
    pub other_run: Vec<PathBuf>,
    /// CPU time (user and system) of a plain run of the same work: nothing is then assumed about the cost of recording
    #[arg(long, value_name = "TIME", value_parser = crate::arguments::cpu_time)]
    pub plain_cpu: Option<Duration>,
    /// Compute time on the machine's cores over that on the recording host's; waiting for memory is the machine's own
    /// [default: 1 on `this` machine if it recorded; otherwise varied from 0.5 to 8]
    #[arg(long, value_name = "F", value_parser = crate::arguments::positive)]
    pub core_factor: Option<f64>,
}

impl Arguments {
    pub fn selection(&self) -> Selection {
        Selection {
            profile: self.profile.clone(),
            machine: self.machine.clone(),
            affinity: self.affinity.clone(),
            page_size: self.page_size,
            other_runs: self.other_run.clone(),
            plain: None,
            plain_cpu: self.plain_cpu,
            core_factor: self.core_factor,
        }
    }
}

/// Prints the notes of policies.
pub fn print_notes(notes: &[String]) {
    notes.iter().for_each(|note| say!("{note}"));
}

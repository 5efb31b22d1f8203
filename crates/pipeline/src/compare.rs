//! Compares the predicted cost of policies.

mod json;
mod movers;
pub(crate) mod moving;
mod nodes;
mod online;
mod several;
mod show;
mod sizes;
mod sweep;
mod table;

pub use moving::Limits;
pub use online::{Online, Starts};
pub use several::Together;
pub use sizes::{Sizes, is_sized};
pub use sweep::Sweep;

use crate::folded::folded;
use crate::{ASYM, Asym, Selected, Selection};
use anyhow::bail;
use movers::Movers;
use nodes::NodeChoices;
use nodewise_analysis::{LastWrites, Roles, Visitor};
use nodewise_machine::Machine;
use nodewise_placement::policies::Filling;
use nodewise_placement::{makes_copies, not_a_placement};
use nodewise_profile::Profile;
use nodewise_simulation::{
    Changing, Parameters, Range, Simulation, Traffic, simulate_moving, with_assumed_bandwidth,
    with_assumed_latency, with_latency_ratio,
};
use std::path::PathBuf;

/// The parameters of a comparison.
#[derive(Clone, Debug)]
pub struct Question {
    /// The profile; the machine in it is replaced by the one of each comparison.
    pub selection: Selection,
    /// Profiles of further programs that run at the same time, each on nodes of its own.
    pub more: Vec<PathBuf>,
    /// With several programs: restart each that ends until all have ended once.
    pub restart: bool,
    /// Policies to compare, comma-separated.
    pub policy: String,
    /// The number of CPUs: one number for all programs, or one for each; empty for the recorded number of threads.
    pub cpus: Vec<u32>,
    /// Parameters of policies that move pages.
    pub limits: Limits,
    /// The ratio of remote to local latency that replaces the machine's.
    pub latency_ratio: Option<f64>,
    /// Factor on the machine's assumed bandwidths; `None` for the model's range.
    pub bandwidth_factor: Option<f64>,
    /// Factor on what the machine's assumed latencies of remote memory have more than the local one; `None` for the model's range.
    pub latency_factor: Option<f64>,
    /// Which of the recorded accesses reach memory.
    pub traffic: Traffic,
    /// The accesses that policies which move pages count.
    pub counted: Traffic,
    /// Number of misses that a CPU has in flight; `None` for the model's range.
    pub misses_in_flight: Option<f64>,
    /// Whether to draw the only policy that moves pages.
    pub trace: bool,
    /// Whether the JSON lists every move.
    pub moves: bool,
}

impl Question {
    /// Compares policies for one program on this machine.
    ///
    /// # Errors
    /// If the profile, the machine or a policy is unknown or cannot be used, or the prediction fails.
    pub fn compare(&self, machine: &str) -> anyhow::Result<Comparison> {
        if makes_copies(&self.limits.start) {
            bail!(
                "--start {}: {}",
                self.limits.start,
                not_a_placement(&self.limits.start)
            );
        }
        let list = match self.selection.affinity.as_str() {
            ASYM if self
                .policy
                .split(',')
                .any(|p| Filling::of_policy(p.trim()).is_some()) =>
            {
                bail!("--affinity asym chooses the nodes, so that hot and fill cannot name them")
            }
            ASYM => self.list().without_copies("--affinity asym")?,
            _ => self.list(),
        };
        let mut writes = LastWrites::default();
        let mut first_pass: Vec<&mut dyn Visitor> = Vec::new();
        if !list.copies.is_empty() {
            first_pass.push(&mut writes);
        }
        let mut selected = self.open_with(machine, &mut first_pass)?;
        let parameters = self.parameters(machine, &selected);
        let asym = match self.selection.affinity.as_str() {
            ASYM => Some(Asym::to_virtual(&mut selected, self.cpus_of(0, 1)?)?),
            _ => None,
        };
        let (mappings, notes) = selected.mappings(&list.pages)?;
        let movers = Movers {
            limits: &self.limits,
            drawn: self.trace,
            listed: self.moves,
            selected: &selected,
            list: &list,
            parameters: &parameters,
        };
        let (simulation, node_choices) = match &asym {
            None => {
                let changing = Changing {
                    moving: movers.all()?,
                    copies: selected.copies(&list.copies, &writes)?,
                    last_copy: None,
                };
                let (context, reader) = (selected.context(), &selected.reader);
                let simulation = simulate_moving(&context, &mappings, changing, reader, &parameters)?;
                (simulation, None)
            }
            Some(asym) => {
                let (simulation, node_choices) = nodes::together(asym, &movers, &mappings)?;
                (simulation, Some(node_choices))
            }
        };
        let on = asym.as_ref().map_or(&selected.machine, |a| &a.machine);
        let other_runs = other_runs(selected.profile(), &simulation);
        let picture = self
            .trace
            .then(|| show::draw(on, &selected, &mappings[0], &simulation));
        Ok(Comparison {
            page_size: selected.histogram.page_size(),
            machine: on.clone(),
            simulation,
            node_choices,
            picture,
            other_runs,
            notes,
        })
    }

    /// Compares policies for all programs at once on this machine, each program on nodes of its own (AsymSched, Figures
    /// 6 and 7).
    ///
    /// # Errors
    /// Those of [`Question::compare`]; also if the question is about one program only.
    pub fn together(&self, machine: &str) -> anyhow::Result<Together> {
        self.list().without_copies("several programs")?;
        several::predict(self, machine)
    }

    /// Simulates one or several programs whose threads and pages are moved while they run, as by `balance
    /// --move-threads`.
    ///
    /// # Errors
    /// Those of [`Question::compare`].
    pub fn online(&self, machine: &str, starts: &Starts) -> anyhow::Result<Online> {
        self.list().without_copies("--move-threads")?;
        online::predict(self, machine, starts)
    }

    /// Predicts how `policy`, which moves pages, depends on each of its parameters on this machine.
    ///
    /// # Errors
    /// Those of [`Question::compare`].
    pub fn sweep(&self, policy: &str, machine: &str) -> anyhow::Result<Sweep> {
        let selected = self.open(machine)?;
        sweep::sweep(
            policy,
            &self.limits,
            &selected,
            &self.parameters(machine, &selected),
        )
    }

    /// Replaces the figures of a machine for which the question has others.
    fn change(&self, machine: &mut Machine) {
        if let Some(factor) = self.bandwidth_factor {
            *machine = with_assumed_bandwidth(machine, factor);
        }
        if let Some(factor) = self.latency_factor {
            *machine = with_assumed_latency(machine, factor);
        }
        if let Some(ratio) = self.latency_ratio {
            *machine = with_latency_ratio(machine, ratio);
        }
    }

    /// Opens the profile on a machine whose figures may be replaced.
    fn open(&self, machine: &str) -> anyhow::Result<Selected> {
        self.open_with(machine, &mut [])
    }

    fn open_with(&self, machine: &str, first_pass: &mut [&mut dyn Visitor]) -> anyhow::Result<Selected> {
        let selection = Selection {
            machine: machine.to_owned(),
            ..self.selection.clone()
        };
        let mut selected = selection.open_with(first_pass)?;
        self.change(&mut selected.machine);
        if let Some(cpus) = self.cpus_of(0, 1)? {
            selected.affinity = folded(&selected, &selection.affinity, cpus)?;
        }
        Ok(selected)
    }

    /// The number of CPUs of one of `programs` programs, if one is given.
    fn cpus_of(&self, program: usize, programs: usize) -> anyhow::Result<Option<u32>> {
        match self.cpus.as_slice() {
            [] => Ok(None),
            [one] => Ok(Some(*one)),
            each if each.len() == programs => Ok(Some(each[program])),
            each => bail!(
                "--cpus has {} numbers for {}; give one for all, or one for each",
                each.len(),
                nodewise_report::plural(programs, "program")
            ),
        }
    }

    /// The list of policies, with the pages' initial placement first, whether it is listed or not.
    fn list(&self) -> moving::Split {
        moving::split(&format!("{},{}", self.limits.start, self.policy))
    }

    fn parameters(&self, machine: &str, selected: &Selected) -> Parameters {
        let all = self.selection.parameters(machine, &selected.profile().meta);
        Parameters {
            seconds_per_gb: self.limits.migration_cost,
            traffic: self.traffic,
            counted: self.counted,
            parallelism: self.misses_in_flight.map_or(all.parallelism, Range::exactly),
            assumed_bandwidth: self
                .bandwidth_factor
                .map_or(all.assumed_bandwidth, |_| Range::exactly(1.0)),
            assumed_latency: self
                .latency_factor
                .or(self.latency_ratio)
                .map_or(all.assumed_latency, |_| Range::exactly(1.0)),
            ..all
        }
    }
}

/// The policies for one program on one machine.
pub struct Comparison {
    machine: Machine,
    page_size: u64,
    /// The prediction of each policy; the pages' initial placement comes first.
    pub simulation: Simulation,
    /// The effect of the choice of nodes, if there was a choice.
    node_choices: Option<NodeChoices>,
    /// Sentences on other runs of the command, whose threads may take other parts of the data.
    other_runs: Vec<String>,
    /// SVG picture of pages over time under the policy that moves them, if [`Question::trace`] is set.
    pub picture: Option<String>,
    /// Remarks of policies on their mappings.
    pub notes: Vec<String>,
}

/// What is known of other runs, and what policies keep there.
fn other_runs(profile: &Profile, simulation: &Simulation) -> Vec<String> {
    let Some(roles) = Roles::of(profile) else {
        return nodewise_report::roles_unknown(profile).into_iter().collect();
    };
    let kept = simulation.ranked().into_iter().filter_map(|p| {
        let expected = p.other_runs?.into();
        nodewise_report::other_run_sentence(&p.policy, p.local_fraction, &expected, roles.counter.is_some())
    });
    std::iter::once(nodewise_report::roles_sentence(&roles, profile))
        .chain(kept)
        .collect()
}

impl Comparison {
    /// One table for people, the best policy first.
    #[must_use]
    pub fn text(&self) -> String {
        let node_choices = self
            .node_choices
            .as_ref()
            .map_or_else(String::new, NodeChoices::table);
        table::write(&self.machine, &self.simulation, &node_choices, &self.other_runs)
    }

    /// A line a machine: its baseline and its best policy, where machines, or modes of one, are compared.
    #[must_use]
    pub fn overview(all: &[Self]) -> String {
        table::overview(all.iter().map(|c| (c.machine.name.as_str(), &c.simulation)))
    }

    /// The document of `simulate --json` (its keys: `docs/model.md`).
    #[must_use]
    pub fn json(&self) -> impl serde::Serialize + '_ {
        json::OnMachine::new(
            &self.machine,
            self.page_size,
            &self.simulation,
            self.node_choices.as_ref(),
        )
    }
}

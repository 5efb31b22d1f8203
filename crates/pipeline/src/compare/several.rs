//! Several programs at once, each on nodes of its own (AsymSched, Figures 6 and 7).

mod json;
mod text;

use super::movers::Movers;
use super::nodes::{DYNAMIC, STARTS};
use super::{Question, moving};
use crate::asym::{ASYM, DRAWN, MOST, assign_virtual_nodes, without_caches};
use crate::{Selected, Selection};
use anyhow::{Context as _, bail};
use nodewise_analysis::measure;
use nodewise_machine::{Channels, Machine, NodeId};
use nodewise_placement::asym::{Cluster, Options, Place, search, weight};
use nodewise_placement::{Mapping, VirtualNodes, virtual_affinity};
use nodewise_simulation as simulation;
use nodewise_simulation::{
    AfterEnd, DisjointPlacements, Moving, Parameters, Places, ProgramPhases, random_placement,
};
use std::path::{Path, PathBuf};

/// Approximate number of phases that are solved in total; takes some seconds.
const SOLVED: usize = 1_500_000;
/// Approximate number of iterations until the times of programs that run at once are consistent.
const ROUNDS: usize = 3;

/// Several programs at once, on one machine.
pub struct Together {
    machine: Machine,
    page_size: u64,
    after_end: AfterEnd,
    programs: Vec<ProgramDescription>,
    placements: DisjointPlacements,
    slices_together: usize,
    policies: Vec<Policy>,
    dynamic: Option<Dynamic>,
    /// Remarks of policies on their mappings.
    pub notes: Vec<String>,
}

/// A description of one program.
pub(super) struct ProgramDescription {
    pub profile: String,
    pub program: String,
    pub threads: VirtualNodes,
    pub resident_bytes: u64,
    /// Rate of accesses to other nodes if the program runs alone with the initial placement of pages, 1/s. The
    /// logarithm of this rate is the weight of the program's cluster.
    remote_per_second: f64,
}

/// The results of one policy, with all programs on every placement.
struct Policy {
    name: String,
    /// Predictions of each program, `[placement][program]`.
    outcomes: Vec<Vec<simulation::ProgramPrediction>>,
    /// Indices of the placements with the best and the worst overall speed.
    best: usize,
    worst: usize,
    /// Index of the placement with the highest weighted bandwidth.
    by_bandwidth: usize,
    /// For each placement, the geometric mean over programs of each program's speed relative to its average.
    speed: Vec<f64>,
}

/// Results if only pages move, with programs on random nodes, and on the nodes of the highest weighted bandwidth.
struct Dynamic {
    start: String,
    /// Predictions of each program, `[draw][program]`.
    draws: Vec<Vec<simulation::ProgramPrediction>>,
    by_bandwidth: Vec<simulation::ProgramPrediction>,
}

/// A program on virtual nodes.
pub(super) struct Program {
    pub description: ProgramDescription,
    pub selected: Selected,
    pub mappings: Vec<Mapping>,
    /// Remarks of policies on the mappings.
    pub notes: Vec<String>,
}

pub(super) fn predict(question: &Question, machine: &str) -> anyhow::Result<Together> {
    let list = question.list();
    let mut opened = open(question, machine)?;
    let parameters = question.parameters(machine, &opened[0].0.selected);
    let machine = opened[0].0.selected.machine.clone();
    let mut placements = places(&machine, &opened)?;
    for (at, (program, groups)) in opened.iter_mut().enumerate() {
        program.enter(groups, &placements.all[0][at], &list.pages)?;
    }
    let mut programs: Vec<Program> = opened.into_iter().map(|o| o.0).collect();
    let columns = list.moving.len() + programs[0].mappings.len();
    let all = Runs {
        question,
        list: &list,
        parameters: &parameters,
        machine: &machine,
        solved: SOLVED / (placements.all.len() * columns * programs.len().pow(2) * ROUNDS),
    };
    let all_phases = all.all_phases(&programs, &placements.all[0])?;
    all.weigh(&mut programs, &all_phases, &placements.all[0]);
    let by_bandwidth = placements.index(&machine, by_bandwidth(&machine, &programs)?);
    let policies = all.every(&all_phases, &placements, by_bandwidth);
    let dynamic = all.dynamic(&programs, &placements, by_bandwidth)?;
    Ok(Together {
        page_size: programs[0].selected.histogram.page_size(),
        after_end: all.after_end(),
        slices_together: all_phases.iter().map(|c| c.slices_together).max().unwrap_or(1),
        notes: programs.iter().flat_map(|p| p.notes.clone()).collect(),
        programs: programs.into_iter().map(|p| p.description).collect(),
        placements,
        policies,
        dynamic,
        machine,
    })
}

/// Opens all programs, with the number of each thread; they are not on virtual nodes yet.
pub(super) fn open(question: &Question, machine: &str) -> anyhow::Result<Vec<(Program, Vec<u32>)>> {
    let first = question.selection.profile.iter();
    let folders: Vec<&PathBuf> = first.chain(&question.more).collect();
    let opened = folders.iter().enumerate().map(|(i, folder)| {
        let count = question.cpus_of(i, folders.len())?;
        Program::open(question, machine, folder, count)
    });
    opened.collect()
}

/// All ways to put the programs on disjoint sets of nodes, or a sample of them.
pub(super) fn places(
    machine: &Machine,
    opened: &[(Program, Vec<u32>)],
) -> anyhow::Result<DisjointPlacements> {
    without_caches(machine, "several programs at once")?;
    let threads: Vec<Vec<u32>> = opened
        .iter()
        .map(|o| o.0.description.threads.sizes.clone())
        .collect();
    let needed: Vec<String> = threads.iter().map(|t| t.len().to_string()).collect();
    let there = machine.cpu_nodes().count();
    if threads.iter().map(Vec::len).sum::<usize>() > there {
        bail!(
            "the programs need {} nodes and {} has {there}: fewer threads each (--cpus 16), or fewer programs",
            needed.join(" + "),
            machine.name
        );
    }
    let placements = DisjointPlacements::new(machine, &threads, MOST, DRAWN as u64);
    if placements.all.is_empty() {
        bail!(
            "no {} nodes of {} have as many CPUs as the programs have threads",
            needed.join(" + "),
            machine.name
        );
    }
    Ok(placements)
}

/// The placement that AsymSched selects: each program is a cluster with its own weight.
fn by_bandwidth(machine: &Machine, programs: &[Program]) -> anyhow::Result<Places> {
    let cluster = |(at, p): (usize, &Program)| Cluster {
        application: at as u32,
        threads: (0..p.description.threads.of.len() as u32).collect(),
        nodes: p.description.threads.count(),
        weight: weight(p.description.remote_per_second),
        ..Cluster::default()
    };
    let clusters: Vec<Cluster> = programs.iter().enumerate().map(cluster).collect();
    let place = |node: NodeId| Place {
        node,
        threads: machine.nodes[node.index()].cpus.len(),
    };
    let places: Vec<Place> = machine.cpu_nodes().map(place).collect();
    let channels = Channels::of(machine);
    let found = search(&channels, &places, &clusters, &Options::default()).context("asym")?;
    Ok(found.best.places)
}

impl Program {
    /// Opens a program, with the number of each thread; it is not on virtual nodes yet.
    fn open(
        question: &Question,
        machine: &str,
        folder: &Path,
        count: Option<u32>,
    ) -> anyhow::Result<(Self, Vec<u32>)> {
        let selection = Selection {
            profile: Some(folder.to_owned()),
            machine: machine.to_owned(),
            affinity: "compact".into(),
            page_size: question.selection.page_size,
            other_runs: Vec::new(),
            plain: None,
            plain_cpu: None,
            core_factor: None,
        };
        let mut selected = selection.open()?;
        question.change(&mut selected.machine);
        if selected.profile().meta.observer.is_sampled() {
            bail!(
                "{}: counts are samples, so no time follows: record it with nodewise-cc",
                folder.display()
            );
        }
        let (groups, threads) = assign_virtual_nodes(&selected, count)?;
        let description = ProgramDescription {
            profile: selected.reader.folder().display().to_string(),
            program: selected.profile().program().to_owned(),
            threads,
            resident_bytes: selected.histogram.len() as u64 * selected.histogram.page_size(),
            remote_per_second: 0.0,
        };
        let program = Self {
            description,
            selected,
            mappings: Vec::new(),
            notes: Vec::new(),
        };
        Ok((program, groups))
    }

    /// Puts the program on virtual nodes; `nodes` are an example of real nodes for these.
    pub fn enter(&mut self, groups: &[u32], nodes: &[NodeId], policies: &str) -> anyhow::Result<()> {
        let (selected, of) = (&mut self.selected, &self.description.threads.of);
        selected.machine = VirtualNodes::machine(&selected.machine, nodes);
        selected.affinity = virtual_affinity(ASYM, groups, of, &selected.machine);
        (self.mappings, self.notes) = selected.mappings(policies)?;
        Ok(())
    }

    /// Number of accesses to other nodes with the initial placement of pages.
    fn remote(&self) -> f64 {
        let (s, start) = (&self.selected, &self.mappings[0].nodes);
        let found = measure(
            s.profile(),
            &s.histogram,
            &s.affinity,
            start,
            s.machine.node_count(),
        );
        let accesses: u64 = s
            .histogram
            .entries
            .iter()
            .map(nodewise_analysis::Entry::accesses)
            .sum();
        accesses as f64 * (1.0 - found.program.local_fraction())
    }
}

/// The inputs of all runs on one machine.
struct Runs<'a> {
    question: &'a Question,
    list: &'a moving::Split,
    parameters: &'a Parameters,
    machine: &'a Machine,
    /// Approximate number of phases that a program may have.
    solved: usize,
}

impl Runs<'_> {
    fn after_end(&self) -> AfterEnd {
        match self.question.restart {
            true => AfterEnd::Repeat,
            false => AfterEnd::Leave,
        }
    }

    /// The phases of each program under every policy of the list; policies that move pages decide as on the nodes
    /// `places`.
    fn all_phases(&self, programs: &[Program], places: &Places) -> anyhow::Result<Vec<ProgramPhases>> {
        let each = programs.iter().zip(places).map(|(program, nodes)| {
            let movers = self.movers(program).all()?;
            let on = vec![nodes.clone(); program.mappings.len() + movers.len()];
            self.program_phases(program, &program.mappings, movers, &on)
        });
        each.collect()
    }

    fn movers<'p>(&'p self, program: &'p Program) -> Movers<'p> {
        Movers {
            limits: &self.question.limits,
            drawn: self.question.trace,
            listed: self.question.moves,
            selected: &program.selected,
            list: self.list,
            parameters: self.parameters,
        }
    }

    fn program_phases(
        &self,
        program: &Program,
        mappings: &[Mapping],
        moving: Vec<Moving>,
        on: &[Vec<NodeId>],
    ) -> anyhow::Result<ProgramPhases> {
        let selected = &program.selected;
        Ok(simulation::program_phases(
            &selected.context(),
            (self.machine, on),
            mappings,
            moving,
            self.solved / selected.profile().regions.len().max(1),
            &selected.reader,
            self.parameters,
        )?)
    }

    fn at_once(
        &self,
        all_phases: &[ProgramPhases],
        runs: &[(usize, &Places)],
    ) -> Vec<Vec<simulation::ProgramPrediction>> {
        let program = |policy: usize, nodes: &Vec<NodeId>| simulation::Program {
            policy,
            nodes: nodes.clone(),
        };
        let run = |(policy, places): &(usize, &Places)| places.iter().map(|n| program(*policy, n)).collect();
        let runs: Vec<Vec<simulation::Program>> = runs.iter().map(run).collect();
        simulation::at_once(self.machine, all_phases, &runs, self.after_end())
    }

    /// Sets each program's rate of accesses to other nodes if it runs alone.
    fn weigh(&self, programs: &mut [Program], all_phases: &[ProgramPhases], places: &Places) {
        for ((program, program_phases), nodes) in programs.iter_mut().zip(all_phases).zip(places) {
            let alone = self.at_once(std::slice::from_ref(program_phases), &[(0, &vec![nodes.clone()])]);
            program.description.remote_per_second = program.remote() / alone[0][0].seconds.max(1e-9);
        }
    }

    /// Predicts every policy on every placement.
    fn every(
        &self,
        all_phases: &[ProgramPhases],
        placements: &DisjointPlacements,
        by_bandwidth: usize,
    ) -> Vec<Policy> {
        let runs: Vec<(usize, &Places)> = (0..all_phases[0].policies.len())
            .flat_map(|policy| placements.all.iter().map(move |places| (policy, places)))
            .collect();
        let outcomes = self.at_once(all_phases, &runs);
        let each = all_phases[0]
            .policies
            .iter()
            .zip(outcomes.chunks(placements.all.len()));
        each.map(|(name, outcomes)| Policy::new(name, outcomes, by_bandwidth))
            .collect()
    }

    /// Simulates [`DYNAMIC`] from random nodes, and once on the nodes of the highest bandwidth.
    fn dynamic(
        &self,
        programs: &[Program],
        placements: &DisjointPlacements,
        by_bandwidth: usize,
    ) -> anyhow::Result<Option<Dynamic>> {
        let threads: Vec<Vec<u32>> = programs
            .iter()
            .map(|p| p.description.threads.sizes.clone())
            .collect();
        let mut on = vec![
            placements.all[by_bandwidth].clone(),
            placements.all[by_bandwidth].clone(),
        ];
        on.extend((0..STARTS).filter_map(|seed| random_placement(self.machine, &threads, seed)));
        if placements.all.len() < 2 || on.len() == 2 {
            return Ok(None);
        }
        let program_phases = |(at, program): (usize, &Program)| {
            let on: Vec<Vec<NodeId>> = on.iter().map(|places| places[at].clone()).collect();
            let movers = self.movers(program);
            let moving = on[1..]
                .iter()
                .map(|_| movers.one(DYNAMIC))
                .collect::<anyhow::Result<_>>()?;
            self.program_phases(program, &program.mappings[..1], moving, &on)
        };
        let all_phases = programs
            .iter()
            .enumerate()
            .map(program_phases)
            .collect::<anyhow::Result<Vec<_>>>()?;
        let runs: Vec<(usize, &Places)> = on.iter().enumerate().skip(1).collect();
        let mut outcomes = self.at_once(&all_phases, &runs);
        Ok(Some(Dynamic {
            start: programs[0].mappings[0].policy.clone(),
            by_bandwidth: outcomes.remove(0),
            draws: outcomes,
        }))
    }
}

impl Together {
    /// Formats the comparison for the terminal.
    #[must_use]
    pub fn text(&self) -> String {
        text::write(self)
    }

    /// The document of `simulate DIR DIR … --json` (its keys: `docs/model.md`).
    #[must_use]
    pub fn json(&self) -> impl serde::Serialize + '_ {
        json::OnMachine::new(self)
    }
}

impl Policy {
    fn new(name: &str, outcomes: &[Vec<simulation::ProgramPrediction>], by_bandwidth: usize) -> Self {
        let programs = outcomes[0].len();
        let mean = |p: usize| outcomes.iter().map(|o| o[p].seconds).sum::<f64>() / outcomes.len() as f64;
        let means: Vec<f64> = (0..programs).map(mean).collect();
        let faster = |o: &Vec<simulation::ProgramPrediction>| {
            let each = o.iter().zip(&means);
            let logs = each.map(|(o, mean)| {
                if o.seconds > 0.0 {
                    (mean / o.seconds).ln()
                } else {
                    0.0
                }
            });
            (logs.sum::<f64>() / programs as f64).exp()
        };
        let speed: Vec<f64> = outcomes.iter().map(faster).collect();
        let spread = simulation::Spread::of(&speed);
        Self {
            name: name.to_owned(),
            best: spread.most.0,
            worst: spread.least.0,
            by_bandwidth,
            outcomes: outcomes.to_vec(),
            speed,
        }
    }

    /// Times of one program, by placement, seconds.
    fn seconds(&self, program: usize) -> Vec<f64> {
        self.outcomes.iter().map(|o| o[program].seconds).collect()
    }

    /// Latencies of one program, by placement, nanoseconds.
    fn latency_ns(&self, program: usize) -> Vec<f64> {
        self.outcomes.iter().map(|o| o[program].latency_ns).collect()
    }
}

impl Dynamic {
    fn seconds(&self, program: usize) -> Vec<f64> {
        self.draws.iter().map(|o| o[program].seconds).collect()
    }

    fn latency_ns(&self, program: usize) -> Vec<f64> {
        self.draws.iter().map(|o| o[program].latency_ns).collect()
    }
}

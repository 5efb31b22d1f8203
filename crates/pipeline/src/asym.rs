//! Joint placement of threads and pages: a program on virtual nodes, and the real nodes on which it is fastest.

use crate::selection::Selected;
use nodewise_analysis::thread_numbers;
use nodewise_machine::{Machine, NodeId};
use nodewise_placement::{Mapping, Placements, VirtualNodes, virtual_affinity};
use nodewise_simulation::{Choice, Moving, Parameters, Spread, survey};

/// Beyond this many placements only some are predicted.
pub const MOST: usize = 10_000;
/// This many of them, drawn.
pub const DRAWN: usize = 2_000;

/// The thread policy of that name.
pub const ASYM: &str = "asym";

/// A program that has no nodes yet, and those there are.
pub struct Asym {
    /// The machine; what is selected has virtual nodes instead.
    pub machine: Machine,
    /// Threads on virtual nodes.
    pub threads: VirtualNodes,
    /// The ways to choose real ones.
    pub placements: Placements,
}

/// The number of each thread, and on which virtual node those numbers are.
pub fn dealt(selected: &Selected, folded: Option<u32>) -> anyhow::Result<(Vec<u32>, VirtualNodes)> {
    let machine = &selected.machine;
    Ok(match folded {
        Some(cpus) => {
            let few = crate::folded::fewer(selected, cpus)?;
            let threads = VirtualNodes::new(&few.profile, &few.histogram, machine);
            (few.groups, threads)
        }
        None => (
            thread_numbers(selected.profile()),
            VirtualNodes::new(selected.profile(), &selected.histogram, machine),
        ),
    })
}

impl Asym {
    /// Puts what is selected on virtual nodes: threads by number, or `folded` to fewer.
    pub fn enter(selected: &mut Selected, folded: Option<u32>) -> anyhow::Result<Self> {
        let machine = selected.machine.clone();
        let (groups, threads) = dealt(selected, folded)?;
        let placements = threads.placements(&machine, MOST, DRAWN)?;
        selected.machine = VirtualNodes::machine(&machine, &placements.all[placements.by_bandwidth]);
        selected.affinity = virtual_affinity(ASYM, &groups, &threads.of, &selected.machine);
        Ok(Self {
            machine,
            threads,
            placements,
        })
    }

    /// Every policy on every placement.
    pub fn survey(
        &self,
        selected: &Selected,
        mappings: &[Mapping],
        moving: Vec<Moving>,
        parameters: &Parameters,
    ) -> anyhow::Result<Vec<Choice>> {
        let nodes = (&self.machine, self.placements.all.as_slice());
        Ok(survey(
            &selected.context(),
            nodes,
            mappings,
            moving,
            &selected.reader,
            parameters,
        )?)
    }

    /// The nodes on which a policy is fastest.
    pub fn best(&self, choice: &Choice) -> &[NodeId] {
        &self.placements.all[Spread::of(&choice.seconds).least.0]
    }

    /// Virtual nodes become real again: the affinity, and a mapping's pages.
    pub fn leave(&self, selected: &mut Selected, mapping: &mut Mapping, nodes: &[NodeId]) {
        selected.affinity = self
            .threads
            .affinity(ASYM, selected.profile(), &self.machine, nodes);
        selected.machine = self.machine.clone();
        mapping.nodes.iter_mut().for_each(|n| *n = nodes[n.index()]);
    }
}

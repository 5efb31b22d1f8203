//! Joint placement of threads and pages: a program on virtual nodes, and the real nodes on which it is fastest.

use crate::selection::Selected;
use anyhow::bail;
use nodewise_analysis::thread_numbers;
use nodewise_machine::{Machine, NodeId};
use nodewise_placement::{Mapping, Placements, VirtualNodes, virtual_affinity};
use nodewise_simulation::{Choice, Moving, Parameters, Spread, survey};

/// If there are more placements than this, only a random sample is predicted.
pub const MOST: usize = 10_000;
/// Size of that sample.
pub const DRAWN: usize = 2_000;

/// Name of the thread policy.
pub const ASYM: &str = "asym";

/// A program on virtual nodes, and the real nodes that it may use.
pub struct Asym {
    /// The real machine; the selection has virtual nodes instead.
    pub machine: Machine,
    /// Threads on virtual nodes.
    pub threads: VirtualNodes,
    /// The possible assignments of real to virtual nodes.
    pub placements: Placements,
}

/// Refuses machines with memory-side caches, whose hits depend on which real node each page of each program is on.
pub(crate) fn without_caches(machine: &Machine, what: &str) -> anyhow::Result<()> {
    if machine.has_memory_side_caches() {
        bail!(
            "{}: memory-side caches are predicted for one program on all nodes, not with {what}",
            machine.name
        );
    }
    Ok(())
}

/// The number of each thread, and the virtual node of each of these numbers.
pub fn assign_virtual_nodes(
    selected: &Selected,
    folded: Option<u32>,
) -> anyhow::Result<(Vec<u32>, VirtualNodes)> {
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
    /// Puts the selection on virtual nodes: threads by number, or `folded` onto fewer CPUs.
    pub fn to_virtual(selected: &mut Selected, folded: Option<u32>) -> anyhow::Result<Self> {
        let machine = selected.machine.clone();
        without_caches(&machine, "--affinity asym")?;
        let (groups, threads) = assign_virtual_nodes(selected, folded)?;
        let placements = threads.placements(&machine, MOST, DRAWN)?;
        selected.machine = VirtualNodes::machine(&machine, &placements.all[placements.by_bandwidth]);
        selected.affinity = virtual_affinity(ASYM, &groups, &threads.of, &selected.machine);
        Ok(Self {
            machine,
            threads,
            placements,
        })
    }

    /// Predicts every policy on every placement.
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

    /// Replaces virtual nodes by real ones, in the affinity and in a mapping's pages.
    pub fn to_real(&self, selected: &mut Selected, mapping: &mut Mapping, nodes: &[NodeId]) {
        selected.affinity = self
            .threads
            .affinity(ASYM, selected.profile(), &self.machine, nodes);
        selected.machine = self.machine.clone();
        mapping.nodes.iter_mut().for_each(|n| *n = nodes[n.index()]);
    }
}

//! Scales a machine description to what this host can emulate.

use crate::LabError;
use nodewise_analysis::figures::bytes;
use nodewise_linux::Host;
use nodewise_machine::{CpuId, Machine, Node, NodeId};

/// Limit for the counters' tables and for the duration of a run.
const MAX_NODES: usize = 16;
/// By default each node with CPUs gets two virtual CPUs if these are no more than this number, else one.
const DEFAULT_MAX_CPUS: usize = 8;
/// More CPUs would need an interrupt remapper.
const MAX_CPUS: u32 = 255;
/// Smallest memory of a node with room for page tables, caches and data.
const MIN_MEMORY: u64 = 96 << 20;
/// Default memory of a node: enough for inputs that are small enough for an emulator.
const DEFAULT_MEMORY: u64 = 512 << 20;
/// Memory sizes are multiples of this, so that the kernel's zones begin at node boundaries.
const MEMORY_GRANULE: u64 = 32 << 20;
/// Largest distance: distances are bytes, and 255 means unreachable (ACPI 6.5, 5.2.17).
const MAX_DISTANCE: f64 = 254.0;

/// Size of the whole guest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Number of virtual CPUs; `None`: chosen for this host.
    pub cpus: Option<u32>,
    /// Size of the memory, bytes; `None`: chosen for this host.
    pub memory: Option<u64>,
}

/// A machine as scaled for the guest.
#[derive(Clone, Debug, PartialEq)]
pub struct VirtualMachine {
    /// Nodes, CPUs and memory as scaled, with pages of 4 KiB; latencies, links and routes are unchanged.
    pub machine: Machine,
    /// Distances `[from][to]` as Linux shows them: 10 is local.
    pub distances: Vec<Vec<u8>>,
    /// How the machine was scaled, one line for people; `None` if it was not.
    pub scale: Option<String>,
}

impl VirtualMachine {
    /// Scales `machine` to `size`; sizes that are not given are chosen for this host.
    ///
    /// # Errors
    /// If there are more than 16 nodes, or the size is too small for the machine.
    pub fn of(machine: &Machine, size: &Size) -> Result<Self, LabError> {
        let available = Host::default().available_memory().unwrap_or(4 << 30);
        Self::within(machine, size, available / 2)
    }

    /// [`VirtualMachine::of`] if memory of default size may take `room` bytes in total.
    fn within(machine: &Machine, size: &Size, room: u64) -> Result<Self, LabError> {
        let count = machine.node_count();
        if count > MAX_NODES {
            return Err(LabError::usage(format!(
                "machine {} has {count} nodes; the lab can emulate {MAX_NODES}",
                machine.name
            )));
        }
        let cpus = scaled_cpus(machine, size.cpus)?;
        let memory = scaled_memory(machine, size.memory, room)?;
        let mut scaled = machine.clone();
        scaled.page_size = 4096;
        for (index, node) in scaled.nodes.iter_mut().enumerate() {
            node.os_index = index as u32;
            node.cpus.clone_from(&cpus[index]);
            node.memory = memory[index];
        }
        Ok(Self {
            distances: distances(machine),
            scale: scale(machine, &scaled),
            machine: scaled,
        })
    }

    /// The node whose CPUs are nearest to a memory node: the node itself, if it has CPUs.
    pub(crate) fn initiator(&self, memory: NodeId) -> NodeId {
        if !self.machine.nodes[memory.index()].cpus.is_empty() {
            return memory;
        }
        let latency = |reader: &NodeId| self.machine.latency(*reader, memory);
        let nearest = self
            .machine
            .cpu_nodes()
            .min_by(|a, b| latency(a).total_cmp(&latency(b)));
        nearest.unwrap_or(memory)
    }
}

/// Divides `total` in proportion to `weights` into multiples of a unit, each at least `least`; remainders go to the
/// largest fractions first.
fn apportion(total: u64, weights: &[u64], least: u64) -> Vec<u64> {
    let sum: u128 = weights.iter().map(|w| u128::from(*w)).sum::<u128>().max(1);
    let exact = |w: &u64| u128::from(total) * u128::from(*w);
    let mut parts: Vec<u64> = weights
        .iter()
        .map(|w| ((exact(w) / sum) as u64).max(least))
        .collect();
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by_key(|i| std::cmp::Reverse(exact(&weights[*i]) % sum));
    for i in order.iter().cycle().take(weights.len()) {
        parts[*i] += u64::from(parts.iter().sum::<u64>() < total);
    }
    while parts.iter().sum::<u64>() > total {
        match parts.iter_mut().filter(|p| **p > least).max() {
            Some(largest) => *largest -= 1,
            None => break,
        }
    }
    parts
}

fn scaled_cpus(machine: &Machine, asked: Option<u32>) -> Result<Vec<Vec<CpuId>>, LabError> {
    let nodes = machine.cpu_nodes().count();
    let all = machine.cpus().len();
    let usual = if 2 * nodes <= DEFAULT_MAX_CPUS {
        2 * nodes
    } else {
        nodes
    };
    let total = asked.map_or(usual, |n| n as usize).min(all);
    if total < nodes {
        return Err(LabError::usage(format!(
            "{total} CPUs cannot be spread over the {nodes} nodes of {} that have CPUs",
            machine.name
        )));
    }
    if total > MAX_CPUS as usize {
        return Err(LabError::usage(format!(
            "{total} CPUs: the lab can emulate {MAX_CPUS}"
        )));
    }
    let with_cpus: Vec<&Node> = machine.nodes.iter().filter(|n| !n.cpus.is_empty()).collect();
    let weights: Vec<u64> = with_cpus.iter().map(|n| n.cpus.len() as u64).collect();
    let mut parts = apportion(total as u64, &weights, 1).into_iter();
    let kept = machine.nodes.iter().map(|node| match node.cpus.len() {
        0 => Vec::new(),
        count => spread(&node.cpus, parts.next().unwrap_or(1).min(count as u64) as usize),
    });
    Ok(renumbered(&kept.collect::<Vec<_>>()))
}

/// Chooses `count` of the CPUs, evenly spread.
fn spread(cpus: &[CpuId], count: usize) -> Vec<CpuId> {
    (0..count).map(|k| cpus[k * cpus.len() / count]).collect()
}

/// Renumbers the kept CPUs without gaps, in the same order over nodes: a machine that numbers CPUs round-robin over its
/// nodes still does so.
fn renumbered(kept: &[Vec<CpuId>]) -> Vec<Vec<CpuId>> {
    let mut all: Vec<CpuId> = kept.iter().flatten().copied().collect();
    all.sort_unstable();
    let number = |cpu: &CpuId| CpuId(all.binary_search(cpu).unwrap_or(0) as u32);
    kept.iter()
        .map(|node| node.iter().map(number).collect())
        .collect()
}

fn scaled_memory(machine: &Machine, asked: Option<u64>, room: u64) -> Result<Vec<u64>, LabError> {
    let weights: Vec<u64> = machine.nodes.iter().map(|n| n.memory).collect();
    let (nodes, all) = (weights.len() as u64, weights.iter().sum::<u64>());
    let total = asked.unwrap_or_else(|| (nodes * DEFAULT_MEMORY).min(all).min(room));
    if total < nodes * MIN_MEMORY {
        return Err(LabError::usage(format!(
            "{} of memory is too little for {nodes} nodes: each needs {}{}",
            bytes(total >> 20 << 20),
            bytes(MIN_MEMORY),
            if asked.is_some() {
                ""
            } else {
                "; --memory takes it"
            },
        )));
    }
    let least = MIN_MEMORY / MEMORY_GRANULE;
    let grains = apportion(total / MEMORY_GRANULE, &weights, least);
    Ok(grains.into_iter().map(|g| g * MEMORY_GRANULE).collect())
}

fn distances(machine: &Machine) -> Vec<Vec<u8>> {
    let distance = |reader: NodeId, memory: NodeId| {
        if reader == memory {
            return 10;
        }
        let relative = 10.0 * machine.latency(reader, memory) / machine.latency(reader, reader);
        relative.round().clamp(11.0, MAX_DISTANCE) as u8
    };
    machine
        .node_ids()
        .map(|r| machine.node_ids().map(|m| distance(r, m)).collect())
        .collect()
}

fn scale(whole: &Machine, scaled: &Machine) -> Option<String> {
    let memory = |m: &Machine| m.nodes.iter().map(|n| n.memory).sum::<u64>();
    let same = |a: &Node, b: &Node| a.cpus.len() == b.cpus.len() && a.memory == b.memory;
    let pages = whole.page_size != scaled.page_size;
    if !pages && whole.nodes.iter().zip(&scaled.nodes).all(|(a, b)| same(a, b)) {
        return None;
    }
    let mut line = format!(
        "{}: {} of {} CPUs, {} of {} memory",
        whole.name,
        scaled.cpus().len(),
        whole.cpus().len(),
        bytes(memory(scaled)),
        bytes(memory(whole)),
    );
    if pages {
        line += &format!(
            ", pages of {} instead of {}",
            bytes(scaled.page_size),
            bytes(whole.page_size)
        );
    }
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn usual(name: &str) -> VirtualMachine {
        VirtualMachine::within(&Machine::named(name).unwrap(), &Size::default(), 8 << 30).unwrap()
    }

    #[test]
    fn every_shipped_machine_fits_and_stays_one() {
        for name in Machine::names() {
            let virtual_machine = usual(name);
            let machine = &virtual_machine.machine;
            machine.validate().unwrap();
            assert!(machine.cpus().len() <= 16, "{name}");
            let whole = Machine::named(name).unwrap();
            for (node, was) in machine.nodes.iter().zip(&whole.nodes) {
                assert_eq!(node.cpus.is_empty(), was.cpus.is_empty(), "{name}");
                assert!(node.memory >= MIN_MEMORY && node.memory.is_multiple_of(MEMORY_GRANULE));
            }
            let same = machine.nodes == whole.nodes && machine.page_size == whole.page_size;
            assert_eq!(virtual_machine.scale.is_none(), same, "{name}");
        }
    }

    #[test]
    fn numbering_round_the_nodes_is_kept() {
        let machine = usual("2s-skx-class").machine;
        let of = |node: usize| machine.nodes[node].cpus.iter().map(|c| c.0).collect::<Vec<_>>();
        assert_eq!((of(0), of(1)), (vec![0, 2], vec![1, 3]));
    }

    #[test]
    fn distances_are_relative_to_the_readers_own() {
        let distances = usual("itanium-9030").distances;
        assert_eq!(distances, [[10, 21], [21, 10]]);
    }

    #[test]
    fn sizes_too_small_say_how_much_is_needed() {
        let machine = Machine::named("machine-a").unwrap();
        let error = |size| VirtualMachine::within(&machine, &size, 8 << 30).unwrap_err();
        let cpus = error(Size {
            cpus: Some(7),
            memory: None,
        });
        assert_eq!(cpus.exit_status(), 2);
        assert!(
            cpus.to_string()
                .contains("7 CPUs cannot be spread over the 8 nodes")
        );
        let memory = error(Size {
            cpus: None,
            memory: Some(512 << 20),
        });
        assert!(memory.to_string().contains("each needs 96 MiB"), "{memory}");
    }

    #[test]
    fn a_machine_that_fits_is_not_scaled() {
        let mut machine = Machine::named("machine-a").unwrap();
        for node in &mut machine.nodes {
            node.cpus.truncate(1);
            node.memory = 256 << 20;
        }
        assert_eq!(
            VirtualMachine::within(&machine, &Size::default(), 8 << 30)
                .unwrap()
                .scale,
            None
        );
    }

    proptest! {
        #[test]
        fn parts_add_up_and_keep_the_least(
            weights in proptest::collection::vec(1u64..1 << 40, 1..17), extra in 0u64..5000, least in 1u64..5,
        ) {
            let total = least * weights.len() as u64 + extra;
            let parts = apportion(total, &weights, least);
            prop_assert_eq!(parts.iter().sum::<u64>(), total);
            prop_assert!(parts.iter().all(|p| *p >= least));
        }

        #[test]
        fn equal_weights_get_equal_parts(count in 1usize..17, each in 1u64..1000) {
            prop_assert_eq!(apportion(each * count as u64, &vec![7; count], 1), vec![each; count]);
        }
    }
}

//! The machine that a session runs on, and the nodes and CPUs that may be used.

use crate::error::LiveError;
use nodewise_linux::Host;
use nodewise_machine::{CpuId, Machine, NodeId, format_list, parse_list};
use nodewise_placement::Tier;
use std::collections::{BTreeMap, BTreeSet};

/// Nodes with their CPUs, and the links between them.
pub struct Topology {
    /// The nodes, links and distances.
    pub machine: Machine,
    /// Node of each CPU, by the kernel's number.
    node_of_cpu: Vec<NodeId>,
    /// The first hardware thread of the core of each CPU, by the kernel's numbers; empty without simultaneous
    /// multithreading, where each CPU is a core.
    core_of_cpu: BTreeMap<u32, u32>,
    /// Whether nodes are pretended: nothing can be moved between them.
    pub pretended: bool,
    /// Whether links are known, from a machine file; the kernel does not report them.
    pub links_known: bool,
    /// A message for the user on the topology.
    pub(crate) notice: Option<String>,
}

impl Topology {
    /// This host; `graph` names a machine (or its file) with the links of this host. With `pretend`, that many nodes
    /// are simulated and CPUs distributed over them: decisions can be watched on any host, and nothing is moved.
    ///
    /// # Errors
    /// sysfs cannot be read, or `graph` is no machine of as many nodes.
    pub fn this(host: &Host, graph: Option<&str>, pretend: Option<usize>) -> Result<Self, LiveError> {
        let this = Machine::from_sysfs(&host.sys(), "this")?;
        let machine = match pretend {
            Some(nodes) if nodes > 1 => pretended(&this, nodes),
            _ => this,
        };
        let (machine, notice) = match graph {
            Some(spec) => linked(machine, spec)?,
            None => (machine, None),
        };
        let mut node_of_cpu = Vec::new();
        for (cpu, node) in machine.cpus() {
            node_of_cpu.resize(node_of_cpu.len().max(cpu.0 as usize + 1), NodeId(0));
            node_of_cpu[cpu.0 as usize] = node;
        }
        Ok(Self {
            pretended: pretend.is_some(),
            links_known: graph.is_some(),
            core_of_cpu: cores(host, machine.cpus().iter().map(|(cpu, _)| cpu.0)),
            machine,
            node_of_cpu,
            notice,
        })
    }

    /// Whether there is no more than one node with memory: nothing can be moved.
    #[must_use]
    pub fn single(&self) -> bool {
        self.machine.nodes.iter().filter(|n| n.memory > 0).count() < 2
    }

    /// Whether there is more than one node with CPUs: otherwise threads have nothing to choose.
    #[must_use]
    pub fn threads_have_a_choice(&self) -> bool {
        self.machine.nodes.iter().filter(|n| !n.cpus.is_empty()).count() > 1
    }

    /// The node of a CPU, by the kernel's number.
    #[must_use]
    pub fn node_of_cpu(&self, cpu: u32) -> Option<NodeId> {
        self.node_of_cpu.get(cpu as usize).copied()
    }

    /// The logical node with the kernel's number.
    #[must_use]
    pub fn node(&self, os_index: u32) -> Option<NodeId> {
        let at = self.machine.nodes.iter().position(|n| n.os_index == os_index)?;
        Some(NodeId(at as u32))
    }

    /// The kernel's number of a node outside a tier that has memory and no CPUs.
    pub(crate) fn slow_without_cpus(&self, tier: &Tier) -> Option<u32> {
        let outside = self.machine.node_ids().filter(|n| !tier.nodes().contains(n));
        let mut outside = outside.map(|n| &self.machine.nodes[n.index()]);
        let node = outside.find(|n| n.cpus.is_empty() && n.memory > 0)?;
        Some(node.os_index)
    }

    /// The usable CPUs of a node.
    #[must_use]
    pub fn cpus(&self, node: NodeId) -> &[CpuId] {
        &self.machine.nodes[node.index()].cpus
    }

    /// Those of these CPUs that are on a node, by the kernel's numbers.
    #[must_use]
    pub fn cpus_among(&self, node: NodeId, cpus: &[u32]) -> Vec<u32> {
        let here = self.cpus(node).iter().map(|c| c.0);
        here.filter(|c| cpus.contains(c)).collect()
    }

    /// How many cores these CPUs of a node belong to.
    #[must_use]
    pub fn cores_among(&self, node: NodeId, cpus: &[u32]) -> usize {
        let here = self.cpus_among(node, cpus);
        let cores: BTreeSet<u32> = here
            .iter()
            .map(|c| self.core_of_cpu.get(c).copied().unwrap_or(*c))
            .collect();
        cores.len()
    }

    /// The kernel's numbers of these nodes, as people write them.
    #[must_use]
    pub fn list(&self, nodes: impl IntoIterator<Item = NodeId>) -> String {
        let nodes = nodes.into_iter().map(|n| self.machine.nodes[n.index()].os_index);
        let mut nodes: Vec<u32> = nodes.collect();
        nodes.sort_unstable();
        nodes.dedup();
        format_list(&nodes)
    }

    /// The kernel's numbers of all nodes.
    #[must_use]
    pub fn os_indices(&self) -> Vec<u32> {
        self.machine.nodes.iter().map(|n| n.os_index).collect()
    }
}

/// The first hardware thread of the core of each of these CPUs; nothing where multithreading is off.
fn cores(host: &Host, cpus: impl Iterator<Item = u32>) -> BTreeMap<u32, u32> {
    let active = host.read("sys/devices/system/cpu/smt/active");
    if active.is_ok_and(|active| active.trim() != "1") {
        return BTreeMap::new();
    }
    let core = |cpu: u32| {
        let siblings = host.read(&format!(
            "sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"
        ));
        let first = parse_list(siblings.ok()?.trim())?.into_iter().min()?;
        Some((cpu, first))
    };
    cpus.filter_map(core).collect()
}

/// The nodes of this host with the links of a machine file.
fn linked(here: Machine, spec: &str) -> Result<(Machine, Option<String>), LiveError> {
    let file = Machine::load(spec).map_err(|e| LiveError::context("--machine", &e))?;
    if file.node_count() != here.node_count() {
        return Err(LiveError::new(format!(
            "--machine {spec}: it has {} nodes, this host {}; `nodewise topo --measure -o FILE` makes this host's own file",
            file.node_count(),
            here.node_count()
        )));
    }
    let cpus = |m: &Machine| m.nodes.iter().map(|n| n.cpus.clone()).collect::<Vec<_>>();
    let others = cpus(&file) != cpus(&here);
    let notice =
        others.then(|| format!("{spec} has other CPUs than this host: only how its nodes are linked counts"));
    let linked = Machine {
        latency_ns: file.latency_ns,
        links: file.links,
        routes: file.routes,
        hop_rules: file.hop_rules,
        backplane: file.backplane,
        ..here
    };
    Ok((linked, notice))
}

fn pretended(this: &Machine, nodes: usize) -> Machine {
    let cpus = this.cpus();
    let mut machine = this.clone();
    let node = |n: usize| {
        let mut node = this.nodes[0].clone();
        node.os_index = n as u32;
        node.cpus = cpus.iter().skip(n).step_by(nodes).map(|c| c.0).collect();
        node
    };
    machine.nodes = (0..nodes).map(node).collect();
    let latency = |from: usize, to: usize| if from == to { 100.0 } else { 200.0 };
    machine.latency_ns = (0..nodes)
        .map(|from| (0..nodes).map(|to| latency(from, to)).collect())
        .collect();
    machine.routes = vec![vec![this.routes[0][0].clone(); nodes]; nodes];
    machine.links = Vec::new();
    machine
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hardware_threads_of_a_core_are_one_core() {
        let root = std::env::temp_dir().join(format!("nodewise-cores-{}", std::process::id()));
        let cpu = |n: u32, siblings: &str| {
            let folder = root.join(format!("sys/devices/system/cpu/cpu{n}/topology"));
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("thread_siblings_list"), siblings).unwrap();
        };
        (0..4).for_each(|n| cpu(n, &format!("{},{}\n", n % 2, n % 2 + 2)));
        let smt = root.join("sys/devices/system/cpu/smt");
        std::fs::create_dir_all(&smt).unwrap();
        let cores_if = |active: &str| {
            std::fs::write(smt.join("active"), active).unwrap();
            let machine = Machine::named("nehalem-2s").unwrap();
            let topology = Topology {
                core_of_cpu: cores(&Host::at(&root), 0..4),
                node_of_cpu: Vec::new(),
                pretended: false,
                links_known: false,
                notice: None,
                machine,
            };
            let node = topology.machine.cpus()[0].1;
            (
                topology.cores_among(node, &[0, 1, 2, 3]),
                topology.cores_among(node, &[0, 2]),
            )
        };
        assert_eq!((cores_if("1\n"), cores_if("0\n")), ((2, 1), (4, 2)));
        std::fs::remove_dir_all(&root).unwrap();
    }
}

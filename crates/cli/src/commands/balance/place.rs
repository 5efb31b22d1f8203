//! The machine we balance on.

use crate::launch::failure;
use crate::output::say;
use anyhow::{Context, bail};
use nodewise_linux::Host;
use nodewise_machine::{CpuId, Machine, NodeId, format_list};

/// Makes up so many nodes and deals CPUs out to them: decisions can then be watched on any host, and
/// nothing is moved.
const PRETEND: &str = "NODEWISE_PRETEND_NODES";

/// Nodes and the CPUs on them.
pub struct Place {
    pub machine: Machine,
    /// By the kernel's number of the CPU.
    node_of_cpu: Vec<NodeId>,
    pub pretended: bool,
    /// Somebody has said how nodes are linked: the kernel does not know.
    pub links_known: bool,
}

impl Place {
    /// Here; `graph` names a machine whose links these are.
    pub fn this(host: &Host, graph: Option<&str>) -> anyhow::Result<Self> {
        let this = Machine::from_sysfs(&host.sys(), "this")?;
        let pretended = std::env::var(PRETEND).ok().and_then(|n| n.parse::<usize>().ok());
        let machine = match pretended {
            Some(nodes) if nodes > 1 => pretend(&this, nodes),
            _ => this,
        };
        let machine = match graph {
            Some(spec) => linked(machine, spec)?,
            None => machine,
        };
        let mut node_of_cpu = Vec::new();
        for (cpu, node) in machine.cpus() {
            node_of_cpu.resize(node_of_cpu.len().max(cpu.0 as usize + 1), NodeId(0));
            node_of_cpu[cpu.0 as usize] = node;
        }
        Ok(Self {
            pretended: pretended.is_some(),
            links_known: graph.is_some(),
            machine,
            node_of_cpu,
        })
    }

    /// Whether there is anything to choose.
    pub fn single(&self) -> bool {
        self.machine.nodes.iter().filter(|n| n.memory > 0).count() < 2
    }

    pub fn node_of_cpu(&self, cpu: u32) -> Option<NodeId> {
        self.node_of_cpu.get(cpu as usize).copied()
    }

    /// The logical node with the kernel's number.
    pub fn node(&self, os_index: u32) -> Option<NodeId> {
        let at = self.machine.nodes.iter().position(|n| n.os_index == os_index)?;
        Some(NodeId(at as u32))
    }

    /// A node's CPUs.
    pub fn cpus(&self, node: NodeId) -> &[CpuId] {
        &self.machine.nodes[node.index()].cpus
    }

    /// The kernel's numbers of these nodes, as people write them.
    pub fn list(&self, nodes: impl IntoIterator<Item = NodeId>) -> String {
        let nodes = nodes.into_iter().map(|n| self.machine.nodes[n.index()].os_index);
        let mut nodes: Vec<u32> = nodes.collect();
        nodes.sort_unstable();
        nodes.dedup();
        format_list(&nodes)
    }

    /// The kernel's numbers.
    pub fn os_indices(&self) -> Vec<u32> {
        self.machine.nodes.iter().map(|n| n.os_index).collect()
    }
}

/// The nodes that are here, joined as those of a machine file.
fn linked(here: Machine, spec: &str) -> anyhow::Result<Machine> {
    let file = Machine::load(spec).with_context(|| "--machine".to_owned())?;
    if file.node_count() != here.node_count() {
        bail!(
            "--machine {spec}: it has {} nodes, this host {}; `nodewise topo --measure -o FILE` makes this host's own file",
            file.node_count(),
            here.node_count()
        );
    }
    let cpus = |m: &Machine| m.nodes.iter().map(|n| n.cpus.clone()).collect::<Vec<_>>();
    if cpus(&file) != cpus(&here) {
        say!("{spec} has other CPUs than this host: only how its nodes are linked counts");
    }
    Ok(Machine {
        latency_ns: file.latency_ns,
        links: file.links,
        routes: file.routes,
        hop_rules: file.hop_rules,
        backplane: file.backplane,
        ..here
    })
}

fn pretend(this: &Machine, nodes: usize) -> Machine {
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

/// One node: nothing to be done, said in one line.
pub fn nothing_to_do() -> anyhow::Result<()> {
    bail!("one memory node here: there is nothing to balance; `nodewise lab` has machines with more")
}

/// The same of a command, which has another status for our own failures.
pub fn own(error: &anyhow::Error) -> anyhow::Error {
    failure(125, format!("{error:#}"))
}

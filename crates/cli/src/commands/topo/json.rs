//! JSON form of a machine; the keys are documented in `docs/machines.md`.

use nodewise_machine::{HopRule, LinkId, Machine, MemoryKind, NodeId};
use serde::Serialize;

#[derive(Serialize)]
pub struct Topology {
    name: String,
    title: String,
    page_size: u64,
    numa_factor: f64,
    nodes: Vec<Node>,
    latency_ns: Vec<Vec<f64>>,
    #[serde(rename = "bandwidth_MBps")]
    bandwidth: Vec<Vec<f64>>,
    #[serde(rename = "backplane_MBps")]
    backplane: Option<f64>,
    links: Vec<Link>,
    routes: Vec<Route>,
    hop_rules: Vec<HopRule>,
    sources: Vec<Source>,
}

#[derive(Serialize)]
struct Node {
    node: u32,
    os_index: u32,
    cpus: Vec<u32>,
    memory_bytes: u64,
    kind: Option<MemoryKind>,
    socket: Option<u32>,
    cache: Option<Cache>,
    #[serde(rename = "bandwidth_MBps")]
    bandwidth: f64,
}

/// A memory-side cache in front of the node's memory.
#[derive(Serialize)]
struct Cache {
    #[serde(rename = "memory_bytes")]
    memory: u64,
    #[serde(rename = "bandwidth_MBps")]
    bandwidth: f64,
    latency_ns: Vec<f64>,
}

#[derive(Serialize)]
struct Link {
    from: Vec<u32>,
    to: Vec<u32>,
    class: Option<String>,
    #[serde(rename = "bandwidth_MBps")]
    bandwidth: f64,
}

/// The route between a pair of different nodes.
#[derive(Serialize)]
struct Route {
    memory: u32,
    reader: u32,
    via: Vec<u32>,
    links: Vec<u32>,
    #[serde(rename = "bandwidth_MBps")]
    bandwidth: f64,
}

#[derive(Serialize)]
struct Source {
    field: String,
    text: String,
    assumed: bool,
}

impl Topology {
    pub fn of(machine: &Machine) -> Self {
        let ids = || machine.node_ids();
        let route = |(memory, reader): (NodeId, NodeId)| Route {
            memory: memory.0,
            reader: reader.0,
            via: numbers(&machine.via(reader, memory)),
            links: machine.route(reader, memory).links.iter().map(|l| l.0).collect(),
            bandwidth: machine.route(reader, memory).bandwidth,
        };
        let pairs = ids()
            .flat_map(|m| ids().map(move |r| (m, r)))
            .filter(|(m, r)| m != r);
        let row = |r: NodeId| ids().map(|m| machine.route(r, m).bandwidth).collect();
        let source = |s: &nodewise_machine::Source| Source {
            field: s.field.clone(),
            text: s.text.clone(),
            assumed: s.assumed,
        };
        Self {
            name: machine.name.clone(),
            title: machine.title.clone(),
            page_size: machine.page_size,
            numa_factor: machine.numa_factor(),
            nodes: ids().map(|n| node(machine, n)).collect(),
            latency_ns: machine.latency_ns.clone(),
            bandwidth: ids().map(row).collect(),
            backplane: machine.backplane,
            links: (0..machine.links.len() as u32)
                .map(|l| link(machine, LinkId(l)))
                .collect(),
            routes: pairs.map(route).collect(),
            hop_rules: machine.hop_rules.clone(),
            sources: machine.sources.iter().map(source).collect(),
        }
    }
}

fn node(machine: &Machine, id: NodeId) -> Node {
    let node = &machine.nodes[id.index()];
    Node {
        node: id.0,
        os_index: node.os_index,
        cpus: node.cpus.iter().map(|c| c.0).collect(),
        memory_bytes: node.memory,
        kind: node.kind,
        socket: node.socket,
        cache: node.cache.as_ref().map(|c| Cache {
            memory: c.memory,
            bandwidth: c.bandwidth,
            latency_ns: c.latency_ns.clone(),
        }),
        bandwidth: node.bandwidth,
    }
}

fn link(machine: &Machine, id: LinkId) -> Link {
    let (from, to) = machine.link_ends(id);
    let link = &machine.links[id.0 as usize];
    Link {
        from: numbers(&from),
        to: numbers(&to),
        class: link.class.clone(),
        bandwidth: link.bandwidth,
    }
}

fn numbers(nodes: &[NodeId]) -> Vec<u32> {
    nodes.iter().map(|n| n.0).collect()
}

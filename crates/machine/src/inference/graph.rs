//! Derives directed links and routes from bottlenecks.

use super::Bottleneck;
use super::bottlenecks::is_same_capacity;
use crate::{Flow, Link, LinkId, Machine, NodeId};
use std::collections::{BTreeMap, BTreeSet};

/// A bottleneck of at least this share of a node's local bandwidth is the node's own controller or intake, not a link.
const MIN_CONTROLLER_SHARE: f64 = 0.85;

/// What a bottleneck is taken for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BottleneckKind {
    /// A directed link; several nodes may share an end of it.
    Link {
        /// The nodes that data come from.
        from: Vec<NodeId>,
        /// The nodes that data go to.
        to: Vec<NodeId>,
    },
    /// A memory controller: all flows come from one memory, and the capacity is about its local bandwidth.
    Controller(NodeId),
    /// The bandwidth that a node's CPUs can receive: all flows go to one reader, and the capacity is about its local
    /// bandwidth.
    Intake(NodeId),
    /// The backplane: all flows cross it.
    Backplane,
}

/// What each bottleneck is taken for. `local` is the bandwidth of each node's CPUs to their own memory, if known.
pub(super) fn kinds(
    flows: &[Flow],
    alone: &[f64],
    all: &[Bottleneck],
    local: &[Option<f64>],
) -> Vec<BottleneckKind> {
    let nodes = |b: &Bottleneck| controller_or_intake(flows, b, local).or_else(|| backplane(flows, b));
    let mut kinds: Vec<Option<BottleneckKind>> = all.iter().map(nodes).collect();
    let links: Vec<&Bottleneck> = all
        .iter()
        .zip(&kinds)
        .filter(|p| p.1.is_none())
        .map(|p| p.0)
        .collect();
    let crossed = |flow: &usize| links.iter().filter(|b| b.flows.contains(flow)).count();
    for (bottleneck, kind) in all.iter().zip(&mut kinds).filter(|p| p.1.is_none()) {
        let direct: Vec<usize> = bottleneck
            .flows
            .iter()
            .copied()
            .filter(|f| crossed(f) == 1)
            .collect();
        let filling = direct
            .iter()
            .copied()
            .filter(|f| is_same_capacity(alone[*f], bottleneck.capacity))
            .collect();
        let ends = [filling, direct, bottleneck.flows.clone()];
        let ends = ends.into_iter().find(|e| !e.is_empty()).unwrap_or_default();
        let end = |node: fn(&Flow) -> NodeId| -> Vec<NodeId> {
            ends.iter()
                .map(|f| node(&flows[*f]))
                .collect::<BTreeSet<_>>()
                .into_iter()
                .collect()
        };
        *kind = Some(BottleneckKind::Link {
            from: end(|f| f.memory),
            to: end(|f| f.reader),
        });
    }
    kinds.into_iter().flatten().collect()
}

fn controller_or_intake(
    flows: &[Flow],
    bottleneck: &Bottleneck,
    local: &[Option<f64>],
) -> Option<BottleneckKind> {
    let common_node = |node: fn(&Flow) -> NodeId| {
        let mut nodes = bottleneck.flows.iter().map(|f| node(&flows[*f]));
        let first = nodes.next()?;
        let wide = local.get(first.index()).copied().flatten()? * MIN_CONTROLLER_SHARE <= bottleneck.capacity;
        (wide && nodes.all(|n| n == first)).then_some(first)
    };
    common_node(|f| f.memory)
        .map(BottleneckKind::Controller)
        .or_else(|| common_node(|f| f.reader).map(BottleneckKind::Intake))
}

fn backplane(flows: &[Flow], bottleneck: &Bottleneck) -> Option<BottleneckKind> {
    (bottleneck.flows.len() == flows.len()).then_some(BottleneckKind::Backplane)
}

/// Replaces the links and routes of the measured flows in the machine. Routes of other pairs stay as they are.
pub(super) fn apply(
    flows: &[Flow],
    alone: &[f64],
    found: &[(Bottleneck, BottleneckKind)],
    machine: &mut Machine,
) {
    let mut links: Vec<Link> = Vec::new();
    let mut ends: Vec<(&[NodeId], &[NodeId])> = Vec::new();
    let mut ways: Vec<Vec<u32>> = vec![Vec::new(); flows.len()];
    for (bottleneck, kind) in found {
        match kind {
            BottleneckKind::Link { from, to } => {
                bottleneck
                    .flows
                    .iter()
                    .for_each(|f| ways[*f].push(links.len() as u32));
                let inside = |f: &Flow| from.contains(&f.memory) && to.contains(&f.reader);
                let members = || bottleneck.flows.iter().map(|f| flows[*f]);
                let shown = members().find(inside).unwrap_or(flows[bottleneck.flows[0]]);
                links.push(link(shown, bottleneck.capacity));
                ends.push((from, to));
            }
            BottleneckKind::Backplane => machine.backplane = Some(bottleneck.capacity),
            BottleneckKind::Controller(_) | BottleneckKind::Intake(_) => {}
        }
    }
    for flow in need_private_link(flows, &ways, &links) {
        ways[flow].push(links.len() as u32);
        links.push(link(flows[flow], alone[flow]));
    }
    for ((flow, width), way) in flows.iter().zip(alone).zip(ways) {
        let route = &mut machine.routes[flow.reader.index()][flow.memory.index()];
        let ordered = ordered_route(&way, *flow, &ends).unwrap_or(way);
        // Except for noise, no flow alone is wider than a link that several flows fill.
        let narrowest = ordered.iter().map(|l| links[*l as usize].bandwidth);
        route.bandwidth = narrowest.chain(machine.backplane).fold(*width, f64::min);
        route.links = ordered.into_iter().map(LinkId).collect();
    }
    keep_unmeasured_links(flows, links, machine);
    machine.hop_rules.clear();
}

/// The flows that need a link of their own: those that cross no shared link, and those whose only shared link carries
/// flows both from and to one node. A link has one direction, so a bottleneck shared in both directions cannot be the
/// whole way of a flow.
fn need_private_link(flows: &[Flow], ways: &[Vec<u32>], links: &[Link]) -> Vec<usize> {
    let both_ways = |id: u32| {
        let shown = &links[id as usize];
        let whole = flows
            .iter()
            .zip(ways)
            .filter(|(_, way)| way[..] == [id])
            .map(|(f, _)| (f.memory, f.reader));
        let (from, to): (Vec<_>, Vec<_>) = whole.chain([(shown.from, shown.to)]).unzip();
        from.iter().any(|n| to.contains(n))
    };
    let both_ways: Vec<bool> = (0..links.len() as u32).map(both_ways).collect();
    let alone = |way: &[u32]| match way {
        [] => true,
        [one] => both_ways[*one as usize],
        _ => false,
    };
    (0..flows.len()).filter(|f| alone(&ways[*f])).collect()
}

/// Appends the links of pairs that were not measured to the new ones; links that they share stay shared.
fn keep_unmeasured_links(measured: &[Flow], mut links: Vec<Link>, machine: &mut Machine) {
    let measured: BTreeSet<Flow> = measured.iter().copied().collect();
    let mut kept: BTreeMap<LinkId, LinkId> = BTreeMap::new();
    for (reader, row) in machine.routes.iter_mut().enumerate() {
        for (memory, route) in row.iter_mut().enumerate() {
            let [reader, memory] = [reader, memory].map(|n| NodeId(n as u32));
            if reader != memory && !measured.contains(&Flow { reader, memory }) {
                route.bandwidth = machine
                    .backplane
                    .map_or(route.bandwidth, |b| route.bandwidth.min(b));
                for id in &mut route.links {
                    *id = *kept.entry(*id).or_insert_with(|| {
                        links.push(machine.links[id.0 as usize].clone());
                        LinkId(links.len() as u32 - 1)
                    });
                }
            }
        }
    }
    machine.links = links;
}

fn link(flow: Flow, bandwidth: f64) -> Link {
    Link {
        from: flow.memory,
        to: flow.reader,
        bandwidth,
        class: None,
    }
}

/// The order in which these links lead from a flow's memory to its reader; `None` if they do not.
fn ordered_route(way: &[u32], flow: Flow, ends: &[(&[NodeId], &[NodeId])]) -> Option<Vec<u32>> {
    if way.iter().any(|l| *l as usize >= ends.len()) {
        return None;
    }
    let mut order = Vec::new();
    extend_route(way, &[flow.memory], flow.reader, ends, &mut order).then_some(order)
}

fn extend_route(
    way: &[u32],
    at: &[NodeId],
    reader: NodeId,
    ends: &[(&[NodeId], &[NodeId])],
    order: &mut Vec<u32>,
) -> bool {
    if order.len() == way.len() {
        return at.contains(&reader);
    }
    for link in way {
        let (from, to) = ends[*link as usize];
        if !order.contains(link) && from.iter().any(|n| at.contains(n)) {
            order.push(*link);
            if extend_route(way, to, reader, ends, order) {
                return true;
            }
            order.pop();
        }
    }
    false
}

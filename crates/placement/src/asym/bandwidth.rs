//! Bandwidth of clusters (C_bw) and their weighted sum (P_wbw), AsymSched 4.2.

use super::{Cluster, NodePlacement};
use nodewise_machine::{Channels, Filling, Flow, NodeId};

/// Computes the bandwidth of clusters for several placements in turn.
#[derive(Clone, Debug)]
pub struct Bandwidth<'a> {
    filling: Filling<'a>,
    flows: Vec<Flow>,
    ends: Vec<usize>,
    by_cluster: Vec<f64>,
}

impl<'a> Bandwidth<'a> {
    /// A computation on a machine with these channels.
    #[must_use]
    pub fn new(channels: &'a Channels) -> Self {
        Self {
            filling: Filling::new(channels),
            flows: Vec::new(),
            ends: Vec::new(),
            by_cluster: Vec::new(),
        }
    }

    /// C_bw by cluster, MB/s, where each cluster has these nodes: the max-min fair bandwidth summed over the ordered
    /// pairs of its nodes, with the data of all clusters in transit at once. It is 0 for a cluster on one node.
    pub fn of<'n>(&mut self, nodes: impl Iterator<Item = &'n [NodeId]>) -> &[f64] {
        self.flows.clear();
        self.ends.clear();
        for nodes in nodes {
            self.flows.extend(pairs(nodes));
            self.ends.push(self.flows.len());
        }
        let rates = self.filling.fill(&self.flows);
        self.by_cluster.clear();
        let mut begin = 0;
        for &end in &self.ends {
            self.by_cluster.push(rates[begin..end].iter().sum());
            begin = end;
        }
        &self.by_cluster
    }

    /// Cost of the last computation: the number of channels crossed by flows.
    pub(super) fn crossings(&self) -> usize {
        self.filling.crossings()
    }
}

/// The flows between the nodes of a cluster: each node reads from each other one.
pub(super) fn pairs(nodes: &[NodeId]) -> impl Iterator<Item = Flow> + '_ {
    nodes.iter().flat_map(move |&reader| {
        let others = nodes.iter().filter(move |m| **m != reader);
        others.map(move |&memory| Flow { reader, memory })
    })
}

/// C_bw(P) by cluster, MB/s: see [`Bandwidth::of`].
#[must_use]
pub fn cluster_bandwidth(channels: &Channels, placement: &NodePlacement) -> Vec<f64> {
    let nodes: Vec<Vec<NodeId>> = placement.places.iter().map(|p| distinct(p.iter())).collect();
    Bandwidth::new(channels)
        .of(nodes.iter().map(Vec::as_slice))
        .to_vec()
}

/// P_wbw: the sum of C_bw(P) × weight over all clusters (AsymSched, Table 4).
#[must_use]
pub fn weighted_bandwidth(channels: &Channels, clusters: &[Cluster], placement: &NodePlacement) -> f64 {
    let bandwidth = cluster_bandwidth(channels, placement);
    clusters.iter().zip(bandwidth).map(|(c, b)| c.weight * b).sum()
}

/// Each node once, in the order they come.
pub(super) fn distinct<'a>(nodes: impl Iterator<Item = &'a NodeId>) -> Vec<NodeId> {
    let mut once = Vec::new();
    for node in nodes {
        if !once.contains(node) {
            once.push(*node);
        }
    }
    once
}

//! Translates a placement of clusters into thread migrations.

use super::ThreadMove;
use nodewise_machine::NodeId;
use nodewise_placement::asym::Cluster;
use std::collections::{BTreeMap, BTreeSet};

/// A cluster and its target nodes.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClusterMove<'a> {
    /// The cluster at its current nodes.
    pub cluster: &'a Cluster,
    /// Target node of each virtual node.
    pub to: &'a [NodeId],
    /// If set, only threads on nodes that are not among these migrate: the others have vanished.
    pub stays_on: Option<&'a [NodeId]>,
}

impl ClusterMove<'_> {
    /// Each thread with its current node, if it has one, and its target node.
    fn threads(&self) -> impl Iterator<Item = (u32, Option<NodeId>, NodeId)> + '_ {
        let cluster = self.cluster;
        let threads_of = move |v: usize| cluster.threads_of(v).map(move |i| (v, i));
        let all = (0..self.to.len()).flat_map(threads_of);
        all.map(move |(v, i)| {
            let from = cluster.on.get(i).or(cluster.at.get(v)).copied();
            (cluster.threads[i], from, self.goal(from, self.to[v]))
        })
    }

    fn goal(&self, from: Option<NodeId>, to: NodeId) -> NodeId {
        let stays = |n: &NodeId| self.stays_on.is_some_and(|there| there.contains(n));
        from.filter(|n| self.cluster.fixed || stays(n)).unwrap_or(to)
    }

    /// The threads that change nodes, grouped by source and target.
    pub fn moves(&self, application: u32, cluster: usize) -> Vec<ThreadMove> {
        let mut ways: BTreeMap<(Option<NodeId>, NodeId), Vec<u32>> = BTreeMap::new();
        for (thread, from, to) in self.threads().filter(|(_, from, to)| *from != Some(*to)) {
            ways.entry((from, to)).or_default().push(thread);
        }
        let of = |((from, to), threads)| ThreadMove {
            application,
            cluster,
            threads,
            from,
            to,
        };
        ways.into_iter().map(of).collect()
    }

    /// The nodes that it occupies after the move.
    pub fn then(&self) -> BTreeSet<NodeId> {
        self.threads().map(|(_, _, to)| to).collect()
    }
}

/// Each node that all threads of an application leave, with their target nodes and the share of threads of each.
pub(super) fn vacated_nodes(
    cluster_moves: &[ClusterMove<'_>],
    moves: &[ThreadMove],
) -> Vec<(NodeId, Vec<(NodeId, f64)>)> {
    let then: BTreeSet<NodeId> = cluster_moves.iter().flat_map(ClusterMove::then).collect();
    let mut left: BTreeMap<NodeId, BTreeMap<NodeId, usize>> = BTreeMap::new();
    for each in moves {
        if let Some(from) = each.from.filter(|n| !then.contains(n)) {
            *left.entry(from).or_default().entry(each.to).or_default() += each.threads.len();
        }
    }
    let shares = |to: BTreeMap<NodeId, usize>| {
        let all: usize = to.values().sum();
        let share = |(node, threads)| (node, threads as f64 / all as f64);
        to.into_iter().map(share).collect()
    };
    left.into_iter().map(|(from, to)| (from, shares(to))).collect()
}

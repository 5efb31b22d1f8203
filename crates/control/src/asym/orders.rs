//! What a placement means for threads and their memory.

use super::ThreadMove;
use nodewise_machine::NodeId;
use nodewise_placement::asym::Cluster;
use std::collections::{BTreeMap, BTreeSet};

/// A cluster and where it is told to go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order<'a> {
    /// As it is.
    pub cluster: &'a Cluster,
    /// A node for each virtual node.
    pub to: &'a [NodeId],
    /// It only leaves the nodes that are gone: those not among these.
    pub stays_on: Option<&'a [NodeId]>,
}

impl Order<'_> {
    /// Each thread with where it is, if anywhere yet, and where it is to be.
    fn threads(&self) -> impl Iterator<Item = (u32, Option<NodeId>, NodeId)> + '_ {
        let cluster = self.cluster;
        let aboard = move |v: usize| cluster.aboard(v).map(move |i| (v, i));
        let all = (0..self.to.len()).flat_map(aboard);
        all.map(move |(v, i)| {
            let from = cluster.on.get(i).or(cluster.at.get(v)).copied();
            (cluster.threads[i], from, self.goal(from, self.to[v]))
        })
    }

    fn goal(&self, from: Option<NodeId>, to: NodeId) -> NodeId {
        let stays = |n: &NodeId| self.stays_on.is_some_and(|there| there.contains(n));
        from.filter(|n| self.cluster.fixed || stays(n)).unwrap_or(to)
    }

    /// The threads that change nodes, together that go the same way.
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

    /// The nodes it is on once that is done.
    pub fn then(&self) -> BTreeSet<NodeId> {
        self.threads().map(|(_, _, to)| to).collect()
    }
}

/// Each node that was left by all of an application's threads, with where they went, as shares of them.
pub(super) fn emptied(orders: &[Order<'_>], moves: &[ThreadMove]) -> Vec<(NodeId, Vec<(NodeId, f64)>)> {
    let then: BTreeSet<NodeId> = orders.iter().flat_map(Order::then).collect();
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

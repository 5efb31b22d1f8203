//! The search problem: free nodes and the clusters that get them.

use super::bandwidth::{distinct, pairs};
use super::{AsymError, Cluster, Place};
use nodewise_machine::{Channels, Flow, NodeId};

/// Larger weights would make other clusters vanish in rounding errors.
const MAX_WEIGHT: f64 = 1e12;

/// A set of nodes, as a bit set of their positions among the free nodes.
pub(super) type Set = u128;

/// The positions in a set, ascending.
pub(super) fn members(mut set: Set) -> impl Iterator<Item = usize> + Clone {
    std::iter::from_fn(move || {
        let first = (set != 0).then(|| set.trailing_zeros() as usize)?;
        set &= set - 1;
        Some(first)
    })
}

/// Assigns to each cluster of more than one node a set of the free nodes. The places of single-node clusters do not
/// affect bandwidth: they get the nodes that are left.
#[derive(Debug)]
pub(super) struct Problem<'a> {
    pub channels: &'a Channels,
    pub clusters: &'a [Cluster],
    /// Nodes that no fixed cluster uses, ascending.
    pub nodes: Vec<NodeId>,
    /// Clusters of several nodes: larger ones first, of equally large ones the heavier first.
    pub wide: Vec<usize>,
    /// Clusters of one node.
    pub narrow: Vec<usize>,
    /// Clusters that must stay where they are.
    pub fixed: Vec<usize>,
    /// The distinct nodes of each fixed cluster.
    pub fixed_nodes: Vec<Vec<NodeId>>,
    /// The flows of each fixed cluster.
    pub fixed_flows: Vec<Vec<Flow>>,
}

impl<'a> Problem<'a> {
    pub fn new(channels: &'a Channels, places: &[Place], clusters: &'a [Cluster]) -> Result<Self, AsymError> {
        let (fixed, free): (Vec<usize>, Vec<usize>) = (0..clusters.len()).partition(|c| clusters[*c].fixed);
        let taken: Vec<NodeId> = fixed.iter().flat_map(|c| clusters[*c].occupied_nodes()).collect();
        let usable = |p: &&Place| p.threads > 0 && !taken.contains(&p.node);
        let mut nodes = roomy(places.iter().filter(usable).copied().collect(), clusters);
        nodes.sort_unstable();
        nodes.dedup();
        let (mut wide, narrow): (Vec<usize>, Vec<usize>) = free
            .into_iter()
            .filter(|c| clusters[*c].nodes > 0)
            .partition(|c| clusters[*c].nodes > 1);
        let first = |a: &usize, b: &usize| {
            let (a, b) = (&clusters[*a], &clusters[*b]);
            b.nodes.cmp(&a.nodes).then(b.weight.total_cmp(&a.weight))
        };
        wide.sort_by(first);
        let once = |c: &usize| distinct(clusters[*c].at.iter());
        let fixed_nodes: Vec<Vec<NodeId>> = fixed.iter().map(once).collect();
        let fixed_flows = fixed_nodes.iter().map(|n| pairs(n).collect()).collect();
        let problem = Self {
            channels,
            clusters,
            nodes,
            wide,
            narrow,
            fixed,
            fixed_nodes,
            fixed_flows,
        };
        problem.check()?;
        Ok(problem)
    }

    fn check(&self) -> Result<(), AsymError> {
        self.check_weights()?;
        let wrong = |text: String| Err(AsymError(text));
        let moving = self.wide.len() + self.narrow.len();
        let (needed, free) = (self.size_of_all(), self.nodes.len());
        if moving > 0 && free == 0 {
            return wrong(
                "no node is left for threads: all are forbidden, without CPUs or taken by programs \
                          that pin themselves; allow some (cpuset, --nodes)"
                    .to_owned(),
            );
        }
        if needed > free {
            return wrong(format!(
                "{moving} clusters of threads need {needed} nodes, but only {free} are free; \
                 allow more nodes or run fewer programs"
            ));
        }
        if free > Set::BITS as usize {
            return wrong(format!(
                "{free} nodes are more than the search can tell apart: {}",
                Set::BITS
            ));
        }
        self.check_known()?;
        self.check_connected()
    }

    fn check_weights(&self) -> Result<(), AsymError> {
        let bad = |c: &&Cluster| !(0.0..=MAX_WEIGHT).contains(&c.weight);
        match self.clusters.iter().find(bad) {
            None => Ok(()),
            Some(bad) => Err(AsymError(format!(
                "a cluster of application {} has the weight {}; weights must be 0 or more, {MAX_WEIGHT:e} at most",
                bad.application, bad.weight
            ))),
        }
    }

    /// Checks that the machine's description has all nodes: one may have been added since it was written.
    fn check_known(&self) -> Result<(), AsymError> {
        let known = self.channels.node_count();
        let stands = self.clusters.iter().flat_map(Cluster::occupied_nodes);
        match self
            .nodes
            .iter()
            .copied()
            .chain(stands)
            .find(|n| n.index() >= known)
        {
            None => Ok(()),
            Some(node) => Err(AsymError(format!(
                "node {node} is none of the machine's {known}; describe it anew (`nodewise topo --measure`)"
            ))),
        }
    }

    /// Checks that links join every pair of nodes between which data may flow.
    fn check_connected(&self) -> Result<(), AsymError> {
        let any = |_: &()| !self.wide.is_empty();
        let free = Some(()).filter(any).into_iter().flat_map(|()| pairs(&self.nodes));
        let cut = |f: &Flow| {
            let way = self.channels.way(f.reader, f.memory);
            way.is_empty() || way.iter().any(|c| self.channels.capacity[*c as usize] <= 0.0)
        };
        let all = free.chain(self.fixed_flows.iter().flatten().copied());
        match all.into_iter().find(cut) {
            None => Ok(()),
            Some(Flow { reader, memory }) => Err(AsymError(format!(
                "no links lead from node {memory} to node {reader}, so bandwidth between them is unknown; \
                 complete the machine's links (`nodewise topo --measure`) or forbid one of them"
            ))),
        }
    }

    fn size_of_all(&self) -> usize {
        let moving = self.wide.iter().chain(&self.narrow);
        moving.map(|c| self.clusters[*c].nodes).sum()
    }

    /// Nodes that the wide cluster in this slot needs.
    pub fn size(&self, slot: usize) -> usize {
        self.clusters[self.wide[slot]].nodes
    }

    /// The weight of the bandwidth of the cluster in this slot.
    pub fn weight(&self, slot: usize) -> f64 {
        self.clusters[self.wide[slot]].weight
    }

    /// Slots of equally large clusters, as ranges: heavier clusters come first in each.
    pub fn runs(&self) -> Vec<std::ops::Range<usize>> {
        let mut runs: Vec<std::ops::Range<usize>> = Vec::new();
        for slot in 0..self.wide.len() {
            match runs.last_mut() {
                Some(run) if self.size(run.start) == self.size(slot) => run.end = slot + 1,
                _ => runs.push(slot..slot + 1),
            }
        }
        runs
    }

    /// Placements that differ in which nodes a cluster has: N! / (∏ n! · free!).
    pub fn possible(&self) -> f64 {
        let mut left = self.nodes.len();
        let moving = self.wide.iter().chain(&self.narrow);
        moving.fold(1.0, |all, c| {
            let assignment_count = choose(left, self.clusters[*c].nodes);
            left -= self.clusters[*c].nodes;
            all * assignment_count
        })
    }

    /// The number of partitions of nodes into sets, without distinguishing clusters of equal size, and without
    /// single-node clusters.
    pub fn partitions(&self) -> f64 {
        let mut left = self.nodes.len();
        let mut all = 1.0;
        for run in self.runs() {
            for (nth, slot) in run.enumerate() {
                all *= choose(left, self.size(slot)) / (nth + 1) as f64;
                left -= self.size(slot);
            }
        }
        all
    }

    /// The flows between the nodes of a set: each node reads from each other one.
    pub fn flows_of(&self, set: Set) -> impl Iterator<Item = Flow> + '_ {
        members(set).flat_map(move |r| {
            let others = members(set).filter(move |m| *m != r);
            others.map(move |m| Flow {
                reader: self.nodes[r],
                memory: self.nodes[m],
            })
        })
    }
}

/// The nodes with enough CPUs for every virtual node, if there are enough of them; otherwise all nodes. Nodes with
/// fewer CPUs are used only if they have to be.
fn roomy(places: Vec<Place>, clusters: &[Cluster]) -> Vec<NodeId> {
    let moving = || clusters.iter().filter(|c| !c.fixed && c.nodes > 0);
    let most = moving()
        .map(|c| c.threads.len().div_ceil(c.nodes))
        .max()
        .unwrap_or(0);
    let needed: usize = moving().map(|c| c.nodes).sum();
    let roomy = places.iter().filter(|p| p.threads >= most).count();
    let kept = places.into_iter().filter(|p| roomy < needed || p.threads >= most);
    kept.map(|p| p.node).collect()
}

/// The number of sets of `k` among `n` (binomial coefficient).
pub(super) fn choose(n: usize, k: usize) -> f64 {
    (0..k)
        .map(|i| n.saturating_sub(i) as f64 / (i + 1) as f64)
        .product()
}

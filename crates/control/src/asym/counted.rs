//! The scheduler's input from counters: where each thread runs, and how often it accesses each node.
//!
//! In a live session the counters are samples of running processes, in the simulator the predicted traffic of a period.
//! Clusters, weights and everything after them are computed by the same code.

use super::Application;
use nodewise_machine::NodeId;
use nodewise_placement::asym::{AsymError, Cluster, Place, ThreadTraffic, clusters_from_counters, weight};
use std::collections::{BTreeMap, BTreeSet};

/// What was counted of a process in an interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Process {
    /// Identifier that decisions refer to.
    pub id: u32,
    /// A_tt: how long it has run, nanoseconds.
    pub run_ns: u64,
    /// Those of its threads that used a CPU in the interval.
    pub threads: Vec<Thread>,
    /// A_mm: resident bytes on each node.
    pub resident: Vec<u64>,
    /// Whether it must stay where it is, since its affinity was set by itself or by others.
    pub fixed: bool,
}

/// What was counted of a thread.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Thread {
    /// Number that moves refer to.
    pub number: u32,
    /// The node that it runs on.
    pub node: NodeId,
    /// Accesses to the memory of each node, a second.
    pub accesses: Vec<f64>,
}

impl Process {
    /// Nodes that its threads run on.
    #[must_use]
    pub fn runs_on(&self) -> BTreeSet<NodeId> {
        self.threads.iter().map(|t| t.node).collect()
    }

    /// Remote accesses of all its threads, a second.
    #[must_use]
    pub fn remote(&self) -> f64 {
        let away = |t: &Thread| -> f64 {
            let others = t.accesses.iter().enumerate();
            others.filter(|(m, _)| *m != t.node.index()).map(|(_, n)| n).sum()
        };
        self.threads.iter().map(away).sum()
    }

    /// Accesses of all its threads, a second, by node of the memory.
    fn accesses(&self) -> Vec<f64> {
        let mut sums = vec![0.0; self.resident.len()];
        for thread in &self.threads {
            sums.iter_mut().zip(&thread.accesses).for_each(|(s, n)| *s += n);
        }
        sums
    }

    /// One fixed cluster of all its threads.
    fn as_fixed(&self) -> Cluster {
        let at: Vec<NodeId> = self.runs_on().into_iter().collect();
        Cluster {
            application: self.id,
            threads: self.threads.iter().map(|t| t.number).collect(),
            nodes: at.len(),
            weight: weight(self.remote()),
            at,
            fixed: true,
            ..Cluster::default()
        }
    }

    fn with(&self, clusters: Vec<Cluster>) -> Application {
        Application {
            id: self.id,
            clusters,
            run_ns: self.run_ns,
            accesses: self.accesses(),
        }
    }
}

/// Step 1 of the algorithm for all processes: clusters from their counters with weights and memory, one fixed cluster
/// for each process that must stay.
///
/// # Errors
/// More of them than nodes: one line.
pub fn applications(counted: &[Process], places: &[Place]) -> Result<Vec<Application>, AsymError> {
    let (fixed, free): (Vec<&Process>, Vec<&Process>) = counted.iter().partition(|p| p.fixed);
    let taken: BTreeSet<NodeId> = fixed.iter().flat_map(|p| p.runs_on()).collect();
    let open: Vec<Place> = places
        .iter()
        .copied()
        .filter(|p| !taken.contains(&p.node))
        .collect();
    let mut clusters = clusters(&free, &open)?;
    let of = |one: &Process| match one.fixed {
        false => one.with(clusters.remove(&one.id).unwrap_or_default()),
        true if one.threads.is_empty() => one.with(Vec::new()),
        true => one.with(vec![one.as_fixed()]),
    };
    Ok(counted.iter().map(of).collect())
}

/// The clusters of each movable process.
fn clusters(free: &[&Process], open: &[Place]) -> Result<BTreeMap<u32, Vec<Cluster>>, AsymError> {
    let all = || free.iter().flat_map(|p| p.threads.iter().map(|t| (p.id, t)));
    if all().next().is_none() {
        return Ok(BTreeMap::new());
    }
    let threads: Vec<ThreadTraffic> = all()
        .map(|(application, t)| ThreadTraffic {
            application,
            thread: t.number,
            remote: 0.0,
        })
        .collect();
    let nodes: Vec<NodeId> = all().map(|(_, t)| t.node).collect();
    let accesses: Vec<Vec<f64>> = all().map(|(_, t)| t.accesses.clone()).collect();
    let mut of: BTreeMap<u32, Vec<Cluster>> = BTreeMap::new();
    for cluster in clusters_from_counters(&threads, &nodes, &accesses, open)? {
        of.entry(cluster.application).or_default().push(cluster);
    }
    for one in free {
        if let Some(clusters) = of.get_mut(&one.id) {
            share_out(&one.resident, clusters);
        }
    }
    Ok(of)
}

/// Divides a node's resident memory equally among the clusters with threads there.
fn share_out(resident: &[u64], clusters: &mut [Cluster]) {
    let there = |cluster: &Cluster, node: usize| cluster.occupied_nodes().iter().any(|n| n.index() == node);
    for (node, bytes) in resident.iter().enumerate() {
        let sharers = clusters.iter().filter(|c| there(c, node)).count() as u64;
        for cluster in clusters.iter_mut() {
            let part = if there(cluster, node) {
                bytes / sharers.max(1)
            } else {
                0
            };
            cluster.resident.push(part);
        }
    }
}

/// The target of each of this many pages of a node that an application has left: blocks by the targets' shares.
pub fn dealt(count: usize, goals: &[(NodeId, f64)]) -> impl Iterator<Item = NodeId> + '_ {
    let all: f64 = goals.iter().map(|g| g.1).sum();
    let mut sum = 0.0;
    let ends: Vec<(f64, NodeId)> = goals
        .iter()
        .map(|(node, share)| {
            sum += share / all;
            (sum * count as f64, *node)
        })
        .collect();
    let last = goals.last().map_or(NodeId(0), |g| g.0);
    (0..count).map(move |page| {
        let found = ends.iter().find(|(end, _)| page as f64 + 0.5 < *end);
        found.map_or(last, |(_, node)| *node)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(nodes: u32) -> Vec<Place> {
        let place = |n| Place {
            node: NodeId(n),
            threads: 2,
        };
        (0..nodes).map(place).collect()
    }

    /// Two threads on each of these nodes, half of their accesses to the first of them.
    fn process(id: u32, nodes: &[u32], fixed: bool) -> Process {
        let thread = |(number, node): (u32, u32)| {
            let mut accesses = vec![0.0; 6];
            accesses[node as usize] += 50.0;
            accesses[nodes[0] as usize] += 50.0;
            Thread {
                number,
                node: NodeId(node),
                accesses,
            }
        };
        let twice = nodes.iter().flat_map(|n| [*n, *n]);
        let mut resident = vec![0; 6];
        nodes.iter().for_each(|n| resident[*n as usize] = 1000);
        Process {
            id,
            run_ns: 7,
            threads: (0..).zip(twice).map(thread).collect(),
            resident,
            fixed,
        }
    }

    #[test]
    fn a_process_that_reads_one_node_is_a_cluster_with_its_weight_and_memory() {
        let found = applications(&[process(3, &[4, 1], false)], &places(6)).unwrap();
        let application = &found[0];
        assert_eq!((application.id, application.run_ns), (3, 7));
        assert_eq!(application.accesses, [0.0, 100.0, 0.0, 0.0, 300.0, 0.0]);
        let cluster = &application.clusters[0];
        assert_eq!((cluster.nodes, cluster.fixed), (2, false));
        assert_eq!(cluster.resident, [0, 1000, 0, 0, 1000, 0]);
        assert!((cluster.weight - 100f64.ln_1p()).abs() < 1e-12, "{cluster:?}");
    }

    #[test]
    fn what_must_stay_is_one_fixed_cluster_and_others_do_not_count_on_its_nodes() {
        let both = [process(1, &[0, 1], true), process(2, &[2, 3], false)];
        let found = applications(&both, &places(4)).unwrap();
        assert!(found[0].clusters[0].fixed && !found[1].clusters[0].fixed);
        let three = [both[0].clone(), both[1].clone(), process(5, &[2, 3], false)];
        assert!(applications(&three, &places(3)).is_err());
        let idle = Process {
            fixed: true,
            ..Process::default()
        };
        assert!(applications(&[idle], &places(4)).unwrap()[0].clusters.is_empty());
    }

    #[test]
    fn a_nodes_memory_goes_with_one_cluster_or_in_parts_with_several() {
        let cluster = |at: &[u32]| Cluster {
            at: at.iter().copied().map(NodeId).collect(),
            ..Cluster::default()
        };
        let mut clusters = [cluster(&[0, 1]), cluster(&[1])];
        share_out(&[10, 20, 30], &mut clusters);
        assert_eq!(
            (&clusters[0].resident, &clusters[1].resident),
            (&vec![10, 10, 0], &vec![0, 10, 0])
        );
    }

    #[test]
    fn pages_are_dealt_out_by_share_in_blocks() {
        let goals = [(NodeId(4), 0.25), (NodeId(2), 0.75)];
        let to: Vec<u32> = dealt(8, &goals).map(|n| n.0).collect();
        assert_eq!(to, [4, 4, 2, 2, 2, 2, 2, 2]);
        assert_eq!(
            dealt(3, &[(NodeId(5), 1.0)]).map(|n| n.0).collect::<Vec<_>>(),
            [5, 5, 5]
        );
        assert_eq!(dealt(0, &goals).count(), 0);
    }
}

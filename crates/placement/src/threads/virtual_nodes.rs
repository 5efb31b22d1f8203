//! Assigns threads to as few virtual nodes as they need; AsymSched (4.2) then places these on real nodes.

use super::sharing_aware::{dealt, on_cpus, threads_a_node};
use super::{Parts, SharingGraph};
use crate::PolicyError;
use crate::asym::{Cluster, Options, Place, search};
use crate::formulas::mix;
use nodewise_analysis::{Affinity, Histogram, thread_numbers};
use nodewise_machine::{Channels, CpuId, Machine, NodeId, Route};
use nodewise_profile::Profile;

/// A program's threads on virtual nodes; threads that share pages are together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VirtualNodes {
    /// The virtual node of each thread number.
    pub of: Vec<u32>,
    /// Number of threads on each virtual node.
    pub sizes: Vec<u32>,
}

/// A set of placements to compare.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Placements {
    /// The node of each virtual node, placement by placement.
    pub all: Vec<Vec<NodeId>>,
    /// The number of possible placements.
    pub possible: f64,
    /// Index in `all` of the placement with the highest weighted bandwidth.
    pub by_bandwidth: usize,
}

impl Placements {
    /// Whether `all` has every placement, rather than a random selection.
    #[must_use]
    pub fn complete(&self) -> bool {
        self.all.len() as f64 >= self.possible
    }
}

impl VirtualNodes {
    /// As many virtual nodes as the threads need, at the machine's threads per node. If the threads do not fit, all
    /// nodes, with several threads per CPU.
    #[must_use]
    pub fn new(profile: &Profile, histogram: &Histogram, machine: &Machine) -> Self {
        let graph = SharingGraph::of(histogram, &thread_numbers(profile));
        let mut cpus: Vec<u32> = machine.nodes.iter().map(|n| n.cpus.len() as u32).collect();
        cpus.retain(|c| *c > 0);
        cpus.sort_unstable_by(|a, b| b.cmp(a));
        let filled = cpus.iter().scan(0, |sum, c| {
            *sum += *c as usize;
            Some(*sum)
        });
        let needed = 1 + filled.take_while(|sum| *sum < graph.len()).count();
        let parts = Parts::equal(threads_a_node(graph.len(), &cpus[..needed.min(cpus.len())]));
        Self {
            of: dealt(&graph, &parts),
            sizes: parts.sizes,
        }
    }

    /// Number of nodes needed.
    #[must_use]
    pub fn count(&self) -> usize {
        self.sizes.len()
    }

    /// The affinity with virtual node i on `nodes[i]`.
    #[must_use]
    pub fn affinity(&self, name: &str, profile: &Profile, machine: &Machine, nodes: &[NodeId]) -> Affinity {
        let places: Vec<NodeId> = self.of.iter().map(|v| nodes[*v as usize]).collect();
        Affinity::of_cpus(name, profile, machine, &on_cpus(&places, machine))
    }

    /// A machine of these nodes only, whose node i is `nodes[i]`. It has no links; the capacities of routes are kept.
    #[must_use]
    pub fn machine(machine: &Machine, nodes: &[NodeId]) -> Machine {
        let cell = |r: &NodeId, m: &NodeId| Route {
            links: Vec::new(),
            bandwidth: machine.route(*r, *m).bandwidth,
        };
        let row = |r: &NodeId| nodes.iter().map(|m| cell(r, m)).collect();
        let latency = |r: &NodeId| nodes.iter().map(|m| machine.latency(*r, *m)).collect();
        Machine {
            nodes: nodes.iter().map(|n| machine.nodes[n.index()].clone()).collect(),
            latency_ns: nodes.iter().map(latency).collect(),
            links: Vec::new(),
            routes: nodes.iter().map(row).collect(),
            ..machine.clone()
        }
    }

    /// The nodes of the highest weighted bandwidth (AsymSched 4.2, step 2), for all threads as one cluster.
    ///
    /// # Errors
    /// One line: nodes that no links join, or none that fits.
    pub fn by_bandwidth(&self, machine: &Machine) -> Result<Vec<NodeId>, PolicyError> {
        let fits = |n: &NodeId| self.sizes.iter().any(|s| self.fits(*n, *s, machine));
        let place = |node: NodeId| Place {
            node,
            threads: machine.nodes[node.index()].cpus.len(),
        };
        let places: Vec<Place> = machine.cpu_nodes().filter(fits).map(place).collect();
        if self.count() == 1 {
            return Ok(vec![places[0].node]);
        }
        let cluster = Cluster {
            threads: (0..self.of.len() as u32).collect(),
            nodes: self.count(),
            weight: 1.0,
            ..Cluster::default()
        };
        let (channels, clusters) = (Channels::of(machine), [cluster]);
        let found = search(&channels, &places, &clusters, &Options::default());
        let best = found.map_err(|e| PolicyError(format!("asym: {e}")))?.best;
        let mut nodes = best.places.into_iter().next().unwrap_or_default();
        // The bandwidth belongs to the set of nodes; the virtual nodes with most threads get the nodes with most CPUs.
        nodes.sort_by_key(|n| (std::cmp::Reverse(machine.nodes[n.index()].cpus.len()), *n));
        let misfit = (0..nodes.len()).any(|i| !self.fits(nodes[i], self.sizes[i], machine));
        if nodes.len() != self.count() || misfit {
            return Err(PolicyError(format!(
                "asym: nodes of {} have too different numbers of CPUs for {} threads; say where they go by file:FILE",
                machine.name,
                self.of.len()
            )));
        }
        Ok(nodes)
    }

    fn fits(&self, node: NodeId, threads: u32, machine: &Machine) -> bool {
        let cpus = machine.nodes[node.index()].cpus.len();
        // If threads share CPUs anyway, any node is acceptable.
        let shared = self.of.len() > machine.nodes.iter().map(|n| n.cpus.len()).sum();
        cpus > 0 && (shared || cpus >= threads as usize)
    }

    /// Every placement if there are at most `most`, else `drawn` random ones and the one with the highest weighted
    /// bandwidth.
    ///
    /// # Errors
    /// As [`Self::by_bandwidth`].
    pub fn placements(
        &self,
        machine: &Machine,
        most: usize,
        drawn: usize,
    ) -> Result<Placements, PolicyError> {
        let chosen = self.by_bandwidth(machine)?;
        let nodes: Vec<NodeId> = machine.cpu_nodes().collect();
        let possible: f64 = (0..self.count()).map(|i| (nodes.len() - i) as f64).product();
        let mut all = if possible <= most as f64 {
            self.every(machine, &nodes)
        } else {
            (0..drawn as u64)
                .filter_map(|seed| self.drawn(machine, &nodes, seed))
                .collect()
        };
        let possible = if possible <= most as f64 {
            all.len() as f64
        } else {
            possible
        };
        let by_bandwidth = all.iter().position(|p| *p == chosen).unwrap_or_else(|| {
            all.push(chosen);
            all.len() - 1
        });
        Ok(Placements {
            all,
            possible,
            by_bandwidth,
        })
    }

    fn every(&self, machine: &Machine, nodes: &[NodeId]) -> Vec<Vec<NodeId>> {
        let mut all = vec![Vec::new()];
        for size in &self.sizes {
            let longer = |placed: &Vec<NodeId>| {
                let free = nodes
                    .iter()
                    .filter(|n| !placed.contains(n) && self.fits(**n, *size, machine));
                free.map(|n| [placed.as_slice(), &[*n]].concat())
                    .collect::<Vec<_>>()
            };
            all = all.iter().flat_map(longer).collect();
        }
        all
    }

    /// A random placement of the virtual nodes, by a seed.
    #[must_use]
    pub fn drawn(&self, machine: &Machine, nodes: &[NodeId], seed: u64) -> Option<Vec<NodeId>> {
        let mut order = nodes.to_vec();
        order.sort_by_key(|n| mix(u64::from(n.0) ^ (seed << 16)));
        let mut placed = Vec::new();
        for size in &self.sizes {
            let at = order.iter().position(|n| self.fits(*n, *size, machine))?;
            placed.push(order.remove(at));
        }
        Some(placed)
    }
}

/// The affinity of threads on the CPUs of virtual nodes, which are numbered node by node. `groups`: the virtual thread
/// of each thread; `of`: the node of each virtual thread. With more threads than a node's CPUs, starts again at the
/// first.
#[must_use]
pub fn virtual_affinity(name: &str, groups: &[u32], of: &[u32], machine: &Machine) -> Affinity {
    let mut first = vec![0];
    for node in &machine.nodes {
        first.push(first[first.len() - 1] + node.cpus.len() as u32);
    }
    let mut taken = vec![0; machine.nodes.len()];
    let cpu_of = |node: &u32| {
        let node = *node as usize;
        taken[node] += 1;
        CpuId(first[node] + (taken[node] - 1) % machine.nodes[node].cpus.len() as u32)
    };
    let cpus: Vec<CpuId> = of.iter().map(cpu_of).collect();
    Affinity {
        name: name.to_owned(),
        cpus: groups.iter().map(|g| cpus[*g as usize]).collect(),
        nodes: groups.iter().map(|g| NodeId(of[*g as usize])).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asym::{NodePlacement, cluster_bandwidth};
    use crate::fixtures::Recorded;

    fn recorded(threads: u32) -> Recorded {
        let groups = |page: u64, thread: u32| u64::from(u64::from(thread) % 3 == page % 3) * 5;
        Recorded::new(Machine::named("machine-a").unwrap(), threads, &[(6, &groups)])
    }

    fn of(recorded: &Recorded) -> VirtualNodes {
        VirtualNodes::new(&recorded.profile, &recorded.histogram, &recorded.machine)
    }

    #[test]
    fn a_program_takes_as_many_nodes_as_its_threads_fill() {
        for (threads, expected) in [
            (1, vec![1]),
            (8, vec![8]),
            (20, vec![7, 7, 6]),
            (24, vec![8; 3]),
            (70, vec![9, 9, 9, 9, 9, 9, 8, 8]),
        ] {
            assert_eq!(of(&recorded(threads)).sizes, expected, "{threads} threads");
        }
    }

    #[test]
    fn those_who_share_are_on_one_node() {
        let found = of(&recorded(24)).of;
        assert!((3..24).all(|t| found[t] == found[t - 3]), "{found:?}");
    }

    #[test]
    fn three_of_eight_nodes_can_be_had_in_336_ways() {
        let recorded = recorded(24);
        let placements = of(&recorded)
            .placements(&recorded.machine, 10_000, 2_000)
            .unwrap();
        let mut distinct = placements.all.clone();
        distinct.sort();
        distinct.dedup();
        assert_eq!((distinct.len(), placements.possible), (336, 336.0));
        let few = of(&recorded).placements(&recorded.machine, 40, 40).unwrap();
        assert!(few.all.len() <= 41 && !few.complete());
        let channels = Channels::of(&recorded.machine);
        let worth = |nodes: &Vec<NodeId>| {
            let places = vec![nodes.clone()];
            cluster_bandwidth(&channels, &NodePlacement { places })[0]
        };
        let best = placements.all.iter().map(worth).fold(0.0, f64::max);
        assert!((worth(&few.all[few.by_bandwidth]) - best).abs() < 1e-6 * best);
    }

    #[test]
    fn threads_run_where_their_virtual_node_is() {
        let recorded = recorded(24);
        let found = of(&recorded);
        let affinity = found.affinity(
            "asym",
            &recorded.profile,
            &recorded.machine,
            &[6, 2, 3].map(NodeId),
        );
        let cpus: std::collections::BTreeSet<_> = affinity.cpus.iter().collect();
        assert_eq!(cpus.len(), 24);
        assert!(affinity.nodes.iter().all(|n| [2, 3, 6].contains(&n.0)));
    }

    #[test]
    fn a_node_with_a_cpu_offline_takes_the_smaller_part() {
        let mut recorded = recorded(63);
        recorded.machine.nodes[0].cpus.remove(0);
        let found = of(&recorded);
        let nodes = found.by_bandwidth(&recorded.machine).unwrap();
        assert_eq!((found.sizes[7], nodes[7]), (7, NodeId(0)));
        let placements = found.placements(&recorded.machine, 100, 100).unwrap();
        assert!(placements.all.iter().all(|p| p[7] == NodeId(0)));
    }

    #[test]
    fn threads_that_are_more_than_cpus_share_them() {
        let recorded = recorded(70);
        let found = of(&recorded);
        let groups: Vec<u32> = (0..70).collect();
        let affinity = virtual_affinity("asym", &groups, &found.of, &recorded.machine);
        let cpus: std::collections::BTreeSet<_> = affinity.cpus.iter().collect();
        assert_eq!(cpus.len(), 64);
        assert!(
            affinity
                .cpus
                .iter()
                .zip(&affinity.nodes)
                .all(|(c, n)| c.0 / 8 == n.0)
        );
    }
}

//! Step 1: threads that share data.

use super::{AsymError, Cluster, Place};
use nodewise_analysis::SharingMatrix;
use nodewise_machine::NodeId;
use nodewise_profile::ThreadId;
use std::collections::BTreeMap;
use std::ops::Range;

/// Two threads share data when what they share is at least this part of what either shares with its closest
/// partner: a page that everybody reads does not make one cluster of all.
const CLOSE: f64 = 0.1;

/// Much goes from a node's threads to another node when it is at least this part of what each node would get if all
/// they access was spread evenly.
const MUCH: f64 = 0.5;

/// A thread, as far as clusters go.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Crew {
    /// Whose it is.
    pub application: u32,
    /// Its number in the application.
    pub thread: u32,
    /// Accesses to other nodes than its own, a second.
    pub remote: f64,
}

/// A cluster's weight by its remote accesses a second: log(1 + C_rbw), which keeps large differences and plays
/// down small ones (AsymSched 4.2, step 1; the paper's log C_rbw has no value at none).
#[must_use]
pub fn weight(remote: f64) -> f64 {
    remote.max(0.0).ln_1p()
}

/// Clusters of a page profile: threads of one application that share pages, directly or through others.
/// `crew[i]` is thread i of the matrix. Where they are now and their memory is left to be filled in.
///
/// Clusters that fill less than a node share one with others of their application, so that as few nodes as
/// can be are begun. When threads do not fit, nodes take more of them than they have CPUs, all alike.
///
/// # Errors
/// One line: no node for threads, or more applications than nodes.
pub fn clusters_from_sharing(
    sharing: &SharingMatrix,
    crew: &[Crew],
    places: &[Place],
) -> Result<Vec<Cluster>, AsymError> {
    let count = crew.len().min(sharing.threads());
    let between = |a: usize, b: usize| {
        if a == b || crew[a].application != crew[b].application {
            return 0.0;
        }
        sharing.between(ThreadId::from_index(a), ThreadId::from_index(b)) as f64
    };
    let closest: Vec<f64> = (0..count)
        .map(|a| (0..count).map(|b| between(a, b)).fold(0.0, f64::max))
        .collect();
    let mut groups = Groups::new(count);
    for a in 0..count {
        for b in a + 1..count {
            let shared = between(a, b);
            if shared > 0.0 && shared >= CLOSE * closest[a].max(closest[b]) {
                groups.join(a, b);
            }
        }
    }
    formed(groups, &crew[..count], places)
}

/// Clusters of counters, which tell how often each thread's CPU accesses each node (`accesses[thread][node]`, a
/// second), with the paper's simplifying assumptions: (a) a thread may share data with any other of its
/// application on its node; (b) where much goes from a node's CPUs to another node, their threads may share data
/// with any thread of their application there; and so may threads of two nodes that both access a third
/// (Algorithm 1, line 1).
/// `nodes[thread]` is where it runs; remote accesses are taken from the counters.
///
/// # Errors
/// As for [`clusters_from_sharing`].
pub fn clusters_from_counters(
    crew: &[Crew],
    nodes: &[NodeId],
    accesses: &[Vec<f64>],
    places: &[Place],
) -> Result<Vec<Cluster>, AsymError> {
    let mut crew = crew.to_vec();
    // By application and node: a thread there, if any, and what its threads access.
    let mut of: BTreeMap<(u32, usize), Vec<f64>> = BTreeMap::new();
    for ((thread, node), row) in crew.iter_mut().zip(nodes).zip(accesses) {
        let away = row.iter().enumerate().filter(|(m, _)| *m != node.index());
        thread.remote = away.map(|(_, n)| n).sum();
        let sums = of.entry((thread.application, node.index())).or_default();
        sums.resize(sums.len().max(row.len()), 0.0);
        sums.iter_mut().zip(row).for_each(|(sum, n)| *sum += n);
    }
    let mut key: BTreeMap<(u32, usize), usize> = BTreeMap::new();
    let mut groups = Groups::new(crew.len());
    for (index, (thread, node)) in crew.iter().zip(nodes).enumerate() {
        let first = *key.entry((thread.application, node.index())).or_insert(index);
        groups.join(first, index);
    }
    for ((application, from), sums) in &of {
        let all: f64 = sums.iter().sum();
        let here = key[&(*application, *from)];
        for (to, sum) in sums.iter().enumerate() {
            if to != *from && *sum > 0.0 && *sum * sums.len() as f64 >= MUCH * all {
                let there = *key.entry((*application, to)).or_insert(here);
                groups.join(here, there);
            }
        }
    }
    formed(groups, &crew, places)
}

/// Sets that grow together.
struct Groups(Vec<usize>);

impl Groups {
    fn new(count: usize) -> Self {
        Self((0..count).collect())
    }

    fn of(&mut self, mut one: usize) -> usize {
        while self.0[one] != one {
            self.0[one] = self.0[self.0[one]];
            one = self.0[one];
        }
        one
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.of(a), self.of(b));
        self.0[a.max(b)] = a.min(b);
    }
}

/// Clusters of groups of threads, as many threads a node as are needed for all to fit.
fn formed(mut groups: Groups, crew: &[Crew], places: &[Place]) -> Result<Vec<Cluster>, AsymError> {
    let mut by_group: BTreeMap<(u32, usize), Vec<usize>> = BTreeMap::new();
    for (index, thread) in crew.iter().enumerate() {
        by_group
            .entry((thread.application, groups.of(index)))
            .or_default()
            .push(index);
    }
    let groups: Vec<Vec<usize>> = by_group.into_values().collect();
    let nodes = places.iter().filter(|p| p.threads > 0).count();
    let fits = |per_node: &usize| {
        packed(&groups, crew, *per_node)
            .iter()
            .map(|b| b.nodes)
            .sum::<usize>()
            <= nodes
    };
    // Fewer nodes are needed the more threads each takes.
    let per_node = (usual(places)..=crew.len().max(usual(places)))
        .find(fits)
        .ok_or_else(|| none_fits(crew, nodes))?;
    Ok(packed(&groups, crew, per_node))
}

fn none_fits(crew: &[Crew], nodes: usize) -> AsymError {
    let mut applications: Vec<u32> = crew.iter().map(|t| t.application).collect();
    applications.sort_unstable();
    applications.dedup();
    let count = applications.len();
    AsymError(match nodes {
        0 => "no node is left for threads: all are forbidden or without CPUs; allow some (cpuset, --nodes)"
            .to_owned(),
        _ => format!(
            "{count} programs need a node each, but only {nodes} may be used; allow more nodes or run fewer"
        ),
    })
}

/// The number of threads that most nodes take; of equally frequent ones the largest.
fn usual(places: &[Place]) -> usize {
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    let takers = places.iter().filter(|p| p.threads > 0);
    takers.for_each(|p| *counts.entry(p.threads).or_default() += 1);
    counts
        .into_iter()
        .max_by_key(|(threads, count)| (*count, *threads))
        .map_or(1, |(threads, _)| threads)
}

/// Groups of one application on as few nodes as first fit finds, the largest first.
fn packed(groups: &[Vec<usize>], crew: &[Crew], per_node: usize) -> Vec<Cluster> {
    let mut order: Vec<&Vec<usize>> = groups.iter().collect();
    order.sort_by_key(|g| std::cmp::Reverse(g.len()));
    let mut clusters: Vec<(Cluster, f64)> = Vec::new();
    for group in order {
        let application = crew[group[0]].application;
        let remote: f64 = group.iter().map(|t| crew[*t].remote).sum();
        let room = |(c, _): &&mut (Cluster, f64)| {
            c.application == application && c.threads.len() + group.len() <= c.nodes * per_node
        };
        let (cluster, sum) = match clusters.iter_mut().find(room) {
            Some(found) => found,
            None => {
                let nodes = group.len().div_ceil(per_node);
                clusters.push((
                    Cluster {
                        application,
                        nodes,
                        ..Cluster::default()
                    },
                    0.0,
                ));
                clusters.last_mut().expect("just pushed")
            }
        };
        cluster.threads.extend(group.iter().map(|t| crew[*t].thread));
        *sum += remote;
    }
    clusters.sort_by_key(|(c, _)| c.application);
    let done = |(mut cluster, remote): (Cluster, f64)| {
        cluster.threads.sort_unstable();
        cluster.weight = weight(remote);
        cluster
    };
    clusters.into_iter().map(done).collect()
}

impl Cluster {
    /// The threads of virtual node i, as positions in [`Cluster::threads`]: blocks that differ by one at most.
    #[must_use]
    pub fn aboard(&self, virtual_node: usize) -> Range<usize> {
        let (all, nodes) = (self.threads.len(), self.nodes.max(1));
        virtual_node * all / nodes..(virtual_node + 1) * all / nodes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_analysis::{Entry, Histogram};
    use nodewise_profile::{ObjectId, PageNumber};

    fn places(threads: &[usize]) -> Vec<Place> {
        let place = |(n, threads): (usize, &usize)| Place {
            node: NodeId(n as u32),
            threads: *threads,
        };
        threads.iter().enumerate().map(place).collect()
    }

    fn crew(applications: &[u32]) -> Vec<Crew> {
        let one = |(i, application): (usize, &u32)| Crew {
            application: *application,
            thread: i as u32,
            remote: 10.0,
        };
        applications.iter().enumerate().map(one).collect()
    }

    /// Pages, each with who reads it how often.
    fn sharing(threads: usize, pages: &[&[(u32, u64)]]) -> SharingMatrix {
        let entry = |(thread, reads): &(u32, u64)| Entry {
            reads: *reads,
            thread: ThreadId(*thread),
            ..Entry::default()
        };
        let ends = (0..=pages.len()).map(|n| pages[..n].iter().map(|p| p.len() as u64).sum());
        SharingMatrix::of(&Histogram {
            pages: (0..pages.len() as u64).map(PageNumber).collect(),
            objects: vec![ObjectId(0); pages.len()],
            offsets: ends.collect(),
            entries: pages.iter().flat_map(|p| p.iter().map(entry)).collect(),
            threads,
            shift: 0,
        })
    }

    fn threads(clusters: &[Cluster]) -> Vec<(Vec<u32>, usize)> {
        clusters.iter().map(|c| (c.threads.clone(), c.nodes)).collect()
    }

    #[test]
    fn threads_that_share_are_together_and_what_all_read_a_little_joins_nobody() {
        let all: Vec<(u32, u64)> = (0..6).map(|t| (t, 3)).collect();
        let sharing = sharing(
            6,
            &[
                &[(0, 50), (1, 50)],
                &[(1, 50), (2, 50)],
                &[(3, 50), (4, 50), (5, 50)],
                &all,
            ],
        );
        let found = clusters_from_sharing(&sharing, &crew(&[0; 6]), &places(&[3; 4])).unwrap();
        assert_eq!(threads(&found), [(vec![0, 1, 2], 1), (vec![3, 4, 5], 1)]);
        assert_eq!(found[0].weight, 31f64.ln());
        let found = clusters_from_sharing(&sharing, &crew(&[0; 6]), &places(&[2; 4])).unwrap();
        assert_eq!(threads(&found), [(vec![0, 1, 2], 2), (vec![3, 4, 5], 2)]);
    }

    #[test]
    fn small_clusters_share_nodes_with_their_own_kind_only() {
        let sharing = sharing(6, &[&[(0, 9), (1, 9)]]);
        let found = clusters_from_sharing(&sharing, &crew(&[0, 0, 0, 0, 1, 1]), &places(&[4; 4])).unwrap();
        assert_eq!(threads(&found), [(vec![0, 1, 2, 3], 1), (vec![4, 5], 1)]);
    }

    #[test]
    fn nodes_take_more_threads_than_cpus_only_when_they_have_to() {
        let sharing = sharing(9, &[]);
        let nodes = |places: &[Place]| {
            let found = clusters_from_sharing(&sharing, &crew(&[0, 0, 0, 1, 1, 1, 2, 2, 2]), places).unwrap();
            found.iter().map(|c| c.nodes).collect::<Vec<_>>()
        };
        assert_eq!(nodes(&places(&[2; 8])), [1; 6]);
        assert_eq!(nodes(&places(&[2; 4])), [1, 1, 1]);
        let error = clusters_from_sharing(&sharing, &crew(&[0, 0, 0, 1, 1, 1, 2, 2, 2]), &places(&[2; 2]));
        let text = error.unwrap_err().to_string();
        assert!(
            text.starts_with("3 programs need a node each, but only 2 may be used"),
            "{text}"
        );
        let error = clusters_from_sharing(&sharing, &crew(&[0; 9]), &[]).unwrap_err();
        assert!(error.to_string().starts_with("no node is left"));
    }

    #[test]
    fn memory_spread_over_all_nodes_joins_them_however_many_there_are() {
        for count in [2, 16, 64] {
            let nodes: Vec<NodeId> = (0..count).map(NodeId).collect();
            let spread = vec![vec![7.0; count as usize]; count as usize];
            let crew = crew(&vec![0; count as usize]);
            let found = clusters_from_counters(&crew, &nodes, &spread, &places(&vec![1; count as usize]));
            assert_eq!(found.unwrap()[0].nodes, count as usize);
        }
    }

    #[test]
    fn counters_join_nodes_that_access_each_other_or_a_third() {
        // Two threads a node of application 0 on nodes 0 to 3, and one of application 1 on node 0.
        let nodes: Vec<NodeId> = [0, 0, 1, 1, 2, 2, 3, 3, 0].map(NodeId).to_vec();
        let quiet = vec![100.0, 0.0, 0.0, 0.0, 0.0];
        let mut accesses: Vec<Vec<f64>> = vec![quiet; 9];
        accesses[0] = vec![60.0, 40.0, 0.0, 0.0, 0.0];
        accesses[4] = vec![0.0, 0.0, 100.0, 0.0, 50.0];
        accesses[6] = vec![0.0, 0.0, 0.0, 100.0, 90.0];
        for (thread, node) in [(2, 1), (3, 1), (5, 2), (7, 3)] {
            accesses[thread] = (0..5).map(|n| if n == node { 100.0 } else { 0.0 }).collect();
        }
        let found = clusters_from_counters(
            &crew(&[0, 0, 0, 0, 0, 0, 0, 0, 1]),
            &nodes,
            &accesses,
            &places(&[2; 8]),
        );
        let found = found.unwrap();
        assert_eq!(
            threads(&found),
            [(vec![0, 1, 2, 3], 2), (vec![4, 5, 6, 7], 2), (vec![8], 1)]
        );
        let remote = [40.0f64, 140.0, 0.0];
        assert!(
            found
                .iter()
                .zip(remote)
                .all(|(c, r)| (c.weight - r.ln_1p()).abs() < 1e-12),
            "{found:?}"
        );
    }

    #[test]
    fn threads_go_on_virtual_nodes_in_blocks() {
        let cluster = Cluster {
            threads: (0..7).collect(),
            nodes: 3,
            ..Cluster::default()
        };
        let aboard: Vec<_> = (0..3).map(|i| cluster.aboard(i)).collect();
        assert_eq!(aboard, [0..2, 2..4, 4..7]);
    }
}

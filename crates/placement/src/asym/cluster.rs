//! Step 1 of AsymSched: forms clusters of threads that share data.

use super::packing::{DisjointSets, pack_clusters};
use super::traffic::ThreadTraffic;
use super::{AsymError, Cluster, Place};
use nodewise_analysis::SharingMatrix;
use nodewise_machine::NodeId;
use nodewise_profile::ThreadId;
use std::collections::BTreeMap;

/// Two threads share data if what they share is at least this part of what either shares with its closest partner, so
/// that a page read by all threads does not join all of them in one cluster.
const MIN_RELATIVE_SHARING: f64 = 0.1;

/// A thread's accesses to another node count as much traffic from this multiple of the average on: what each node would
/// get if all accesses of the thread, or the mean over the threads on its node, were spread evenly.
const MIN_RELATIVE_TRAFFIC: f64 = 0.5;

/// Clusters from a page profile: threads of one application that share pages, directly or through other threads.
/// `traffic[i]` is thread i of the matrix; threads that the matrix lacks share nothing. The caller fills in the
/// clusters' current nodes and memory.
///
/// Clusters that fill less than a node share one with others of their application, so that as few nodes as possible are
/// used. If threads do not fit, all nodes equally take more threads than they have CPUs.
///
/// # Errors
/// One line: no node for threads, or more applications than nodes.
pub fn clusters_from_sharing(
    sharing: &SharingMatrix,
    traffic: &[ThreadTraffic],
    places: &[Place],
) -> Result<Vec<Cluster>, AsymError> {
    let known = traffic.len().min(sharing.threads());
    let shared = |(a, b): (usize, usize)| {
        let own = traffic[a].application == traffic[b].application;
        let both = own.then(|| sharing.between(ThreadId::from_index(a), ThreadId::from_index(b)));
        both.filter(|s| *s > 0).map(|s| (a, b, s as f64))
    };
    let pairs = (0..known).flat_map(|a| (a + 1..known).map(move |b| (a, b)));
    let pairs: Vec<(usize, usize, f64)> = pairs.filter_map(shared).collect();
    let mut closest = vec![0.0; known];
    for (a, b, shared) in &pairs {
        closest[*a] = f64::max(closest[*a], *shared);
        closest[*b] = f64::max(closest[*b], *shared);
    }
    let mut groups = DisjointSets::new(traffic.len());
    for (a, b, shared) in pairs {
        if shared >= MIN_RELATIVE_SHARING * f64::max(closest[a], closest[b]) {
            groups.join(a, b);
        }
    }
    pack_clusters(groups, traffic, None, places)
}

/// Clusters from counters, which tell how often each thread's CPU accesses each node (`accesses[thread][node]`, per
/// second), with the paper's simplifying assumptions: (a) a thread may share data with any other thread of its
/// application on its node; (b) if there is much traffic from a CPU to another node, its thread may share data with any
/// thread of its application there; and so may threads of two nodes that both access a third (Algorithm 1, line 1).
/// `nodes[thread]` is where the thread runs; remote accesses are computed from the counters.
///
/// A virtual node holds the threads of one real node. If a cluster runs on more nodes than it needs, those with most of
/// its threads become virtual nodes, and the other threads fill them up.
///
/// # Errors
/// As for [`clusters_from_sharing`].
pub fn clusters_from_counters(
    traffic: &[ThreadTraffic],
    nodes: &[NodeId],
    accesses: &[Vec<f64>],
    places: &[Place],
) -> Result<Vec<Cluster>, AsymError> {
    let mut traffic = traffic.to_vec();
    // By application and node: one thread there, if any; the number of threads there; their accesses.
    let mut key: BTreeMap<(u32, usize), usize> = BTreeMap::new();
    let mut there: BTreeMap<(u32, usize), (f64, f64)> = BTreeMap::new();
    let mut groups = DisjointSets::new(traffic.len());
    for (index, ((thread, node), row)) in traffic.iter_mut().zip(nodes).zip(accesses).enumerate() {
        let away = row.iter().enumerate().filter(|(m, _)| *m != node.index());
        thread.remote = away.map(|(_, n)| n).sum();
        let place = (thread.application, node.index());
        let (threads, all) = there.entry(place).or_default();
        (*threads, *all) = (*threads + 1.0, *all + row.iter().sum::<f64>());
        groups.join(*key.entry(place).or_insert(index), index);
    }
    for (index, ((thread, node), row)) in traffic.iter().zip(nodes).zip(accesses).enumerate() {
        let (threads, all) = there[&(thread.application, node.index())];
        let usual = row.iter().sum::<f64>().max(all / threads);
        for (to, n) in row.iter().enumerate() {
            if to != node.index() && *n > 0.0 && *n * row.len() as f64 >= MIN_RELATIVE_TRAFFIC * usual {
                groups.join(index, *key.entry((thread.application, to)).or_insert(index));
            }
        }
    }
    pack_clusters(groups, &traffic, Some(nodes), places)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_analysis::{Entry, Histogram};
    use nodewise_profile::{ObjectId, PageNumber};
    use proptest::prelude::*;

    fn places(threads: &[usize]) -> Vec<Place> {
        let place = |(n, threads): (usize, &usize)| Place {
            node: NodeId(n as u32),
            threads: *threads,
        };
        threads.iter().enumerate().map(place).collect()
    }

    fn traffic(applications: &[u32]) -> Vec<ThreadTraffic> {
        let one = |(i, application): (usize, &u32)| ThreadTraffic {
            application: *application,
            thread: i as u32,
            remote: 10.0,
        };
        applications.iter().enumerate().map(one).collect()
    }

    /// Pages, each with its readers and their counts.
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
        let found = clusters_from_sharing(&sharing, &traffic(&[0; 6]), &places(&[3; 4])).unwrap();
        assert_eq!(threads(&found), [(vec![0, 1, 2], 1), (vec![3, 4, 5], 1)]);
        assert_eq!(found[0].weight, 31f64.ln());
        let found = clusters_from_sharing(&sharing, &traffic(&[0; 6]), &places(&[2; 4])).unwrap();
        assert_eq!(threads(&found), [(vec![0, 1, 2], 2), (vec![3, 4, 5], 2)]);
    }

    #[test]
    fn small_clusters_share_nodes_with_their_own_kind_only() {
        let sharing = sharing(6, &[&[(0, 9), (1, 9)]]);
        let found = clusters_from_sharing(&sharing, &traffic(&[0, 0, 0, 0, 1, 1]), &places(&[4; 4])).unwrap();
        assert_eq!(threads(&found), [(vec![0, 1, 2, 3], 1), (vec![4, 5], 1)]);
    }

    #[test]
    fn nodes_take_more_threads_than_cpus_only_when_they_have_to() {
        let sharing = sharing(9, &[]);
        let nodes = |places: &[Place]| {
            let found =
                clusters_from_sharing(&sharing, &traffic(&[0, 0, 0, 1, 1, 1, 2, 2, 2]), places).unwrap();
            found.iter().map(|c| c.nodes).collect::<Vec<_>>()
        };
        assert_eq!(nodes(&places(&[2; 8])), [1; 6]);
        assert_eq!(nodes(&places(&[2; 4])), [1, 1, 1]);
        let error = clusters_from_sharing(&sharing, &traffic(&[0, 0, 0, 1, 1, 1, 2, 2, 2]), &places(&[2; 2]));
        let text = error.unwrap_err().to_string();
        assert!(
            text.starts_with("3 programs need a node each, but only 2 may be used"),
            "{text}"
        );
        let error = clusters_from_sharing(&sharing, &traffic(&[0; 9]), &[]).unwrap_err();
        assert!(error.to_string().starts_with("no node is left"));
    }

    #[test]
    fn memory_spread_over_all_nodes_joins_them_however_many_there_are() {
        for count in [2, 16, 64] {
            let nodes: Vec<NodeId> = (0..count).map(NodeId).collect();
            let spread = vec![vec![7.0; count as usize]; count as usize];
            let traffic = traffic(&vec![0; count as usize]);
            let found = clusters_from_counters(&traffic, &nodes, &spread, &places(&vec![1; count as usize]));
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
            &traffic(&[0, 0, 0, 0, 0, 0, 0, 0, 1]),
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

    /// The clusters of one application whose threads run on these nodes; which threads share data makes no difference.
    fn from(nodes: &[u32], cpus: usize) -> Vec<Cluster> {
        let nodes: Vec<NodeId> = nodes.iter().copied().map(NodeId).collect();
        let even = vec![vec![1.0; 8]; nodes.len()];
        clusters_from_counters(
            &traffic(&vec![0; nodes.len()]),
            &nodes,
            &even,
            &places(&[cpus; 8]),
        )
        .unwrap()
    }

    #[test]
    fn a_virtual_node_is_what_runs_on_a_node() {
        let found = &from(&[6, 2, 6, 2, 6], 3)[0];
        assert_eq!(
            (&found.threads[..], &found.ends[..]),
            (&[0, 2, 4, 1, 3][..], &[3, 5][..])
        );
        assert_eq!(found.at, [6, 2].map(NodeId));
        assert_eq!(found.on, [6, 6, 6, 2, 2].map(NodeId));
        // Three fit: the fourth of node 1 joins those of node 5.
        let found = &from(&[1, 5, 1, 1, 1], 3)[0];
        assert_eq!((found.threads_of(0), found.threads_of(1)), (0..3, 3..5));
        assert_eq!((found.threads[4], found.on[4]), (4, NodeId(1)));
        // All threads on one node, while two are needed.
        assert_eq!(from(&[7; 6], 3)[0].at, [7, 7].map(NodeId));
    }

    #[test]
    fn a_thread_that_accesses_another_node_much_joins_those_there_whatever_its_neighbours_do() {
        let nodes = [0, 0, 0, 0, 0, 0, 0, 0, 1].map(NodeId);
        let on = |node: usize, away: f64| {
            let mut row = vec![0.0; 8];
            (row[node], row[1 - node]) = (100.0 - away, away);
            row
        };
        let mut accesses = vec![on(0, 0.0); 8];
        accesses.push(on(1, 0.0));
        let clusters = |accesses: &[Vec<f64>]| {
            clusters_from_counters(&traffic(&[0; 9]), &nodes, accesses, &places(&[8; 8]))
                .unwrap()
                .len()
        };
        assert_eq!(clusters(&accesses), 2);
        accesses[3] = on(0, 20.0);
        assert_eq!(clusters(&accesses), 1);
        // The few accesses of an idle thread are no evidence.
        accesses[3] = vec![0.5, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        assert_eq!(clusters(&accesses), 2);
    }

    #[test]
    fn threads_that_a_matrix_does_not_know_stand_alone() {
        let sharing = sharing(2, &[&[(0, 9), (1, 9)]]);
        let found = clusters_from_sharing(&sharing, &traffic(&[0, 0, 0]), &places(&[2; 4])).unwrap();
        assert_eq!(threads(&found), [(vec![0, 1], 1), (vec![2], 1)]);
    }

    proptest! {
        #[test]
        fn every_thread_is_in_one_cluster_and_all_clusters_fit(
            threads in proptest::collection::vec((0u32..3, 0u32..6, 0u32..6, 0.0f64..9.0), 1..60),
            cpus in proptest::collection::vec(0usize..9, 6),
            shared in proptest::collection::vec(proptest::collection::vec((0u32..50, 1u64..50), 1..5), 0..20),
        ) {
            let places = places(&cpus);
            let traffic: Vec<ThreadTraffic> = (0..).zip(&threads).map(|(thread, t)| ThreadTraffic {
                application: t.0, thread, remote: t.3,
            }).collect();
            let nodes: Vec<NodeId> = threads.iter().map(|t| NodeId(t.1)).collect();
            let accesses: Vec<Vec<f64>> = threads.iter().map(|t| {
                (0..6).map(|n| if n == t.2 { t.3 } else { 1.0 }).collect()
            }).collect();
            let pages: Vec<&[(u32, u64)]> = shared.iter().map(Vec::as_slice).collect();
            let sharing = sharing(50, &pages);
            for found in [
                clusters_from_counters(&traffic, &nodes, &accesses, &places),
                clusters_from_sharing(&sharing, &traffic, &places),
            ] {
                let takers = cpus.iter().filter(|c| **c > 0).count();
                let applications = threads.iter().map(|t| t.0).collect::<std::collections::BTreeSet<_>>().len();
                prop_assert_eq!(found.is_err(), applications > takers);
                let Ok(found) = found else { continue };
                let mut all: Vec<u32> = found.iter().flat_map(|c| c.threads.clone()).collect();
                all.sort_unstable();
                prop_assert_eq!(all, (0..threads.len() as u32).collect::<Vec<_>>());
                prop_assert!(found.iter().map(|c| c.nodes).sum::<usize>() <= takers);
                for cluster in &found {
                    let of = |t: &u32| threads[*t as usize].0 == cluster.application;
                    prop_assert!(cluster.threads.iter().all(of));
                    let ends: Vec<usize> = (0..cluster.nodes).map(|v| cluster.threads_of(v).end).collect();
                    prop_assert_eq!(ends.last(), Some(&cluster.threads.len()));
                    prop_assert!((0..cluster.nodes).all(|v| !cluster.threads_of(v).is_empty()));
                    for (thread, on) in cluster.threads.iter().zip(&cluster.on) {
                        prop_assert_eq!(*on, nodes[*thread as usize]);
                    }
                }
            }
        }
    }

    #[test]
    fn threads_go_on_virtual_nodes_in_blocks() {
        let cluster = Cluster {
            threads: (0..7).collect(),
            nodes: 3,
            ..Cluster::default()
        };
        let threads_of: Vec<_> = (0..3).map(|i| cluster.threads_of(i)).collect();
        assert_eq!(threads_of, [0..2, 2..4, 4..7]);
    }
}

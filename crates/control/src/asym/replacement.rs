//! Replacement nodes for clusters whose node has vanished (offline, or removed from the cpuset).

use nodewise_machine::{Channels, NodeId};
use nodewise_placement::asym::{Cluster, NodePlacement, Place, weighted_bandwidth};

/// Assigns new nodes to those virtual nodes of cluster `which` that are unplaced or on a vanished node; all others stay.
/// Candidates are the nodes without a fixed cluster, preferred in this order: enough CPUs, unoccupied, highest total
/// weighted bandwidth. `None` where there are not enough.
pub(super) fn replacement_nodes(
    channels: &Channels,
    places: &[Place],
    clusters: &[Cluster],
    which: usize,
) -> Option<Vec<NodeId>> {
    let open: Vec<Place> = places.iter().copied().filter(|p| p.threads > 0).collect();
    let there = |n: &NodeId| open.iter().any(|p| p.node == *n);
    let cluster = &clusters[which];
    let mut at: Vec<Option<NodeId>> = (0..cluster.nodes)
        .map(|v| cluster.at.get(v).copied().filter(there))
        .collect();
    for v in 0..at.len() {
        if at[v].is_none() {
            at[v] = Some(next(channels, &open, clusters, which, (v, &at))?);
        }
    }
    at.into_iter().collect()
}

/// The best node for virtual node v of the cluster; `at`: the nodes of its virtual nodes so far.
fn next(
    channels: &Channels,
    open: &[Place],
    clusters: &[Cluster],
    which: usize,
    (v, at): (usize, &[Option<NodeId>]),
) -> Option<NodeId> {
    let others = || {
        clusters
            .iter()
            .enumerate()
            .filter(|(c, _)| *c != which)
            .map(|(_, c)| c)
    };
    let fixed: Vec<NodeId> = others()
        .filter(|c| c.fixed)
        .flat_map(Cluster::occupied_nodes)
        .collect();
    let busy: Vec<NodeId> = others().flat_map(Cluster::occupied_nodes).collect();
    let rank = |place: &Place| {
        let mut placement = NodePlacement::current(clusters);
        let with = at.iter().flatten().copied().chain([place.node]);
        placement.places[which] = with.collect();
        let fits = place.threads >= clusters[which].threads_of(v).len();
        let worth = weighted_bandwidth(channels, clusters, &placement);
        (fits, !busy.contains(&place.node), worth)
    };
    let free = |p: &&Place| !fixed.contains(&p.node) && !at.contains(&Some(p.node));
    let ranked = open.iter().filter(free).map(|p| (rank(p), p.node));
    let best = ranked.reduce(|best, next| if next.0 > best.0 { next } else { best });
    best.map(|(_, node)| node)
}

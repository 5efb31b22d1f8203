//! Who may not move, but must: a node of theirs is gone.

use nodewise_machine::{Channels, NodeId};
use nodewise_placement::asym::{Cluster, NodePlacement, Place, weighted_bandwidth};

/// Other nodes for those virtual nodes of cluster `which` that are nowhere or on a node that is gone, everything else
/// as it is: of the nodes that no fixed cluster has those with enough CPUs first, then those nobody is on, then those
/// that give all most bandwidth. `None` where there are not enough.
pub(super) fn replaced(
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

/// A node for virtual node v of the cluster, whose others are `at` theirs as far as they have one.
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
        .flat_map(Cluster::stands_on)
        .collect();
    let busy: Vec<NodeId> = others().flat_map(Cluster::stands_on).collect();
    let rank = |place: &Place| {
        let mut placement = NodePlacement::current(clusters);
        let with = at.iter().flatten().copied().chain([place.node]);
        placement.places[which] = with.collect();
        let fits = place.threads >= clusters[which].aboard(v).len();
        let worth = weighted_bandwidth(channels, clusters, &placement);
        (fits, !busy.contains(&place.node), worth)
    };
    let free = |p: &&Place| !fixed.contains(&p.node) && !at.contains(&Some(p.node));
    let ranked = open.iter().filter(free).map(|p| (rank(p), p.node));
    let best = ranked.reduce(|best, next| if next.0 > best.0 { next } else { best });
    best.map(|(_, node)| node)
}

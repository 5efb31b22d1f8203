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
    let there = |n: &NodeId| places.iter().any(|p| p.node == *n && p.threads > 0);
    let cluster = &clusters[which];
    let mut placement = NodePlacement::current(clusters);
    let mine: Vec<Option<NodeId>> = (0..cluster.nodes)
        .map(|v| cluster.at.get(v).copied().filter(there))
        .collect();
    placement.places[which] = mine.iter().copied().flatten().collect();
    let others = || clusters.iter().enumerate().filter(|(c, _)| *c != which);
    let fixed: Vec<NodeId> = others()
        .filter(|(_, c)| c.fixed)
        .flat_map(|(_, c)| c.stands_on())
        .collect();
    let busy: Vec<NodeId> = others().flat_map(|(_, c)| c.stands_on()).collect();
    let mut found = Vec::new();
    for (v, node) in mine.into_iter().enumerate() {
        let node = node.or_else(|| {
            let taken = &placement.places[which];
            let free = |p: &&Place| p.threads > 0 && !fixed.contains(&p.node) && !taken.contains(&p.node);
            let worth = |p: &Place| {
                let mut with = placement.clone();
                with.places[which].push(p.node);
                let fits = p.threads >= cluster.aboard(v).len();
                (
                    fits,
                    !busy.contains(&p.node),
                    weighted_bandwidth(channels, clusters, &with),
                )
            };
            let free = places.iter().filter(free).map(|p| (worth(p), p.node));
            let better = |a: &(_, NodeId), b: &(_, NodeId)| b.0 > a.0;
            let best = free.reduce(|a, b| if better(&a, &b) { b } else { a })?.1;
            placement.places[which].push(best);
            Some(best)
        });
        found.push(node?);
    }
    Some(found)
}

//! Routes: the links that data crosses between two nodes.

use crate::{Link, LinkId, Machine, NodeId};

/// A link whose ends are groups of nodes: a socket's nodes share the links that leave it.
#[derive(Clone, Debug)]
pub(crate) struct SharedLink {
    pub from: Vec<NodeId>,
    pub to: Vec<NodeId>,
    pub bandwidth: f64,
    pub class: Option<String>,
}

impl SharedLink {
    /// A link of a machine, with all nodes that share its ends.
    pub(crate) fn of(machine: &Machine, id: LinkId) -> Self {
        let (from, to) = machine.link_ends(id);
        let link = &machine.links[id.0 as usize];
        Self {
            from,
            to,
            bandwidth: link.bandwidth,
            class: link.class.clone(),
        }
    }

    pub(crate) fn joins(&self, from: NodeId, to: NodeId) -> bool {
        self.from.contains(&from) && self.to.contains(&to)
    }

    /// The link as [`Machine::links`] shows it: between the first nodes of both groups.
    pub(crate) fn shown(&self) -> Link {
        Link {
            from: self.from[0],
            to: self.to[0],
            bandwidth: self.bandwidth,
            class: self.class.clone(),
        }
    }
}

/// The path with fewest links from `memory` to every node; of equally short ones the widest, then the one found first.
/// `None` for nodes that cannot be reached.
pub(crate) fn shortest_paths(links: &[SharedLink], nodes: usize, memory: NodeId) -> Vec<Option<Vec<LinkId>>> {
    let mut best: Vec<Option<(f64, Vec<LinkId>)>> = vec![None; nodes];
    best[memory.index()] = Some((f64::INFINITY, Vec::new()));
    loop {
        let layer = next_layer(links, &best);
        if layer.iter().all(Option::is_none) {
            return best.into_iter().map(|b| b.map(|(_, path)| path)).collect();
        }
        for (slot, found) in best.iter_mut().zip(layer) {
            *slot = slot.take().or(found);
        }
    }
}

/// The nodes one link beyond those already reached, each with its widest path.
fn next_layer(
    links: &[SharedLink],
    reached: &[Option<(f64, Vec<LinkId>)>],
) -> Vec<Option<(f64, Vec<LinkId>)>> {
    let mut layer: Vec<Option<(f64, Vec<LinkId>)>> = vec![None; reached.len()];
    for (id, link) in links.iter().enumerate() {
        for from in &link.from {
            let Some((width, path)) = &reached[from.index()] else {
                continue;
            };
            let width = width.min(link.bandwidth);
            for to in link.to.iter().filter(|to| reached[to.index()].is_none()) {
                if layer[to.index()].as_ref().is_none_or(|(w, _)| *w < width) {
                    let path = path.iter().copied().chain([LinkId(id as u32)]).collect();
                    layer[to.index()] = Some((width, path));
                }
            }
        }
    }
    layer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(from: u32, to: u32, bandwidth: f64) -> SharedLink {
        SharedLink {
            from: vec![NodeId(from)],
            to: vec![NodeId(to)],
            bandwidth,
            class: None,
        }
    }

    #[test]
    fn fewest_links_win_then_the_widest_way() {
        // 0 → 3 directly (narrow), 0 → 1 → 4 (narrow) and 0 → 2 → 4 (wide).
        let links = [
            link(0, 3, 1.0),
            link(0, 1, 10.0),
            link(1, 4, 2.0),
            link(0, 2, 10.0),
            link(2, 4, 5.0),
            link(2, 3, 50.0),
        ];
        let paths = shortest_paths(&links, 6, NodeId(0));
        assert_eq!(paths[0], Some(vec![]));
        assert_eq!(paths[3], Some(vec![LinkId(0)]));
        assert_eq!(paths[4], Some(vec![LinkId(3), LinkId(4)]));
        assert_eq!(paths[5], None, "links are directed and nothing leads to 5");
    }

    #[test]
    fn a_shared_link_carries_every_pair_of_its_groups() {
        let socket = SharedLink {
            from: vec![NodeId(0), NodeId(1)],
            to: vec![NodeId(2), NodeId(3)],
            bandwidth: 1.0,
            class: None,
        };
        for memory in [0, 1] {
            let paths = shortest_paths(std::slice::from_ref(&socket), 4, NodeId(memory));
            assert_eq!(paths[2], Some(vec![LinkId(0)]));
            assert_eq!(paths[3], Some(vec![LinkId(0)]));
        }
    }
}

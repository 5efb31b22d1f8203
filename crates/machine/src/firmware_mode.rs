//! A machine as it would be with fewer nodes a socket: what NPS (AMD) and SNC (Intel) in the firmware's set-up choose.

use crate::hops::way_bandwidth;
use crate::{Channels, Filling, Flow, Link, LinkId, Machine, MachineError, Node, NodeId, Route, Source};
use std::collections::{BTreeMap, BTreeSet};

/// How the number of nodes a socket is written after a machine's name: `epyc-2s-nps4:nps=1`.
const MODES: [&str; 2] = ["nps=", "snc="];

/// A machine's name without `:nps=N` or `:snc=N`, and N as it is written.
pub(crate) fn split_mode(spec: &str) -> Option<(&str, &str)> {
    let (machine, mode) = spec.rsplit_once(':')?;
    MODES
        .iter()
        .find_map(|name| mode.strip_prefix(name))
        .map(|count| (machine, count))
}

/// A comma-separated list of machines, in which modes may follow a machine: `epyc-2s-nps4,nps=1,2,4` is that machine with
/// 1, 2 and 4 nodes a socket.
#[must_use]
pub fn machine_list(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    // The machine that modes are of, and the mode's name with its `=`, once there was one.
    let (mut of, mut mode) = (String::new(), None);
    for item in text.split(',').map(str::trim) {
        let named = MODES.iter().find(|name| item.starts_with(**name));
        match (named, mode) {
            (Some(name), None) if !of.is_empty() => {
                all.pop();
                all.push(format!("{of}:{item}"));
                mode = Some(*name);
            }
            (Some(_), Some(_)) => all.push(format!("{of}:{item}")),
            (None, Some(name)) if item.parse::<usize>().is_ok() => all.push(format!("{of}:{name}{item}")),
            _ => {
                all.push(item.to_owned());
                (of, mode) = (item.to_owned(), None);
            }
        }
    }
    all
}

impl Machine {
    /// The machine with `wanted` nodes with CPUs a socket, by merging neighbouring nodes of each. The hardware then
    /// interleaves a node's memory over all its controllers: bandwidths and sizes add up, and a latency is the mean of
    /// those that are merged. Data between two nodes of the result cross the links that all the merged pairs have in
    /// common; where they have none, a link of what all these pairs carry together.
    ///
    /// # Errors
    /// If the machine does not say which nodes are of one socket, or nodes of a socket cannot be merged evenly; it cannot
    /// be made to have more nodes, as nothing says what each part would have.
    pub fn with_nodes_per_socket(&self, wanted: usize) -> Result<Self, MachineError> {
        let groups = self.groups(wanted)?;
        let of = |old: NodeId| {
            let index = groups.iter().position(|g| g.contains(&old)).unwrap_or_default();
            NodeId(index as u32)
        };
        let latency = |r: usize, m: usize| {
            let pairs = pairs(&groups[r], &groups[m]);
            pairs.iter().map(|(r, m)| self.latency(*r, *m)).sum::<f64>() / pairs.len() as f64
        };
        let all = 0..groups.len();
        let mut machine = Self {
            nodes: groups
                .iter()
                .zip(0..)
                .map(|(g, index)| self.merged(g, index))
                .collect(),
            latency_ns: all
                .clone()
                .map(|r| all.clone().map(|m| latency(r, m)).collect())
                .collect(),
            links: self
                .links
                .iter()
                .map(|l| Link {
                    from: of(l.from),
                    to: of(l.to),
                    ..l.clone()
                })
                .collect(),
            routes: vec![vec![Route::default(); groups.len()]; groups.len()],
            ..self.clone()
        };
        let channels = Channels::of(self);
        for (reader, memory) in all.clone().flat_map(|r| all.clone().map(move |m| (r, m))) {
            let own = machine.nodes[memory].bandwidth;
            machine.routes[reader][memory] = match reader == memory {
                true => Route {
                    links: Vec::new(),
                    bandwidth: own,
                },
                false => machine.route_between(self, &channels, &groups, (reader, memory)),
            };
        }
        machine.drop_unused_links();
        machine.sources.push(Source::assumed(
            "nodes.mode",
            &format!("{wanted} with CPUs a socket, merged from the {} of {}: bandwidths add up, latencies are means", self.node_count(), self.name),
        ));
        machine
            .sources
            .sort_by(|a, b| (a.assumed, &a.field).cmp(&(b.assumed, &b.field)));
        machine.validate()?;
        Ok(machine)
    }

    /// The nodes that become one, ascending by the first of each.
    fn groups(&self, wanted: usize) -> Result<Vec<Vec<NodeId>>, MachineError> {
        let error = |what: String| MachineError::invalid(format!("{}: {what}", self.name));
        let mut sockets: Vec<(u32, bool, Vec<NodeId>)> = Vec::new();
        for id in self.node_ids() {
            let node = &self.nodes[id.index()];
            let socket = node.socket.ok_or_else(|| {
                error("it is not known which nodes are of one socket (nodes.socket in its file)".to_owned())
            })?;
            let key = (socket, node.cpus.is_empty());
            match sockets.iter_mut().find(|s| (s.0, s.1) == key) {
                Some(found) => found.2.push(id),
                None => sockets.push((key.0, key.1, vec![id])),
            }
        }
        let mut groups = Vec::new();
        for (socket, no_cpus, nodes) in &sockets {
            let with_cpus = sockets
                .iter()
                .find(|s| s.0 == *socket && !s.1)
                .map_or(0, |s| s.2.len());
            // As many nodes without CPUs as with are HBM of each quadrant, and merged alike; others, as expanders, are not.
            let parts = if *no_cpus && nodes.len() != with_cpus {
                nodes.len()
            } else {
                wanted
            };
            if wanted == 0 || parts == 0 || !nodes.len().is_multiple_of(parts) {
                return Err(error(format!(
                    "socket {socket} has {} nodes{}, which cannot be merged into {wanted}; a divisor of {} can be asked for",
                    nodes.len(),
                    if *no_cpus { " without CPUs" } else { "" },
                    nodes.len()
                )));
            }
            groups.extend(nodes.chunks(nodes.len() / parts).map(<[NodeId]>::to_vec));
        }
        groups.sort();
        Ok(groups)
    }

    /// One node in place of several.
    fn merged(&self, group: &[NodeId], index: u32) -> Node {
        let all = || group.iter().map(|n| &self.nodes[n.index()]);
        let mut cpus: Vec<_> = all().flat_map(|n| n.cpus.iter().copied()).collect();
        cpus.sort_unstable();
        let first = all().next();
        Node {
            os_index: index,
            cpus,
            memory: all().map(|n| n.memory).sum(),
            bandwidth: all().map(|n| n.bandwidth).sum(),
            kind: first.and_then(|n| n.kind),
            socket: first.and_then(|n| n.socket),
        }
    }

    /// The route between two groups of `finer`'s nodes, in `self`, whose links are still numbered as those of `finer`.
    fn route_between(
        &mut self,
        finer: &Self,
        channels: &Channels,
        groups: &[Vec<NodeId>],
        (reader, memory): (usize, usize),
    ) -> Route {
        let pairs = pairs(&groups[reader], &groups[memory]);
        let leaves = |l: &&LinkId| self.links[l.0 as usize].from != self.links[l.0 as usize].to;
        let way = |(r, m): &(NodeId, NodeId)| -> Vec<LinkId> {
            finer.route(*r, *m).links.iter().filter(leaves).copied().collect()
        };
        let first = way(&pairs[0]);
        let (links, bandwidth) = if !first.is_empty() && pairs.iter().all(|p| way(p) == first) {
            let crossed: Vec<&Link> = first.iter().map(|l| &self.links[l.0 as usize]).collect();
            let bandwidth = way_bandwidth(&crossed, &self.hop_rules);
            (first, bandwidth)
        } else {
            let bandwidth = together(finer, channels, &pairs);
            self.links.push(Link {
                from: NodeId(memory as u32),
                to: NodeId(reader as u32),
                bandwidth,
                class: None,
            });
            (vec![LinkId(self.links.len() as u32 - 1)], bandwidth)
        };
        Route {
            bandwidth: bandwidth.min(self.nodes[memory].bandwidth),
            links,
        }
    }

    /// Removes links that no route crosses, as those within a merged node.
    fn drop_unused_links(&mut self) {
        let routes = || self.routes.iter().flatten();
        let used: BTreeSet<LinkId> = routes().flat_map(|r| r.links.iter().copied()).collect();
        let renumbered: BTreeMap<LinkId, LinkId> = used.iter().copied().zip((0..).map(LinkId)).collect();
        self.links = used.iter().map(|l| self.links[l.0 as usize].clone()).collect();
        for link in self.routes.iter_mut().flatten().flat_map(|r| &mut r.links) {
            *link = renumbered[link];
        }
    }
}

/// What all pairs carry together if each carries as much as the others, as pages that are interleaved over controllers by
/// lines make them, MB/s.
fn together(machine: &Machine, channels: &Channels, pairs: &[(NodeId, NodeId)]) -> f64 {
    let flows: Vec<Flow> = pairs
        .iter()
        .map(|&(reader, memory)| Flow { reader, memory })
        .collect();
    let mut filling = Filling::new(channels);
    let slowest = filling.fill(&flows).iter().copied().fold(f64::INFINITY, f64::min);
    match slowest.is_finite() {
        true => slowest * pairs.len() as f64,
        // No channel limits them.
        false => pairs.iter().map(|(r, m)| machine.route(*r, *m).bandwidth).sum(),
    }
}

/// Every reader with every memory.
fn pairs(readers: &[NodeId], memories: &[NodeId]) -> Vec<(NodeId, NodeId)> {
    readers
        .iter()
        .flat_map(|r| memories.iter().map(move |m| (*r, *m)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_follow_their_machine_in_a_list() {
        let list = |text| machine_list(text).join(" ");
        assert_eq!(list("a,nps=1,2,4,b"), "a:nps=1 a:nps=2 a:nps=4 b");
        assert_eq!(list("a, b,snc=1"), "a b:snc=1");
        assert_eq!(list("a,nps=1,b,nps=2"), "a:nps=1 b:nps=2");
        assert_eq!(list("this:nps=1"), "this:nps=1");
        assert_eq!(list("nps=1"), "nps=1");
        assert_eq!(split_mode("a:nps=2"), Some(("a", "2")));
        assert_eq!(split_mode("./a:b.toml"), None);
    }

    #[test]
    fn what_is_merged_adds_up() {
        let fine = Machine::named("epyc-2s-nps4").unwrap();
        let coarse = fine.with_nodes_per_socket(1).unwrap();
        assert_eq!(coarse.node_count(), 2);
        assert_eq!(coarse.cpus().len(), fine.cpus().len());
        let sum = |m: &Machine| -> (u64, f64) {
            (
                m.nodes.iter().map(|n| n.memory).sum(),
                m.nodes.iter().map(|n| n.bandwidth).sum(),
            )
        };
        assert_eq!(sum(&coarse), sum(&fine));
        let [zero, one] = [0, 1].map(NodeId);
        // Four nodes: each is local to a quarter of its socket's accesses, 12 ns away from the rest.
        assert!((coarse.latency(zero, zero) - (105.0 + 3.0 * 117.0) / 4.0).abs() < 1e-9);
        assert!((coarse.latency(zero, one) - 210.0).abs() < 1e-9);
        // The sockets' link is shared as before, in each direction; nothing else is between the nodes.
        assert_eq!(coarse.links.len(), 2);
        assert_eq!(coarse.route(zero, one).bandwidth, 90_000.0);
        assert_eq!(Machine::parse(&coarse.to_toml(), "saved").unwrap(), coarse);
    }

    #[test]
    fn as_many_nodes_as_there_are_is_the_same_machine() {
        let fine = Machine::named("epyc-2s-nps4").unwrap();
        let same = fine.with_nodes_per_socket(4).unwrap();
        assert_eq!((&same.nodes, &same.latency_ns), (&fine.nodes, &fine.latency_ns));
        let rates = |m: &Machine| -> Vec<f64> { m.routes.iter().flatten().map(|r| r.bandwidth).collect() };
        assert_eq!(rates(&same), rates(&fine));
    }

    #[test]
    fn private_links_between_merged_nodes_carry_what_they_carried_together() {
        let fine = Machine::named("epyc-2s-nps4").unwrap();
        let coarse = fine.with_nodes_per_socket(2).unwrap();
        let [zero, one, two] = [0, 1, 2].map(NodeId);
        // Two nodes read two others over four links of 38,000; two controllers of as much are what limits.
        assert_eq!(
            coarse.links[coarse.route(zero, one).links[0].0 as usize].bandwidth,
            4.0 * 38_000.0
        );
        assert_eq!(coarse.route(zero, one).bandwidth, 2.0 * 38_000.0);
        assert_eq!(
            coarse.route(zero, two).links,
            coarse.route(one, two).links,
            "the sockets' link is shared"
        );
    }

    #[test]
    fn hbm_is_merged_as_its_socket_is() {
        let coarse = Machine::named("xeonmax-2s-snc4-flat")
            .unwrap()
            .with_nodes_per_socket(1)
            .unwrap();
        let [ddr, hbm]: [Vec<bool>; 2] =
            [false, true].map(|none| coarse.nodes.iter().map(|n| n.cpus.is_empty() == none).collect());
        assert_eq!(coarse.node_count(), 4);
        assert_eq!(ddr.iter().filter(|d| **d).count(), 2);
        assert_eq!(hbm.iter().filter(|h| **h).count(), 2);
        assert_eq!(coarse.nodes[2].memory, 64 << 30);
    }

    #[test]
    fn what_cannot_be_merged_is_said_in_one_line() {
        let refused = |machine: &str, wanted| {
            let error = Machine::named(machine)
                .unwrap()
                .with_nodes_per_socket(wanted)
                .unwrap_err()
                .to_string();
            assert!(!error.contains('\n'));
            error
        };
        assert!(refused("epyc-2s-nps4", 3).contains("a divisor of 4"));
        assert!(refused("epyc-2s-nps4", 8).contains("cannot be merged into 8"));
        assert!(refused("epyc-2s-nps4", 0).contains("cannot be merged into 0"));
        assert!(refused("machine-a", 1).contains("nodes.socket"));
    }
}

//! A machine as it would be in another mode of the firmware: with fewer nodes a socket, as NPS (AMD) and SNC (Intel)
//! choose, or with its HBM as a cache.

use crate::hops::way_bandwidth;
use crate::{
    Channels, Filling, Flow, Link, LinkId, Machine, MachineError, MemoryCache, MemoryKind, Node, NodeId,
    Route, Source,
};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// How modes are written after a machine's name: `epyc-2s-nps4:nps=1`, `xeonmax-2s-snc4-flat:hbm=cache`.
const MODES: [&str; 3] = ["nps=", "snc=", "hbm="];

/// A machine's name without its last mode, and that mode, as `nps=1`.
pub(crate) fn split_mode(spec: &str) -> Option<(&str, &str)> {
    let is_mode = |mode: &str| MODES.iter().any(|name| mode.starts_with(name));
    spec.rsplit_once(':').filter(|(_, mode)| is_mode(mode))
}

/// A comma-separated list of machines, in which modes may follow a machine: `epyc-2s-nps4,nps=1,2,4` is that machine with
/// 1, 2 and 4 nodes a socket. What is named twice comes once.
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
            (None, Some(name)) if item.parse::<usize>().is_ok() || ["cache", "flat"].contains(&item) => {
                all.push(format!("{of}:{name}{item}"));
            }
            _ => {
                all.push(item.to_owned());
                (of, mode) = (item.to_owned(), None);
            }
        }
    }
    let mut named = HashSet::new();
    all.retain(|machine| named.insert(machine.clone()));
    all
}

impl Machine {
    /// The machine in a mode, as `nps=2`, `snc=1` or `hbm=cache`; `hbm=flat` is as its file has it.
    pub(crate) fn in_mode(&self, mode: &str) -> Result<Self, MachineError> {
        let (name, value) = mode.split_once('=').unwrap_or((mode, ""));
        let error = |what: String| Err(MachineError::invalid(format!("{}:{mode}: {what}", self.name)));
        let mut machine = match (name, value) {
            ("hbm", "cache") => self.with_hbm_as_cache()?,
            ("hbm", "flat") => {
                self.cached_by()?; // refused where modes cannot be chosen
                self.clone()
            }
            ("hbm", _) => return error(format!("`{value}` is no mode of HBM; write cache or flat")),
            _ => match value.parse() {
                Ok(wanted) => self.with_nodes_per_socket(wanted)?,
                Err(_) => return error(format!("`{value}` is no number of nodes a socket")),
            },
        };
        machine.name = format!("{}:{mode}", self.name);
        Ok(machine)
    }

    /// The machine with `wanted` nodes with CPUs a socket, by merging neighbouring nodes of each. The hardware then
    /// interleaves a node's memory over all its controllers: bandwidths and sizes add up, and a latency is the mean of
    /// those that are merged. Data between two nodes of the result cross the links that all the merged pairs have in
    /// common, and are no faster than these pairs together; where they have no link in common, one of that width.
    ///
    /// # Errors
    /// If the machine does not say which nodes are of one socket, or nodes of a socket cannot be merged evenly; it cannot
    /// be made to have more nodes, as nothing says what each part would have.
    pub fn with_nodes_per_socket(&self, wanted: usize) -> Result<Self, MachineError> {
        let groups = self.groups(wanted)?;
        if groups.len() == self.node_count() {
            return Ok(self.clone());
        }
        let of = |old: NodeId| {
            let index = groups.iter().position(|g| g.contains(&old)).unwrap_or_default();
            NodeId(index as u32)
        };
        let latency = |r: usize, m: usize| {
            let pairs = pairs(&groups[r], &groups[m]);
            pairs.iter().map(|(r, m)| self.latency(*r, *m)).sum::<f64>() / pairs.len() as f64
        };
        let link = |l: &Link| Link {
            from: of(l.from),
            to: of(l.to),
            ..l.clone()
        };
        let all = || 0..groups.len();
        let mut machine = Self {
            title: format!("{}, as {wanted} nodes a socket", self.title),
            nodes: groups
                .iter()
                .zip(0..)
                .map(|(g, i)| self.merged(g, i, &groups))
                .collect(),
            latency_ns: all().map(|r| all().map(|m| latency(r, m)).collect()).collect(),
            links: self.links.iter().map(link).collect(),
            routes: vec![vec![Route::default(); groups.len()]; groups.len()],
            ..self.clone()
        };
        let channels = Channels::of(self);
        for (reader, memory) in all().flat_map(|r| all().map(move |m| (r, m))) {
            let bandwidth = machine.nodes[memory].widest();
            machine.routes[reader][memory] = match reader == memory {
                true => Route {
                    bandwidth,
                    links: Vec::new(),
                },
                false => machine.route_between(self, &channels, &groups, (reader, memory)),
            };
        }
        machine.drop_unused_links();
        machine.sources.push(Source::assumed(
            "nodes.mode",
            &format!(
                "{wanted} with CPUs a socket, merged from the {} nodes of {}: bandwidths add up, latencies are means",
                self.node_count(),
                self.name
            ),
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
        let mut sockets: BTreeMap<(u32, Kind), Vec<NodeId>> = BTreeMap::new();
        let mut groups = Vec::new();
        for id in self.node_ids() {
            let node = &self.nodes[id.index()];
            let kind = match (node.cpus.is_empty(), node.kind) {
                (false, _) => Kind::WithCpus,
                (true, None | Some(MemoryKind::Hbm)) => Kind::InPackage,
                // An expander or a device has a node of its own in every mode.
                (true, Some(_)) => {
                    groups.push(vec![id]);
                    continue;
                }
            };
            let socket = node.socket.ok_or_else(|| {
                error(format!(
                    "it is not known of which socket node {id} is (nodes.socket in its file)"
                ))
            })?;
            sockets.entry((socket, kind)).or_default().push(id);
        }
        for ((socket, kind), nodes) in &sockets {
            let with_cpus = sockets.get(&(*socket, Kind::WithCpus)).map_or(0, Vec::len);
            // HBM has a node beside each node with CPUs; other memory without CPUs is not divided by the mode.
            let parts = match kind {
                Kind::InPackage if nodes.len() != with_cpus => nodes.len(),
                _ => wanted,
            };
            if parts == 0 || !nodes.len().is_multiple_of(parts) {
                return Err(error(match nodes.len() {
                    1 => format!("socket {socket} has one node, which cannot be divided"),
                    count => format!(
                        "socket {socket} has {count} nodes, which cannot be merged into {wanted}; a divisor of {count} can be asked for"
                    ),
                }));
            }
            let cached = |n: &&NodeId| self.nodes[n.index()].cache.is_some();
            let merged = nodes.chunks(nodes.len() / parts);
            let partly = |g: &[NodeId]| (1..g.len()).contains(&g.iter().filter(cached).count());
            if merged.clone().any(partly) {
                return Err(error(format!(
                    "of nodes of socket {socket} that would be merged, some have a cache and others none"
                )));
            }
            groups.extend(merged.map(<[NodeId]>::to_vec));
        }
        groups.sort();
        Ok(groups)
    }

    /// One node in place of several.
    fn merged(&self, group: &[NodeId], index: u32, groups: &[Vec<NodeId>]) -> Node {
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
            cache: merged_cache(
                &all().filter_map(|n| n.cache.as_ref()).collect::<Vec<_>>(),
                groups,
            ),
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
        let way = |(r, m): &(NodeId, NodeId)| &finer.route(*r, *m).links;
        let leaves = |l: &&LinkId| self.links[l.0 as usize].from != self.links[l.0 as usize].to;
        let common = |l: &&LinkId| pairs.iter().all(|p| way(p).contains(l));
        let mut links: Vec<LinkId> = way(&pairs[0])
            .iter()
            .filter(leaves)
            .filter(common)
            .copied()
            .collect();
        let together = together(finer, channels, &pairs).min(finer.backplane.unwrap_or(f64::INFINITY));
        let bandwidth = if links.is_empty() {
            links.push(LinkId(self.links.len() as u32));
            self.links.push(Link {
                from: NodeId(memory as u32),
                to: NodeId(reader as u32),
                bandwidth: together,
                class: None,
            });
            together
        } else {
            let crossed: Vec<&Link> = links.iter().map(|l| &self.links[l.0 as usize]).collect();
            way_bandwidth(&crossed, &self.hop_rules).min(together)
        };
        Route {
            bandwidth: bandwidth.min(self.nodes[memory].widest()),
            links,
        }
    }

    /// Removes links that no route crosses, as those within a merged node, and hop rules that are about no link.
    pub(crate) fn drop_unused_links(&mut self) {
        let routes = || self.routes.iter().flatten();
        let used: BTreeSet<LinkId> = routes().flat_map(|r| r.links.iter().copied()).collect();
        let renumbered: BTreeMap<LinkId, LinkId> = used.iter().copied().zip((0..).map(LinkId)).collect();
        self.links = used.iter().map(|l| self.links[l.0 as usize].clone()).collect();
        for link in self.routes.iter_mut().flatten().flat_map(|r| &mut r.links) {
            *link = renumbered[link];
        }
        let classes: BTreeSet<&str> = self.links.iter().filter_map(|l| l.class.as_deref()).collect();
        self.hop_rules
            .retain(|r| classes.contains(r.from.as_str()) && classes.contains(r.to.as_str()));
    }
}

/// One cache in place of several, for readers that are merged as well; none of none.
fn merged_cache(all: &[&MemoryCache], readers: &[Vec<NodeId>]) -> Option<MemoryCache> {
    let mean = |readers: &Vec<NodeId>| {
        let each = all
            .iter()
            .flat_map(|c| readers.iter().map(|r| c.latency_ns[r.index()]));
        each.sum::<f64>() / (all.len() * readers.len()) as f64
    };
    (!all.is_empty()).then(|| MemoryCache {
        memory: all.iter().map(|c| c.memory).sum(),
        bandwidth: all.iter().map(|c| c.bandwidth).sum(),
        latency_ns: readers.iter().map(mean).collect(),
    })
}

/// Nodes of a socket that are merged with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    WithCpus,
    /// HBM, or memory of which it is not known what it is.
    InPackage,
}

/// What all pairs carry together, MB/s: as much as the slowest of them each, since lines are interleaved over
/// controllers, and from each memory no more than the fastest of the readers gets from it alone. Links that are private to
/// a pair, as they are assumed where only pairs were measured, would otherwise add up to more than any reader can take.
fn together(machine: &Machine, channels: &Channels, pairs: &[(NodeId, NodeId)]) -> f64 {
    let flows: Vec<Flow> = pairs
        .iter()
        .map(|&(reader, memory)| Flow { reader, memory })
        .collect();
    let mut filling = Filling::new(channels);
    let slowest = filling.fill(&flows).iter().copied().fold(f64::INFINITY, f64::min);
    let mut fastest: BTreeMap<NodeId, f64> = BTreeMap::new();
    for (reader, memory) in pairs {
        let most = fastest.entry(*memory).or_default();
        *most = most.max(machine.route(*reader, *memory).bandwidth);
    }
    fastest
        .into_values()
        .sum::<f64>()
        .min(slowest * pairs.len() as f64)
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
        assert_eq!(list("a,hbm=flat,cache"), "a:hbm=flat a:hbm=cache");
        assert_eq!(list("a,nps=1,1,b,a:nps=1,b"), "a:nps=1 b");
        assert_eq!(list("this:nps=1"), "this:nps=1");
        assert_eq!(list("nps=1"), "nps=1");
        assert_eq!(split_mode("a:nps=2"), Some(("a", "nps=2")));
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
        let with_sockets = Machine::names().into_iter().map(|n| Machine::named(n).unwrap());
        let mut checked = 0;
        for fine in with_sockets.filter(|m| m.nodes.iter().all(|n| n.socket.is_some())) {
            let of_first = |n: &&Node| n.socket == fine.nodes[0].socket && !n.cpus.is_empty();
            let count = fine.nodes.iter().filter(of_first).count();
            assert_eq!(fine.with_nodes_per_socket(count).unwrap(), fine);
            checked += 1;
        }
        assert!(checked > 5);
    }

    #[test]
    fn what_merged_nodes_read_is_no_more_than_what_was_measured_for_their_pairs() {
        // Two sockets of two nodes, of which only pairs were measured: 10 within a node, 8 within a socket, 5 across.
        let row = |r: usize| {
            (0..4).map(move |m| {
                if r == m {
                    10.0
                } else if r / 2 == m / 2 {
                    8.0
                } else {
                    5.0
                }
            })
        };
        let text = format!(
            "name = 'pairs'\ntitle = ''\nlatency_ns = {0:?}\nbandwidth = {1:?}\nnodes = [{2}]",
            [[100.0; 4]; 4],
            (0..4).map(|r| row(r).collect::<Vec<_>>()).collect::<Vec<_>>(),
            (0..4)
                .map(|n| format!("{{ cpus = '{n}', memory = '1G', socket = {} }},", n / 2))
                .collect::<String>()
        );
        let fine = Machine::parse(&text, "test").unwrap();
        let coarse = fine.with_nodes_per_socket(1).unwrap();
        let [zero, one] = [0, 1].map(NodeId);
        assert_eq!(coarse.route(zero, zero).bandwidth, 20.0);
        assert_eq!(
            coarse.route(one, zero).bandwidth,
            10.0,
            "half of the local bandwidth, as before"
        );
        let with = |line: &str| Machine::parse(&format!("{line}\n{text}"), "test").unwrap();
        let narrow = with("backplane = 9.0").with_nodes_per_socket(1).unwrap();
        assert_eq!(narrow.route(one, zero).bandwidth, 9.0);
    }

    #[test]
    fn pairs_of_which_each_has_a_link_of_its_own_carry_what_the_memories_give() {
        let fine = Machine::named("epyc-2s-nps4").unwrap();
        let coarse = fine.with_nodes_per_socket(2).unwrap();
        let [zero, one, two] = [0, 1, 2].map(NodeId);
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
    fn an_expander_stays_a_node_of_its_own_and_as_slow_from_the_other_socket() {
        let fine = Machine::named("spr-2s-cxl").unwrap();
        let same = fine.with_nodes_per_socket(1).unwrap();
        assert_eq!(same.route(NodeId(1), NodeId(2)).bandwidth, 20_300.0);
        // An expander beside sockets of several nodes: its routes stay as wide as they were.
        let mut divided = Machine::named("epyc-2s-nps4").unwrap();
        divided.nodes[7].cpus.clear();
        divided.nodes[7].kind = Some(MemoryKind::Cxl);
        divided.nodes[3].cpus.clear();
        divided.nodes[3].kind = Some(MemoryKind::Cxl);
        let coarse = divided.with_nodes_per_socket(1).unwrap();
        assert_eq!(coarse.node_count(), 4);
        let alone = coarse.nodes.iter().filter(|n| n.kind == Some(MemoryKind::Cxl));
        assert!(alone.clone().all(|n| n.bandwidth == 38_000.0) && alone.count() == 2);
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

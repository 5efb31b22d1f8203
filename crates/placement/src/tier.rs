//! A tier: the nodes whose memory is scarce, how much of it may be used, and the filling of it in a given order.

use crate::listed_nodes::listed_nodes;
use crate::{Context, PolicyError};
use nodewise_analysis::{Affinity, Entry};
use nodewise_machine::{Machine, MemoryKind, NodeId, parse_bytes};

/// `NODES[@SIZE]`: the nodes to be filled first, and how much of their memory may be used, all of them together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tier {
    /// As it was written.
    text: String,
    /// The nodes that are filled first, ascending.
    nodes: Vec<NodeId>,
    /// Bytes; all that the nodes have if none is given.
    limit: Option<u64>,
}

impl Tier {
    /// Reads the part of a policy after its name: `0-1+4@8G` or, by kind of memory, `hbm@16G`. `policy` is the whole text, for
    /// errors.
    ///
    /// # Errors
    /// One line: nodes without memory, all nodes, a kind that no node has, or what is no size.
    pub fn parse(parameter: Option<&str>, policy: &str, machine: &Machine) -> Result<Self, PolicyError> {
        let error = |what: String| PolicyError(format!("policy `{policy}`: {what}"));
        let text = parameter.ok_or_else(|| {
            error(
                "name the nodes to fill first, and how much of them if not all: NODES[@SIZE], as 0-1@8G"
                    .to_owned(),
            )
        })?;
        let (list, size) = text.split_once('@').map_or((text, None), |(l, s)| (l, Some(s)));
        let nodes = match MemoryKind::named(&list.to_lowercase()) {
            Some(kind) => of_kind(kind, machine).map_err(error)?,
            None => listed_nodes(list, machine).map_err(|what| {
                match list.starts_with(|c: char| c.is_ascii_digit()) {
                    true => error(what),
                    false => error(format!(
                        "{what}, nor a kind of memory (dram, hbm, cxl, device, persistent)"
                    )),
                }
            })?,
        };
        let limit = size
            .map(|size| match parse_bytes(size) {
                None => Err(error(format!("`{size}` is no size such as 8G or 512M"))),
                Some(bytes) if bytes < machine.page_size => {
                    Err(error(format!("`{size}` is less than a page; write 8G or 512M")))
                }
                some => Ok(some),
            })
            .transpose()?
            .flatten();
        if nodes.len() == machine.nodes.iter().filter(|n| n.memory > 0).count() {
            return Err(error(format!(
                "these are all nodes of {}; name those whose memory is scarce",
                machine.name
            )));
        }
        Ok(Self {
            text: text.to_owned(),
            nodes,
            limit,
        })
    }

    /// As it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The nodes that are filled first, ascending.
    #[must_use]
    pub fn nodes(&self) -> &[NodeId] {
        &self.nodes
    }

    /// Whether a size is given.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        self.limit.is_some()
    }

    /// The same nodes, of which `limit` bytes may be used; written in KiB.
    #[must_use]
    pub fn limited(&self, limit: u64) -> Self {
        let nodes = self.text.split('@').next().unwrap_or_default();
        Self {
            text: format!("{nodes}@{}K", limit / 1024),
            nodes: self.nodes.clone(),
            limit: Some(limit),
        }
    }

    /// Bytes of the tier that may be used.
    #[must_use]
    pub fn size(&self, machine: &Machine) -> u64 {
        let has = self.nodes.iter().map(|n| machine.nodes[n.index()].memory).sum();
        self.limit.map_or(has, |limit| limit.min(has))
    }

    /// Places the pages in this order, each on the node of the tier that costs it least (`cost` by page and node), while
    /// the node and `size` bytes have room; else on the node outside that costs least and has room. A page takes another
    /// node of the tier than its cheapest only if all outside with room cost it more. Where no node outside has room, the
    /// limit is exceeded; pages for which the whole machine has none go to the cheapest node outside.
    pub(crate) fn fill(
        &self,
        context: &Context<'_>,
        size: u64,
        order: &[u32],
        mut cost: impl FnMut(usize, &mut [f64]),
    ) -> Vec<NodeId> {
        let machine = context.machine;
        let page_size = context.histogram.page_size();
        let mut room: Vec<u64> = machine.nodes.iter().map(|n| n.memory / page_size).collect();
        let mut tier_room = size / page_size;
        let outside: Vec<NodeId> = machine
            .node_ids()
            .filter(|n| !self.nodes.contains(n) && machine.nodes[n.index()].memory > 0)
            .collect();
        let mut costs = vec![0.0; machine.node_count()];
        let mut nodes = vec![NodeId(0); context.histogram.len()];
        for page in order.iter().map(|page| *page as usize) {
            cost(page, &mut costs);
            let least = |among: &[NodeId], room: Option<&[u64]>| {
                let free = |n: &&NodeId| room.is_none_or(|room| room[n.index()] > 0);
                let by_cost = |a: &&NodeId, b: &&NodeId| costs[a.index()].total_cmp(&costs[b.index()]);
                among.iter().filter(free).min_by(by_cost).copied()
            };
            let cheapest = least(&self.nodes, None);
            let outside_free = least(&outside, Some(&room));
            let tier_free = least(&self.nodes, Some(&room));
            let in_tier = tier_free.filter(|n| {
                let pays = outside_free.is_none_or(|slow| costs[n.index()] < costs[slow.index()]);
                tier_room > 0 && (Some(*n) == cheapest || pays)
            });
            tier_room -= u64::from(in_tier.is_some());
            let node = in_tier
                .or(outside_free)
                .or(tier_free)
                .or_else(|| least(&outside, None));
            let node = node.unwrap_or_default();
            room[node.index()] = room[node.index()].saturating_sub(1);
            nodes[page] = node;
        }
        nodes
    }
}

/// What accesses to a page cost if it lies on each node, into `costs`: lines × latency, summed over the threads. Pages of
/// which no line came from memory: accesses × latency, so that they are near their users, too.
pub(crate) fn latency_costs(entries: &[Entry], affinity: &Affinity, machine: &Machine, costs: &mut [f64]) {
    let lines = entries.iter().any(|e| e.lines > 0);
    costs.fill(0.0);
    for entry in entries {
        let reader = affinity.node(entry.thread);
        let weight = if lines {
            f64::from(entry.lines)
        } else {
            entry.accesses() as f64
        };
        for (cost, latency) in costs.iter_mut().zip(&machine.latency_ns[reader.index()]) {
            *cost += weight * latency;
        }
    }
}

fn of_kind(kind: MemoryKind, machine: &Machine) -> Result<Vec<NodeId>, String> {
    let is = |n: &NodeId| machine.nodes[n.index()].kind == Some(kind);
    let nodes: Vec<NodeId> = machine.node_ids().filter(is).collect();
    match nodes.is_empty() {
        true => Err(format!(
            "no node of {} is said to be {kind}; give node numbers",
            machine.name
        )),
        false => Ok(nodes),
    }
}

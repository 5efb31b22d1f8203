//! Route entries of a machine file: by nodes or by links crossed.

use crate::routing::{SharedLink, shortest_paths};
use crate::{LinkId, Machine, MachineError, NodeId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A route entry. `from` is the memory. `via` names the nodes on the way; `links` names positions in [`Machine::links`]
/// instead.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RouteEntry {
    pub from: u32,
    pub to: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub via: Vec<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub links: Option<Vec<u32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<f64>,
}

impl RouteEntry {
    /// All nodes on the way, including both ends.
    pub fn stops(&self) -> Vec<u32> {
        [&[self.from], &self.via[..], &[self.to]].concat()
    }

    /// Whether the route visits a node twice.
    pub fn returns(&self) -> bool {
        let stops = self.stops();
        stops.iter().collect::<BTreeSet<_>>().len() < stops.len()
    }

    /// The links that the entry names; or, for each step between its nodes, the widest link that joins them.
    pub fn path(&self, links: &[SharedLink]) -> Result<Vec<LinkId>, MachineError> {
        match &self.links {
            None => self
                .stops()
                .windows(2)
                .map(|pair| widest_link(links, pair))
                .collect(),
            Some(_) if !self.via.is_empty() => Err(MachineError::invalid("give `via` or `links`, not both")),
            Some(ids) => self.crossed(ids, links),
        }
    }

    /// The links at these positions. If there are several, they need not join up (their order may be unknown); a single
    /// one must be the whole way.
    fn crossed(&self, ids: &[u32], links: &[SharedLink]) -> Result<Vec<LinkId>, MachineError> {
        if let Some(id) = ids.iter().find(|id| **id as usize >= links.len()) {
            return Err(MachineError::invalid(format!(
                "there is no link {id}: they are numbered from 0 to {}, both directions of `between` and all of `among` counted",
                links.len() - 1
            )));
        }
        match ids {
            [] => Err(MachineError::invalid("crosses no link")),
            [one] if !links[*one as usize].joins(NodeId(self.from), NodeId(self.to)) => {
                Err(MachineError::invalid(format!(
                    "link {one} does not lead from node {} to node {}",
                    self.from, self.to
                )))
            }
            _ => Ok(ids.iter().copied().map(LinkId).collect()),
        }
    }

    /// The entries needed to describe a machine's routes: routes with intermediate nodes, and routes that a reader of
    /// the file would derive differently.
    pub fn all(machine: &Machine) -> Vec<Self> {
        let shared: Vec<SharedLink> = (0..machine.links.len() as u32)
            .map(|l| SharedLink::of(machine, LinkId(l)))
            .collect();
        let from = |memory: NodeId| {
            let shortest = shortest_paths(&shared, machine.node_count(), memory);
            let routes = machine.node_ids().zip(&shortest);
            routes
                .filter_map(|(reader, path)| {
                    Self::entry_of(machine, &shared, (memory, reader), path.as_ref())
                })
                .collect::<Vec<_>>()
        };
        machine.node_ids().flat_map(from).collect()
    }

    fn entry_of(
        machine: &Machine,
        shared: &[SharedLink],
        (memory, reader): (NodeId, NodeId),
        shortest: Option<&Vec<LinkId>>,
    ) -> Option<Self> {
        let links = &machine.route(reader, memory).links;
        let via = machine.via(reader, memory).iter().map(|n| n.0).collect();
        let mut entry = Self {
            from: memory.0,
            to: reader.0,
            via,
            links: None,
            bandwidth: None,
        };
        if entry.via.is_empty() && shortest == Some(links) {
            return None;
        }
        if entry.returns() || entry.path(shared).as_ref() != Ok(links) {
            entry.via.clear();
            entry.links = Some(links.iter().map(|l| l.0).collect());
        }
        Some(entry)
    }
}

fn widest_link(links: &[SharedLink], pair: &[u32]) -> Result<LinkId, MachineError> {
    let joins = |l: &SharedLink| l.joins(NodeId(pair[0]), NodeId(pair[1]));
    let joining = links.iter().enumerate().filter(|(_, l)| joins(l));
    joining
        .max_by(|a, b| a.1.bandwidth.total_cmp(&b.1.bandwidth))
        .map(|(id, _)| LinkId(id as u32))
        .ok_or_else(|| {
            MachineError::invalid(format!(
                "no link leads from node {} to node {}: add it, or go another way",
                pair[0], pair[1]
            ))
        })
}

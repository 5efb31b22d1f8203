//! All pages on one node.

use super::{Policy, Request};
use crate::{Context, Mapping, PagePolicy, PolicyError};
use nodewise_machine::NodeId;

/// All pages on one node, as with `numactl -m N` while the node has room: the worst case of balance.
#[derive(Clone, Copy, Debug)]
pub struct Node(pub NodeId);

pub(super) fn make(request: &Request<'_>) -> Result<Policy, PolicyError> {
    let nodes = request.machine.node_count() as u32;
    let node = request
        .parameter
        .and_then(|n| n.parse().ok())
        .filter(|n| *n < nodes);
    node.map(|n| Box::new(Node(NodeId(n))) as Policy).ok_or_else(|| {
        let (text, machine, last) = (request.text, &request.machine.name, nodes.saturating_sub(1));
        PolicyError(format!(
            "policy `{text}`: {machine} has nodes 0 to {last}; write node:N"
        ))
    })
}

impl PagePolicy for Node {
    fn name(&self) -> String {
        format!("node:{}", self.0)
    }

    fn place(&self, context: &Context<'_>) -> Mapping {
        Mapping {
            policy: self.name(),
            nodes: vec![self.0; context.histogram.len()],
        }
    }
}

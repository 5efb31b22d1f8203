//! Directed links between nodes.

use crate::NodeId;

/// A directed link, as an index into [`crate::Machine::links`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkId(pub u32);

/// A directed link between two nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// The node that data flows from.
    pub from: NodeId,
    /// The node that data flows to.
    pub to: NodeId,
    /// MB/s in the direction of the link.
    pub bandwidth: f64,
    /// Class of the link for [`crate::Machine::hop_rules`], for example `16bit`.
    pub class: Option<String>,
}

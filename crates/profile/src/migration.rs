//! Recorded moves of pages between nodes.

use crate::{ObjectId, PageNumber, SliceId};

/// A run of pages that moved from one node to another, and the counts behind the decision.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Migration {
    /// When the move was complete, nanoseconds since the recording began.
    pub time_ns: u64,
    /// The slice of the move.
    pub slice: SliceId,
    /// First page of the run.
    pub page: PageNumber,
    /// Number of consecutive pages, at least 1.
    pub len: u32,
    /// Object that owns the pages; 0 if none is known.
    pub object: ObjectId,
    /// The node that the pages left.
    pub from: u16,
    /// The node that the pages went to.
    pub to: u16,
    /// What moved them: a migration policy as the user wrote it, [`Migration::KERNEL`] or [`Migration::UNKNOWN`].
    pub by: String,
    /// Accesses or samples from the new node, per page; 0 for the kernel's moves, whose reasons are not recorded.
    pub to_count: f64,
    /// Accesses or samples from the old node, per page; `None` if the policy could not see them.
    pub home_count: Option<f64>,
    /// The threshold that `to_count` had to exceed.
    pub count_threshold: f64,
}

impl Migration {
    /// [`Migration::by`] for pages that the kernel's own balancing moved.
    pub const KERNEL: &'static str = "kernel";

    /// [`Migration::by`] for pages that were moved neither by a policy of ours nor, by its own count, by the kernel's
    /// balancing: another program moved them, or they are new pages at the same address.
    pub const UNKNOWN: &'static str = "unknown";

    /// The kind of mover that [`Migration::by`] names.
    #[must_use]
    pub fn mover(&self) -> Mover {
        match self.by.as_str() {
            Self::KERNEL => Mover::Kernel,
            Self::UNKNOWN => Mover::Other,
            _ => Mover::Policy,
        }
    }
}

/// The kinds of movers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mover {
    /// A policy of ours.
    Policy,
    /// The kernel's own balancing.
    Kernel,
    /// Another program; or the pages are new ones at the same address.
    Other,
}

/// Classification of a move by the page's earlier moves (Tao et al., Table 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveKind {
    /// The first move of the page.
    First,
    /// Back to the node that the page's previous move left: A→B→A.
    PingPong,
    /// A later move to any other node.
    Multiple,
}

impl MoveKind {
    /// The kind of a move to node `to`; `left` is the node that the page's previous move left, `None` without one.
    #[must_use]
    pub fn of<Node: Copy + PartialEq>(left: Option<Node>, to: Node) -> Self {
        match left {
            None => Self::First,
            Some(left) if left == to => Self::PingPong,
            Some(_) => Self::Multiple,
        }
    }

    /// The name used in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::PingPong => "ping-pong",
            Self::Multiple => "multiple",
        }
    }
}

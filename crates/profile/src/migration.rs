//! Recorded moves of pages between nodes.

use crate::{ObjectId, PageNumber, SliceId};

/// A run of pages that moved from one node to another, and the counts that decided it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Migration {
    /// When they had moved, nanoseconds since the recording began.
    pub time_ns: u64,
    /// The slice it happened in.
    pub slice: SliceId,
    /// First page of the run.
    pub page: PageNumber,
    /// Number of consecutive pages, at least 1.
    pub len: u32,
    /// Object that owns the pages; 0 if none is known.
    pub object: ObjectId,
    /// The node they left.
    pub from: u16,
    /// The node they went to.
    pub to: u16,
    /// Who moved them: a migration policy as written, [`Migration::KERNEL`] or [`Migration::UNKNOWN`].
    pub by: String,
    /// Accesses or samples from the new node, per page; 0 for the kernel's moves, whose reasons are not visible.
    pub to_count: f64,
    /// Accesses or samples from the old node, per page; `None` when the policy could not see them.
    pub home_count: Option<f64>,
    /// What `to_count` had to exceed.
    pub against: f64,
}

impl Migration {
    /// [`Migration::by`] for what the kernel's own balancing moved.
    pub const KERNEL: &'static str = "kernel";

    /// [`Migration::by`] for what neither a policy of ours nor, by its own count, the kernel's balancing
    /// moved: another program, or the pages are new ones.
    pub const UNKNOWN: &'static str = "unknown";

    /// What kind of mover [`Migration::by`] names.
    #[must_use]
    pub fn mover(&self) -> Mover {
        match self.by.as_str() {
            Self::KERNEL => Mover::Kernel,
            Self::UNKNOWN => Mover::Other,
            _ => Mover::Policy,
        }
    }
}

/// The agent that moved pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mover {
    /// A policy of ours.
    Policy,
    /// The kernel's own balancing.
    Kernel,
    /// Another program, or the memory is new at the same address.
    Other,
}

/// What a move is to its page, after its moves before (Tao et al., Table 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveKind {
    /// The first move of the page.
    First,
    /// Back to the node that the page's last move left: A→B→A.
    PingPong,
    /// On to yet another node.
    Multiple,
}

impl MoveKind {
    /// Of a move to this node, after one that left another.
    #[must_use]
    pub fn of<Node: Copy + PartialEq>(left: Option<Node>, to: Node) -> Self {
        match left {
            None => Self::First,
            Some(left) if left == to => Self::PingPong,
            Some(_) => Self::Multiple,
        }
    }

    /// As JSON has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::PingPong => "ping-pong",
            Self::Multiple => "multiple",
        }
    }
}

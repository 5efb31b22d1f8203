//! What policies give several nodes: copies of objects, or instances of the program.

use nodewise_machine::{Machine, NodeId};
use nodewise_profile::{ObjectId, SliceId};

/// Copies of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirrored {
    /// Its identifier in the profile.
    pub object: ObjectId,
    /// Its name in the profile.
    pub name: String,
    /// Bytes of one copy, in whole pages.
    pub bytes: u64,
    /// The slice after which it is copied: that of the last store to it, else that of the first access. `None`: before the
    /// program works, as of files.
    pub after: Option<SliceId>,
    /// Whether a store to it was recorded. What system calls write (`read`) is not seen.
    pub stored: bool,
}

/// Which objects are copied, when, and which copy each node reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copies {
    /// The policy as written.
    pub policy: String,
    /// The nodes that have copies, ascending.
    pub holders: Vec<NodeId>,
    /// By node: the one whose copy its CPUs read, itself if it has one, else that with the least latency.
    pub nearest: Vec<NodeId>,
    /// In the order of the profile's objects.
    pub objects: Vec<Mirrored>,
    /// If each node has an instance of the program instead: bytes of one, in whole pages.
    pub instance_bytes: Option<u64>,
}

impl Copies {
    /// Bytes of all copies, beside the objects themselves; of all instances.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes_a_node() * self.holders.len() as u64
    }

    /// Bytes of the copies, or of the instance, on one node.
    #[must_use]
    pub fn bytes_a_node(&self) -> u64 {
        let copied = || self.objects.iter().map(|o| o.bytes).sum();
        self.instance_bytes.unwrap_or_else(copied)
    }
}

/// By node: the holder that its CPUs read with the least latency, itself if it is one.
pub(crate) fn nearest(holders: &[NodeId], machine: &Machine) -> Vec<NodeId> {
    let of = |reader: NodeId| {
        if holders.contains(&reader) {
            return reader;
        }
        let by_latency = |a: &&NodeId, b: &&NodeId| {
            machine
                .latency(reader, **a)
                .total_cmp(&machine.latency(reader, **b))
        };
        holders.iter().min_by(by_latency).copied().unwrap_or(reader)
    };
    machine.node_ids().map(of).collect()
}

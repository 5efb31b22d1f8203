//! One instance of the program on each node that its threads run on, each with all of its pages there: `instances`.
//!
//! No placement of one process does that. It is what operators do with servers whose requests are independent (`numactl -N 0 -m 0`,
//! once a node), and what copies inside the program have to be compared with: it needs no change of the program, and all of its
//! memory on every node.

use crate::copies::{Copies, nearest};
use crate::{Context, PolicyError};
use nodewise_analysis::figures::bytes;
use nodewise_machine::NodeId;

/// How it is written.
pub const INSTANCES: &str = "instances";

/// What each node on which the program's threads run gets: all pages that were accessed.
///
/// # Errors
/// One line, if there is one such node only, or one of them has too little memory.
pub fn instances(context: &Context<'_>) -> Result<Copies, PolicyError> {
    let machine = context.machine;
    let mut holders = context.affinity.nodes.clone();
    holders.sort_unstable();
    holders.dedup();
    if holders.len() < 2 {
        return Err(PolicyError(format!(
            "{INSTANCES}: the threads run on one node, and one instance is the program itself"
        )));
    }
    let each = context.histogram.pages.len() as u64 * context.histogram.page_size();
    let memory = |node: &NodeId| machine.nodes[node.index()].memory;
    if let Some(node) = holders.iter().find(|n| memory(n) < each) {
        return Err(PolicyError(format!(
            "{INSTANCES}: an instance takes {}, node {node} has {}",
            bytes(each),
            bytes(memory(node))
        )));
    }
    Ok(Copies {
        policy: INSTANCES.to_owned(),
        nearest: nearest(&holders, machine),
        holders,
        objects: Vec::new(),
        instance_bytes: Some(each),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{Recorded, machine};

    #[test]
    fn every_node_gets_all_pages() {
        let recorded = Recorded::new(machine(4, 1), 4, &[(8, &|_, _| 1), (4, &|_, _| 1)]);
        let copies = instances(&recorded.context()).unwrap();
        assert_eq!((copies.bytes_a_node(), copies.bytes()), (12 * 4096, 48 * 4096));
        assert_eq!(copies.nearest, (0..4).map(NodeId).collect::<Vec<_>>());
    }

    #[test]
    fn where_threads_run_on_one_node_or_memory_is_too_little_it_is_refused() {
        let of = |nodes, memory: Option<u64>| {
            let mut machine = machine(nodes, 1);
            if let Some(memory) = memory {
                machine.nodes[1].memory = memory;
            }
            let recorded = Recorded::new(machine, nodes, &[(8, &|_, _| 1)]);
            instances(&recorded.context()).map_err(|e| e.to_string())
        };
        assert!(of(1, None).unwrap_err().contains("run on one node"));
        assert!(of(2, Some(8 * 4096)).is_ok());
        assert_eq!(
            of(2, Some(7 * 4096)).unwrap_err(),
            "instances: an instance takes 32 KiB, node 1 has 28 KiB"
        );
    }
}

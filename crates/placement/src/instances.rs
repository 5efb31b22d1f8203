//! One instance of the program on each node that its threads work on, each with all of its pages there: `instances`.
//!
//! No placement of one process does that. It is what operators do with servers whose requests are independent (`numactl -N 0 -m 0`,
//! once a node), and what copies inside the program have to be compared with: it needs no change of the program, and all of its
//! memory on every node. Mapped files stay where they are, as all instances map the same pages of the page cache.

use crate::copies::{Copies, nearest};
use crate::{Context, PolicyError};
use nodewise_analysis::NodeCounts;
use nodewise_analysis::figures::bytes;
use nodewise_machine::NodeId;
use nodewise_profile::ObjectKind;

/// How it is written.
pub const INSTANCES: &str = "instances";

/// A node has an instance if its threads make this share of the accesses that those of the busiest node make: a main thread that only
/// starts the others is no instance.
const LEAST_SHARE: f64 = 0.1;

/// What each node gets on which the program's threads work: all pages that were accessed, but those of mapped files.
///
/// # Errors
/// One line, if there is one such node only, or one of them has too little memory.
pub fn instances(context: &Context<'_>) -> Result<Copies, PolicyError> {
    let machine = context.machine;
    let error = |what: String| PolicyError(format!("{INSTANCES}: {what}; leave it out"));
    let holders = busy_nodes(context);
    if holders.len() < 2 {
        return Err(error(
            "the threads work on one node, and one instance is the program itself".to_owned(),
        ));
    }
    let each = instance_pages(context).count() as u64 * context.histogram.page_size();
    let memory = |node: &NodeId| machine.nodes[node.index()].memory;
    if let Some(node) = holders.iter().find(|n| memory(n) < each) {
        let (each, memory) = (bytes(each), bytes(memory(node)));
        return Err(error(format!(
            "an instance takes {each}, node {node} has {memory}"
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

/// The nodes whose threads make a good part of the accesses, ascending.
fn busy_nodes(context: &Context<'_>) -> Vec<NodeId> {
    let (histogram, nodes) = (context.histogram, context.machine.node_count());
    let mut sums = vec![0_u64; nodes];
    let mut counts = NodeCounts::new(nodes);
    for page in 0..histogram.pages.len() {
        counts.load(histogram.page(page).entries, context.affinity);
        let by_node = counts.all();
        sums.iter_mut()
            .zip(by_node)
            .for_each(|(sum, count)| *sum += count);
    }
    let least = sums.iter().copied().max().unwrap_or(0) as f64 * LEAST_SHARE;
    let busy = |node: &NodeId| sums[node.index()] as f64 >= least.max(1.0);
    context.machine.node_ids().filter(busy).collect()
}

/// Indices in the histogram of the pages that each instance has for itself.
pub fn instance_pages<'a>(context: &Context<'a>) -> impl Iterator<Item = u32> + use<'a> {
    let profile = context.profile;
    let objects = context.histogram.objects.iter().enumerate();
    let own = objects.filter(move |(_, object)| {
        profile
            .object(**object)
            .is_none_or(|object| object.kind != ObjectKind::File)
    });
    own.map(|(index, _)| index as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{Recorded, machine};

    /// Threads 0 to 3, on nodes 0 to 3 where there are as many, access 8 and 4 pages as often as this.
    fn recorded(nodes: u32, accesses: &dyn Fn(u64, u32) -> u64) -> Recorded {
        Recorded::new(machine(nodes, 1), nodes, &[(8, accesses), (4, accesses)])
    }

    #[test]
    fn every_node_gets_all_pages_but_those_of_files() {
        let mut recorded = recorded(4, &|_, _| 1);
        let copies = instances(&recorded.context()).unwrap();
        assert_eq!((copies.bytes_a_node(), copies.bytes()), (12 * 4096, 48 * 4096));
        assert_eq!(copies.nearest, (0..4).map(NodeId).collect::<Vec<_>>());
        recorded.profile.objects.last_mut().unwrap().kind = ObjectKind::File;
        let copies = instances(&recorded.context()).unwrap();
        assert_eq!(copies.bytes_a_node(), 8 * 4096);
    }

    #[test]
    fn a_thread_that_only_starts_the_others_is_no_instance() {
        let recorded = recorded(4, &|_, thread| if thread == 0 { 1 } else { 100 });
        let copies = instances(&recorded.context()).unwrap();
        assert_eq!(copies.holders, [NodeId(1), NodeId(2), NodeId(3)]);
    }

    #[test]
    fn where_threads_work_on_one_node_or_memory_is_too_little_it_is_refused() {
        let of = |nodes, memory: Option<u64>| {
            let mut recorded = recorded(nodes, &|_, _| 1);
            if let Some(memory) = memory {
                recorded.machine.nodes[1].memory = memory;
            }
            instances(&recorded.context()).map_err(|e| e.to_string())
        };
        assert!(of(1, None).unwrap_err().contains("work on one node"));
        assert!(of(2, Some(12 * 4096)).is_ok());
        assert_eq!(
            of(2, Some(11 * 4096)).unwrap_err(),
            "instances: an instance takes 48 KiB, node 1 has 44 KiB; leave it out"
        );
    }
}

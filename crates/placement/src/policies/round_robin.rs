//! Round-robin in the order of first touches, as `numactl -i` does.

use crate::{Context, Mapping, PagePolicy};
use nodewise_analysis::first_touches;
use nodewise_machine::NodeId;

/// As Linux does under a process-wide interleave policy: each thread has its own counter, and the page of its k-th
/// first touch goes to node k mod N. Within a slice, a thread's touches are assumed to ascend by address. Pages without
/// a recorded first touch have a separate counter.
#[derive(Clone, Copy, Debug)]
pub struct RoundRobin;

impl PagePolicy for RoundRobin {
    fn name(&self) -> String {
        "round-robin".into()
    }

    fn place(&self, context: &Context<'_>) -> Mapping {
        let touches = first_touches(context.profile, context.histogram);
        let mut order: Vec<usize> = (0..touches.len()).collect();
        order.sort_by_key(|&page| touches[page].map(|t| t.slice));
        let count = context.machine.node_count() as u32;
        let mut turns = vec![0u32; context.profile.threads.len().max(context.histogram.threads) + 1];
        let mut nodes = vec![NodeId(0); touches.len()];
        for page in order {
            let turn = touches[page]
                .map_or(0, |t| t.thread.index() + 1)
                .min(turns.len() - 1);
            nodes[page] = NodeId(turns[turn]);
            turns[turn] = (turns[turn] + 1) % count;
        }
        Mapping {
            policy: self.name(),
            nodes,
        }
    }
}

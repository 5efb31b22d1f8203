//! Page number mod number of nodes (Diener, equation 6).

use crate::{Context, Mapping, PagePolicy};
use nodewise_machine::NodeId;
use nodewise_profile::PageNumber;

/// Consecutive pages on consecutive nodes, by virtual page number in units of the decision's page
/// size. `numactl -i` is [`super::RoundRobin`].
#[derive(Clone, Copy, Debug)]
pub struct Interleave;

/// Equation 6 for one page.
pub(super) fn interleaved(page: PageNumber, shift: u32, nodes: usize) -> NodeId {
    NodeId(((page.virtual_number() >> shift) % nodes as u64) as u32)
}

impl PagePolicy for Interleave {
    fn name(&self) -> String {
        "interleave".into()
    }

    fn place(&self, context: &Context<'_>) -> Mapping {
        let (shift, nodes) = (context.histogram.shift, context.machine.node_count());
        let node = |page: &PageNumber| interleaved(*page, shift, nodes);
        Mapping {
            policy: self.name(),
            nodes: context.histogram.pages.iter().map(node).collect(),
        }
    }
}

//! First touch while there is room: what a kernel does where memory that is near is scarce.

use super::{Policy, Request};
use crate::tier::Tier;
use crate::{Context, Mapping, PagePolicy, PolicyError};
use nodewise_analysis::first_touches;

/// `fill:NODES[@SIZE]`: pages in the order of first touches, each on the node of those named that is nearest to the thread
/// which touches it first, up to their memory or SIZE; then on the nearest other node. As Linux allocates where nodes are
/// full, by its distances; within a slice, touches are assumed to ascend by address. Nothing moves later. The baseline
/// for [`super::Hot`].
#[derive(Clone, Debug)]
pub struct Fill(Tier);

pub(super) fn make(request: &Request<'_>) -> Result<Policy, PolicyError> {
    let tier = Tier::parse(request.parameter, request.text, request.machine)?;
    Ok(Box::new(Fill(tier)))
}

impl PagePolicy for Fill {
    fn name(&self) -> String {
        format!("fill:{}", self.0.text())
    }

    fn place(&self, context: &Context<'_>) -> Mapping {
        let touches = first_touches(context.profile, context.histogram);
        let mut order: Vec<usize> = (0..touches.len()).collect();
        order.sort_by_key(|&page| touches[page].map(|t| t.slice));
        let touched_from = context.first_touch();
        let nodes = self.0.fill(context, &order, |page, costs| {
            costs.copy_from_slice(&context.machine.latency_ns[touched_from[page].index()]);
        });
        Mapping {
            policy: self.name(),
            nodes,
        }
    }
}

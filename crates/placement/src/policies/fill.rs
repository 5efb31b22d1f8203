//! First touch while there is room: what a kernel does where memory that is near is scarce.

use super::sized::{Filling, sized};
use super::{Policy, Request};
use crate::tier::Tier;
use crate::{Context, Mapping, PagePolicy, PolicyError};

/// `fill:NODES[@SIZE]`: pages in the order of first touches, each on the node of those named that is nearest to the thread
/// which touches it first, up to their memory or SIZE; then on the nearest other node, by latency. As Linux allocates
/// where nodes are full; within a slice, touches are assumed to ascend by address, and pages of which the first touch was
/// not recorded come last. Nothing moves later. The baseline for [`super::Hot`].
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
        sized(Filling::FirstTouch, &self.0, context, self.name())
    }

    fn notes(&self, context: &Context<'_>) -> Vec<String> {
        match context.profile.first_touches.is_empty() {
            true => vec![format!(
                "{}: first touches were not recorded; pages are filled in by address",
                self.name()
            )],
            false => Vec::new(),
        }
    }
}

//! Any node: shows what data mapping matters (Diener III.1).

use super::{Policy, Request};
use crate::{Context, Mapping, PagePolicy, PolicyError};
use nodewise_machine::NodeId;

/// A seeded hash of the page number: independent of order, equal from run to run.
#[derive(Clone, Copy, Debug)]
pub struct Random {
    /// Another seed, another mapping.
    pub seed: u64,
}

pub(super) fn make(request: &Request<'_>) -> Result<Policy, PolicyError> {
    let seed = match request.parameter {
        None => 0,
        Some(text) => text.parse().map_err(|_| {
            PolicyError(format!(
                "policy `{}`: the seed must be a whole number",
                request.text
            ))
        })?,
    };
    Ok(Box::new(Random { seed }))
}

impl PagePolicy for Random {
    fn name(&self) -> String {
        format!("random:{}", self.seed)
    }

    fn place(&self, context: &Context<'_>) -> Mapping {
        let count = context.machine.node_count() as u128;
        let node =
            |page: u64| NodeId(((u128::from(split_mix(self.seed ^ split_mix(page))) * count) >> 64) as u32);
        let nodes = context.histogram.pages.iter().map(|p| node(p.0)).collect();
        Mapping {
            policy: self.name(),
            nodes,
        }
    }
}

/// Steele, Lea and Flood's SplitMix64 finaliser.
fn split_mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

//! Random placement: shows how much data mapping matters (Diener III.1).

use super::{Policy, Request};
use crate::{Context, Mapping, PagePolicy, PolicyError, formulas};
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
        let count = context.machine.node_count() as u32;
        let node = |page| NodeId(formulas::random(page, self.seed, count));
        let nodes = context.histogram.pages.iter().map(|p| node(p.0)).collect();
        Mapping {
            policy: self.name(),
            nodes,
        }
    }
}

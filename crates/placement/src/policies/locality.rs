//! The node with the most accesses (Diener, equation 7).

use super::decide::by_counts;
use crate::{Context, Mapping, PagePolicy};

/// maxnode(p); among equals the node with the lowest number. No mapping has a larger local fraction.
#[derive(Clone, Copy, Debug)]
pub struct Locality;

impl PagePolicy for Locality {
    fn name(&self) -> String {
        "locality".into()
    }

    fn place(&self, context: &Context<'_>) -> Mapping {
        by_counts(self, context, |_, counts| counts.dominant().0)
    }
}

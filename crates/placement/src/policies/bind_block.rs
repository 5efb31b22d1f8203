//! Each array in contiguous blocks, one per thread.

use super::decide::by_object;
use crate::{Context, Distribution, Mapping, PagePolicy};

/// The pages of each array in contiguous equal parts, one a thread, each on its thread's node
/// (`mai_bind_rows`, called bind_block in Ribeiro and Méhaut 3.1).
#[derive(Clone, Copy, Debug)]
pub struct BindBlock;

impl PagePolicy for BindBlock {
    fn name(&self) -> String {
        "bind-block".into()
    }

    fn place(&self, context: &Context<'_>) -> Mapping {
        by_object(self, context, &Distribution::ByThread { repeat: 1 })
    }
}

//! First touch, the kernel's default.

use crate::{Context, Mapping, PagePolicy};

/// Each page on the node of the thread that touched it first: Linux's default and the baseline of
/// every comparison (Diener III).
#[derive(Clone, Copy, Debug)]
pub struct FirstTouch;

impl PagePolicy for FirstTouch {
    fn name(&self) -> String {
        "first-touch".into()
    }

    fn place(&self, context: &Context<'_>) -> Mapping {
        Mapping {
            policy: self.name(),
            nodes: context.first_touch(),
        }
    }
}

//! Moves a page to the node that touched it first in the newest interval.

use super::counts::each_page;
use super::parameters::Parameters;
use super::view::Propose;
use super::{Made, Observed, Whole, WholePolicy};
use nodewise_machine::Machine;

/// To the node that touched the page first in the newest interval (Löf and Holmgren's affinity on next
/// touch, with every page marked anew each interval).
#[derive(Clone, Copy, Debug)]
pub struct NextTouch;

pub(super) fn make(p: &mut Parameters<'_>, _: &Machine) -> Made {
    Ok(Box::new(Whole {
        name: p.name(),
        policy: NextTouch,
    }))
}

impl WholePolicy for NextTouch {
    fn decide(&mut self, observed: &dyn Observed, go: &mut Propose<'_>) {
        each_page(observed, |index, counts| {
            if let Some(to) = observed.first(index).filter(|to| *to != counts.home()) {
                go(index, to, counts.reason(to, 0.0));
            }
        });
    }
}

//! Moves a page to the node with the most accesses.

use super::counts::each_page;
use super::parameters::Parameters;
use super::view::Propose;
use super::{Made, Observed, Whole, WholePolicy};
use nodewise_machine::Machine;

/// Moves a page to the node with the most accesses if they exceed those of the home by the hysteresis.
#[derive(Clone, Copy, Debug)]
pub struct Dominant {
    /// A share of the home's accesses: with 0.5, the other node needs one and a half times as many.
    pub hysteresis: f64,
}

/// The default is 0.5: of 16 samples of a page that two nodes use equally, fewer than 10 come from the other node in
/// three of four cases.
pub(super) fn make(p: &mut Parameters<'_>, _: &Machine) -> Made {
    let policy = Dominant {
        hysteresis: p.take(
            "hysteresis",
            0.5,
            |h: &f64| *h >= 0.0 && h.is_finite(),
            "a number from 0 up, such as 0.5",
        )?,
    };
    Ok(Box::new(Whole {
        name: p.name(),
        policy,
    }))
}

impl WholePolicy for Dominant {
    fn decide(&mut self, observed: &dyn Observed, go: &mut Propose<'_>) {
        each_page(observed, |index, counts| {
            let to = counts.dominant();
            let count_threshold = counts.local() as f64 * (1.0 + self.hysteresis);
            if to != counts.home() && counts.of(to) as f64 > count_threshold {
                go(index, to, counts.reason(to, count_threshold));
            }
        });
    }
}

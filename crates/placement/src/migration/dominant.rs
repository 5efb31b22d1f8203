//! To the node with the most accesses.

use super::parameters::Parameters;
use super::{MigrationPolicy, Move, Observed, Reason};
use crate::PolicyError;
use nodewise_machine::{Machine, NodeId};

/// To the node with the most accesses, if they exceed the home's by the hysteresis.
#[derive(Clone, Copy, Debug)]
pub struct Dominant {
    /// A share of the home's accesses: 0.5 asks for half as many again.
    pub hysteresis: f64,
}

pub(super) fn make(p: &mut Parameters<'_>, _: &Machine) -> Result<Box<dyn MigrationPolicy>, PolicyError> {
    let hysteresis = p.take(
        "hysteresis",
        0.5,
        |h| *h >= 0.0,
        "a number from 0 up, such as 0.5",
    )?;
    Ok(Box::new(Dominant { hysteresis }))
}

impl MigrationPolicy for Dominant {
    fn name(&self) -> String {
        format!("dominant:hysteresis={}", self.hysteresis)
    }

    fn decide(&mut self, observed: &dyn Observed) -> Vec<Move> {
        let (mut moves, mut counts) = (Vec::new(), vec![0; observed.nodes()]);
        for index in 0..observed.len() {
            observed.counts(index, &mut counts);
            let (mut to, mut most) = (0, 0);
            for (node, &count) in counts.iter().enumerate() {
                if count > most {
                    (to, most) = (node, count);
                }
            }
            let from = observed.home(index);
            let home_count = counts[from.index()] as f64;
            let against = home_count * (1.0 + self.hysteresis);
            if to != from.index() && most as f64 > against {
                moves.push(Move {
                    index,
                    page: observed.page(index),
                    from,
                    to: NodeId(to as u32),
                    reason: Reason {
                        to_count: most as f64,
                        home_count: Some(home_count),
                        against,
                        evidence: counts.iter().sum::<u64>() as f64,
                    },
                });
            }
        }
        moves
    }
}

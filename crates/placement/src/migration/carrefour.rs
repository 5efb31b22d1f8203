//! Carrefour: pages that one node accesses are moved to it, pages of several nodes are interleaved.

use super::counts::{each_page, interleaved, load_by_home};
use super::parameters::Parameters;
use super::view::Propose;
use super::{Made, Observed, Whole, WholePolicy};
use nodewise_machine::Machine;

/// Migration and interleaving of Carrefour (Dashti et al., ASPLOS 2013, 3.2; "dynamic migration" in AsymSched 4.1),
/// without its replication. Each of the two is active only while the program as a whole needs it.
#[derive(Clone, Copy, Debug)]
pub struct Carrefour {
    /// Pages accessed by one node are moved to it while the local share of accesses is less than this.
    pub local: f64,
    /// Pages of several nodes are spread while the imbalance of controllers' load exceeds this: standard deviation over
    /// mean.
    pub imbalance: f64,
}

/// The thresholds are Carrefour's own: 80 % and 35 %.
pub(super) fn make(p: &mut Parameters<'_>, _: &Machine) -> Made {
    let policy = Carrefour {
        local: p.take(
            "local",
            0.8,
            |l| (0.0..=1.0).contains(l),
            "a share from 0 to 1, such as 0.8",
        )?,
        imbalance: p.take(
            "imbalance",
            0.35,
            |i: &f64| *i >= 0.0,
            "a number from 0 up, such as 0.35",
        )?,
    };
    Ok(Box::new(Whole {
        name: p.name(),
        policy,
    }))
}

impl WholePolicy for Carrefour {
    fn decide(&mut self, observed: &dyn Observed, go: &mut Propose<'_>) {
        let (load, local) = load_by_home(observed);
        let total: u64 = load.iter().sum();
        let average = total as f64 / load.len() as f64;
        let gathers = (local as f64) < self.local * total as f64;
        let spreads = deviation(&load, average) > self.imbalance * average;
        if !gathers && !spreads {
            return;
        }
        each_page(observed, |index, counts| {
            let home = counts.home();
            let to = match counts.accessing() {
                1 if gathers => counts.dominant(),
                2.. if spreads && load[home.index()] as f64 > average => interleaved(observed, index),
                _ => home,
            };
            if to != home {
                let reason = match counts.accessing() {
                    1 => counts.reason(to, 0.0),
                    _ => counts.spreading(to, 0.0),
                };
                go(index, to, reason);
            }
        });
    }
}

fn deviation(load: &[u64], average: f64) -> f64 {
    let squares: f64 = load.iter().map(|l| (*l as f64 - average).powi(2)).sum();
    (squares / load.len() as f64).sqrt()
}

//! The mixed policy online: exclusive pages to their node, shared pages in one of three ways.

use super::counts::{Counts, each_page, interleaved};
use super::parameters::Parameters;
use super::view::Propose;
use super::{Made, Observed, Whole, WholePolicy};
use nodewise_machine::{Machine, NodeId};
use std::str::FromStr;

/// Diener's equation 8, applied again in every interval.
#[derive(Clone, Copy, Debug)]
pub struct Mixed {
    /// minExcl: pages with a larger exclusivity go to the node with the most accesses.
    pub min_exclusivity: f64,
    /// A page on its dominant node stays until its exclusivity falls below `min_exclusivity` by this much.
    pub hysteresis: f64,
    /// The treatment of the other, shared pages.
    pub shared: Shared,
}

/// The treatment of pages that several nodes use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shared {
    /// Page number mod nodes (equation 8).
    Interleave,
    /// From controllers with more than their share of the load to the node, among those with less, that accesses the
    /// page most (Algorithm 1).
    Balance,
    /// Shared pages are not moved.
    Stay,
}

impl FromStr for Shared {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "interleave" => Ok(Self::Interleave),
            "balance" => Ok(Self::Balance),
            "stay" => Ok(Self::Stay),
            _ => Err(()),
        }
    }
}

/// `mixed:0.9` as for the page policy. The band of 0.05 is one sample in twenty from another node; with a narrower
/// band, a page at the limit would move back and forth.
pub(super) fn make(p: &mut Parameters<'_>, _: &Machine) -> Made {
    let min_exclusivity = match p.bare() {
        None => 0.9,
        Some(text) => {
            let number = text.parse().ok().filter(|t| (0.0..=1.0).contains(t));
            number.ok_or_else(|| {
                p.error(format_args!(
                    "{text}: the least exclusivity is a number from 0 to 1, such as 0.9"
                ))
            })?
        }
    };
    let policy = Mixed {
        min_exclusivity,
        hysteresis: p.take(
            "hysteresis",
            0.05,
            |h| (0.0..=1.0).contains(h),
            "a share from 0 to 1, such as 0.05",
        )?,
        shared: p.take(
            "shared",
            Shared::Interleave,
            |_| true,
            "`interleave`, `balance` or `stay`",
        )?,
    };
    Ok(Box::new(Whole {
        name: p.name(),
        policy,
    }))
}

impl WholePolicy for Mixed {
    fn decide(&mut self, observed: &dyn Observed, go: &mut Propose<'_>) {
        let mut load = self.load(observed);
        let share = load.iter().sum::<u64>() / load.len() as u64;
        each_page(observed, |index, counts| {
            let (home, total) = (counts.home(), counts.total());
            if total == 0 {
                return;
            }
            let exclusive = self.exclusive(counts);
            let to = exclusive.unwrap_or_else(|| match self.shared {
                Shared::Interleave => interleaved(observed, index),
                Shared::Balance => relieved(counts, &load, share),
                Shared::Stay => home,
            });
            if exclusive.is_none() && self.shared == Shared::Balance {
                load[home.index()] -= total;
                load[to.index()] += total;
            }
            if to != home {
                let count_threshold = self.min_exclusivity * total as f64;
                let reason = match exclusive {
                    Some(_) => counts.reason(to, count_threshold),
                    None => counts.spreading(to, count_threshold),
                };
                go(index, to, reason);
            }
        });
    }
}

impl Mixed {
    /// The target of an exclusive page; none if the page is shared.
    fn exclusive(&self, counts: Counts<'_>) -> Option<NodeId> {
        let dominant = counts.dominant();
        let band = if dominant == counts.home() {
            self.hysteresis
        } else {
            0.0
        };
        let least = (self.min_exclusivity - band) * counts.total() as f64;
        (counts.of(dominant) as f64 > least).then_some(dominant)
    }

    /// Accesses to the memory of each node once exclusive pages are on their nodes.
    fn load(&self, observed: &dyn Observed) -> Vec<u64> {
        let mut load = vec![0; observed.nodes()];
        if self.shared == Shared::Balance {
            each_page(observed, |_, counts| {
                let at = self.exclusive(counts).unwrap_or(counts.home());
                load[at.index()] += counts.total();
            });
        }
        load
    }
}

/// Moves a page from a controller with more than its share to one that stays below its share, if there is one.
fn relieved(counts: Counts<'_>, load: &[u64], share: u64) -> NodeId {
    let room = |n: NodeId| load[n.index()] + counts.total() <= share;
    let crowded = load[counts.home().index()] > share;
    let better = if crowded { counts.most(room) } else { None };
    better.unwrap_or(counts.home())
}

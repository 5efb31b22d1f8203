//! In-W of ARS (3.2): each node fetches what it uses itself.

use super::neighbours::Sweep;
use super::parameters::Parameters;
use super::{AccessorPolicy, AccessorView, ByAccessor, Made, Number, Reason, Window};
use nodewise_machine::Machine;
use std::collections::HashMap;
use std::str::FromStr;

/// Fetches a remote page whose accesses from here, its neighbours' included, exceed `threshold` times
/// the average over all remote pages.
///
/// The average is taken over all remote pages, whether this node accesses them or not. If it were over the accessed
/// ones, no page would ever move in a program like SOR, where a node uses every page of its part equally; yet the
/// paper's In-W is best there.
#[derive(Clone, Copy, Debug)]
pub struct InW {
    /// The multiple of the average that must be exceeded.
    pub threshold: f64,
    /// The neighbouring pages that count in a judgement.
    pub window: Window,
}

/// Whether a page stays with the first node that fetched it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fixed {
    No,
    Yes,
}

impl FromStr for Fixed {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "no" => Ok(Self::No),
            "yes" => Ok(Self::Yes),
            _ => Err(()),
        }
    }
}

pub(super) fn make(p: &mut Parameters<'_>, _: &Machine) -> Made {
    let policy = InW {
        threshold: p.take(
            "threshold",
            2.0,
            |t: &f64| *t > 0.0 && t.is_finite(),
            "a positive number, such as 2",
        )?,
        window: Window::of(p)?,
    };
    let fixed = p.take("fixed", Fixed::No, |_| true, "`yes` or `no`")? == Fixed::Yes;
    Ok(Box::new(ByAccessor {
        fixed: fixed.then(HashMap::new),
        ..ByAccessor::new(p.name(), policy)
    }))
}

/// A node's accesses, prepared for judgement.
#[derive(Clone, Debug)]
pub struct Relative {
    /// Accesses to each page, with those to its neighbours.
    counts: Vec<f64>,
    count_threshold: f64,
    scale: f64,
}

impl InW {
    /// Accesses to each page and its neighbours.
    fn relative<N: Number>(&self, view: &AccessorView<'_>) -> Vec<f64> {
        let mut sweep = Sweep::<N, 1>::new(self.window);
        let load = |i: usize, row: &mut [N; 1]| {
            row[0] = N::of(view.count(i));
            true
        };
        let sum = |i| sweep.at(i, view.len(), |i| view.number(i), load)[0].get();
        (0..view.len()).map(sum).collect()
    }
}

impl AccessorPolicy for InW {
    type Accessor = Relative;

    fn begin(&self, view: &AccessorView<'_>) -> Relative {
        let counts = if self.window.bits(view.bits(), 1) <= f32::EXACT {
            self.relative::<f32>(view)
        } else {
            self.relative::<u64>(view)
        };
        let average = counts.iter().sum::<f64>() / view.remote_pages().max(1) as f64;
        Relative {
            counts,
            count_threshold: self.threshold * average,
            scale: self.window.scale(),
        }
    }

    fn judge(&self, relative: &Relative, _: &AccessorView<'_>, i: usize) -> Option<Reason> {
        let to_count = relative.counts[i];
        let reason = Reason {
            to_count,
            home_count: None,
            count_threshold: relative.count_threshold,
            evidence: to_count,
            regardless: false,
            partner: None,
        };
        (to_count > relative.count_threshold).then(|| reason.per(relative.scale))
    }
}

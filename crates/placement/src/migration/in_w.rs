//! In-W of ARS (3.2): each node fetches what it uses itself.

use super::parameters::Parameters;
use super::{AccessorPolicy, AccessorView, ByAccessor, Made, Reason, Window};
use nodewise_machine::Machine;

/// Fetches a remote page whose accesses from here, its neighbours' included, exceed `threshold` times
/// the average over all remote pages.
///
/// "The average" is taken over remote pages whether this node accesses them or not: over those it
/// accesses, a program like SOR, where it uses every page of its part alike, would never move one, and
/// the paper's In-W is best there.
#[derive(Clone, Copy, Debug)]
pub struct InW {
    /// How many times the average.
    pub threshold: f64,
    /// Which pages a page is judged with.
    pub window: Window,
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
    Ok(Box::new(ByAccessor {
        name: p.name(),
        policy,
    }))
}

impl AccessorPolicy for InW {
    fn decide(&mut self, view: &AccessorView<'_>, come: &mut dyn FnMut(usize, Reason)) {
        let mut relative = Vec::with_capacity(view.len());
        self.window.sweep(
            view.len(),
            1,
            |i| view.number(i),
            |i, row| row[0] = view.count(i),
            |_, sums| relative.push(sums[0]),
        );
        let average = relative.iter().sum::<f64>() / view.remote_pages().max(1) as f64;
        let against = self.threshold * average;
        for (i, &to_count) in relative.iter().enumerate().filter(|(_, r)| **r > against) {
            come(
                i,
                Reason {
                    to_count,
                    home_count: None,
                    against,
                    evidence: to_count,
                },
            );
        }
    }
}

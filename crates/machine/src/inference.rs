//! Infers shared bottlenecks, and links that explain them, from bandwidths of flows alone and together.
//!
//! The input is bandwidths with confidence intervals: of every flow alone, then of groups of flows that the caller runs
//! together on request. Two flows that together get less than the sum of their bandwidths alone share a bottleneck with
//! the capacity that they get together (max-min fairness, see [`crate::Channels`]). A flow whose way is a single link
//! is slowed by exactly the flows that cross that link; this tells links apart. Links that two flows cannot saturate
//! are found with larger groups.
//!
//! **Limits.** Not found or not determined are: a link that no set of flows with different readers and memories fills;
//! which of two links in series is the narrow one, if the same flows cross both; where on its way a flow passes a node,
//! unless the parts of the way are the whole ways of other flows; losses below 5 %; a link that only three or more
//! flows fill and that is less than a tenth narrower than another link that they fill. Requests have no bandwidth worth
//! measuring; writes are flows in the opposite direction.

// Why: docs/decisions/machines.md

mod bottlenecks;
mod estimate;
mod graph;
mod survey;
mod wide;

pub use estimate::Estimate;
pub use graph::BottleneckKind;
pub use survey::{Bottleneck, Survey, Verdict};

use crate::{Flow, Machine, NodeId};

/// Measures groups of flows until every pair is known, then as many flows as possible at once, to find bottlenecks that
/// only many flows fill. `alone` is the bandwidth of each flow by itself, MB/s. `divisible` says whether a reader's
/// CPUs can be divided between two flows. `measure` returns the bandwidths that these flows get together, MB/s, or
/// `None` when time is up.
pub fn survey(
    alone: &[(Flow, Estimate)],
    divisible: impl Fn(NodeId) -> bool,
    mut measure: impl FnMut(&[Flow]) -> Option<Vec<Estimate>>,
) -> Survey {
    let mut survey = Survey::new(alone);
    while let Some(group) = survey.next(&divisible) {
        let Some(rates) = measure(&survey.flows_at(&group)) else {
            return survey;
        };
        survey.record(&group, &rates);
    }
    wide::search(&mut survey, &mut measure);
    survey
}

/// The bottlenecks that a survey shows, and what they are taken for.
#[derive(Clone, Debug, PartialEq)]
pub struct Inferred {
    /// The flows that were measured.
    pub flows: Vec<Flow>,
    /// Bandwidth of each flow alone, MB/s.
    pub alone: Vec<f64>,
    /// The bottlenecks that flows share, each with what it is taken for.
    pub bottlenecks: Vec<(Bottleneck, BottleneckKind)>,
}

impl Inferred {
    /// Infers the bottlenecks that explain a survey. `local` is the bandwidth of each node's CPUs to their own memory,
    /// MB/s, if known; it tells controllers from links.
    #[must_use]
    pub fn of(survey: &Survey, local: &[Option<f64>]) -> Self {
        let flows = survey.flows().to_vec();
        let alone: Vec<f64> = survey.alone().iter().map(|a| a.median).collect();
        let mut all = bottlenecks::bottlenecks(survey);
        all.extend(survey.wide.iter().cloned());
        let kinds = graph::kinds(&flows, &alone, &all, local);
        Self {
            flows,
            alone,
            bottlenecks: all.into_iter().zip(kinds).collect(),
        }
    }

    /// Sets a machine's links, routes and bandwidths for the measured flows. Everything else stays unchanged.
    pub fn apply(&self, machine: &mut Machine) {
        graph::apply(&self.flows, &self.alone, &self.bottlenecks, machine);
    }
}

//! Infers shared bottlenecks, and links that explain them, from bandwidths of flows alone and together.
//!
//! All it needs is bandwidths, each with its interval: of every flow alone, then of groups of flows that
//! somebody lets run together when asked. Two flows that together get less than the sum of what they
//! have alone share something as wide as what they get together (max-min fairness, see
//! [`crate::Channels`]). A flow whose way is one link is held back by exactly those that cross that link;
//! that is how links are told apart. Links that two flows cannot saturate are found with larger groups.
//!
//! **What cannot be seen.** A link that no set of flows with different readers and memories fills. Which
//! of two things in series is the narrow one, when the same flows cross both. Where along its way a flow
//! passes a node, unless that way's parts are somebody else's whole way. Losses under a twentieth. A link that only
//! three flows or more fill and that is less than a tenth narrower than one they fill as well. Requests
//! have no bandwidth worth measuring; writes are flows the other way.

// Why: docs/decisions/machines.md

mod bottlenecks;
mod estimate;
mod graph;
mod survey;
mod wide;

pub use estimate::Estimate;
pub use graph::Place;
pub use survey::{Bottleneck, Survey, Verdict};

use crate::{Flow, Machine, NodeId};

/// Lets flows run together until every pair is known, then all that can at once, to find what only many of
/// them fill. `alone` is what each has by itself; `divisible` forbids two flows of a reader whose CPUs
/// cannot be divided; `measure` gives what these flows get together, MB/s, or `None` when time is up.
pub fn survey(
    alone: &[(Flow, Estimate)],
    divisible: impl Fn(NodeId) -> bool,
    mut measure: impl FnMut(&[Flow]) -> Option<Vec<Estimate>>,
) -> Survey {
    let mut survey = Survey::new(alone);
    while let Some(group) = survey.next(&divisible) {
        let Some(rates) = measure(&survey.of(&group)) else {
            return survey;
        };
        survey.tell(&group, &rates);
    }
    wide::look(&mut survey, &mut measure);
    survey
}

/// What a survey says about a machine's links.
#[derive(Clone, Debug, PartialEq)]
pub struct Inferred {
    /// The flows that were measured.
    pub flows: Vec<Flow>,
    /// What each has alone, MB/s.
    pub alone: Vec<f64>,
    /// What flows share, and what that is taken for.
    pub bottlenecks: Vec<(Bottleneck, Place)>,
}

impl Inferred {
    /// What explains a survey. `local`: MB/s of each node's CPUs from its own memory, where known; it
    /// tells controllers from links.
    #[must_use]
    pub fn of(survey: &Survey, local: &[Option<f64>]) -> Self {
        let flows = survey.flows().to_vec();
        let alone: Vec<f64> = survey.alone().iter().map(|a| a.median).collect();
        let mut all = bottlenecks::bottlenecks(survey);
        all.extend(survey.wide.iter().cloned());
        let places = graph::places(&flows, &alone, &all, local);
        Self {
            flows,
            alone,
            bottlenecks: all.into_iter().zip(places).collect(),
        }
    }

    /// Gives a machine these links, routes and bandwidths. What was not measured stays as it is.
    pub fn apply(&self, machine: &mut Machine) {
        graph::apply(&self.flows, &self.alone, &self.bottlenecks, machine);
    }
}

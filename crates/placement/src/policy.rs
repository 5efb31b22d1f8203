//! The interface of page policies.

use crate::{Mapping, PlacementError};
use nodewise_analysis::{Affinity, Histogram, first_touch_nodes};
use nodewise_machine::{Machine, NodeId};
use nodewise_profile::Profile;

/// What a page policy may look at.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The small tables: first touches, objects, threads.
    pub profile: &'a Profile,
    /// Page × thread counts at the page size decisions are made at.
    pub histogram: &'a Histogram,
    /// Which thread runs where.
    pub affinity: &'a Affinity,
    /// The machine that pages are placed on.
    pub machine: &'a Machine,
}

impl Context<'_> {
    /// The node of each page of the histogram under first touch, the kernel's default.
    #[must_use]
    pub fn first_touch(&self) -> Vec<NodeId> {
        first_touch_nodes(
            self.profile,
            self.histogram,
            self.affinity,
            self.machine.node_count(),
        )
    }
}

/// Decides a home node for every page.
pub trait PagePolicy: Send + Sync {
    /// The name as written on the command line, parameters included.
    fn name(&self) -> String;

    /// A total mapping: one node below `machine.node_count()` per page of the histogram.
    ///
    /// # Panics
    /// If a user's policy fails; [`PagePolicy::try_place`] reports that instead.
    fn place(&self, context: &Context<'_>) -> Mapping;

    /// Like [`PagePolicy::place`], for policies of users, which may fail.
    ///
    /// # Errors
    /// One line: what the policy did wrong.
    fn try_place(&self, context: &Context<'_>) -> Result<Mapping, PolicyError> {
        Ok(self.place(context))
    }

    /// Notes for the user that affect how far the policy's figures can be trusted here, one line each.
    fn notes(&self, _context: &Context<'_>) -> Vec<String> {
        Vec::new()
    }
}

/// A policy that could not be named or could not decide: one line.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PolicyError(pub(crate) String);

impl From<PlacementError> for PolicyError {
    fn from(error: PlacementError) -> Self {
        Self(error.to_string())
    }
}

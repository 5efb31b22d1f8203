//! A mapping: the node of every page of a histogram.

use nodewise_machine::NodeId;

/// The home node of every page, parallel to [`nodewise_analysis::Histogram::pages`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The policy that made it, as written on the command line: `mixed:0.9`.
    pub policy: String,
    /// The node of each page, in the order of the histogram's pages.
    pub nodes: Vec<NodeId>,
}

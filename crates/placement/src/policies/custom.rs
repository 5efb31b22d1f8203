//! Policies in shared libraries of the user.

use crate::{Context, Mapping, PagePolicy, PolicyError};
use nodewise_machine::NodeId;

type Decide = dyn Fn(&Context<'_>) -> Result<Vec<u32>, String> + Send + Sync;

/// A policy by a closure that returns a node for each page; its results are checked.
pub struct Custom {
    name: String,
    decide: Box<Decide>,
}

impl Custom {
    /// `name` is how the policy was written: the path of its library.
    #[must_use]
    pub fn new(name: &str, decide: Box<Decide>) -> Self {
        Self {
            name: name.to_owned(),
            decide,
        }
    }
}

impl PagePolicy for Custom {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn place(&self, context: &Context<'_>) -> Mapping {
        self.try_place(context).unwrap_or_else(|e| panic!("{e}"))
    }

    fn try_place(&self, context: &Context<'_>) -> Result<Mapping, PolicyError> {
        let refuse = |what: String| PolicyError(format!("{}: {what}", self.name));
        let nodes = (self.decide)(context).map_err(refuse)?;
        let (pages, count) = (context.histogram.len(), context.machine.node_count());
        if nodes.len() != pages {
            return Err(refuse(format!("gave {} nodes for {pages} pages", nodes.len())));
        }
        match nodes.iter().position(|n| *n as usize >= count) {
            Some(page) => Err(refuse(format!(
                "put page {page} on node {}, but {} has nodes 0 to {}",
                nodes[page],
                context.machine.name,
                count.saturating_sub(1)
            ))),
            None => Ok(Mapping {
                policy: self.name(),
                nodes: nodes.into_iter().map(NodeId).collect(),
            }),
        }
    }
}

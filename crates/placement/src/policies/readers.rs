//! Each object in the shares of nodes that suit its own readers.

mod groups;
mod solve;

use super::Request;
use crate::{Context, Deal, Mapping, PagePolicy, PolicyError};
use groups::Groups;

/// `weighted:readers`. `weighted` deals all pages by the controllers' bandwidths, whoever reads them. Here each object has
/// shares of its own: those with which the slowest of all controllers, links and readers is done first, given how many
/// lines each node fetches of it (a linear program, `readers/solve.rs`). A page that one node uses stays there unless that
/// node's memory is what all wait for.
///
/// Sources: Gureya et al., BWAP (IPDPS 2020), for weights by what readers' bandwidths to nodes are; Sun et al., Caption
/// (MICRO 2023), and CAMP (ASPLOS 2026) for shares that balance a fast and a slow memory.
#[derive(Clone, Copy, Debug)]
pub struct Readers;

pub(super) const NAME: &str = "weighted:readers";

/// The policy for `weighted`, and that for `weighted:readers`.
pub(super) fn make(request: &Request<'_>) -> Result<Box<dyn PagePolicy>, PolicyError> {
    match request.parameter {
        None => Ok(Box::new(super::Weighted)),
        Some("readers") => Ok(Box::new(Readers)),
        Some(_) => Err(PolicyError(format!(
            "policy `{}`: the parameter is `readers`: weights for each object, by what its readers wait for",
            request.text
        ))),
    }
}

/// The lengths of rounds in which a policy of this name may deal an object's pages, if they are its own.
pub(crate) fn rounds(policy: &str) -> &'static [usize] {
    match policy == NAME {
        true => &[2, 4, 5, 10, 20, 25, 50, 100],
        false => &[],
    }
}

impl PagePolicy for Readers {
    fn name(&self) -> String {
        NAME.into()
    }

    /// # Panics
    /// If the linear program has no solution, which it always has.
    fn place(&self, context: &Context<'_>) -> Mapping {
        self.try_place(context).expect("shares exist")
    }

    fn try_place(&self, context: &Context<'_>) -> Result<Mapping, PolicyError> {
        let mut nodes = context.first_touch();
        let groups = Groups::of(context, &nodes);
        let shares = solve::shares(&groups, context.machine)
            .map_err(|e| PolicyError(format!("{NAME}: the shares were not found: {e}")))?;
        let histogram = context.histogram;
        for (group, shares) in groups.free.iter().zip(&shares) {
            let deal = Deal::new(shares);
            for page in &group.pages {
                let number = histogram.pages[*page as usize].virtual_number() >> histogram.shift;
                nodes[*page as usize] = deal.node(number);
            }
        }
        Ok(Mapping {
            policy: self.name(),
            nodes,
        })
    }
}

#[cfg(test)]
mod tests;

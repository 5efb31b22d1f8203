//! Distributions of blocks of pages over a list of nodes, as in MAI.

use crate::{ObjectPage, formulas};
use nodewise_machine::NodeId;
use std::fmt;

/// The order in which blocks are assigned to the nodes of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Round-robin over the nodes: `cyclic`.
    Cyclic,
    /// In turn, each round one node further on: `skew`.
    Skew,
    /// In turn over this many virtual nodes, a prime and at least as many as nodes: `prime 5`.
    Prime(u32),
    /// By a hash of the block and this seed: `random 7`.
    Random(u64),
}

/// Deals the blocks of an object over nodes, counted from the object's first page (an interleave uses virtual page
/// numbers instead).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dealt {
    /// Order in which blocks are assigned to nodes.
    pub order: Order,
    /// The nodes, at least one.
    pub nodes: Vec<NodeId>,
    /// Pages in a block, in units of the decision's page size; at least 1.
    pub block: u32,
}

/// Whether a number is a prime, as MAI's number of virtual nodes must be.
#[must_use]
pub fn is_prime(number: u32) -> bool {
    number > 1
        && (2..)
            .take_while(|d| d * d <= number)
            .all(|d| !number.is_multiple_of(d))
}

impl Dealt {
    /// The node of `page`; `None` if the list is empty.
    #[must_use]
    pub fn node(&self, page: ObjectPage) -> Option<NodeId> {
        let nodes = self.nodes.len() as u32;
        if nodes == 0 {
            return None;
        }
        let block = page.turn / u64::from(self.block.max(1));
        let turn = match self.order {
            Order::Cyclic => formulas::cyclic(block, nodes),
            Order::Skew => formulas::skew(block, nodes),
            Order::Prime(prime) => formulas::prime(block, prime, nodes),
            Order::Random(seed) => formulas::random(block, seed, nodes),
        };
        self.nodes.get(turn as usize).copied()
    }

    /// Reads `skew 0,1,2 by 4`.
    pub(super) fn parse(words: &[&str]) -> Option<Self> {
        let (order, rest) = match words {
            ["cyclic", rest @ ..] => (Order::Cyclic, rest),
            ["skew", rest @ ..] => (Order::Skew, rest),
            ["prime", prime, rest @ ..] => (Order::Prime(prime.parse().ok().filter(|p| is_prime(*p))?), rest),
            ["random", seed, rest @ ..] => (Order::Random(seed.parse().ok()?), rest),
            _ => return None,
        };
        let (list, block) = match rest {
            [list] => (list, 1),
            [list, "by", block] => (list, block.parse().ok().filter(|b| *b > 0)?),
            _ => return None,
        };
        let nodes: Vec<NodeId> = list
            .split(',')
            .map(|n| n.parse().ok().map(NodeId))
            .collect::<Option<_>>()?;
        let enough = !matches!(order, Order::Prime(p) if (p as usize) < nodes.len());
        enough.then_some(Self { order, nodes, block })
    }
}

impl fmt::Display for Dealt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.order {
            Order::Cyclic => f.write_str("cyclic"),
            Order::Skew => f.write_str("skew"),
            Order::Prime(prime) => write!(f, "prime {prime}"),
            Order::Random(seed) => write!(f, "random {seed}"),
        }?;
        let nodes: Vec<_> = self.nodes.iter().map(ToString::to_string).collect();
        write!(f, " {}", nodes.join(","))?;
        match self.block {
            1 => Ok(()),
            block => write!(f, " by {block}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primes_are_told() {
        let found: Vec<u32> = (0..30).filter(|n| is_prime(*n)).collect();
        assert_eq!(found, [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]);
    }

    #[test]
    fn blocks_of_pages_are_dealt_together_wherever_the_object_lies() {
        let nodes = |text: &str| -> Vec<u32> {
            let words: Vec<&str> = text.split(' ').collect();
            let dealt = Dealt::parse(&words).unwrap();
            let page = |turn| ObjectPage {
                index: turn,
                pages: 8,
                number: 1003 + turn,
                turn,
                thread: 0,
            };
            (0..8).filter_map(|t| dealt.node(page(t))).map(|n| n.0).collect()
        };
        assert_eq!(nodes("cyclic 4,6"), [4, 6, 4, 6, 4, 6, 4, 6]);
        assert_eq!(nodes("cyclic 4,6 by 3"), [4, 4, 4, 6, 6, 6, 4, 4]);
        assert_eq!(nodes("skew 4,6 by 2"), [4, 4, 6, 6, 6, 6, 4, 4]);
        assert_eq!(nodes("prime 3 4,6"), [4, 6, 4, 4, 6, 6, 4, 6]);
    }
}

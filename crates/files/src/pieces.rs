//! Which page of a file goes to which node.

use anyhow::bail;
use nodewise_analysis::figures::plural;
use nodewise_machine::NodeId;
use nodewise_placement::{ObjectPage, Rule};

/// How a file's pages are dealt to nodes.
#[derive(Clone, Debug, PartialEq)]
pub enum Policy {
    /// Pieces take turns on the nodes (Diener et al., equation 6, with pieces for pages).
    Interleave,
    /// The file in as many equal parts as there are nodes, one after the other.
    Block,
    /// All on one node, by the kernel's number.
    Node(u32),
    /// None: a shared memory object forgets its policy, and pages to come go where they are first touched.
    FirstTouch,
    /// Pieces take turns so that nodes have shares in proportion to these weights, in the order of the nodes.
    Weighted(Vec<u32>),
    /// As a map's rule says: its node i is the i-th of the nodes.
    Rule {
        /// The rule; its distribution is not first touch.
        rule: Box<Rule>,
        /// The node of each thread, by number in the map.
        threads: Vec<NodeId>,
    },
}

/// The names, as help and errors list them.
pub const POLICIES: &str = "interleave, block, node:N, weighted:W,W,…, first-touch";
const NAMES: [&str; 5] = ["interleave", "block", "node", "weighted", "first-touch"];
/// The kernel's own bound on weights.
const MAX_WEIGHT: u32 = 255;

impl Policy {
    /// Parses a policy of the command line.
    ///
    /// # Errors
    /// It is unknown, or its number is none.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let unknown = |hint: &str| format!("unknown policy `{text}`{hint}; for files: {POLICIES}");
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let name = nodewise_input::resolve(name, NAMES.into_iter())
            .map_err(|hint| anyhow::anyhow!(unknown(&hint)))?;
        Ok(match (name, rest) {
            ("interleave", "") => Self::Interleave,
            ("block", "") => Self::Block,
            ("first-touch", "") => Self::FirstTouch,
            ("node", number) => match number.parse() {
                Ok(number) => Self::Node(number),
                Err(_) => bail!("--policy {text}: not a node number; write node:0"),
            },
            ("weighted", weights) => Self::Weighted(weights_of(text, weights)?),
            _ => bail!(unknown("")),
        })
    }
}

fn weights_of(text: &str, weights: &str) -> anyhow::Result<Vec<u32>> {
    let parsed: Option<Vec<u32>> = weights
        .split(',')
        .map(|w| w.trim().parse().ok().filter(|w| *w <= MAX_WEIGHT))
        .collect();
    match parsed.filter(|w| w.iter().any(|w| *w > 0)) {
        Some(weights) => Ok(weights),
        None => bail!(
            "--policy {text}: weights are whole numbers up to {MAX_WEIGHT}, one for each node, not all 0; write weighted:3,1"
        ),
    }
}

/// Largest piece that is chosen, in pages of 4 KiB: a huge page, which moves as one.
pub const HUGE_PIECE: u64 = 512;
/// Each node gets at least this number of pieces, unless pieces would be below a page.
const PIECES_PER_NODE: u64 = 128;

/// The node of each page of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pieces {
    /// Pages of a piece; all pages of a piece are on one node.
    pub piece: u64,
    pattern: Pattern,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Pattern {
    /// Piece i is on node `i mod length`, by the kernel's numbers.
    Turns(Vec<u32>),
    /// As many parts as there are nodes, of this number of pieces in all.
    Parts { nodes: Vec<u32>, pieces: u64 },
    /// The node of each piece, at least one.
    Each(Vec<u32>),
}

impl Pieces {
    /// Deals the `pages` of a file to `nodes`, in pieces of `piece` pages. Without one, pieces are as large as 2 MiB as
    /// long as each node gets 128 of them, as the kernel keeps files in groups of pages up to that size and moves them
    /// as one.
    ///
    /// # Errors
    /// A node that the policy names is none of the nodes, or the number of weights is not that of the nodes.
    pub fn of(policy: &Policy, pages: u64, nodes: &[u32], piece: Option<u64>) -> anyhow::Result<Self> {
        let count = nodes.len() as u64;
        let chosen = || {
            let most = pages / (PIECES_PER_NODE * count).max(1);
            (1 << most.max(1).ilog2()).clamp(1, HUGE_PIECE)
        };
        let piece = piece.unwrap_or_else(chosen).max(1);
        let pattern = match policy {
            Policy::Interleave => Pattern::Turns(nodes.to_vec()),
            Policy::Node(node) if nodes.contains(node) => Pattern::Turns(vec![*node]),
            Policy::Node(node) => {
                let known: Vec<String> = nodes.iter().map(u32::to_string).collect();
                bail!(
                    "--policy node:{node}: no such node, or not allowed here; nodes: {}",
                    known.join(",")
                )
            }
            Policy::Weighted(weights) => match one_each(weights, nodes.len()) {
                Ok(()) => Pattern::Turns(turns(weights, nodes)),
                Err(why) => bail!("--policy weighted: {why}"),
            },
            Policy::Block => Pattern::Parts {
                nodes: nodes.to_vec(),
                pieces: pages.div_ceil(piece).max(1),
            },
            Policy::Rule { rule, threads } => {
                Pattern::Each(each_piece((rule, threads), pages, nodes, piece)?)
            }
            Policy::FirstTouch => bail!("--policy first-touch: deals no pages to nodes"),
        };
        Ok(Self { piece, pattern })
    }

    /// The node of a page, numbered within the file.
    #[must_use]
    pub fn node(&self, page: u64) -> u32 {
        let piece = page / self.piece;
        match &self.pattern {
            Pattern::Turns(turns) => turns[(piece % turns.len() as u64) as usize],
            Pattern::Each(nodes) => nodes[(piece as usize).min(nodes.len() - 1)],
            Pattern::Parts { nodes, pieces } => {
                let part = u128::from(piece.min(pieces - 1)) * nodes.len() as u128 / u128::from(*pieces);
                nodes[part as usize]
            }
        }
    }

    /// The stretches of pages that go to one node, of a file of this many pages, each with its node.
    /// There are at most as many as pieces.
    pub fn stretches(&self, pages: u64) -> impl Iterator<Item = (std::ops::Range<u64>, u32)> + '_ {
        let mut at = 0;
        std::iter::from_fn(move || {
            let (start, node) = (at, self.node(at));
            while at < pages && self.node(at) == node {
                let piece = u128::from(at / self.piece);
                let next = match &self.pattern {
                    Pattern::Turns(turns) if turns.len() == 1 => u128::MAX,
                    Pattern::Turns(_) | Pattern::Each(_) => piece + 1,
                    // The first piece of the next part.
                    Pattern::Parts { nodes, pieces } => {
                        let (pieces, count) = (u128::from(*pieces), nodes.len() as u128);
                        ((piece * count / pieces + 1) * pieces)
                            .div_ceil(count)
                            .max(piece + 1)
                    }
                };
                let page = next.saturating_mul(u128::from(self.piece));
                at = u64::try_from(page).unwrap_or(u64::MAX).min(pages);
            }
            (start < pages).then_some((start..at, node))
        })
    }
}

/// The node of each piece of a file under a rule: the piece's middle page decides.
///
/// # Errors
/// The rule leaves pages to first touch, or names more nodes than there are.
fn each_piece(
    (rule, threads): (&Rule, &[NodeId]),
    pages: u64,
    nodes: &[u32],
    piece: u64,
) -> anyhow::Result<Vec<u32>> {
    let node = |number: u64| {
        let first = number * piece;
        let end = (first + piece).min(pages).max(first + 1);
        let page = ObjectPage {
            index: first + (end - first - 1) / 2,
            pages: pages.max(1),
            number,
            turn: number,
            thread: 0,
        };
        match rule.node(page, threads) {
            Some(node) => nodes.get(node.index()).copied().ok_or_else(|| {
                anyhow::anyhow!("node {node} of the rule is none of the {} here", nodes.len())
            }),
            None => bail!(
                "`{}` leaves its pages to whoever reads them first",
                rule.distribution
            ),
        }
    };
    (0..pages.div_ceil(piece).max(1)).map(node).collect()
}

/// Whether there is a weight for each of so many nodes.
///
/// # Errors
/// What is wrong, after the words that name the option.
pub fn one_each(weights: &[u32], nodes: usize) -> Result<(), String> {
    match weights.len() == nodes {
        true => Ok(()),
        false => Err(format!(
            "{} for {}; give each node one, 0 for none",
            plural(weights.len(), "weight"),
            plural(nodes, "node")
        )),
    }
}

/// One round of turns: a node has as many as its weight says, spread over the round. Each turn goes to the node that is
/// furthest behind its share (smooth weighted round robin).
#[must_use]
pub fn turns(weights: &[u32], nodes: &[u32]) -> Vec<u32> {
    let round: i64 = weights.iter().map(|w| i64::from(*w)).sum();
    let mut behind = vec![0_i64; weights.len()];
    let turn = |_| {
        behind
            .iter_mut()
            .zip(weights)
            .for_each(|(b, w)| *b += i64::from(*w));
        let next = (0..behind.len()).rev().max_by_key(|n| behind[*n]).unwrap_or(0);
        behind[next] -= round;
        nodes[next]
    };
    let all: Vec<u32> = (0..round).map(turn).collect();
    match all.iter().all(|node| *node == all[0]) {
        true => all[..1].to_vec(),
        false => all,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn shares(pieces: &Pieces, pages: u64) -> BTreeMap<u32, u64> {
        let mut found = BTreeMap::new();
        (0..pages).for_each(|page| *found.entry(pieces.node(page)).or_default() += 1);
        found
    }

    fn dealt(policy: &str, pages: u64, nodes: &[u32], piece: Option<u64>) -> Pieces {
        Pieces::of(&Policy::parse(policy).unwrap(), pages, nodes, piece).unwrap()
    }

    #[test]
    fn each_policy_deals_as_it_says() {
        let nodes = |policy: &str| -> Vec<u32> {
            let pieces = dealt(policy, 8, &[0, 2], Some(1));
            (0..8).map(|page| pieces.node(page)).collect()
        };
        assert_eq!(nodes("interleave"), [0, 2, 0, 2, 0, 2, 0, 2]);
        assert_eq!(nodes("block"), [0, 0, 0, 0, 2, 2, 2, 2]);
        assert_eq!(nodes("node:2"), [2; 8]);
        assert_eq!(nodes("weighted:3,1"), [0, 0, 2, 0, 0, 0, 2, 0]);
        assert_eq!(nodes("weighted:0,1"), [2; 8]);
    }

    #[test]
    fn weights_hold_to_a_page_in_each_hundred() {
        let pieces = dealt("weighted:61,39", 100_000, &[0, 1], Some(1));
        for hundred in 0..1000 {
            let first = (0..100)
                .filter(|page| pieces.node(hundred * 100 + page) == 0)
                .count();
            assert!((60..=62).contains(&first), "{first} in hundred {hundred}");
        }
        assert_eq!(
            shares(&pieces, 100_000),
            BTreeMap::from([(0, 61_000), (1, 39_000)])
        );
    }

    #[test]
    fn pieces_are_huge_pages_where_the_file_is_large_enough() {
        assert_eq!(dealt("interleave", 1 << 24, &[0, 1], None).piece, 512);
        assert_eq!(dealt("interleave", 1 << 12, &[0, 1], None).piece, 16);
        assert_eq!(dealt("interleave", 3, &[0, 1], None).piece, 1);
        // Blocks are whole pieces, and differ by one at most.
        let blocks = dealt("block", 10_000, &[0, 1, 2], None);
        let sizes = shares(&blocks, 10_000);
        let (least, most) = (sizes.values().min().unwrap(), sizes.values().max().unwrap());
        assert!(most - least <= 2 * blocks.piece, "{sizes:?}");
    }

    #[test]
    fn stretches_are_the_pages_of_each_piece_and_few_where_there_are_few() {
        for policy in ["interleave", "block", "node:1", "weighted:3,1"] {
            let pieces = dealt(policy, 1000, &[0, 1], Some(7));
            let mut next = 0;
            for (pages, node) in pieces.stretches(1000) {
                assert_eq!(pages.start, next, "{policy}");
                assert!(
                    pages.clone().all(|page| pieces.node(page) == node),
                    "{policy} {pages:?}"
                );
                next = pages.end;
            }
            assert_eq!(next, 1000, "{policy}");
        }
        let whole = dealt("node:1", u64::MAX >> 12, &[0, 1], None);
        assert_eq!(whole.stretches(u64::MAX >> 12).count(), 1);
        assert_eq!(
            dealt("block", 1 << 40, &[0, 1], Some(1 << 30))
                .stretches(1 << 40)
                .count(),
            2
        );
    }

    #[test]
    fn what_is_no_policy_says_why() {
        for (text, expected) in [
            ("magic", "unknown policy `magic`; for files: interleave"),
            ("interlave", "did you mean interleave?"),
            ("interleave:3", "unknown policy"),
            ("node:x", "write node:0"),
            ("weighted", "write weighted:3,1"),
            ("weighted:0,0", "not all 0"),
            ("weighted:999,1", "up to 255"),
        ] {
            let error = Policy::parse(text).unwrap_err().to_string();
            assert!(error.contains(expected) && !error.contains('\n'), "{error}");
        }
        let of = |policy: &str| {
            Pieces::of(&Policy::parse(policy).unwrap(), 8, &[0, 1], None)
                .unwrap_err()
                .to_string()
        };
        assert!(of("node:7").contains("nodes: 0,1"));
        assert!(of("weighted:1,2,3").contains("3 weights for 2 nodes"));
    }
}

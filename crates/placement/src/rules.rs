//! A placement as rules: the content of map files, which `run` enforces.

mod apply;
mod candidates;
mod dealt;
mod file;
mod fold;
mod matching;
mod named;
mod recognise;
mod samples;

pub(crate) use apply::object_page;
pub use apply::{Applied, apply};
pub(crate) use dealt::is_prime;
pub use dealt::{Dealt, Order};
pub use file::PlacementError;
pub use named::{NAMED_KINDS, Named};
pub use recognise::{Recognised, recognise};

use nodewise_analysis::Assignment;
use nodewise_machine::{CpuId, NodeId};
use nodewise_profile::ObjectKind;
use std::fmt;
use std::str::FromStr;

/// Selects objects for a rule. A missing part matches anything.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Selector {
    /// The kind of memory that the rule applies to.
    pub kind: ObjectKind,
    /// Call site in [`nodewise_profile::Site`]'s display form (heap and mappings).
    pub site: Option<String>,
    /// Variable name (statics, thread-local storage); of files and shared memory what [`Named`] reads; on the heap only
    /// informative.
    pub name: Option<String>,
    /// Ordinal of the allocating thread.
    pub thread: Option<u32>,
    /// That thread's sequence number at the site.
    pub sequence: Option<u32>,
}

/// How an object's pages are distributed over nodes. `i` is the page's index in the object, `P` its number of pages.
#[derive(Clone, Debug, PartialEq)]
pub enum Distribution {
    /// Leave to the kernel: the node of the first touch.
    FirstTouch,
    /// All on one node: `node 3`.
    Node(NodeId),
    /// Virtual page number mod number of nodes (Diener eq. 6): `interleave 0,1,2,3`.
    Interleave(Vec<NodeId>),
    /// Blocks of pages dealt over a list: `cyclic 0,1,2`, `skew 0,1,2 by 4`, `prime 5 0,1,2`,
    /// `random 7 0,1,2`.
    Dealt(Dealt),
    /// Contiguous parts in proportion: `block 0:0.5 1:0.25 2:0.25`; the shares sum to 1.
    Block(Vec<(NodeId, f64)>),
    /// The object is `repeat` equal parts, each split into as many blocks as there are threads, and
    /// each block goes to the node of its thread: `block by thread`, `block by thread repeat 64`.
    ByThread {
        /// Number of equal parts; 1 for an x-wise pattern, the number of planes for a y-wise one.
        repeat: u32,
    },
    /// The node of the allocating thread: `allocator`.
    Allocator,
}

/// Consecutive pages with an explicit node, where no distribution fits; overrides the rule's distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeRun {
    /// Index of the first page in the object.
    pub first: u64,
    /// Length of the run in pages.
    pub len: u64,
    /// The node of these pages.
    pub node: NodeId,
}

/// A rule of a placement.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// The objects that the rule applies to.
    pub object: Selector,
    /// How their pages are distributed.
    pub distribution: Distribution,
    /// Exceptions, ascending and disjoint.
    pub runs: Vec<NodeRun>,
    /// Pages of the object when recorded: runs apply only to objects of this size.
    pub pages: u64,
    /// Mean accesses per page of these objects, relative to the mean over the program's pages; 1 if unknown.
    pub weight: f64,
}

/// How threads are bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadBinding {
    /// The affinity's name: `compact`, `sharing-aware`.
    pub name: String,
    /// CPU of OpenMP thread (or, without OpenMP, thread ordinal) i on the target machine.
    pub cpus: Vec<CpuId>,
    /// The node of each CPU in `cpus`, used by distributions by thread.
    pub nodes: Vec<NodeId>,
}

/// The shares of accesses that stay local when the rules are applied to the recorded histogram again.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Kept {
    /// Local fraction of the mapping.
    pub mapping_local: f64,
    /// Local fraction of the rules with their runs.
    pub rules_local: f64,
    /// Local fraction of the rules without runs: what transfers to another size.
    pub transferable_local: f64,
    /// The same for other runs, if the recording tells how threads get their parts of the data there.
    pub other_runs: Option<OtherRuns>,
}

/// How threads get their parts of the data in other runs, and the local fractions of the rules there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OtherRuns {
    /// How threads get their parts.
    pub assignment: Assignment,
    /// Whether that is assumed ([`Roles::counter`](nodewise_analysis::Roles::counter)) rather than observed.
    pub assumed: bool,
    /// Local fraction with threads bound by their numbers.
    pub by_number: f64,
    /// Local fraction with threads bound by the data that they take, where `run` can do that; else as `by_number`.
    pub by_data: f64,
    /// Local fraction under first touch with threads bound by their numbers.
    pub first_touch: f64,
}

/// Rules, thread binding, and what they were made from.
#[derive(Clone, Debug, PartialEq)]
pub struct Placement {
    /// The policy, as written on the command line.
    pub policy: String,
    /// The target machine's name and number of nodes.
    pub machine: String,
    /// Number of nodes of the target machine.
    pub nodes: u32,
    /// File name of the recorded program.
    pub program: String,
    /// Number of threads of the recorded program.
    pub threads: u32,
    /// Page size of decisions, bytes.
    pub page_size: u64,
    /// The thread placement that the rules assume.
    pub binding: ThreadBinding,
    /// What to do with objects without a rule.
    pub default: Distribution,
    /// The rules; the first that matches an object applies.
    pub rules: Vec<Rule>,
    /// The local fractions that the rules keep.
    pub kept: Kept,
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FirstTouch => f.write_str("first-touch"),
            Self::Node(n) => write!(f, "node {n}"),
            Self::Interleave(nodes) => {
                let list: Vec<_> = nodes.iter().map(ToString::to_string).collect();
                write!(f, "interleave {}", list.join(","))
            }
            Self::Dealt(dealt) => dealt.fmt(f),
            Self::Block(parts) => {
                f.write_str("block")?;
                parts.iter().try_for_each(|(n, share)| write!(f, " {n}:{share}"))
            }
            Self::ByThread { repeat: 1 } => f.write_str("block by thread"),
            Self::ByThread { repeat } => write!(f, "block by thread repeat {repeat}"),
            Self::Allocator => f.write_str("allocator"),
        }
    }
}

/// A distribution that could not be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown distribution `{0}`; known: first-touch, node N, interleave N,N…, cyclic N,N… [by PAGES], skew …, prime P …, random SEED …, \
     block N:SHARE…, block by thread [repeat R], allocator"
)]
pub struct DistributionError(String);

impl FromStr for Distribution {
    type Err = DistributionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).ok_or_else(|| DistributionError(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<Distribution> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let node = |w: &str| w.parse().ok().map(NodeId);
    Some(match words.as_slice() {
        ["first-touch"] => Distribution::FirstTouch,
        ["allocator"] => Distribution::Allocator,
        ["node", n] => Distribution::Node(node(n)?),
        ["interleave", list] => Distribution::Interleave(list.split(',').map(node).collect::<Option<_>>()?),
        ["block", "by", "thread"] => Distribution::ByThread { repeat: 1 },
        ["block", "by", "thread", "repeat", r] => Distribution::ByThread {
            repeat: r.parse().ok().filter(|r| *r > 0)?,
        },
        ["block", parts @ ..] if !parts.is_empty() => {
            let part = |w: &&str| {
                let (n, share) = w.split_once(':')?;
                Some((
                    node(n)?,
                    share.parse().ok().filter(|s: &f64| *s > 0.0 && *s <= 1.0)?,
                ))
            };
            let parts: Vec<_> = parts.iter().map(part).collect::<Option<_>>()?;
            let total: f64 = parts.iter().map(|p| p.1).sum();
            ((total - 1.0).abs() < 1e-6).then_some(Distribution::Block(parts))?
        }
        dealt => Distribution::Dealt(Dealt::parse(dealt)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_distribution_is_read_back_as_written() {
        for text in [
            "first-touch",
            "node 3",
            "interleave 0,1,5",
            "cyclic 0,1 by 4",
            "skew 2,0,1",
            "prime 5 0,1,2,3 by 2",
            "random 18446744073709551615 0,3",
            "block 0:0.5 1:0.25 2:0.25",
            "block by thread",
            "block by thread repeat 64",
            "allocator",
        ] {
            assert_eq!(text.parse::<Distribution>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "",
            "node",
            "node x",
            "block",
            "block 0:0.5",
            "block by thread repeat 0",
            "block 0:2",
            "skew",
            "skew 0,1 by 0",
            "skew 0,1 by",
            "prime 4 0,1",
            "prime 3 0,1,2,3",
            "random 0,1",
            "cyclic 0,x",
        ] {
            assert!(text.parse::<Distribution>().is_err(), "{text}");
        }
    }
}

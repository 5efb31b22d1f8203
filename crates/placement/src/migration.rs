//! Online migration policies, each restricted to the observations that its implementation would have.
//!
//! A policy is asked once an interval. What it may observe is given by a type ([`HomeView`], [`AccessorView`], or the
//! whole [`Observed`]), so that a policy that models a node's own monitor cannot see more than that monitor would. The
//! controller (`nodewise-control`) decides which of the proposed moves are made.

mod adaptive;
mod carrefour;
mod counts;
mod dominant;
mod hot;
mod in_w;
mod judge;
mod mixed;
mod neighbours;
mod next_touch;
mod number;
mod out;
mod parameters;
mod rows;
mod view;

pub use adaptive::{Adaptive, Home};
pub use carrefour::Carrefour;
pub use dominant::Dominant;
pub use hot::Hot;
pub use in_w::{InW, Relative};
pub use judge::{Proposal, against_all, against_local, against_remote};
pub use mixed::{Mixed, Shared};
pub use neighbours::{Weight, Window};
pub use next_touch::NextTouch;
pub use number::Number;
pub use out::{Against, Compares, Out, Scan, Steps};
pub use rows::Rows;
pub use view::{
    AccessorPolicy, AccessorView, ByAccessor, ByHome, HomePolicy, HomeView, Propose, RemoteOnly, Residents,
    Visibility, Whole, WholePolicy, WithLocal,
};

use self::parameters::Parameters;
use crate::PolicyError;
use crate::tier::Tier;
use nodewise_machine::{Machine, NodeId};
use nodewise_profile::PageNumber;
use std::ops::Range;

/// The home of each page, and the accesses to it from each node in a window of time. Pages ascend.
pub trait Observed: Sync {
    /// Nodes of the machine.
    fn nodes(&self) -> usize;

    /// Number of observed pages.
    fn len(&self) -> usize;

    /// No page was observed.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first base page of the page at `index`, whose size is that of decisions.
    fn page(&self, index: usize) -> PageNumber;

    /// The node that the page is on.
    fn home(&self, index: usize) -> NodeId;

    /// Accesses (or samples) from each node, with older ones discounted; `counts` has one entry per node.
    fn counts(&self, index: usize, counts: &mut [u64]);

    /// Reads consecutive pages, at the cost of one call.
    fn read(&self, pages: Range<usize>, rows: &mut Rows) {
        rows.fill(self, pages);
    }

    /// Pages that a node has free memory for, if that is known.
    fn free(&self, _node: NodeId) -> Option<u64> {
        None
    }

    /// Whether a move of the page now would be held back, because it moved or failed to move shortly before.
    fn in_cooldown(&self, _index: usize) -> bool {
        false
    }

    /// The node that touched it first in the newest interval, if that is known.
    fn first(&self, _index: usize) -> Option<NodeId> {
        None
    }

    /// Base-2 logarithm of the decision's page size in base pages: 9 for 2 MiB.
    fn page_shift(&self) -> u32 {
        0
    }

    /// Whether counts are all accesses; otherwise they are samples.
    fn exact(&self) -> bool {
        false
    }
}

/// Why a page should move: the counts that the decision is based on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reason {
    /// Accesses from the target node; weighted sums if the policy includes neighbouring pages.
    pub to_count: f64,
    /// Accesses from its home; `None` where the policy cannot see them.
    pub home_count: Option<f64>,
    /// The value that `to_count` had to exceed.
    pub count_threshold: f64,
    /// All accesses to this page that the policy knew: the sample size.
    pub evidence: f64,
    /// The reason is not that the target node uses the page more: the page is shared and spread, or a recorded move is
    /// repeated.
    pub regardless: bool,
    /// The index of the page that leaves for this one, or comes for it: both move, or neither.
    pub partner: Option<usize>,
}

impl Reason {
    /// The same reason with counts divided by `scale`.
    #[inline]
    fn per(self, scale: f64) -> Self {
        Self {
            to_count: self.to_count / scale,
            home_count: self.home_count.map(|c| c / scale),
            count_threshold: self.count_threshold / scale,
            evidence: self.evidence / scale,
            ..self
        }
    }
}

/// A proposed move of one page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Move {
    /// Index of the page among those observed.
    pub index: usize,
    /// Number of the page's first base page.
    pub page: PageNumber,
    /// The node that the page is on.
    pub from: NodeId,
    /// The target node, different from `from`.
    pub to: NodeId,
    /// The evidence that the policy decided by.
    pub reason: Reason,
}

/// Proposes moves based on observed accesses.
pub trait MigrationPolicy: Send {
    /// The name as written, parameters included: `out-w:threshold=3`.
    fn name(&self) -> String;

    /// The proposals by ascending index. A page occurs at most once, and never with its current node as target.
    fn decide(&mut self, observed: &dyn Observed) -> Vec<Move>;

    /// The memory that it gives to the pages with the most accesses from all nodes, if it ranks pages. A policy that does must
    /// see pages without accesses as well, and the counts of a page outlive its moves.
    fn tier(&self) -> Option<&Tier> {
        None
    }

    /// Messages between nodes that this many moves cost, beyond the moves themselves.
    fn messages(&self, _nodes: usize, _moves: usize) -> u64 {
        0
    }
}

/// A policy, or the error in its parameters.
type Made = Result<Box<dyn MigrationPolicy>, PolicyError>;

/// One line of the registry.
#[derive(Clone, Copy)]
pub struct MigrationPolicyKind {
    /// The word before the first colon.
    pub name: &'static str,
    /// What it does, in a clause.
    pub summary: &'static str,
    /// Its parameters with their defaults: `threshold=2:window=8`.
    pub parameters: &'static str,
    make: fn(&mut Parameters<'_>, &Machine) -> Made,
}

impl MigrationPolicyKind {
    /// Whether its name suffices; otherwise nodes must be given as well.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        !self.parameters.starts_with("NODES")
    }
}

macro_rules! registry {
    ($($name:literal $parameters:literal $summary:literal => $make:expr;)*) => {
        /// Every migration policy that has a name, in the order reports list them.
        pub const MIGRATION_POLICIES: &[MigrationPolicyKind] = &[$(MigrationPolicyKind {
            name: $name, summary: $summary, parameters: $parameters, make: $make,
        }),*];
    };
}

registry! {
    "out-u" "threshold=2:against=page" "each home sends a page to the remote node that stands out among the remote ones (ARS)"
        => out::out_u;
    "out-w" "threshold=2:window=8:weight=linear:against=page" "out-u by a page and its neighbours on the same home (ARS)"
        => out::out_w;
    "out-u-local" "threshold=2" "each home sends a page to a node that uses it more than the home does (ARS)"
        => out::out_u_local;
    "out-w-local" "threshold=2:window=8:weight=linear" "out-u-local by a page and its neighbours on the same home (ARS)"
        => out::out_w_local;
    "in-w" "threshold=2:window=8:weight=linear:fixed=no" "each node fetches remote pages that it uses more than others (ARS)"
        => in_w::make;
    "next-touch" "" "to the node that touches the page first in an interval" => next_touch::make;
    "dominant" "hysteresis=0.5" "to the node with the most accesses, if it has clearly more than the home"
        => dominant::make;
    "carrefour" "local=0.8:imbalance=0.35" "pages of one node to it, those of several spread, while either is needed"
        => carrefour::make;
    "mixed" "0.9:hysteresis=0.05:shared=interleave" "exclusive pages to their node, shared ones interleaved (Diener)"
        => mixed::make;
    "adaptive" "out-w:threshold=2:least=1.5:window=8:weight=linear" "out-w or out-u with a threshold that follows what comes back"
        => adaptive::make;
    "hot" "NODES[@SIZE]:hysteresis=0.5" "the pages with the most accesses in fast memory of limited size"
        => hot::make;
}

/// The prefix of an online policy's name where a page policy would be possible as well: `balance:out-w`.
pub const BALANCE: &str = "balance:";

/// The policy that `text` names: `out-w`, `balance:out-w:threshold=3`.
///
/// ```
/// # use nodewise_machine::Machine;
/// # use nodewise_placement::migration_policy;
/// let machine = Machine::named("machine-a")?;
/// assert_eq!(migration_policy("balance:out-w:threshold=3", &machine)?.name(), "out-w:threshold=3");
/// let error = migration_policy("out-w:treshold=3", &machine).err().unwrap();
/// assert!(error.to_string().contains("unknown parameter"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
/// # Errors
/// One line: the unknown name with the known ones, or what is wrong with a parameter.
pub fn migration_policy(text: &str, machine: &Machine) -> Result<Box<dyn MigrationPolicy>, PolicyError> {
    let bare = text.strip_prefix(BALANCE).unwrap_or(text);
    let (name, rest) = bare.split_once(':').map_or((bare, None), |(n, r)| (n, Some(r)));
    let names = MIGRATION_POLICIES.iter().map(|k| k.name);
    let kind = nodewise_input::resolve(name, names.clone()).map_err(|hint| {
        let known: Vec<_> = names.collect();
        PolicyError(format!(
            "unknown online policy `{text}`{hint}; known: {}",
            known.join(", ")
        ))
    })?;
    let kind = MIGRATION_POLICIES.iter().find(|k| k.name == kind);
    let kind = kind.ok_or_else(|| PolicyError(format!("unknown online policy `{text}`")))?;
    let mut parameters = Parameters::new(kind.name, kind.parameters, rest);
    let policy = (kind.make)(&mut parameters, machine)?;
    parameters.finish()?;
    Ok(policy)
}

#[cfg(test)]
mod definitions;
#[cfg(test)]
mod properties;

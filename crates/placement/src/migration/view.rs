//! What a policy sees, as types: a home node's monitor, an accessing node's, or everything.
//!
//! An adapter for each makes a [`MigrationPolicy`] of what decides behind it.

use super::{Judgement, MigrationPolicy, Move, Observed, Reason};
use nodewise_machine::NodeId;
use nodewise_profile::PageNumber;
use std::marker::PhantomData;

/// Tells that page `i` of a view should go to a node.
pub type Go<'a> = dyn FnMut(usize, NodeId, Reason) + 'a;

/// How much a home's monitor shows of each page.
pub trait Sight: Send + 'static {
    /// Whether the home's own accesses are among it.
    const LOCAL: bool;
}

/// Traffic from outside only: what ARS's monitor on the link sees.
#[derive(Clone, Copy, Debug)]
pub struct RemoteOnly;

/// The home's own accesses too: ARS's `-local` variants.
#[derive(Clone, Copy, Debug)]
pub struct LocalToo;

impl Sight for RemoteOnly {
    const LOCAL: bool = false;
}

impl Sight for LocalToo {
    const LOCAL: bool = true;
}

/// One home node's pages, ascending.
pub struct HomeView<'a, S> {
    home: NodeId,
    indices: &'a [u32],
    observed: &'a dyn Observed,
    sight: PhantomData<S>,
}

impl<S: Sight> HomeView<'_, S> {
    /// Whose monitor this is.
    #[must_use]
    pub fn home(&self) -> NodeId {
        self.home
    }

    /// Nodes of the machine.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.observed.nodes()
    }

    /// Its pages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.indices.len()
    }

    /// It has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.indices.is_empty()
    }

    /// Page `i` of this view.
    #[must_use]
    pub fn page(&self, i: usize) -> PageNumber {
        self.observed.page(self.indices[i] as usize)
    }

    /// Its number in units of the decision's page size: neighbours differ by one.
    #[must_use]
    pub fn number(&self, i: usize) -> u64 {
        self.page(i).0 >> self.observed.page_shift()
    }

    /// Accesses to page `i` by node; the home's own read 0 unless this sight has them.
    pub fn counts(&self, i: usize, counts: &mut [u64]) {
        self.observed.counts(self.indices[i] as usize, counts);
        if !S::LOCAL {
            counts[self.home.index()] = 0;
        }
    }
}

/// Decides for one home node at a time about pages that should leave it.
pub trait HomePolicy: Send {
    /// What its monitor shows.
    type Sight: Sight;
    /// What one home remembers, of its pages and its past; nobody else's.
    type Home: Send;

    /// A home that has not decided yet.
    fn home(&self, nodes: usize) -> Self::Home;

    /// An interval is to be judged.
    fn begin(&self, home: &mut Self::Home, view: &HomeView<'_, Self::Sight>);

    /// Whether page `i` should leave; asked once for each page of the view, ascending.
    fn judge(&self, home: &mut Self::Home, view: &HomeView<'_, Self::Sight>, i: usize) -> Judgement;
}

/// One node's accesses to pages that are elsewhere, ascending by page.
pub struct AccessorView<'a> {
    node: NodeId,
    cells: &'a [(u32, u64)],
    remote_pages: usize,
    observed: &'a dyn Observed,
}

impl AccessorView<'_> {
    /// Whose monitor this is.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Remote pages that it accesses.
    #[must_use]
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// There is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Remote pages, those it does not access included.
    #[must_use]
    pub fn remote_pages(&self) -> usize {
        self.remote_pages
    }

    /// Number of page `i` of this view, in units of the decision's page size.
    #[must_use]
    pub fn number(&self, i: usize) -> u64 {
        self.observed.page(self.cells[i].0 as usize).0 >> self.observed.page_shift()
    }

    /// Its own accesses to page `i`.
    #[must_use]
    pub fn count(&self, i: usize) -> u64 {
        self.cells[i].1
    }
}

/// Decides for one accessing node at a time about pages that should come to it.
pub trait AccessorPolicy: Send {
    /// What one node makes of its accesses.
    type Accessor;

    /// An interval is to be judged.
    fn begin(&self, view: &AccessorView<'_>) -> Self::Accessor;

    /// Whether page `i` of the view should come, and why.
    fn judge(&self, accessor: &Self::Accessor, view: &AccessorView<'_>, i: usize) -> Option<Reason>;
}

/// Decides from everything.
pub trait WholePolicy: Send {
    /// Calls `go` for pages that should move, by ascending index.
    fn decide(&mut self, observed: &dyn Observed, go: &mut Go<'_>);
}

/// All homes deciding, each by itself.
pub struct ByHome<P: HomePolicy> {
    name: String,
    policy: P,
    homes: Vec<P::Home>,
}

impl<P: HomePolicy> ByHome<P> {
    /// Under a name.
    #[must_use]
    pub fn new(name: String, policy: P) -> Self {
        Self {
            name,
            policy,
            homes: Vec::new(),
        }
    }

    /// What each home remembers, once it has decided.
    #[must_use]
    pub fn homes(&self) -> &[P::Home] {
        &self.homes
    }
}

/// All accessing nodes deciding, each by itself, in ascending order; the first that wants a page gets
/// it, and the others are told.
#[derive(Clone, Debug)]
pub struct ByAccessor<P> {
    /// As written.
    pub name: String,
    /// What each node does.
    pub policy: P,
}

/// One decision over all.
#[derive(Clone, Debug)]
pub struct Whole<P> {
    /// As written.
    pub name: String,
    /// What is done.
    pub policy: P,
}

fn proposal(observed: &dyn Observed, index: usize, to: NodeId, reason: Reason) -> Move {
    Move {
        index,
        page: observed.page(index),
        from: observed.home(index),
        to,
        reason,
    }
}

impl<P: HomePolicy> MigrationPolicy for ByHome<P> {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn decide(&mut self, observed: &dyn Observed) -> Vec<Move> {
        let nodes = observed.nodes();
        while self.homes.len() < nodes {
            self.homes.push(self.policy.home(nodes));
        }
        let pages = pages_by_home(observed);
        let view = |home: usize| HomeView {
            home: NodeId(home as u32),
            indices: &pages[home],
            observed,
            sight: PhantomData,
        };
        let views: Vec<HomeView<'_, P::Sight>> = (0..nodes).map(view).collect();
        for (home, view) in self.homes.iter_mut().zip(&views) {
            self.policy.begin(home, view);
        }
        let (mut moves, mut next) = (Vec::new(), vec![0; nodes]);
        for index in 0..observed.len() {
            let home = observed.home(index).index();
            let judgement = self.policy.judge(&mut self.homes[home], &views[home], next[home]);
            next[home] += 1;
            if let Some((to, reason)) = judgement {
                moves.push(proposal(observed, index, to, reason));
            }
        }
        moves
    }
}

/// The pages of each home, by index.
fn pages_by_home(observed: &dyn Observed) -> Vec<Vec<u32>> {
    let mut pages = vec![Vec::new(); observed.nodes()];
    for index in 0..observed.len() {
        pages[observed.home(index).index()].push(index as u32);
    }
    pages
}

impl<P: AccessorPolicy> MigrationPolicy for ByAccessor<P> {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn decide(&mut self, observed: &dyn Observed) -> Vec<Move> {
        let (cells, at_home) = outgoing(observed);
        let view = |node: usize| AccessorView {
            node: NodeId(node as u32),
            cells: &cells[node],
            remote_pages: observed.len() - at_home[node],
            observed,
        };
        let views: Vec<AccessorView<'_>> = (0..cells.len()).map(view).collect();
        let accessors: Vec<_> = views.iter().map(|v| self.policy.begin(v)).collect();
        let (mut moves, mut next) = (Vec::new(), vec![0; views.len()]);
        for index in 0..observed.len() {
            let mut first = None;
            for ((view, accessor), next) in views.iter().zip(&accessors).zip(&mut next) {
                if view.cells.get(*next).is_some_and(|c| c.0 as usize == index) {
                    let wants = |i| self.policy.judge(accessor, view, i).map(|why| (view.node, why));
                    first = first.or_else(|| wants(*next));
                    *next += 1;
                }
            }
            moves.extend(first.map(|(to, why)| proposal(observed, index, to, why)));
        }
        moves
    }

    fn messages(&self, nodes: usize, moves: usize) -> u64 {
        moves as u64 * (nodes as u64).saturating_sub(1)
    }
}

/// Of each node: its accesses to pages elsewhere, and how many pages it has itself.
fn outgoing(observed: &dyn Observed) -> (Vec<Vec<(u32, u64)>>, Vec<usize>) {
    let nodes = observed.nodes();
    let (mut cells, mut at_home) = (vec![Vec::new(); nodes], vec![0; nodes]);
    let mut counts = vec![0; nodes];
    for index in 0..observed.len() {
        let home = observed.home(index).index();
        at_home[home] += 1;
        observed.counts(index, &mut counts);
        counts[home] = 0;
        let accessing = counts.iter().zip(&mut cells).filter(|(count, _)| **count > 0);
        accessing.for_each(|(count, cells)| cells.push((index as u32, *count)));
    }
    (cells, at_home)
}

impl<P: WholePolicy> MigrationPolicy for Whole<P> {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn decide(&mut self, observed: &dyn Observed) -> Vec<Move> {
        let mut moves = Vec::new();
        let mut go = |index, to, why| moves.push(proposal(observed, index, to, why));
        self.policy.decide(observed, &mut go);
        moves
    }
}

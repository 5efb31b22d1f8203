//! What a policy sees, as types: a home node's monitor, an accessing node's, or everything.
//!
//! An adapter for each makes a [`MigrationPolicy`] of what decides behind it.

use super::{Judgement, MigrationPolicy, Move, Observed, Reason};
use nodewise_machine::NodeId;
use nodewise_profile::PageNumber;
use rayon::prelude::*;
use std::marker::PhantomData;
use std::ops::Range;

/// Tells that page `i` of a view should go to a node.
pub type Go<'a> = dyn FnMut(usize, NodeId, Reason) + 'a;

/// How much a home's monitor shows of each page.
pub trait Sight: Send + Sync + 'static {
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

/// Pages of one home node, ascending: a stretch of them, with all that a judgement reaches to.
pub struct HomeView<'a, S> {
    home: NodeId,
    indices: &'a [u32],
    observed: &'a dyn Observed,
    shift: u32,
    sight: PhantomData<S>,
}

impl<S: Sight> HomeView<'_, S> {
    /// Whose monitor this is.
    #[must_use]
    pub fn home(&self) -> NodeId {
        self.home
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

    /// Number of page `i` of this view, in units of the decision's page size: neighbours differ by one.
    #[must_use]
    pub fn number(&self, i: usize) -> u64 {
        self.observed.page(self.indices[i] as usize).0 >> self.shift
    }

    /// Accesses to page `i` by node; the home's own read 0 unless this sight has them.
    pub fn counts(&self, i: usize, counts: &mut [u64]) {
        self.observed.counts(self.indices[i] as usize, counts);
        if !S::LOCAL {
            counts[self.home.index()] = 0;
        }
    }
}

/// Which pages are on one home node, for a home that looks for some of them in ascending order.
pub struct Residents<'a> {
    home: NodeId,
    observed: &'a dyn Observed,
    /// Pages before this index are before the one asked for last.
    at: usize,
}

impl Residents<'_> {
    /// What a remote node accesses a page of this home on average: over all of its pages and over all
    /// other nodes.
    #[must_use]
    pub fn remote_average(&self) -> f64 {
        let mut counts = vec![0; self.observed.nodes()];
        let (mut pages, mut sum) = (0u64, 0);
        for index in (0..self.observed.len()).filter(|i| self.observed.home(*i) == self.home) {
            self.observed.counts(index, &mut counts);
            counts[self.home.index()] = 0;
            pages += 1;
            sum += counts.iter().sum::<u64>();
        }
        let remote = counts.len().saturating_sub(1) as u64;
        sum as f64 / (pages * remote).max(1) as f64
    }

    /// Whether a page is here; none that was asked for before is behind it.
    pub fn have(&mut self, page: PageNumber) -> bool {
        let (observed, len) = (self.observed, self.observed.len());
        let mut step = 1;
        while self.at + step < len && observed.page(self.at + step) < page {
            self.at += step;
            step *= 2;
        }
        let (mut low, mut high) = (self.at, (self.at + step).min(len));
        while low < high {
            let middle = low.midpoint(high);
            if observed.page(middle) < page {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        self.at = low;
        low < len && observed.page(low) == page && observed.home(low) == self.home
    }
}

/// Decides for one home node at a time about pages that should leave it.
pub trait HomePolicy: Send + Sync {
    /// What its monitor shows.
    type Sight: Sight;
    /// What one home remembers from interval to interval; nobody else's.
    type Home: Send + Sync;
    /// What a home keeps while it goes through a stretch of its pages.
    type Walk;

    /// A home that has not decided yet.
    fn home(&self) -> Self::Home;

    /// Pages to each side that a judgement looks at besides the page itself.
    fn reach(&self) -> usize;

    /// An interval is to be judged.
    fn begin(&self, _home: &mut Self::Home, _residents: &mut Residents<'_>) {}

    /// Before the first page of a stretch, on a machine with so many nodes.
    fn walk(&self, home: &Self::Home, nodes: usize) -> Self::Walk;

    /// Whether page `i` should leave; asked once for each page of the view, ascending.
    fn judge(&self, walk: &mut Self::Walk, view: &HomeView<'_, Self::Sight>, i: usize) -> Judgement;

    /// A page is proposed to leave this home; they come in ascending order.
    fn sends(&self, _home: &mut Self::Home, _page: PageNumber) {}
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
pub trait AccessorPolicy: Send + Sync {
    /// What one node makes of its accesses.
    type Accessor: Send + Sync;

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
    /// Pages that are judged together.
    pub(super) stretch: usize,
}

impl<P: HomePolicy> ByHome<P> {
    /// Under a name.
    #[must_use]
    pub fn new(name: String, policy: P) -> Self {
        Self {
            name,
            policy,
            homes: Vec::new(),
            stretch: STRETCH,
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

/// Pages that are judged together; fewer are not worth a second CPU.
const STRETCH: usize = 1 << 14;

impl<P: HomePolicy> MigrationPolicy for ByHome<P> {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn decide(&mut self, observed: &dyn Observed) -> Vec<Move> {
        let nodes = observed.nodes();
        self.homes.resize_with(nodes, || self.policy.home());
        for (home, node) in self.homes.iter_mut().zip((0..).map(NodeId)) {
            let mut residents = Residents {
                home: node,
                observed,
                at: 0,
            };
            self.policy.begin(home, &mut residents);
        }
        let moves = by_stretches(observed.len(), self.stretch, |pages| self.judged(observed, pages));
        for each in &moves {
            self.policy.sends(&mut self.homes[each.from.index()], each.page);
        }
        moves
    }
}

impl<P: HomePolicy> ByHome<P> {
    /// What homes say of these pages, each from its own among them and those within reach.
    fn judged(&self, observed: &dyn Observed, pages: Range<usize>) -> Vec<Move> {
        let reach = self.policy.reach();
        let around = pages.start.saturating_sub(reach)..(pages.end + reach).min(observed.len());
        let by_home = pages_by_home(observed, around.clone());
        let view = |home: usize| HomeView {
            home: NodeId(home as u32),
            indices: &by_home[home],
            observed,
            shift: observed.page_shift(),
            sight: PhantomData,
        };
        let walk = |home| (view(home), self.policy.walk(&self.homes[home], by_home.len()), 0);
        let mut walks: Vec<_> = (0..by_home.len()).map(walk).collect();
        let mut moves = Vec::new();
        for index in around.start..pages.end {
            let (view, walk, next) = &mut walks[observed.home(index).index()];
            let judgement = self.policy.judge(walk, view, *next);
            *next += 1;
            if let Some((to, reason)) = judgement.filter(|_| index >= pages.start) {
                moves.push(proposal(observed, index, to, reason));
            }
        }
        moves
    }
}

/// `each` of consecutive stretches of so many pages, side by side where there are several.
fn by_stretches(pages: usize, size: usize, each: impl Fn(Range<usize>) -> Vec<Move> + Sync) -> Vec<Move> {
    let stretch = |i: usize| each(i * size..((i + 1) * size).min(pages));
    let mut stretches: Vec<Vec<Move>> = match pages.div_ceil(size) {
        1 => return stretch(0),
        stretches => (0..stretches).into_par_iter().map(stretch).collect(),
    };
    let mut moves = Vec::with_capacity(stretches.iter().map(Vec::len).sum());
    stretches.iter_mut().for_each(|s| moves.append(s));
    moves
}

/// The pages of each home among these, by index.
fn pages_by_home(observed: &dyn Observed, among: Range<usize>) -> Vec<Vec<u32>> {
    let mut pages = vec![Vec::new(); observed.nodes()];
    for index in among {
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
        let accessors: Vec<_> = views.par_iter().map(|v| self.policy.begin(v)).collect();
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

//! Types that restrict what a migration policy observes: the monitor of a home node, that of an accessing node, or
//! everything.
//!
//! An adapter for each turns the restricted policy into a [`MigrationPolicy`].

use super::number::bits;
use super::rows::{Rows, blocks};
use super::{MigrationPolicy, Move, Number, Observed, Proposal, Reason};
use nodewise_machine::NodeId;
use nodewise_profile::PageNumber;
use rayon::prelude::*;
use std::cell::OnceCell;
use std::collections::HashMap;
use std::marker::PhantomData;
use std::ops::Range;

/// Proposes that page `i` of a view moves to a node.
pub type Propose<'a> = dyn FnMut(usize, NodeId, Reason) + 'a;

/// What a home's monitor shows of each page.
pub trait Visibility: Send + Sync + 'static {
    /// Whether it shows the home's own accesses.
    const LOCAL: bool;
}

/// Only accesses from other nodes, as ARS's monitor on the interconnect sees.
#[derive(Clone, Copy, Debug)]
pub struct RemoteOnly;

/// The home's own accesses as well: ARS's `-local` variants.
#[derive(Clone, Copy, Debug)]
pub struct WithLocal;

impl Visibility for RemoteOnly {
    const LOCAL: bool = false;
}

impl Visibility for WithLocal {
    const LOCAL: bool = true;
}

/// Consecutive pages of one home node, ascending, with the neighbours that a judgement needs.
pub struct HomeView<'a, S> {
    home: NodeId,
    /// Indices, in `rows`, of the home's pages.
    indices: &'a [u32],
    rows: &'a Rows,
    shift: u32,
    bits: u32,
    visibility: PhantomData<S>,
}

impl<S: Visibility> HomeView<'_, S> {
    /// The home node whose monitor this is.
    #[must_use]
    pub fn home(&self) -> NodeId {
        self.home
    }

    /// Number of pages in the view.
    #[must_use]
    pub fn len(&self) -> usize {
        self.indices.len()
    }

    /// Whether the view has no pages.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.indices.is_empty()
    }

    /// Number of page `i` of this view, in units of the decision's page size; adjacent pages differ by one.
    #[must_use]
    pub fn number(&self, i: usize) -> u64 {
        self.rows.pages[self.indices[i] as usize].0 >> self.shift
    }

    /// Nodes of the machine.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.rows.nodes
    }

    /// Accesses to page `i` from nodes `first..`, for up to `LANES` nodes. Returns false, and writes nothing, if there
    /// are none. The home's own accesses read as 0 unless the visibility includes them.
    #[inline]
    pub fn counts<N: Number, const LANES: usize>(
        &self,
        i: usize,
        first: usize,
        counts: &mut [N; LANES],
    ) -> bool {
        let seen = &self.rows.row(self.indices[i] as usize)[first..];
        let Some(seen) = seen.first_chunk::<LANES>() else {
            counts.iter_mut().zip(seen).for_each(|(to, c)| *to = N::of(*c));
            return seen.iter().any(|c| *c > 0);
        };
        let any = seen.iter().fold(0, |any, c| any | c) > 0;
        if any {
            *counts = seen.map(N::of);
        }
        any
    }

    /// Upper bound of the number of bits of counts. It covers neighbouring pages too, and serves only for choosing a
    /// [`Number`].
    pub(super) fn bits(&self) -> u32 {
        self.bits
    }
}

/// Tells which pages are on one home node, for queries in ascending order.
pub struct Residents<'a> {
    home: NodeId,
    observed: &'a dyn Observed,
    /// Pages before this index are before the last queried one.
    at: usize,
    /// Totals of each home, computed at the first query.
    totals: &'a OnceCell<Vec<(u64, u64)>>,
}

/// For each home: the number of its pages, and of remote accesses to them.
fn totals(observed: &dyn Observed) -> Vec<(u64, u64)> {
    let mut totals = vec![(0, 0); observed.nodes()];
    blocks(observed, |rows| {
        for (i, home) in rows.homes.iter().enumerate() {
            let (row, total) = (rows.row(i), &mut totals[home.index()]);
            total.0 += 1;
            total.1 += row.iter().sum::<u64>() - row[home.index()];
        }
    });
    totals
}

impl Residents<'_> {
    /// The average number of accesses by a remote node to a page of this home, over all of its pages and all other
    /// nodes.
    #[must_use]
    pub fn remote_average(&self) -> f64 {
        let totals = self.totals.get_or_init(|| totals(self.observed));
        let (pages, sum) = totals[self.home.index()];
        let remote = totals.len().saturating_sub(1) as u64;
        sum as f64 / (pages * remote).max(1) as f64
    }

    /// Advances to a page, which may not be before that of the last call. Returns whether it is on this home.
    pub fn seek(&mut self, page: PageNumber) -> bool {
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

/// Decides separately for each home node which of its pages should leave.
pub trait HomePolicy: Send + Sync {
    /// What the home's monitor shows.
    type Visibility: Visibility;
    /// State of one home between intervals; not shared with others.
    type Home: Send + Sync;
    /// State of one home while it goes through consecutive pages.
    type Scan;

    /// The initial state of a home.
    fn home(&self) -> Self::Home;

    /// Number of neighbours to each side that a judgement needs.
    fn reach(&self) -> usize;

    /// Called at the start of an interval.
    fn begin(&self, _home: &mut Self::Home, _residents: &mut Residents<'_>) {}

    /// Called before the first of some consecutive pages.
    fn scan(&self, home: &Self::Home, view: &HomeView<'_, Self::Visibility>) -> Self::Scan;

    /// Whether page `i` should leave; called once for each page of the view, in ascending order.
    fn judge(&self, scan: &mut Self::Scan, view: &HomeView<'_, Self::Visibility>, i: usize) -> Proposal;

    /// Called for each page that is proposed to leave this home, in ascending order.
    fn sends(&self, _home: &mut Self::Home, _page: PageNumber) {}
}

/// One node's accesses to pages on other nodes, ascending by page.
pub struct AccessorView<'a> {
    node: NodeId,
    cells: &'a [Cell],
    remote_pages: usize,
    bits: u32,
    shift: u32,
}

/// One node's accesses to one page.
#[derive(Clone, Copy)]
struct Cell {
    page: PageNumber,
    count: u64,
    index: u32,
}

impl AccessorView<'_> {
    /// The accessing node whose monitor this is.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Number of remote pages that the node accesses.
    #[must_use]
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Whether the node accesses no remote page.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Number of remote pages, including those that the node does not access.
    #[must_use]
    pub fn remote_pages(&self) -> usize {
        self.remote_pages
    }

    /// Number of page `i` of this view, in units of the decision's page size.
    #[must_use]
    pub fn number(&self, i: usize) -> u64 {
        self.cells[i].page.0 >> self.shift
    }

    /// The node's accesses to page `i`.
    #[must_use]
    pub fn count(&self, i: usize) -> u64 {
        self.cells[i].count
    }

    /// Upper bound of the number of bits of counts.
    pub(super) fn bits(&self) -> u32 {
        self.bits
    }
}

/// Decides separately for each accessing node which pages should come to it.
pub trait AccessorPolicy: Send + Sync {
    /// A node's accesses, prepared for judgement.
    type Accessor: Send + Sync;

    /// Called at the start of an interval.
    fn begin(&self, view: &AccessorView<'_>) -> Self::Accessor;

    /// The reason if page `i` of the view should come to the node.
    fn judge(&self, accessor: &Self::Accessor, view: &AccessorView<'_>, i: usize) -> Option<Reason>;
}

/// A policy that sees the accesses of all nodes to all pages.
pub trait WholePolicy: Send {
    /// Calls `go` for pages that should move, by ascending index.
    fn decide(&mut self, observed: &dyn Observed, go: &mut Propose<'_>);
}

/// Adapter for a [`HomePolicy`]: every home decides for itself.
pub struct ByHome<P: HomePolicy> {
    name: String,
    policy: P,
    homes: Vec<P::Home>,
    /// Number of pages that are judged in one piece.
    pub(super) chunk_pages: usize,
}

impl<P: HomePolicy> ByHome<P> {
    /// Wraps a policy, under the name that reports show.
    #[must_use]
    pub fn new(name: String, policy: P) -> Self {
        Self {
            name,
            chunk_pages: CHUNK_PAGES.max(4 * policy.reach()),
            policy,
            homes: Vec::new(),
        }
    }

    /// The state of each home, once there was a decision.
    #[must_use]
    pub fn homes(&self) -> &[P::Home] {
        &self.homes
    }
}

/// Adapter for an [`AccessorPolicy`]: every accessing node decides for itself, in ascending order. The first that wants
/// a page gets it; the later ones do not.
#[derive(Clone, Debug)]
pub struct ByAccessor<P> {
    /// The policy as written on the command line.
    pub name: String,
    /// The policy that decides for each node.
    pub policy: P,
    /// If set, a page stays on the node that fetched it, as long as it is observed there: the last node of each page.
    /// `None`: other nodes may fetch it again.
    pub fixed: Option<HashMap<PageNumber, NodeId>>,
}

impl<P> ByAccessor<P> {
    /// Wraps a policy, under the name that reports show; pages may be fetched again.
    #[must_use]
    pub fn new(name: String, policy: P) -> Self {
        Self {
            name,
            policy,
            fixed: None,
        }
    }
}

/// Adapter for a [`WholePolicy`], with one decision for all pages.
#[derive(Clone, Debug)]
pub struct Whole<P> {
    /// The policy as written on the command line.
    pub name: String,
    /// The policy that decides.
    pub policy: P,
}

/// The move of page `i` of these rows.
fn proposal(rows: &Rows, i: usize, to: NodeId, reason: Reason) -> Move {
    Move {
        index: rows.start + i,
        page: rows.pages[i],
        from: rows.homes[i],
        to,
        reason,
    }
}

/// Number of pages that are judged in one piece; fewer are not worth another thread.
const CHUNK_PAGES: usize = 1 << 11;

impl<P: HomePolicy> MigrationPolicy for ByHome<P> {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn decide(&mut self, observed: &dyn Observed) -> Vec<Move> {
        let nodes = observed.nodes();
        self.homes.resize_with(nodes, || self.policy.home());
        let totals = OnceCell::new();
        for (home, node) in self.homes.iter_mut().zip((0..).map(NodeId)) {
            let mut residents = Residents {
                home: node,
                observed,
                at: 0,
                totals: &totals,
            };
            self.policy.begin(home, &mut residents);
        }
        let moves = in_chunks(observed.len(), self.chunk_pages, |pages, worker| {
            self.judge(observed, pages, worker);
        });
        for each in &moves {
            self.policy.sends(&mut self.homes[each.from.index()], each.page);
        }
        moves
    }
}

impl<P: HomePolicy> ByHome<P> {
    /// Collects the judgements of all homes on these pages; each home sees its own pages among them and within reach.
    fn judge(&self, observed: &dyn Observed, pages: Range<usize>, worker: &mut Worker) {
        let Worker { rows, by_home, moves } = worker;
        let reach = self.policy.reach();
        let around = pages.start.saturating_sub(reach)..(pages.end + reach).min(observed.len());
        observed.read(around, rows);
        list_by_home(rows, by_home);
        if !P::Visibility::LOCAL {
            rows.hide_local();
        }
        let bits = bits(&rows.counts);
        let scan = |home: usize| {
            let view = HomeView {
                home: NodeId(home as u32),
                indices: &by_home[home],
                rows,
                shift: observed.page_shift(),
                bits,
                visibility: PhantomData,
            };
            let scan = self.policy.scan(&self.homes[home], &view);
            (view, scan, 0)
        };
        let mut walks: Vec<_> = (0..by_home.len()).map(scan).collect();
        for (i, home) in rows.homes[..pages.end - rows.start].iter().enumerate() {
            let (view, scan, next) = &mut walks[home.index()];
            let proposed = self.policy.judge(scan, view, *next);
            *next += 1;
            if let Some((to, reason)) = proposed.filter(|_| rows.start + i >= pages.start) {
                moves.push(proposal(rows, i, to, reason));
            }
        }
    }
}

/// Buffers of one worker thread, reused from piece to piece.
#[derive(Default)]
struct Worker {
    rows: Rows,
    by_home: Vec<Vec<u32>>,
    moves: Vec<Move>,
}

/// Calls `each` for consecutive pieces of `size` pages, in parallel if there are several CPUs, and collects the moves.
fn in_chunks(pages: usize, size: usize, each: impl Fn(Range<usize>, &mut Worker) + Sync) -> Vec<Move> {
    let chunks = pages.div_ceil(size);
    let part = |i: usize| i * size..((i + 1) * size).min(pages);
    if chunks == 1 || rayon::current_num_threads() == 1 {
        let mut worker = Worker::default();
        (0..chunks).for_each(|i| each(part(i), &mut worker));
        return worker.moves;
    }
    let most = CHUNKS_PER_WORKER * rayon::current_num_threads();
    let mut workers: Vec<Worker> = (0..chunks.min(most)).map(|_| Worker::default()).collect();
    let mut moves = Vec::new();
    for done in (0..chunks).step_by(most) {
        let busy = workers.par_iter_mut().take(chunks - done).enumerate();
        busy.for_each(|(i, worker)| each(part(done + i), worker));
        workers
            .iter_mut()
            .for_each(|worker| moves.append(&mut worker.moves));
    }
    moves
}

/// Number of pieces per worker between two collections of moves.
const CHUNKS_PER_WORKER: usize = 4;

/// Lists the indices of each home's pages.
fn list_by_home(rows: &Rows, by_home: &mut Vec<Vec<u32>>) {
    by_home.resize_with(rows.nodes, Vec::new);
    by_home.iter_mut().for_each(Vec::clear);
    for (i, home) in rows.homes.iter().enumerate() {
        by_home[home.index()].push(i as u32);
    }
}

impl<P: AccessorPolicy> MigrationPolicy for ByAccessor<P> {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn decide(&mut self, observed: &dyn Observed) -> Vec<Move> {
        let (cells, at_home, bits) = outgoing(observed);
        let view = |node: usize| AccessorView {
            node: NodeId(node as u32),
            cells: &cells[node],
            remote_pages: observed.len() - at_home[node],
            bits: bits[node],
            shift: observed.page_shift(),
        };
        let views: Vec<AccessorView<'_>> = (0..cells.len()).map(view).collect();
        let accessors = views.par_iter().map(|v| (v, self.policy.begin(v), 0));
        let mut accessors: Vec<_> = accessors.collect();
        let (mut moves, mut proposals) = (Vec::new(), Vec::new());
        blocks(observed, |rows| {
            proposals.clear();
            proposals.resize(rows.len(), None);
            for (view, accessor, next) in &mut accessors {
                while let Some(cell) = view.cells.get(*next).filter(|c| (c.index as usize) < rows.end()) {
                    let first = &mut proposals[cell.index as usize - rows.start];
                    if first.is_none() {
                        *first = self
                            .policy
                            .judge(accessor, view, *next)
                            .map(|why| (view.node, why));
                    }
                    *next += 1;
                }
            }
            let taken = proposals
                .iter()
                .enumerate()
                .filter_map(|(i, w)| w.map(|w| (i, w)));
            moves.extend(taken.map(|(i, (to, why))| proposal(rows, i, to, why)));
        });
        if let Some(fixed) = &mut self.fixed {
            keep_fixed(fixed, observed, &mut moves);
        }
        moves
    }

    fn messages(&self, nodes: usize, moves: usize) -> u64 {
        moves as u64 * (nodes as u64).saturating_sub(1)
    }
}

/// Drops proposals for pages that are still where an earlier proposal sent them, and records the targets of the others.
/// Pages that are no longer observed on their recorded node are forgotten: they are gone, or were not moved.
fn keep_fixed(fixed: &mut HashMap<PageNumber, NodeId>, observed: &dyn Observed, moves: &mut Vec<Move>) {
    let mut arrived = HashMap::with_capacity(fixed.len());
    if !fixed.is_empty() {
        blocks(observed, |rows| {
            for (page, home) in rows.pages.iter().zip(&rows.homes) {
                if fixed.get(page) == Some(home) {
                    arrived.insert(*page, *home);
                }
            }
        });
    }
    moves.retain(|m| !arrived.contains_key(&m.page));
    arrived.extend(moves.iter().map(|m| (m.page, m.to)));
    *fixed = arrived;
}

/// For each node: its accesses to pages on other nodes, the number of its own pages, and the bits of the accesses.
fn outgoing(observed: &dyn Observed) -> (Vec<Vec<Cell>>, Vec<usize>, Vec<u32>) {
    let nodes = observed.nodes();
    let (mut cells, mut at_home, mut any) = (vec![Vec::new(); nodes], vec![0; nodes], vec![0; nodes]);
    blocks(observed, |rows| {
        for (i, home) in rows.homes.iter().enumerate() {
            at_home[home.index()] += 1;
            let (page, index) = (rows.pages[i], (rows.start + i) as u32);
            for (node, &count) in rows.row(i).iter().enumerate() {
                if count > 0 && node != home.index() {
                    cells[node].push(Cell { page, count, index });
                    any[node] |= count;
                }
            }
        }
    });
    let bits = any.iter().map(|any| bits(&[*any])).collect();
    (cells, at_home, bits)
}

impl<P: WholePolicy> MigrationPolicy for Whole<P> {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn decide(&mut self, observed: &dyn Observed) -> Vec<Move> {
        let mut moves = Vec::new();
        let mut go = |index, to, reason| {
            moves.push(Move {
                index,
                page: observed.page(index),
                from: observed.home(index),
                to,
                reason,
            });
        };
        self.policy.decide(observed, &mut go);
        moves
    }
}

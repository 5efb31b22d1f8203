//! A home node's monitor: its own pages, and who uses them.

use super::{MigrationPolicy, Move, Observed, Reason};
use nodewise_machine::NodeId;
use nodewise_profile::PageNumber;
use std::marker::PhantomData;

/// How much a home's monitor shows of each page.
pub trait Sight {
    /// Whether the home's own accesses are among it.
    const LOCAL: bool;
}

/// Traffic from outside only: what ARS's monitor on the link sees.
#[derive(Clone, Copy, Debug)]
pub struct RemoteOnly;

/// The home's own accesses too: the paper's `-local` variants.
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

    /// Number of page `i` of this view, in units of the decision's page size.
    #[must_use]
    pub fn number(&self, i: usize) -> u64 {
        self.page(i).0 >> self.observed.page_shift()
    }

    /// Page `i` of this view.
    #[must_use]
    pub fn page(&self, i: usize) -> PageNumber {
        self.observed.page(self.indices[i] as usize)
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

    /// See [`MigrationPolicy::name`].
    fn name(&self) -> String;

    /// Calls `leave(i, to, reason)` for pages that should leave, by ascending `i`.
    fn decide(&mut self, view: &HomeView<'_, Self::Sight>, leave: &mut dyn FnMut(usize, NodeId, Reason));
}

/// All homes deciding, each by itself.
#[derive(Clone, Debug)]
pub struct ByHome<P>(pub P);

impl<P: HomePolicy> MigrationPolicy for ByHome<P> {
    fn name(&self) -> String {
        self.0.name()
    }

    fn decide(&mut self, observed: &dyn Observed) -> Vec<Move> {
        let mut moves = Vec::new();
        for (home, indices) in pages_by_home(observed).iter().enumerate() {
            let view = HomeView {
                home: NodeId(home as u32),
                indices,
                observed,
                sight: PhantomData,
            };
            self.0.decide(&view, &mut |i, to, reason| {
                moves.push(Move {
                    index: indices[i] as usize,
                    page: view.page(i),
                    from: view.home,
                    to,
                    reason,
                });
            });
        }
        moves.sort_unstable_by_key(|m| m.index);
        moves
    }
}

fn pages_by_home(observed: &dyn Observed) -> Vec<Vec<u32>> {
    let mut pages = vec![Vec::new(); observed.nodes()];
    for index in 0..observed.len() {
        pages[observed.home(index).index()].push(index as u32);
    }
    pages
}

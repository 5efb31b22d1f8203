//! Out-U and Out-W of ARS (3.2), and their variants that know local accesses (4): each home judges its
//! own pages, one by one or with their neighbours.

use super::neighbours::Sweep;
use super::parameters::Parameters;
use super::{
    ByHome, HomePolicy, HomeView, Judgement, LocalToo, Made, RemoteOnly, Sight, Window, against_local,
    against_remote,
};
use crate::PolicyError;
use nodewise_machine::{Machine, NodeId};
use std::marker::PhantomData;

/// Both algorithms: Out-U is Out-W with a window of the page alone.
#[derive(Clone, Copy, Debug)]
pub struct Out<S> {
    /// How many times the average of the remote nodes, or the home's own accesses where they are
    /// seen, the largest must exceed.
    pub threshold: f64,
    /// Which pages a page is judged with.
    pub window: Window,
    sight: PhantomData<S>,
}

impl<S> Out<S> {
    /// With a threshold and a window.
    #[must_use]
    pub fn new(threshold: f64, window: Window) -> Self {
        Self {
            threshold,
            window,
            sight: PhantomData,
        }
    }
}

/// What a home compares the largest remote count with, by what it sees.
pub trait Compares: Sight {
    /// Whether a page with these (weighted) counts should leave.
    fn judge(home: NodeId, counts: &[f64], threshold: f64) -> Judgement;
}

impl Compares for RemoteOnly {
    fn judge(home: NodeId, counts: &[f64], threshold: f64) -> Judgement {
        against_remote(home, counts, threshold)
    }
}

impl Compares for LocalToo {
    fn judge(home: NodeId, counts: &[f64], threshold: f64) -> Judgement {
        against_local(home, counts, threshold)
    }
}

impl<S: Compares> HomePolicy for Out<S> {
    type Sight = S;
    type Home = ();
    type Walk = Walk;

    fn home(&self) {}

    fn reach(&self) -> usize {
        self.window.radius as usize
    }

    fn walk(&self, (): &(), nodes: usize) -> Walk {
        Walk {
            sweep: Sweep::new(self.window, nodes),
            sums: vec![0.0; nodes],
        }
    }

    fn judge(&self, walk: &mut Walk, view: &HomeView<'_, S>, i: usize) -> Judgement {
        let Walk { sweep, sums } = walk;
        let load = |i: usize, row: &mut [u64]| view.counts(i, row);
        sweep.at(i, view.len(), |i| view.number(i), load, sums);
        let (to, reason) = S::judge(view.home(), sums, self.threshold)?;
        Some((to, reason.per(sweep.scale())))
    }
}

/// Where a home is among its pages.
pub struct Walk {
    sweep: Sweep<8>,
    sums: Vec<f64>,
}

pub(super) fn out_u(p: &mut Parameters<'_>, machine: &Machine) -> Made {
    let threshold = reachable(p, machine)?;
    made::<RemoteOnly>(p, threshold, Window::PAGE)
}

pub(super) fn out_w(p: &mut Parameters<'_>, machine: &Machine) -> Made {
    let (threshold, window) = (reachable(p, machine)?, Window::of(p)?);
    made::<RemoteOnly>(p, threshold, window)
}

pub(super) fn out_u_local(p: &mut Parameters<'_>, _: &Machine) -> Made {
    let threshold = threshold(p)?;
    made::<LocalToo>(p, threshold, Window::PAGE)
}

pub(super) fn out_w_local(p: &mut Parameters<'_>, _: &Machine) -> Made {
    let (threshold, window) = (threshold(p)?, Window::of(p)?);
    made::<LocalToo>(p, threshold, window)
}

fn made<S: Compares>(p: &Parameters<'_>, threshold: f64, window: Window) -> Made {
    Ok(Box::new(ByHome::new(p.name(), Out::<S>::new(threshold, window))))
}

fn threshold(p: &mut Parameters<'_>) -> Result<f64, PolicyError> {
    p.take(
        "threshold",
        2.0,
        |t: &f64| *t > 0.0 && t.is_finite(),
        "a positive number, such as 2",
    )
}

/// A threshold over the average of the remote nodes that one of them can exceed.
fn reachable(p: &mut Parameters<'_>, machine: &Machine) -> Result<f64, PolicyError> {
    let threshold = threshold(p)?;
    can_exceed(p, machine, threshold)?;
    Ok(threshold)
}

/// The largest of n counts is at most n times their average.
pub(super) fn can_exceed(p: &Parameters<'_>, machine: &Machine, threshold: f64) -> Result<(), PolicyError> {
    let remote = machine.node_count().saturating_sub(1);
    if threshold < remote as f64 {
        return Ok(());
    }
    Err(p.error(format_args!(
        "threshold={threshold}: no node can have more than {remote} times the average of {remote} remote \
         node{}; write a lower threshold, or take out-w-local or dominant, which see the home's accesses",
        if remote == 1 { "" } else { "s" }
    )))
}

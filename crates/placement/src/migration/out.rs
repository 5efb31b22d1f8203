//! Out-U and Out-W of ARS (3.2), and their variants that know local accesses (4). Each home judges its own pages, alone
//! (Out-U) or with their neighbours (Out-W).

use super::neighbours::Sweep;
use super::parameters::Parameters;
use super::{
    ByHome, HomePolicy, HomeView, Made, Number, Proposal, RemoteOnly, Residents, Visibility, Window,
    WithLocal, against_all, against_local, against_remote,
};
use crate::PolicyError;
use nodewise_analysis::figures::plural;
use nodewise_machine::{Machine, NodeId};
use std::marker::PhantomData;
use std::str::FromStr;

/// Both algorithms: Out-U is Out-W with a window of the page alone.
#[derive(Clone, Copy, Debug)]
pub struct Out<S> {
    /// The multiple that the largest remote count must exceed: of the remote nodes' average, or of the home's own
    /// accesses where they are visible.
    pub threshold: f64,
    /// The neighbouring pages that count in a judgement.
    pub window: Window,
    /// The average to compare with, where the home's own accesses are not visible.
    pub against: Against,
    sight: PhantomData<S>,
}

/// The average that is multiplied by the threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Against {
    /// The average of the page's own counts over remote nodes: [`against_remote`].
    Page,
    /// The average over remote nodes and all pages of the home, the same for all of these: [`against_all`].
    All,
}

impl FromStr for Against {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "page" => Ok(Self::Page),
            "all" => Ok(Self::All),
            _ => Err(()),
        }
    }
}

impl<S> Out<S> {
    /// A policy that compares with a page's own average, with this threshold and window.
    #[must_use]
    pub fn new(threshold: f64, window: Window) -> Self {
        Self {
            threshold,
            window,
            against: Against::Page,
            sight: PhantomData,
        }
    }
}

/// The value that a home compares the largest remote count with; it depends on what the home sees.
pub trait Compares: Visibility {
    /// Whether a page with these (weighted) counts should leave.
    fn judge<N: Number>(home: NodeId, counts: &[N], threshold: f64) -> Proposal;
}

impl Compares for RemoteOnly {
    #[inline]
    fn judge<N: Number>(home: NodeId, counts: &[N], threshold: f64) -> Proposal {
        against_remote(home, counts, threshold)
    }
}

impl Compares for WithLocal {
    #[inline]
    fn judge<N: Number>(home: NodeId, counts: &[N], threshold: f64) -> Proposal {
        against_local(home, counts, threshold)
    }
}

impl<S: Compares> HomePolicy for Out<S> {
    type Visibility = S;
    /// The value by which a page's average must be exceeded, where that is the same for all pages.
    type Home = Option<f64>;
    type Scan = Scan;

    fn home(&self) -> Option<f64> {
        None
    }

    fn begin(&self, home: &mut Option<f64>, residents: &mut Residents<'_>) {
        if self.against == Against::All {
            *home = Some(self.threshold * residents.remote_average());
        }
    }

    fn reach(&self) -> usize {
        self.window.radius as usize
    }

    fn scan(&self, home: &Option<f64>, view: &HomeView<'_, S>) -> Scan {
        if self.window.bits(view.bits(), view.nodes()) <= f32::EXACT {
            Scan::Quick(Steps::new(self.window, *home, view.nodes()))
        } else {
            Scan::Long(Steps::new(self.window, *home, view.nodes()))
        }
    }

    #[inline]
    fn judge(&self, scan: &mut Scan, view: &HomeView<'_, S>, i: usize) -> Proposal {
        match scan {
            Scan::Quick(steps) => self.step(steps, view, i),
            Scan::Long(steps) => self.step(steps, view, i),
        }
    }
}

impl<S: Compares> Out<S> {
    #[inline]
    fn step<N: Number>(&self, steps: &mut Steps<N>, view: &HomeView<'_, S>, i: usize) -> Proposal {
        let Steps {
            sweeps,
            sums,
            constant,
        } = steps;
        for (part, sweep) in sweeps.iter_mut().enumerate() {
            let load = |i: usize, row: &mut [N; LANES]| view.counts(i, part * LANES, row);
            sums[part] = sweep.at(i, view.len(), |i| view.number(i), load);
        }
        let sums = &sums.as_flattened()[..view.nodes()];
        let (to, reason) = match constant {
            Some(constant) => against_all(view.home(), sums, *constant)?,
            None => S::judge(view.home(), sums, self.threshold)?,
        };
        Some((to, reason.per(self.window.scale())))
    }
}

/// A home's progress through its pages, in the fastest number type that is exact for its counts.
pub enum Scan {
    /// Counts that `f32` represents exactly.
    Quick(Steps<f32>),
    /// Counts of any size.
    Long(Steps<u64>),
}

const LANES: usize = 8;

/// The progress in one number type.
pub struct Steps<N> {
    /// Sliding sums, each for `LANES` nodes.
    sweeps: Vec<Sweep<N, LANES>>,
    constant: Option<f64>,
    sums: Vec<[N; LANES]>,
}

impl<N: Number> Steps<N> {
    fn new(window: Window, constant: Option<f64>, nodes: usize) -> Self {
        let parts = nodes.div_ceil(LANES);
        Self {
            sweeps: (0..parts).map(|_| Sweep::new(window)).collect(),
            constant: constant.map(|c| c * window.scale()),
            sums: vec![[N::default(); LANES]; parts],
        }
    }
}

pub(super) fn out_u(p: &mut Parameters<'_>, machine: &Machine) -> Made {
    remote(p, machine, |_| Ok(Window::PAGE))
}

pub(super) fn out_w(p: &mut Parameters<'_>, machine: &Machine) -> Made {
    remote(p, machine, Window::of)
}

/// A policy of homes that see remote accesses only.
fn remote<'a>(
    p: &mut Parameters<'a>,
    machine: &Machine,
    window: impl Fn(&mut Parameters<'a>) -> Result<Window, PolicyError>,
) -> Made {
    let against = p.take("against", Against::Page, |_| true, "`page` or `all`")?;
    let threshold = match against {
        Against::Page => reachable(p, machine)?,
        Against::All => {
            // A single remote node is its own average.
            can_exceed(p, machine, 1.0)?;
            threshold(p)?
        }
    };
    let out = Out {
        against,
        ..Out::<RemoteOnly>::new(threshold, window(p)?)
    };
    Ok(Box::new(ByHome::new(p.name(), out)))
}

pub(super) fn out_u_local(p: &mut Parameters<'_>, _: &Machine) -> Made {
    let out = Out::<WithLocal>::new(threshold(p)?, Window::PAGE);
    Ok(Box::new(ByHome::new(p.name(), out)))
}

pub(super) fn out_w_local(p: &mut Parameters<'_>, _: &Machine) -> Made {
    let out = Out::<WithLocal>::new(threshold(p)?, Window::of(p)?);
    Ok(Box::new(ByHome::new(p.name(), out)))
}

fn threshold(p: &mut Parameters<'_>) -> Result<f64, PolicyError> {
    p.take(
        "threshold",
        2.0,
        |t: &f64| *t > 0.0 && t.is_finite(),
        "a positive number, such as 2",
    )
}

/// A threshold relative to the average of the remote nodes, checked to be exceedable.
fn reachable(p: &mut Parameters<'_>, machine: &Machine) -> Result<f64, PolicyError> {
    let threshold = threshold(p)?;
    can_exceed(p, machine, threshold)?;
    Ok(threshold)
}

/// Checks that a remote node can exceed the threshold: the largest of n counts is at most n times their average.
pub(super) fn can_exceed(p: &Parameters<'_>, machine: &Machine, threshold: f64) -> Result<(), PolicyError> {
    let remote = machine.node_count().saturating_sub(1);
    if threshold < remote as f64 {
        return Ok(());
    }
    Err(p.error(format_args!(
        "threshold={threshold}: no node can have more than {remote} times the average of {}; write a lower \
         threshold, or take out-w-local or dominant, which see the home's accesses",
        plural(remote, "remote node")
    )))
}

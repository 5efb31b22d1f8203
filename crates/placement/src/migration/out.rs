//! Out-U of ARS: each home judges its own pages one by one.

use super::parameters::Parameters;
use super::{
    ByHome, HomePolicy, HomeView, LocalToo, MigrationPolicy, Reason, RemoteOnly, against_local,
    against_remote,
};
use crate::PolicyError;
use nodewise_machine::{Machine, NodeId};

/// Sees remote accesses only.
#[derive(Clone, Copy, Debug)]
pub struct Out {
    /// How many times the average of the remote nodes the largest must exceed.
    pub threshold: f64,
}

/// Sees the home's accesses too.
#[derive(Clone, Copy, Debug)]
pub struct OutLocal {
    /// How many times the home's accesses the largest must exceed.
    pub threshold: f64,
}

pub(super) fn out_u(p: &mut Parameters<'_>, _: &Machine) -> Result<Box<dyn MigrationPolicy>, PolicyError> {
    Ok(Box::new(ByHome(Out {
        threshold: threshold(p)?,
    })))
}

pub(super) fn out_u_local(
    p: &mut Parameters<'_>,
    _: &Machine,
) -> Result<Box<dyn MigrationPolicy>, PolicyError> {
    Ok(Box::new(ByHome(OutLocal {
        threshold: threshold(p)?,
    })))
}

fn threshold(p: &mut Parameters<'_>) -> Result<f64, PolicyError> {
    p.take(
        "threshold",
        2.0,
        |t| *t > 0.0 && t.is_finite(),
        "a positive number, such as 2",
    )
}

impl HomePolicy for Out {
    type Sight = RemoteOnly;

    fn name(&self) -> String {
        format!("out-u:threshold={}", self.threshold)
    }

    fn decide(&mut self, view: &HomeView<'_, RemoteOnly>, leave: &mut dyn FnMut(usize, NodeId, Reason)) {
        let (mut counts, mut sums) = (vec![0; view.nodes()], vec![0.0; view.nodes()]);
        for i in 0..view.len() {
            view.counts(i, &mut counts);
            sums.iter_mut().zip(&counts).for_each(|(s, c)| *s = *c as f64);
            if let Some((to, reason)) = against_remote(view.home(), &sums, self.threshold) {
                leave(i, to, reason);
            }
        }
    }
}

impl HomePolicy for OutLocal {
    type Sight = LocalToo;

    fn name(&self) -> String {
        format!("out-u-local:threshold={}", self.threshold)
    }

    fn decide(&mut self, view: &HomeView<'_, LocalToo>, leave: &mut dyn FnMut(usize, NodeId, Reason)) {
        let (mut counts, mut sums) = (vec![0; view.nodes()], vec![0.0; view.nodes()]);
        for i in 0..view.len() {
            view.counts(i, &mut counts);
            sums.iter_mut().zip(&counts).for_each(|(s, c)| *s = *c as f64);
            if let Some((to, reason)) = against_local(view.home(), &sums, self.threshold) {
                leave(i, to, reason);
            }
        }
    }
}

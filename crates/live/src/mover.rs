//! The actuator of a session: the kernel, or a dry run.

use nodewise_control::{Actuator, DryRun};
use nodewise_enforce::{Holder, Linux, Stalls};
use nodewise_machine::NodeId;
use nodewise_profile::PageNumber;
use std::collections::HashSet;
use std::ops::Range;
use std::time::Duration;

/// The actuator: the kernel or a dry run.
pub enum Mover {
    Linux(Box<Linux>),
    DryRun(Box<DryRun>, Option<Box<Holder>>),
}

impl Mover {
    pub fn actuator(&mut self) -> &mut dyn Actuator {
        match self {
            Self::Linux(linux) => linux.as_mut(),
            Self::DryRun(dry_run, _) => dry_run.as_mut(),
        }
    }

    pub fn holder(&mut self) -> Option<&mut Holder> {
        match self {
            Self::Linux(linux) => linux.holder(),
            Self::DryRun(_, holder) => holder.as_deref_mut(),
        }
    }

    /// The node a page would be on, if it was moved in a dry run.
    pub fn supposed_home(&self, page: PageNumber) -> Option<NodeId> {
        match self {
            Self::Linux(_) => None,
            Self::DryRun(dry_run, _) => dry_run.home(page),
        }
    }

    /// Total time that processes were stopped, if they are stopped for moves.
    pub fn stalls(&self) -> Option<Stalls> {
        match self {
            Self::Linux(linux) => linux.stalls(),
            Self::DryRun(..) => None,
        }
    }

    /// Duration of the longest call that moved pages.
    pub fn longest_call(&self) -> Duration {
        match self {
            Self::Linux(linux) => linux.longest_call(),
            Self::DryRun(..) => Duration::ZERO,
        }
    }

    /// Moves since the last such query whose result the kernel did not report.
    pub fn take_hidden(&mut self) -> HashSet<PageNumber> {
        match self {
            Self::Linux(linux) => linux.take_hidden(),
            Self::DryRun(..) => HashSet::new(),
        }
    }

    /// Forgets a process that has ended, and its pages.
    pub fn end_process(&mut self, ordinal: u16, pages: &Range<PageNumber>) {
        match self {
            Self::Linux(linux) => linux.end_process(ordinal),
            Self::DryRun(dry_run, _) => dry_run.forget(pages),
        }
    }
}

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
    Linux(Linux),
    Nobody(DryRun, Option<Holder>),
}

impl Mover {
    pub fn actuator(&mut self) -> &mut dyn Actuator {
        match self {
            Self::Linux(linux) => linux,
            Self::Nobody(nobody, _) => nobody,
        }
    }

    pub fn holder(&mut self) -> Option<&mut Holder> {
        match self {
            Self::Linux(linux) => linux.holder(),
            Self::Nobody(_, holder) => holder.as_mut(),
        }
    }

    /// The node a page would be on, if it was moved in a dry run.
    pub fn supposed_home(&self, page: PageNumber) -> Option<NodeId> {
        match self {
            Self::Linux(_) => None,
            Self::Nobody(nobody, _) => nobody.home(page),
        }
    }

    /// Total time that processes were stopped, if they are stopped for moves.
    pub fn stalls(&self) -> Option<Stalls> {
        match self {
            Self::Linux(linux) => linux.stalls(),
            Self::Nobody(..) => None,
        }
    }

    /// Duration of the longest call that moved pages.
    pub fn longest_call(&self) -> Duration {
        match self {
            Self::Linux(linux) => linux.longest_call(),
            Self::Nobody(..) => Duration::ZERO,
        }
    }

    /// Moves since the last such query whose result the kernel did not report.
    pub fn take_hidden(&mut self) -> HashSet<PageNumber> {
        match self {
            Self::Linux(linux) => linux.take_hidden(),
            Self::Nobody(..) => HashSet::new(),
        }
    }

    pub fn forget(&mut self, pages: &Range<PageNumber>) {
        if let Self::Nobody(nobody, _) = self {
            nobody.forget(pages);
        }
    }
}

//! The actuator of a session: the kernel, or a dry run.

use nodewise_control::{Actuator, DryRun};
use nodewise_enforce::{Holder, Linux, Stalls};
use nodewise_machine::NodeId;
use nodewise_profile::PageNumber;
use std::collections::HashSet;
use std::ops::Range;

/// What carries moves out.
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

    /// Where a page would be, had it been moved.
    pub fn supposed_home(&self, page: PageNumber) -> Option<NodeId> {
        match self {
            Self::Linux(_) => None,
            Self::Nobody(nobody, _) => nobody.home(page),
        }
    }

    /// How long processes stood still, if they are stopped.
    pub fn stalls(&self) -> Option<Stalls> {
        match self {
            Self::Linux(linux) => linux.stalls(),
            Self::Nobody(..) => None,
        }
    }

    /// Pages that the kernel would not show when they had been moved, perhaps, since the last call.
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

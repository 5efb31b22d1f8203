//! The data model of a recorded profile.
//!
//! **Purpose.** The vocabulary every other crate shares: which thread touched which page of which
//! object, how often, in which time slice and parallel region, and who touched it first.
//!
//! **Constraints.** No dependencies, no system calls, no clock. Tables are plain vectors whose index
//! is the identifier; the one large table, the accesses, is streamed ([`AccessSource`]) and never
//! required to fit in memory.
//!
//! **Non-goals.** Storage (see `nodewise-store`), metrics (see `nodewise-analysis`), and anything that needs a machine:
//! a profile contains threads and pages, and nodes only in recorded moves.
#![forbid(unsafe_code)]

mod access;
mod ids;
mod meta;
mod migration;
mod object;
mod roles;
mod sampling;
mod thread;

pub use access::{Access, AccessSource, FirstTouch, InMemory, Slice};
pub use ids::{BASE_PAGE_SHIFT, BASE_PAGE_SIZE, ObjectId, PageNumber, RegionId, SiteId, SliceId, ThreadId};
pub use meta::{Coverage, FORMAT_VERSION, Meta, Observer};
pub use migration::{Migration, MoveKind, Mover};
pub use object::{Frame, Object, ObjectKind, Region, RegionKind, Schedule, Site};
pub use roles::{CounterUse, TakenPart};
pub use sampling::Sampling;
pub use thread::Thread;

/// A profile without its accesses: the small tables, each indexed by its identifier.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    /// How, when and on what the profile was made.
    pub meta: Meta,
    /// Memory objects, by [`ObjectId`]. Entry 0 stands for all pages without a known object.
    pub objects: Vec<Object>,
    /// Threads, process by process in order of creation, by [`ThreadId`].
    pub threads: Vec<Thread>,
    /// Code regions, by [`RegionId`]. Entry 0 is serial code.
    pub regions: Vec<Region>,
    /// Time slices, by [`SliceId`].
    pub slices: Vec<Slice>,
    /// Call sites, by [`SiteId`]. Entry 0 is the unknown site.
    pub sites: Vec<Site>,
    /// First touches, ascending by page; runs do not overlap.
    pub first_touches: Vec<FirstTouch>,
    /// Pages that moved while the program ran, ascending by time.
    pub migrations: Vec<Migration>,
    /// Which thread took which part in other runs of the same command, ascending; empty if only one run was recorded.
    pub taken: Vec<TakenPart>,
    /// Whether those runs came as they did, each recorded by itself: threads that arrive may have come in the same order by chance,
    /// which a run that was recorded for comparison (`record --repeat`) prevents.
    pub order_may_be_the_same: bool,
    /// Threads that took numbers from shared counters, and the code that did so; ascending by site and thread.
    pub tickets: Vec<CounterUse>,
}

impl Profile {
    /// The file name of the recorded program.
    #[must_use]
    pub fn program(&self) -> &str {
        let command = self.meta.command.first().map_or("", String::as_str);
        command.rsplit('/').next().unwrap_or_default()
    }

    /// The object with this identifier.
    #[must_use]
    pub fn object(&self, id: ObjectId) -> Option<&Object> {
        self.objects.get(id.index())
    }

    /// The call site with this identifier.
    #[must_use]
    pub fn site(&self, id: SiteId) -> Option<&Site> {
        self.sites.get(id.index())
    }
}

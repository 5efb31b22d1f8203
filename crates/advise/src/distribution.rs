//! The libnodewise distribution that suits an object, and matching loop schedules.

use crate::loops::is_schedulable;
use nodewise_analysis::{Conflict, Division, Pattern, Remedy};
use nodewise_machine::Machine;
use nodewise_placement::copies_fit;
use nodewise_profile::Object;

/// An object does not change after initialisation if it has at most one store per this many bytes.
const MIN_BYTES_PER_STORE: u64 = 4;

/// A distribution that libnodewise makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// Blocks of rows, each to its thread's node.
    BindRows,
    /// Blocks of columns, one per thread.
    BindColumns,
    /// A Latin square over these dimensions, one bit each.
    BlockExclusive {
        /// Bit d is dimension d.
        dimensions: u32,
    },
    /// This many consecutive pages to each node in turn.
    Cyclic {
        /// Pages in a block.
        pages: u32,
    },
    /// A copy on each node.
    Replicate,
}

impl Distribution {
    /// The stable name used in reports and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::BindRows => "bind-rows",
            Self::BindColumns => "bind-columns",
            Self::BlockExclusive { .. } => "block-exclusive",
            Self::Cyclic { .. } => "cyclic",
            Self::Replicate => "replicate",
        }
    }

    /// The distribution that suits an object; `None` if threads use their own blocks in no fixed order, or if no
    /// distribution can be applied.
    pub(crate) fn of(object: &Object, divided: &Divided<'_>) -> Option<Self> {
        if !object.kind.is_mappable() {
            return None;
        }
        if let Some(conflict) = divided.conflict {
            return match conflict.remedy {
                Remedy::BlockExclusive { dimensions } => Some(Self::BlockExclusive { dimensions }),
                Remedy::StaticInverse => Some(Self::BindRows),
                Remedy::None => Some(Self::Cyclic { pages: 1 }),
            };
        }
        match divided.pattern {
            Pattern::OneThread | Pattern::Blocks | Pattern::Irregular => None,
            Pattern::XWise => Some(Self::BindRows),
            Pattern::YWise => Some(Self::BindColumns),
            Pattern::BlockExclusive => Some(Self::BlockExclusive { dimensions: 0b11 }),
            Pattern::ZWise if divided.divisions.iter().any(is_schedulable) => Some(Self::BindColumns),
            Pattern::Strided => Some(Self::Cyclic {
                pages: pages_in_turn(divided.divisions),
            }),
            Pattern::ReadShared | Pattern::Gather if divided.can_be_copied => Some(Self::Replicate),
            Pattern::ZWise | Pattern::ReadShared | Pattern::Gather | Pattern::Uniform | Pattern::Random => {
                Some(Self::Cyclic { pages: 1 })
            }
        }
    }
}

/// How threads divide an object.
pub(crate) struct Divided<'a> {
    /// The conflict between regions that divide the object differently, if any.
    pub conflict: Option<&'a Conflict>,
    /// Pattern of the object over all regions.
    pub pattern: Pattern,
    /// Division of the object in each region.
    pub divisions: &'a [Division],
    /// Whether replication is possible; see [`can_be_copied`].
    pub can_be_copied: bool,
}

/// Number of whole pages that each thread gets in turn.
fn pages_in_turn(divisions: &[Division]) -> u32 {
    let strided = divisions.iter().find(|d| d.pattern == Pattern::Strided);
    strided.map_or(1, Division::pages_a_block).max(1)
}

/// Whether an object with `writes` stores does not change after initialisation, and a copy of it fits on every node.
pub(crate) fn can_be_copied(object: &Object, writes: u64, machine: &Machine) -> bool {
    copies_fit(object.bytes, machine) && writes <= object.bytes / MIN_BYTES_PER_STORE
}

/// The schedule that a loop with this division should have if the object is distributed in this way.
#[must_use]
pub fn schedule(
    distribution: Option<Distribution>,
    conflict: bool,
    division: &Division,
) -> Option<&'static str> {
    let dealt = division.is_loop() && division.pattern.dimension().is_some() && division.has_owners();
    match distribution? {
        Distribution::BlockExclusive { .. } if dealt => Some("block-exclusive"),
        Distribution::BindRows if conflict && division.inverse => Some("static-inverse"),
        Distribution::BindRows | Distribution::BindColumns if dealt => Some("static"),
        _ => None,
    }
}

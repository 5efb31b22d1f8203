//! Thread and memory placement by AsymSched's Algorithm 1 (Lepers, Quéma and Fedorova, USENIX ATC 2015, 4.2), one step
//! at a time.
//!
//! A step takes the measurements of all applications and decides which threads migrate between nodes, whose memory is
//! migrated page by page as it is used (dynamic migration), and whose memory is migrated as a whole because dynamic
//! migration was not enough. Nothing is carried out here, so simulator, laboratory and live loop decide alike.

mod application_state;
mod cluster_moves;
mod counted;
mod replacement;
mod scheduler;

#[cfg(test)]
mod properties;

pub use counted::{Process, Thread, applications, dealt};
pub use scheduler::Scheduler;

use nodewise_analysis::figures::bytes;
use nodewise_machine::NodeId;
use nodewise_placement::asym::{Cluster, Counts, Options};

/// Parameters of a scheduler.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Parameters of the search for a placement.
    pub search: Options,
    /// Largest share of an application's run time that moving its memory may take; 0.05; infinity is no limit.
    pub budget: f64,
    /// Assumed cost of moving a GB (10⁹ bytes) until it is measured, seconds; 0.3.
    pub seconds_per_gb: f64,
    /// Assumed fixed cost of a batch until it is measured, seconds.
    pub seconds_per_batch: f64,
    /// Time that dynamic migration has before the full migration is considered, nanoseconds; 2 s.
    pub settle_ns: u64,
    /// Threshold of A_oldA: if more of an application's accesses than this still go to nodes it has left, all its memory
    /// is moved; 0.9.
    pub old_share: f64,
    /// Cooldown of an application after a move, in steps; each further move doubles it, up to 16 times as many.
    pub cooldown: u32,
}

impl Default for Settings {
    fn default() -> Self {
        let moving = crate::Settings::default();
        Self {
            search: Options::default(),
            budget: moving.budget,
            seconds_per_gb: moving.seconds_per_gb,
            seconds_per_batch: moving.seconds_per_batch,
            settle_ns: 2_000_000_000,
            old_share: 0.9,
            cooldown: 4,
        }
    }
}

/// What was measured of an application since the last step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Application {
    /// Identifier that decisions refer to.
    pub id: u32,
    /// Its clusters at their current nodes; those of an application that sets its own affinity are fixed.
    pub clusters: Vec<Cluster>,
    /// A_tt: how long it has run, nanoseconds.
    pub run_ns: u64,
    /// Accesses to the memory of each node since the last step.
    pub accesses: Vec<f64>,
}

/// Threads of one cluster that migrate from one node to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadMove {
    /// [`Application::id`] of the threads' application.
    pub application: u32,
    /// Index of the cluster in [`Application::clusters`].
    pub cluster: usize,
    /// Numbers of the threads, as in [`Cluster::threads`].
    pub threads: Vec<u32>,
    /// Their current node; `None` if they have not been placed yet.
    pub from: Option<NodeId>,
    /// The node that they migrate to.
    pub to: NodeId,
}

/// Migration of all memory of an application, because dynamic migration was not enough.
#[derive(Clone, Debug, PartialEq)]
pub struct FullMigration {
    /// [`Application::id`] of the owner.
    pub application: u32,
    /// Each node that all threads have left, with the target nodes of its memory and their shares, which sum to 1.
    pub from: Vec<(NodeId, Vec<(NodeId, f64)>)>,
    /// A_oldA: the share of accesses that still went to nodes it has left, 0 to 1.
    pub old_share: f64,
}

/// An application whose migration is over its budget. (One that lost a node is not refused, but only the threads on that
/// node move.)
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Refused {
    /// [`Application::id`] of the application.
    pub application: u32,
    /// Bytes on the nodes that it would leave.
    pub bytes: u64,
    /// Predicted time of moving those, nanoseconds.
    pub predicted_ns: f64,
    /// A_tm: time spent on moving it so far and reserved for pending moves, nanoseconds.
    pub spent_ns: f64,
    /// Budget for its run time so far, nanoseconds.
    pub allowed_ns: f64,
}

/// The actions of one step, in the order of execution.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// Threads that migrate between nodes.
    pub moves: Vec<ThreadMove>,
    /// Applications whose memory is migrated dynamically from now on.
    pub dynamic: Vec<u32>,
    /// Applications whose memory is migrated as a whole.
    pub full: Vec<FullMigration>,
    /// Applications whose migration is over budget.
    pub refused: Vec<Refused>,
    /// P_wbw of the current placement, MB/s.
    pub now: f64,
    /// P_wbw after the moves, MB/s.
    pub then: f64,
    /// P_wbw of the best placement found, MB/s.
    pub best: f64,
    /// Placements that the last search of this step had, and those that it computed the bandwidth of.
    pub searched: Counts,
    /// Error message if nothing could be decided.
    pub trouble: Option<String>,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let s = |ns: f64| ns / 1e9;
        write!(
            f,
            "application {} stays: moving {} takes about {:.3} s; with {:.3} s already spent that is over the {:.3} s \
             allowed so far",
            self.application,
            bytes(self.bytes),
            s(self.predicted_ns),
            s(self.spent_ns),
            s(self.allowed_ns)
        )
    }
}

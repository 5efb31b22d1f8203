//! When threads change nodes, and what becomes of their memory: AsymSched's Algorithm 1 (Lepers, Quéma and
//! Fedorova, USENIX ATC 2015, 4.2) as a step.
//!
//! Each step takes what was measured of all applications and says which threads move between nodes now, whose
//! memory follows page by page as it is used, and whose has to be moved as a whole because it did not follow.
//! Nothing is done here, so simulator, laboratory and live loop decide alike.

mod book;
mod lost;
mod orders;
mod scheduler;

#[cfg(test)]
mod laws;

pub use scheduler::Scheduler;

use nodewise_machine::NodeId;
use nodewise_placement::asym::{Cluster, Options};

/// What limits a scheduler.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// How nodes are searched for, and what share of the best is good enough.
    pub search: Options,
    /// Largest share of an application's run time that moving its memory may take: 0.05; infinite is none.
    pub budget: f64,
    /// What moving a GB (10⁹ bytes) is taken to cost until it is measured: 0.3 s.
    pub seconds_per_gb: f64,
    /// What moving costs besides, however little it is, until it is measured.
    pub seconds_per_batch: f64,
    /// Nanoseconds that memory has to follow threads by itself: 2 s.
    pub settle_ns: u64,
    /// More of its accesses than this still on nodes it has left, and all memory is moved: 0.9.
    pub old_share: f64,
    /// Steps that an application is left alone for after it has moved; twice as many after each further time, 16
    /// times as many at most.
    pub rest: u32,
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
            rest: 4,
        }
    }
}

/// What was measured of an application since the last step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Application {
    /// What it is called by.
    pub id: u32,
    /// Its clusters, where they are now; those of an application that pins itself are fixed.
    pub clusters: Vec<Cluster>,
    /// A_tt: how long it has run, nanoseconds.
    pub run_ns: u64,
    /// Accesses to the memory of each node since the last step.
    pub accesses: Vec<f64>,
}

/// Threads of one cluster that are to go from one node to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadMove {
    /// Whose.
    pub application: u32,
    /// Which of its clusters.
    pub cluster: usize,
    /// Their numbers.
    pub threads: Vec<u32>,
    /// Where they are, if anywhere yet.
    pub from: Option<NodeId>,
    /// Where they are to be.
    pub to: NodeId,
}

/// Memory that is to be moved as a whole: it did not follow its threads.
#[derive(Clone, Debug, PartialEq)]
pub struct FullMigration {
    /// Whose.
    pub application: u32,
    /// Each node that all of its threads have left, once, and where its memory there goes: nodes with shares, which
    /// sum to 1.
    pub from: Vec<(NodeId, Vec<(NodeId, f64)>)>,
    /// A_oldA: the share of accesses that still went to nodes it has left.
    pub old_share: f64,
}

/// An application that stays because moving it would cost too much. (One that has lost a node is not refused, but
/// moves no further than it has to.)
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Refused {
    /// Which.
    pub application: u32,
    /// Bytes on the nodes that it would leave.
    pub bytes: u64,
    /// What moving those is predicted to take, nanoseconds.
    pub predicted_ns: f64,
    /// A_tm: what was spent on moving it already, or is set aside for it.
    pub spent_ns: f64,
    /// What may be spent in all so far: the share of its run time.
    pub allowed_ns: f64,
}

/// What to do now, in this order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// Threads that change nodes.
    pub moves: Vec<ThreadMove>,
    /// Applications whose memory is to follow its use from now on.
    pub dynamic: Vec<u32>,
    /// Memory that did not.
    pub full: Vec<FullMigration>,
    /// Applications that would be moved if that cost less.
    pub refused: Vec<Refused>,
    /// P_wbw of where everything is now, MB/s.
    pub now: f64,
    /// P_wbw once the moves are made.
    pub then: f64,
    /// P_wbw of the best placement found.
    pub best: f64,
    /// Why nothing could be decided: one line.
    pub trouble: Option<String>,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let s = |ns: f64| ns / 1e9;
        write!(
            f,
            "application {} stays: moving {:.3} GB takes about {:.3} s; with {:.3} s already spent that is \
             over the {:.3} s allowed so far",
            self.application,
            self.bytes as f64 / 1e9,
            s(self.predicted_ns),
            s(self.spent_ns),
            s(self.allowed_ns)
        )
    }
}

//! What thread migration reports while a session runs.

/// Threads of a process that migrated between nodes.
#[derive(Clone, Debug)]
pub struct ThreadsMoved {
    /// Id of the process.
    pub pid: u32,
    /// Name of the process.
    pub name: String,
    /// The kernel's numbers of the nodes they left, as a list.
    pub from: String,
    /// The kernel's numbers of the nodes they run on now, as a list.
    pub to: String,
    /// What the migration is expected to gain.
    pub gain: Gain,
    /// Whether it is a dry run: they would have migrated.
    pub dry: bool,
}

/// What a migration of threads gains, before and after.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Gain {
    /// Weighted bandwidth (AsymSched's P_wbw), MB/s.
    Bandwidth(f64, f64),
    /// Share of the samples that are remote, 0 to 1: now, and expected once memory has followed.
    Remote(f64, f64),
}

/// A message for the user, or moved threads for subscribers.
#[derive(Clone, Debug)]
pub enum ThreadEvent {
    Notice(String),
    Moved(ThreadsMoved),
}

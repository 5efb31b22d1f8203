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
    /// Weighted bandwidth before and after (AsymSched's P_wbw), MB/s.
    pub bandwidth: (f64, f64),
    /// Whether it is a dry run: they would have migrated.
    pub dry: bool,
}

/// A message for the user, or moved threads for subscribers.
#[derive(Clone, Debug)]
pub enum ThreadEvent {
    Notice(String),
    Moved(ThreadsMoved),
}

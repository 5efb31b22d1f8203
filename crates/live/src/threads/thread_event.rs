//! What thread migration reports while a session runs.

use nodewise_analysis::figures::{gigabytes, whole_percent};
use std::fmt;

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

/// `weighted bandwidth 1.2 GB/s to 3.4 GB/s`
impl fmt::Display for Gain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bandwidth(before, after) => {
                write!(
                    f,
                    "weighted bandwidth {} to {}",
                    bandwidth(*before),
                    bandwidth(*after)
                )
            }
            Self::Remote(now, later) => write!(
                f,
                "{} of the samples remote, {} once memory has followed",
                whole_percent(*now),
                whole_percent(*later)
            ),
        }
    }
}

/// A bandwidth, given in MB/s, in a unit that shows digits. Few samples make a small figure; without any, the bandwidth
/// is unknown rather than 0.
pub(crate) fn bandwidth(megabytes: f64) -> String {
    match megabytes {
        none if none <= 0.0 => "unknown (no remote access was sampled)".to_owned(),
        few if few < 100.0 => format!("{few:.1} MB/s"),
        much => gigabytes(much),
    }
}

/// A message for the user, or moved threads for subscribers.
#[derive(Clone, Debug)]
pub enum ThreadEvent {
    Notice(String),
    Moved(ThreadsMoved),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_bandwidth_has_digits_and_none_is_unknown() {
        assert_eq!(
            Gain::Bandwidth(3.21, 2500.0).to_string(),
            "weighted bandwidth 3.2 MB/s to 2.50 GB/s"
        );
        assert!(bandwidth(0.0).starts_with("unknown"));
    }
}

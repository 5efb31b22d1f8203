//! How a recording is divided into slices.

use std::fmt;
use std::time::Duration;

/// Where one slice ends and the next begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slicing {
    /// By wall time: `1s`, `100ms`.
    Time(Duration),
    /// When the threads of a process together have made this number of accesses: `accesses:1000000`.
    Accesses(u64),
    /// At the end of each parallel region: `region`.
    Region,
}

impl fmt::Display for Slicing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(time) if time.subsec_nanos() == 0 => write!(f, "{}s", time.as_secs()),
            Self::Time(time) => write!(f, "{}ms", time.as_secs_f64() * 1e3),
            Self::Accesses(count) => write!(f, "accesses:{count}"),
            Self::Region => f.write_str("region"),
        }
    }
}

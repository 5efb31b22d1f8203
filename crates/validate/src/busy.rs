//! CPU usage of other processes on this machine.

use nodewise_linux::cpu_ticks::HostTime;
use nodewise_linux::{Host, child};
use std::time::Duration;

/// Share of the machine's CPU time above which other processes are reported as a disturbance of the measured times.
pub const MAX_OTHER_LOAD: f64 = 0.05;

/// CPU time of the machine since it booted, and of our child processes that have ended.
#[derive(Clone, Copy, Debug)]
pub struct Account {
    host: HostTime,
    own: Duration,
}

impl Account {
    /// CPU time up to now.
    pub fn now(host: &Host) -> Self {
        Self {
            host: HostTime::now(host),
            own: child::cpu_of_ended().total(),
        }
    }

    /// The share of the machine's CPU time since `before` that other processes used, 0 to 1; 0 if the kernel does not
    /// report it.
    pub fn others_since(self, before: Self) -> f64 {
        let own = self.own.saturating_sub(before.own).as_secs_f64();
        self.host.others_since(before.host, own).unwrap_or(0.0)
    }
}

/// The share of the machine's CPU time that other processes use, measured for half a second.
pub fn others_now(host: &Host) -> f64 {
    let before = Account::now(host);
    std::thread::sleep(Duration::from_millis(500));
    Account::now(host).others_since(before)
}

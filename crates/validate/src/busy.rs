//! CPU usage of other processes on this machine, from the kernel's accounting in `/proc/stat`.

use nodewise_linux::cpu_ticks::busy_and_all;
use nodewise_linux::{Host, child};
use std::time::Duration;

/// Seconds per unit of `/proc/stat`: 1/`USER_HZ`, a hundredth whatever the kernel's own tick rate (proc(5)).
const TICK: f64 = 0.01;

/// Share of the machine's CPU time above which other processes are reported as a disturbance of the measured times.
pub const MAX_OTHER_LOAD: f64 = 0.05;

/// CPU time of the machine since it booted, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Account {
    busy: f64,
    all: f64,
    /// The part of `busy` that ended child processes of this process used.
    own: f64,
}

impl Account {
    /// CPU time up to now; all zero if the kernel does not report it.
    pub fn now(host: &Host) -> Self {
        let own = child::cpu_of_ended().total().as_secs_f64();
        let text = host.read("proc/stat").unwrap_or_default();
        Self::parse(text.lines().next().unwrap_or_default(), own).unwrap_or_default()
    }

    /// Parses the first line of `/proc/stat`, which sums all CPUs.
    fn parse(line: &str, own: f64) -> Option<Self> {
        let (_, (busy, all)) = busy_and_all(line).filter(|(name, _)| *name == "cpu")?;
        Some(Self {
            busy: busy as f64 * TICK,
            all: all as f64 * TICK,
            own,
        })
    }

    /// The share of the machine's CPU time since `before` that other processes used, 0 to 1.
    pub fn others_since(self, before: Self) -> f64 {
        let others = (self.busy - before.busy) - (self.own - before.own);
        let all = self.all - before.all;
        if all <= 0.0 {
            0.0
        } else {
            (others / all).clamp(0.0, 1.0)
        }
    }
}

/// The share of the machine's CPU time that other processes use, measured for half a second.
pub fn others_now(host: &Host) -> f64 {
    let before = Account::now(host);
    std::thread::sleep(Duration::from_millis(500));
    Account::now(host).others_since(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_children_used_is_not_others() {
        let before = Account::parse("cpu  100 0 100 800 0 0 0 0 0 0", 1.0).unwrap();
        let after = Account::parse("cpu  200 0 100 900 0 0 0 100 50 0", 1.5).unwrap();
        // Two of three seconds were busy, and half a second of that was used by our children.
        assert!((after.others_since(before) - 0.5).abs() < 1e-9);
        assert_eq!(before.others_since(before), 0.0);
    }

    #[test]
    fn this_kernel_has_an_account() {
        let now = Account::now(&Host::default());
        assert!(now.all > 0.0 && now.busy <= now.all, "{now:?}");
    }

    #[test]
    fn what_is_no_account_is_none() {
        for line in ["", "cpu", "cpu  x", "cpu0 1 2 3 4"] {
            assert_eq!(Account::parse(line, 0.0), None, "{line}");
        }
    }
}

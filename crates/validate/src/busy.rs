//! How busy the machine is with what is not ours, by the kernel's own account of its CPUs.

use nodewise_linux::cpu_ticks::busy_and_all;
use nodewise_linux::{Host, child};
use std::time::Duration;

/// The kernel accounts in hundredths of a second, whatever its own clock does (proc(5), `USER_HZ`).
const TICK: f64 = 0.01;

/// Others that use more of the CPUs than this disturb the times.
pub const QUIET: f64 = 0.05;

/// CPU time of the machine up to now.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Account {
    busy: f64,
    all: f64,
    /// Of that, what children of ours used.
    own: f64,
}

impl Account {
    /// Up to now; nothing if the kernel does not say.
    pub fn now(host: &Host) -> Self {
        let own = child::cpu_of_ended();
        let own = (own.user + own.system).as_secs_f64();
        let text = host.read("proc/stat").unwrap_or_default();
        Self::parse(text.lines().next().unwrap_or_default(), own).unwrap_or_default()
    }

    /// The first line of `/proc/stat`: that of all CPUs.
    fn parse(line: &str, own: f64) -> Option<Self> {
        let (_, (busy, all)) = busy_and_all(line).filter(|(name, _)| *name == "cpu")?;
        Some(Self {
            busy: busy as f64 * TICK,
            all: all as f64 * TICK,
            own,
        })
    }

    /// The share of all CPU time since then that others used, 0 to 1.
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

/// The share that others use now, watched for half a second.
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
        // Two of three seconds were busy, and half a second of that was ours.
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

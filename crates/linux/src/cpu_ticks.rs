//! How long each CPU was busy, by the kernel's account (proc(5), `/proc/stat`).

use crate::{Host, affinity};
use std::collections::HashMap;

/// Seconds of a clock tick there: 1/`USER_HZ`, a hundredth whatever the kernel's own tick rate (proc(5)).
const TICK: f64 = 0.01;

/// CPU time of the CPUs that this thread may use, since the host booted, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HostTime {
    busy: f64,
    all: f64,
}

impl HostTime {
    /// CPU time up to now; all zero if the kernel does not report it.
    #[must_use]
    pub fn now(host: &Host) -> Self {
        let allowed = affinity::allowed_cpus().unwrap_or_default();
        let ticks = host.cpu_ticks().into_iter();
        Self::sum(ticks.filter(|(cpu, _)| allowed.is_empty() || allowed.contains(cpu)))
    }

    fn sum(cpus: impl Iterator<Item = (u32, (u64, u64))>) -> Self {
        let add = |(busy, all), (_, (b, a))| (busy + b, all + a);
        let (busy, all) = cpus.fold((0, 0), add);
        Self {
            busy: busy as f64 * TICK,
            all: all as f64 * TICK,
        }
    }

    /// The share of the CPU time since `before` that was used, but for `own` seconds of it, 0 to 1; `None` if no time
    /// passed, or the kernel does not report it.
    #[must_use]
    pub fn others_since(self, before: Self, own: f64) -> Option<f64> {
        let all = self.all - before.all;
        (all > 0.0).then(|| ((self.busy - before.busy - own) / all).clamp(0.0, 1.0))
    }
}

impl Host {
    /// Busy and total clock ticks of each CPU since boot; empty if the kernel does not report them.
    #[must_use]
    pub fn cpu_ticks(&self) -> HashMap<u32, (u64, u64)> {
        let text = self.read("proc/stat").unwrap_or_default();
        text.lines().filter_map(parse).collect()
    }
}

fn parse(line: &str) -> Option<(u32, (u64, u64))> {
    let (name, ticks) = busy_and_all(line)?;
    Some((name.strip_prefix("cpu")?.parse().ok()?, ticks))
}

/// Parses the name of a line, `cpu` or `cpuN`, with busy and total ticks: `NAME user nice system idle iowait irq
/// softirq steal …`. Time of guests is contained in user time.
fn busy_and_all(line: &str) -> Option<(&str, (u64, u64))> {
    let mut words = line.split_ascii_whitespace();
    let name = words.next()?;
    let ticks: Vec<u64> = words.take(8).map(str::parse).collect::<Result<_, _>>().ok()?;
    let all: u64 = ticks.iter().sum();
    let idle = ticks.get(3)? + ticks.get(4).unwrap_or(&0);
    Some((name, (all - idle, all)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_caller_used_is_not_others() {
        let before = HostTime::sum([(0, (100, 500)), (1, (100, 500))].into_iter());
        let after = HostTime::sum([(0, (200, 600)), (1, (200, 700))].into_iter());
        // Two of three seconds were busy, and half a second of that was the caller's.
        assert!((after.others_since(before, 0.5).unwrap() - 0.5).abs() < 1e-9);
        assert_eq!(after.others_since(before, 3.0), Some(0.0));
        assert_eq!(before.others_since(before, 0.5), None);
    }

    #[test]
    fn each_cpu_has_busy_and_total_ticks() {
        assert_eq!(parse("cpu3 5 1 4 80 10 2 3 1 99 0"), Some((3, (16, 106))));
        for other in ["cpu  5 1 4 80 10 2 3 1 0 0", "intr 7", "cpu1 x", "cpu1"] {
            assert_eq!(parse(other), None, "{other}");
        }
        let here = Host::default().cpu_ticks();
        assert!(here.values().all(|(busy, all)| busy <= all) && !here.is_empty());
    }
}

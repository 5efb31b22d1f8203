//! How long each CPU was busy, by the kernel's account (proc(5), `/proc/stat`).

use crate::Host;
use std::collections::HashMap;

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
#[must_use]
pub fn busy_and_all(line: &str) -> Option<(&str, (u64, u64))> {
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
    fn each_cpu_has_busy_and_total_ticks() {
        assert_eq!(parse("cpu3 5 1 4 80 10 2 3 1 99 0"), Some((3, (16, 106))));
        for other in ["cpu  5 1 4 80 10 2 3 1 0 0", "intr 7", "cpu1 x", "cpu1"] {
            assert_eq!(parse(other), None, "{other}");
        }
        let here = Host::default().cpu_ticks();
        assert!(here.values().all(|(busy, all)| busy <= all) && !here.is_empty());
    }
}

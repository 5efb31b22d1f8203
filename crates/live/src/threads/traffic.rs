//! Scales sampled accesses by measured remote bandwidth, where the hardware counts it (resctrl: total minus local
//! bandwidth). Hint faults tell who accesses what, not how often.

use super::view::Seen;
use nodewise_linux::Host;
use nodewise_linux::resctrl::Traffic;
use std::collections::{BTreeMap, HashMap};

/// Bytes per access: a cache line.
const LINE: f64 = 64.0;

/// Bandwidth counters of the resctrl monitoring groups of processes.
#[derive(Debug, Default)]
pub struct Groups {
    /// The monitoring group of each process; none if it has none of its own. `last`: counter values by group.
    of: HashMap<u32, Option<String>>,
    last: HashMap<String, Traffic>,
}

impl Groups {
    /// Scales the accesses of processes in a monitoring group so that the remote ones match resctrl's count since the
    /// last call, `seconds` ago. Whether any were scaled.
    pub fn scale(&mut self, host: &Host, seen: &mut [Seen], seconds: f64) -> bool {
        self.of.retain(|pid, _| seen.iter().any(|s| s.pid == *pid));
        let mut members: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (at, one) in seen.iter().enumerate() {
            let group = self
                .of
                .entry(one.pid)
                .or_insert_with(|| host.monitoring_group(one.pid));
            if let Some(group) = group {
                members.entry(group.clone()).or_default().push(at);
            }
        }
        let mut scaled = false;
        for (group, members) in members {
            let Some(now) = host.traffic(&group) else {
                continue;
            };
            let Some(before) = self.last.insert(group, now) else {
                continue;
            };
            scaled |= scale(seen, &members, lines(before, now) / seconds.max(1e-3));
        }
        scaled
    }
}

/// Remote bytes since the last values; `None` if a counter wrapped.
fn lines(before: Traffic, now: Traffic) -> f64 {
    let remote = |t: Traffic| t.total.saturating_sub(t.local);
    remote(now).saturating_sub(remote(before)) as f64 / LINE
}

/// Scales these processes' remote accesses so that they sum to `remote` a second; does nothing if none was sampled.
fn scale(seen: &mut [Seen], members: &[usize], remote: f64) -> bool {
    let sampled: f64 = members.iter().map(|at| seen[*at].remote()).sum();
    if sampled <= 0.0 || remote <= 0.0 {
        return false;
    }
    for at in members {
        let rates = seen[*at].threads.iter_mut().flat_map(|t| &mut t.accesses);
        rates.for_each(|rate| *rate *= remote / sampled);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::view::Thread;
    use super::*;
    use nodewise_machine::NodeId;

    fn seen(pid: u32, accesses: &[f64]) -> Seen {
        Seen {
            pid,
            threads: vec![Thread {
                tid: pid,
                node: NodeId(0),
                accesses: accesses.to_vec(),
                ..Thread::default()
            }],
            ..Seen::default()
        }
    }

    #[test]
    fn remote_accesses_are_as_many_as_were_counted_and_their_shares_as_sampled() {
        let root = std::env::temp_dir().join(format!("nodewise-traffic-{}", std::process::id()));
        let group = root.join("sys/fs/resctrl/mon_groups/job");
        let count = |total: u64, local: u64| {
            let data = group.join("mon_data/mon_L3_00");
            std::fs::create_dir_all(&data).unwrap();
            std::fs::write(data.join("mbm_total_bytes"), format!("{total}\n")).unwrap();
            std::fs::write(data.join("mbm_local_bytes"), format!("{local}\n")).unwrap();
        };
        count(1000, 400);
        std::fs::write(group.join("tasks"), "7\n8\n").unwrap();
        let host = Host::at(&root);
        let all = || vec![seen(7, &[5.0, 3.0]), seen(8, &[0.0, 1.0]), seen(9, &[1.0, 1.0])];
        let (mut groups, mut first) = (Groups::default(), all());
        assert!(!groups.scale(&host, &mut first, 1.0));
        assert_eq!(first, all());
        count(1000 + 64 * 900, 400 + 64 * 100);
        let mut second = all();
        assert!(groups.scale(&host, &mut second, 2.0));
        let rates: Vec<_> = second.iter().map(|s| s.threads[0].accesses.clone()).collect();
        assert_eq!(rates, [[500.0, 300.0], [0.0, 100.0], [1.0, 1.0]]);
        std::fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn what_wrapped_is_not_counted() {
        let traffic = |total, local| Traffic { total, local };
        assert_eq!(lines(traffic(1000, 0), traffic(10, 0)), 0.0);
        assert_eq!(lines(traffic(0, 0), traffic(640, 0)), 10.0);
    }
}

//! Where the threads run that can use an object: those of the processes that map it.

use nodewise_linux::Host;
use nodewise_linux::process::Task;
use nodewise_machine::{CpuId, Machine};
use std::collections::BTreeMap;

/// The share of the CPU time of these processes, since they started, that each node has, by the kernel's number. The
/// time of a thread counts for the node where it runs or ran last. Empty if none has used a CPU.
#[must_use]
pub fn cpu_shares(host: &Host, machine: &Machine, pids: impl IntoIterator<Item = u32>) -> BTreeMap<u32, f64> {
    let tasks: Vec<Task> = pids
        .into_iter()
        .flat_map(|pid| host.tasks(pid).unwrap_or_default())
        .collect();
    shares_of(machine, &tasks)
}

/// As [`cpu_shares`], of these threads.
pub(crate) fn shares_of<'a>(
    machine: &Machine,
    tasks: impl IntoIterator<Item = &'a Task>,
) -> BTreeMap<u32, f64> {
    let mut time: BTreeMap<u32, u64> = BTreeMap::new();
    for task in tasks {
        if let Some(node) = node_of(machine, task.cpu) {
            *time.entry(node).or_default() += task.cpu_ns;
        }
    }
    let all: u64 = time.values().sum();
    time.retain(|_, ns| *ns > 0);
    time.into_iter()
        .map(|(node, ns)| (node, ns as f64 / all as f64))
        .collect()
}

/// The share of accesses that is local if threads with these shares of CPU time use all of a memory alike, of which the
/// bytes on each node are given; 0 without memory.
pub(crate) fn local_share(memory: impl Iterator<Item = (u32, u64)>, cpu_share: &BTreeMap<u32, f64>) -> f64 {
    let (mut all, mut local) = (0, 0.0);
    for (node, bytes) in memory {
        all += bytes;
        local += bytes as f64 * cpu_share.get(&node).unwrap_or(&0.0);
    }
    local / all.max(1) as f64
}

/// The kernel's number of a CPU's node.
pub(crate) fn node_of(machine: &Machine, cpu: u32) -> Option<u32> {
    let node = machine
        .nodes
        .iter()
        .find(|node| node.cpus.contains(&CpuId(cpu)))?;
    Some(node.os_index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_this_process_sum_to_one() {
        let host = Host::default();
        let machine = Machine::from_sysfs(&host.sys(), "this").unwrap();
        let shares = cpu_shares(&host, &machine, [std::process::id()]);
        assert!((shares.values().sum::<f64>() - 1.0).abs() < 1e-9, "{shares:?}");
        assert!(cpu_shares(&host, &machine, [u32::MAX - 1]).is_empty());
    }
}

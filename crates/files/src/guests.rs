//! Guests: virtual machines that run as processes of QEMU here.

use crate::users;
use nodewise_linux::Host;
use nodewise_linux::process::Task;
use nodewise_machine::Machine;
use serde::Serialize;
use std::collections::BTreeMap;

/// A virtual CPU of a guest and where its thread runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VirtualCpu {
    /// Its number in the guest.
    pub cpu: u32,
    /// The thread that runs it.
    pub thread: u32,
    /// The kernel's number of the node where that thread runs, or ran last; `None` if its CPU is on no node.
    pub node: Option<u32>,
    /// Nodes that its affinity mask allows.
    pub allowed: Vec<u32>,
}

/// A virtual machine: its virtual CPUs and its memory on this host.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Guest {
    /// Identifier of the QEMU process that runs it.
    pub pid: u32,
    /// Its name, as QEMU was told (`-name`); else the process's.
    pub name: String,
    /// Its virtual CPUs, ascending.
    pub cpus: Vec<VirtualCpu>,
    /// Resident memory of the process by the kernel's node number, bytes: the guest's memory, and what QEMU itself needs;
    /// `None` if this user may not look into the process.
    pub memory: Option<BTreeMap<u32, u64>>,
    /// The share of the virtual CPUs' time, since they started, by the kernel's node number of where each runs.
    pub cpu_share: BTreeMap<u32, f64>,
}

impl Guest {
    /// The guest that a process runs; `None` if it runs none: QEMU names the threads of virtual CPUs `CPU 0/KVM`.
    #[must_use]
    pub fn of(host: &Host, machine: &Machine, pid: u32) -> Option<Self> {
        let tasks = host.tasks(pid).ok()?;
        let mut cpus: Vec<VirtualCpu> = tasks
            .iter()
            .filter_map(|task| virtual_cpu(host, machine, pid, task))
            .collect();
        if cpus.is_empty() {
            return None;
        }
        cpus.sort_unstable_by_key(|c| c.cpu);
        let memory = host.resident_by_node(pid).ok();
        let command = host.read(&format!("proc/{pid}/cmdline")).unwrap_or_default();
        let process = host.status(pid).map(|s| s.name).unwrap_or_default();
        let threads: Vec<&Task> = tasks.iter().filter(|t| number(&t.name).is_some()).collect();
        Some(Self {
            pid,
            name: guest_name(&command).unwrap_or(process),
            cpu_share: users::shares_of(machine, threads),
            cpus,
            memory,
        })
    }

    /// The share of the accesses that is local if virtual CPUs use all of the memory alike, 0 to 1; `None` if the memory is
    /// not known.
    #[must_use]
    pub fn expected_local(&self) -> Option<f64> {
        let memory = self.memory.as_ref()?;
        let memory = memory.iter().map(|(node, bytes)| (*node, *bytes));
        Some(users::local_share(memory, &self.cpu_share))
    }
}

fn virtual_cpu(host: &Host, machine: &Machine, pid: u32, task: &Task) -> Option<VirtualCpu> {
    let cpu = number(&task.name)?;
    let status = host.read(&format!("proc/{pid}/task/{}/status", task.tid)).ok()?;
    let mut allowed: Vec<u32> = nodewise_linux::process::Status::parse(&status)
        .cpus_allowed
        .iter()
        .filter_map(|cpu| users::node_of(machine, *cpu))
        .collect();
    allowed.sort_unstable();
    allowed.dedup();
    Some(VirtualCpu {
        cpu,
        thread: task.tid,
        node: users::node_of(machine, task.cpu),
        allowed,
    })
}

/// `CPU 3/KVM`, `CPU 3/TCG`: QEMU's name of a virtual CPU's thread (`-name debug-threads=on`, which libvirt sets).
fn number(thread: &str) -> Option<u32> {
    thread.strip_prefix("CPU ")?.split_once('/')?.0.parse().ok()
}

/// The value of `-name`: `web` or `guest=web,debug-threads=on`; arguments are separated by NUL.
fn guest_name(command: &str) -> Option<String> {
    let value = command.split('\0').skip_while(|a| *a != "-name").nth(1)?;
    let parts: Vec<&str> = value.split(',').collect();
    let given = parts.iter().find_map(|p| p.strip_prefix("guest="));
    let plain = parts.first().filter(|p| !p.contains('='));
    given.or(plain.copied()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_qemus() {
        assert_eq!(number("CPU 12/KVM"), Some(12));
        assert_eq!(number("CPU 0/TCG"), Some(0));
        assert_eq!((number("qemu-system-x86"), number("CPU x/KVM")), (None, None));
        let name = |command: &str| guest_name(command);
        assert_eq!(
            name("qemu\0-name\0guest=web,debug-threads=on\0-m\0").as_deref(),
            Some("web")
        );
        assert_eq!(name("qemu\0-name\0db,process=x\0").as_deref(), Some("db"));
        assert_eq!(name("qemu\0-m\x004G\0"), None);
    }

    #[test]
    fn this_process_is_no_guest() {
        let host = Host::default();
        let machine = Machine::from_sysfs(&host.sys(), "this").unwrap();
        assert_eq!(Guest::of(&host, &machine, std::process::id()), None);
    }
}

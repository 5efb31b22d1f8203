//! The reasons for a process's score, with their remedies.

use nodewise_linux::Host;
use nodewise_linux::process::Status;
use nodewise_machine::Machine;
use nodewise_report::{bytes, plural, seconds, whole_percent};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// One reason for a score, with its remedy.
#[derive(Serialize)]
pub struct Reason {
    /// Name in JSON, the same in all versions: `overfull-node`.
    pub kind: &'static str,
    /// The finding in one sentence, with its figures.
    pub text: String,
    /// The remedy, if there is one.
    #[serde(rename = "mend")]
    pub remedy: Option<&'static str>,
}

/// The figures from which reasons are derived.
pub struct Figures<'a> {
    /// Share of CPU time by node.
    pub cpu_share: &'a [f64],
    /// Resident bytes by node.
    pub memory: &'a [u64],
    /// Share of resident bytes by node.
    pub memory_share: &'a [f64],
    /// Resident bytes by memory policy.
    pub policies: &'a BTreeMap<String, u64>,
    /// Number of observed threads.
    pub threads: usize,
    /// Number of threads that changed node.
    pub moved_threads: usize,
    /// Number of changes of node, over all threads.
    pub moves: u32,
    /// How long threads were observed; `None` if they were idle.
    pub watched: Option<Duration>,
    /// Share of the process's memory traffic that stayed local; `None` if resctrl does not measure it.
    pub measured_local: Option<f64>,
}

fn reason(kind: &'static str, text: String, remedy: &'static str) -> Reason {
    Reason {
        kind,
        text,
        remedy: (!remedy.is_empty()).then_some(remedy),
    }
}

/// The reasons for a process's score, the most important first.
pub fn of(process: &Figures<'_>, status: &Status, machine: &Machine, host: &Host) -> Vec<Reason> {
    if machine.node_count() == 1 {
        return vec![reason(
            "one-node",
            "one memory node: nothing can be placed wrongly".into(),
            "",
        )];
    }
    let mut all = Vec::new();
    if process.cpu_share.iter().sum::<f64>() == 0.0 {
        all.push(reason(
            "never-ran",
            "its threads have not run yet: where they will is not known".into(),
            "",
        ));
        return all;
    }
    all.extend(overfull(process));
    all.extend(without_cpus(process, machine));
    all.extend(moving(process));
    all.extend(not_allowed(process, status, machine));
    all.extend(policies(process));
    all.extend(measured(process));
    if host.numa_balancing().is_some_and(|n| n > 0) {
        let text = "the kernel balances pages itself (numa_balancing is on): the layout may change under way";
        all.push(reason("kernel-balancing", text.into(), ""));
    }
    all
}

/// The reason that a node has a much larger share of the memory than of the CPU time.
fn overfull(process: &Figures<'_>) -> Option<Reason> {
    let memory = process.memory_share;
    let excess = |n: usize| memory[n] - process.cpu_share[n];
    let node = (0..memory.len()).max_by(|a, b| excess(*a).total_cmp(&excess(*b)))?;
    if excess(node) < 0.1 {
        return None;
    }
    let threads_spread = process.cpu_share.iter().filter(|c| **c > 0.05).count() > 1;
    let remedy = match (threads_spread, memory[node] > 0.6) {
        (true, true) => {
            "one thread probably touched it first: initialise in parallel; \
             without a rebuild, `nodewise run --policy interleave -- CMD` or `numactl --interleave=all CMD`"
        }
        (true, false) => {
            "bind threads (OMP_PROC_BIND=close OMP_PLACES=cores) so that they stay where their pages are"
        }
        (false, _) => "run threads and memory on one node: `numactl --cpunodebind=N --preferred=N CMD`",
    };
    let text = format!(
        "node {node} holds {} of the memory ({}) but runs {} of the CPU time",
        whole_percent(memory[node]),
        bytes(process.memory[node]),
        whole_percent(process.cpu_share[node])
    );
    Some(reason("overfull-node", text, remedy))
}

fn without_cpus(process: &Figures<'_>, machine: &Machine) -> Option<Reason> {
    let far = machine
        .node_ids()
        .filter(|n| machine.nodes[n.index()].cpus.is_empty());
    let held: u64 = far.map(|n| process.memory[n.index()]).sum();
    let text = format!(
        "{} lie on nodes without CPUs (CXL, HBM): no thread is local to them",
        bytes(held)
    );
    let remedy = "`nodewise balance --policy hot:LIST --pid PID`, with the nodes that have CPUs as LIST, exchanges pages until the \
                  ones accessed most are there; `nodewise migrate PID --from A --to B --metric CMD` finds the share of them that is fastest there";
    (held > 0).then(|| reason("memory-without-cpus", text, remedy))
}

fn moving(process: &Figures<'_>) -> Option<Reason> {
    let watched = process.watched?.as_secs_f64();
    let text = format!(
        "{} of {} changed node while watched: {} in {}",
        process.moved_threads,
        plural(process.threads, "thread"),
        plural(process.moves as usize, "move"),
        seconds(watched)
    );
    let remedy = "bind threads: OMP_PROC_BIND=close OMP_PLACES=cores, `taskset`, or `nodewise run -- CMD`";
    (process.moved_threads > 0).then(|| reason("moving-threads", text, remedy))
}

fn not_allowed(process: &Figures<'_>, status: &Status, machine: &Machine) -> Option<Reason> {
    let allowed = &status.mems_allowed;
    let outside = machine
        .node_ids()
        .filter(|n| !allowed.contains(&machine.nodes[n.index()].os_index));
    let held: u64 = outside.map(|n| process.memory[n.index()]).sum();
    let text = format!("{} lie on nodes its cpuset no longer allows", bytes(held));
    let remedy = "`migratepages PID FROM TO` (package numactl) brings them over";
    (held > 0 && !allowed.is_empty()).then(|| reason("outside-cpuset", text, remedy))
}

fn policies(process: &Figures<'_>) -> Option<Reason> {
    let set = process
        .policies
        .iter()
        .filter(|(policy, held)| policy.as_str() != "default" && **held > 0);
    let list: Vec<String> = set
        .map(|(policy, held)| format!("{policy} for {}", bytes(*held)))
        .collect();
    (!list.is_empty()).then(|| {
        reason(
            "policies",
            format!("memory policies in force: {}", list.join(", ")),
            "",
        )
    })
}

fn measured(process: &Figures<'_>) -> Option<Reason> {
    let share = process.measured_local?;
    let text = format!(
        "measured by resctrl while watched: {} of its memory traffic stayed local",
        whole_percent(share)
    );
    Some(reason("measured-traffic", text, ""))
}

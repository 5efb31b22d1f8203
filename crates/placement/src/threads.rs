//! The registry of thread policies, which assign threads to CPUs.

mod cpus;
mod file;
mod hwloc;
mod likwid;
mod names;
mod node_cpus;
mod partition;
mod recorded;
mod sharing_aware;
mod sharing_graph;
mod virtual_nodes;

pub use cpus::thread_order;
pub use names::THREAD_POLICIES;
pub use node_cpus::NodeCpus;
pub use partition::{Parts, partition};
pub use recorded::recorded;
pub use sharing_aware::sharing_aware;
pub use sharing_graph::SharingGraph;
pub use virtual_nodes::{Placements, VirtualNodes, virtual_affinity};

use names::full_name;

use crate::policies::Outside;
use crate::{PolicyError, ThreadBinding};
use nodewise_analysis::{Affinity, Histogram, thread_numbers};
use nodewise_machine::{CpuId, Machine};
use nodewise_profile::Profile;

/// The affinity by a policy's name. `auto` is `recorded` on a machine with as many nodes as the one that the profile
/// was sampled on, else `sharing-aware`. With more threads than CPUs, assignment starts again at the first CPU.
///
/// ```
/// # use nodewise_analysis::Histogram;
/// # use nodewise_machine::Machine;
/// # use nodewise_placement::{policies::Nothing, thread_policy};
/// # use nodewise_profile::{Profile, Thread};
/// let machine = Machine::named("nehalem-2s")?; // two nodes of four CPUs
/// let profile = Profile { threads: vec![Thread::default(); 5], ..Profile::default() };
/// let nodes = |policy| {
///     let affinity = thread_policy(policy, &profile, &Histogram::default(), &machine, &Nothing);
///     affinity.map(|a| a.nodes.iter().map(|n| n.0).collect::<Vec<_>>())
/// };
/// assert_eq!(nodes("compact")?, [0, 0, 0, 0, 1]);
/// assert_eq!(nodes("scatter")?, [0, 1, 0, 1, 0]);
/// assert_eq!(nodes("cpus:7,0")?, [1, 0, 1, 0, 1]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
/// # Errors
/// One line: the unknown name with the known ones, or what is wrong with the file.
pub fn thread_policy(
    text: &str,
    profile: &Profile,
    histogram: &Histogram,
    machine: &Machine,
    outside: &dyn Outside,
) -> Result<Affinity, PolicyError> {
    let text = &*full_name(text)?;
    let cpus = match text {
        "sharing-aware" => sharing_aware(profile, histogram, machine),
        "auto" => return seen_here(profile, histogram, machine, outside),
        "recorded" => return recorded(text, profile, machine),
        "asym" => {
            let threads = VirtualNodes::new(profile, histogram, machine);
            let nodes = threads.by_bandwidth(machine)?;
            return Ok(threads.affinity(text, profile, machine, &nodes));
        }
        _ => thread_order(text, &NodeCpus::from(machine), outside)?,
    };
    Ok(Affinity::of_cpus(text, profile, machine, &cpus))
}

/// Where threads were observed, if that was on this machine; else sharing-aware.
fn seen_here(
    profile: &Profile,
    histogram: &Histogram,
    machine: &Machine,
    outside: &dyn Outside,
) -> Result<Affinity, PolicyError> {
    let nodes = profile.meta.host_nodes as usize;
    let known = profile.threads.iter().any(|t| t.node.is_some());
    let name = match known && nodes > 1 && nodes == machine.node_count() {
        true => "recorded",
        false => "sharing-aware",
    };
    thread_policy(name, profile, histogram, machine, outside)
}

impl ThreadBinding {
    /// The binding that realises an affinity: the CPU and node of each thread number.
    #[must_use]
    pub fn of(affinity: &Affinity, profile: &Profile) -> Self {
        let nodes = affinity.by_number(profile);
        let mut cpus = vec![CpuId(0); nodes.len()];
        for (number, cpu) in thread_numbers(profile).into_iter().zip(&affinity.cpus) {
            cpus[number as usize] = *cpu;
        }
        Self {
            name: affinity.name.clone(),
            cpus,
            nodes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{Recorded, machine};
    use crate::policies::Nothing;
    use nodewise_analysis::scatter_order;
    use nodewise_machine::NodeId;

    fn recorded() -> Recorded {
        // Threads t and t + 4 work on the same pages.
        let pairs = |page: u64, thread: u32| u64::from(u64::from(thread % 4) == page) * 10;
        Recorded::new(machine(4, 2), 8, &[(4, &pairs)])
    }

    fn nodes(name: &str) -> Vec<u32> {
        let Recorded {
            profile,
            histogram,
            machine,
            ..
        } = recorded();
        let affinity = thread_policy(name, &profile, &histogram, &machine, &Nothing).unwrap();
        assert_eq!(affinity.name, name);
        affinity.nodes.iter().map(|n| n.0).collect()
    }

    #[test]
    fn each_policy_binds_as_its_name_says() {
        assert_eq!(nodes("compact"), [0, 0, 1, 1, 2, 2, 3, 3]);
        assert_eq!(nodes("scatter"), [0, 1, 2, 3, 0, 1, 2, 3]);
        let found = nodes("sharing-aware");
        assert!((0..4).all(|t| found[t] == found[t + 4]), "{found:?}");
    }

    #[test]
    fn unknown_names_list_the_known_ones() {
        let Recorded {
            profile,
            histogram,
            machine,
            ..
        } = recorded();
        let error = |text| {
            thread_policy(text, &profile, &histogram, &machine, &Nothing)
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            error("close"),
            "unknown affinity `close`; known: compact, identity, scatter, sharing-aware, asym, recorded, \
             cpus:LIST, likwid:EXPR, hwloc:EXPR, file:FILE"
        );
        assert!(error("scater").starts_with("unknown affinity `scater` (did you mean scatter?); known: "));
        assert!(error("likwdi:M0:0").contains("`likwdi:M0:0` (did you mean likwid?); known: "));
        assert!(error("scatter:2").starts_with("unknown affinity `scatter:2`; known: "));
        assert_eq!(error("fil:x"), "x: files cannot be read here");
        assert_eq!(error("file:x"), "x: files cannot be read here");
    }

    #[test]
    fn a_binding_is_by_thread_number() {
        let mut recorded = Recorded::new(machine(2, 3), 2, &[]);
        recorded.profile.threads.reverse();
        let Recorded { profile, machine, .. } = &recorded;
        let affinity = Affinity::of_cpus("scatter", profile, machine, &scatter_order(machine));
        let binding = ThreadBinding::of(&affinity, profile);
        assert_eq!(binding.cpus, [0, 3].map(CpuId));
        assert_eq!(binding.nodes, [0, 1].map(NodeId));
    }
}

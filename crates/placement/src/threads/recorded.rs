//! The thread placement that was observed while recording.

use crate::PolicyError;
use nodewise_analysis::Affinity;
use nodewise_machine::{Machine, NodeId};
use nodewise_profile::Profile;
use std::collections::BTreeMap;

/// Puts every thread on the node on which it was sampled, and the threads of a node on its CPUs in turn. Threads that
/// were never sampled go to the first node.
///
/// # Errors
/// One line: the profile does not say where threads ran, or of nodes that the machine lacks.
pub fn recorded(name: &str, profile: &Profile, machine: &Machine) -> Result<Affinity, PolicyError> {
    if profile.threads.iter().all(|t| t.node.is_none()) {
        return Err(PolicyError(format!(
            "affinity `{name}`: the profile does not say where threads ran; only samples do (record --via faults, \
             balance -o)"
        )));
    }
    let with_cpus: Vec<NodeId> = machine.cpu_nodes().collect();
    let mut taken: BTreeMap<NodeId, usize> = BTreeMap::new();
    let (mut cpus, mut nodes) = (Vec::new(), Vec::new());
    for thread in &profile.threads {
        let node = thread.node.map_or(with_cpus[0], |n| NodeId(n.into()));
        if !with_cpus.contains(&node) {
            return Err(PolicyError(format!(
                "affinity `{name}`: threads ran on node {node}, which has no CPUs on {}; name the machine it was \
                 recorded on, or another affinity",
                machine.name
            )));
        }
        let turn = taken.entry(node).or_default();
        let here = &machine.nodes[node.index()].cpus;
        cpus.push(here[*turn % here.len()]);
        nodes.push(node);
        *turn += 1;
    }
    Ok(Affinity {
        name: name.to_owned(),
        cpus,
        nodes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::machine;
    use nodewise_profile::Thread;

    fn profile(nodes: &[Option<u16>]) -> Profile {
        let thread = |node: &Option<u16>| Thread {
            node: *node,
            ..Thread::default()
        };
        Profile {
            threads: nodes.iter().map(thread).collect(),
            ..Profile::default()
        }
    }

    #[test]
    fn threads_are_where_they_were_seen() {
        let profile = profile(&[Some(1), Some(0), None, Some(1), Some(1)]);
        let found = recorded("recorded", &profile, &machine(2, 2)).unwrap();
        assert_eq!(found.nodes, [1, 0, 0, 1, 1].map(NodeId));
        assert_eq!(
            found.cpus.iter().map(|c| c.0).collect::<Vec<_>>(),
            [2, 0, 1, 3, 2]
        );
    }

    #[test]
    fn who_was_seen_nowhere_or_elsewhere_is_an_error() {
        let error =
            |nodes: &[Option<u16>]| recorded("recorded", &profile(nodes), &machine(2, 2)).unwrap_err();
        assert!(error(&[None, None]).to_string().contains("only samples do"));
        assert!(error(&[Some(2)]).to_string().contains("threads ran on node 2"));
    }
}

//! Converts observations of processes into the scheduler's input, and its decisions back.

use nodewise_control::asym::{self, Application, Process, ThreadMove};
use nodewise_machine::NodeId;
use nodewise_placement::asym::{AsymError, Place};
use std::collections::BTreeSet;

/// The observed state of a process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    pub pid: u32,
    pub name: String,
    /// Time for which it has been followed, nanoseconds.
    pub run_ns: u64,
    /// Threads that used the CPU recently.
    pub threads: Vec<Thread>,
    /// Ids of all its threads.
    pub all: BTreeSet<u32>,
    /// Resident bytes on each node.
    pub resident: Vec<u64>,
    /// CPUs that it may use.
    pub cpus: Vec<u32>,
    /// Nodes whose memory it may use.
    pub nodes: Vec<NodeId>,
    /// Whether its affinity was set by itself or by others than us.
    pub pinned: bool,
}

/// The observed state of a thread.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Thread {
    pub tid: u32,
    /// The node of the CPU that it runs on.
    pub node: NodeId,
    /// Share of a CPU that it uses, 0 to 1.
    pub load: f64,
    /// Share of a CPU that it would use if it never had to wait for one.
    pub demand: f64,
    /// The node that it is bound to by us.
    pub bound: Option<NodeId>,
    /// Accesses per second to the memory of each node.
    pub accesses: Vec<f64>,
}

impl Seen {
    /// Nodes that its threads run on.
    pub fn runs_on(&self) -> BTreeSet<NodeId> {
        self.threads.iter().map(|t| t.node).collect()
    }

    /// Remote accesses of all its threads per second.
    pub fn remote(&self) -> f64 {
        let away = |t: &Thread| -> f64 {
            let others = t
                .accesses
                .iter()
                .enumerate()
                .filter(|(m, _)| *m != t.node.index());
            others.map(|(_, n)| n).sum()
        };
        self.threads.iter().map(away).sum()
    }

    /// Converts it to the scheduler's input.
    fn counted(&self, fixed: bool) -> Process {
        let thread = |t: &Thread| asym::Thread {
            number: t.tid,
            node: t.node,
            accesses: t.accesses.clone(),
        };
        Process {
            id: self.pid,
            run_ns: self.run_ns,
            threads: self.threads.iter().map(thread).collect(),
            resident: self.resident.clone(),
            fixed,
        }
    }
}

/// The scheduler's input: clusters of the processes for which `may_move` holds, and a fixed cluster for each other
/// process.
///
/// # Errors
/// One line: there are more clusters than nodes.
pub fn applications(
    seen: &[Seen],
    may_move: impl Fn(&Seen) -> bool,
    places: &[Place],
) -> Result<Vec<Application>, AsymError> {
    let counted: Vec<Process> = seen.iter().map(|s| s.counted(!may_move(s))).collect();
    asym::applications(&counted, places)
}

/// The target node of each active thread; the current node of those that do not migrate.
pub fn bindings(seen: &Seen, moves: &[ThreadMove]) -> Vec<(u32, NodeId)> {
    let to = |tid: u32| {
        let told = moves
            .iter()
            .find(|m| m.application == seen.pid && m.threads.contains(&tid));
        told.map(|m| m.to)
    };
    let each = |t: &Thread| (t.tid, to(t.tid).unwrap_or(t.node));
    seen.threads.iter().map(each).collect()
}

/// Whether movable threads need all nodes, so that there is no choice.
pub fn nothing_to_choose(places: &[Place], applications: &[Application]) -> bool {
    let mut clusters = applications.iter().flat_map(|a| &a.clusters).filter(|c| !c.fixed);
    let Some(first) = clusters.next() else {
        return false;
    };
    places.len() < 2 || clusters.next().is_none() && first.nodes == places.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_control::asym::{Scheduler, Settings};
    use nodewise_machine::Machine;
    use nodewise_placement::asym::Cluster;

    const SECOND: u64 = 1_000_000_000;

    fn places(nodes: usize, threads: usize) -> Vec<Place> {
        let place = |n| Place {
            node: NodeId(n as u32),
            threads,
        };
        (0..nodes).map(place).collect()
    }

    /// One thread on each node, which accesses its own node's memory and, half as often, the next node's.
    fn seen(pid: u32, nodes: &[u32]) -> Seen {
        let thread = |(i, node): (usize, &u32)| {
            let mut accesses = vec![0.0; 8];
            accesses[*node as usize] += 100.0;
            accesses[nodes[(i + 1) % nodes.len()] as usize] += 50.0;
            Thread {
                tid: pid + i as u32 + 1,
                node: NodeId(*node),
                accesses,
                ..Thread::default()
            }
        };
        let mut resident = vec![0; 8];
        nodes.iter().for_each(|n| resident[*n as usize] = 1 << 20);
        Seen {
            pid,
            run_ns: 1000 * SECOND,
            threads: nodes.iter().enumerate().map(thread).collect(),
            resident,
            ..Seen::default()
        }
    }

    fn nodes_of(one: &Seen, bindings: &[(u32, NodeId)]) -> BTreeSet<u32> {
        let nodes: BTreeSet<u32> = bindings.iter().map(|(_, n)| n.0).collect();
        assert_eq!(
            (nodes.len(), bindings.len()),
            (one.threads.len(), one.threads.len())
        );
        nodes
    }

    #[test]
    fn two_processes_on_bad_nodes_get_better_ones_each_its_own() {
        let machine = Machine::named("machine-a").unwrap();
        let both = [seen(100, &[4, 7]), seen(200, &[1, 5, 6])];
        let asked = applications(&both, |_| true, &places(8, 1)).unwrap();
        assert_eq!(asked.iter().map(|a| a.id).collect::<Vec<_>>(), [100, 200]);
        assert_eq!(asked[0].accesses[4], 150.0);
        let decision = Scheduler::new(&machine, Settings::default()).step(0, &places(8, 1), &asked);
        assert!(
            decision.trouble.is_none() && decision.then > 1.5 * decision.now,
            "{decision:?}"
        );
        let [first, second] = both
            .each_ref()
            .map(|one| nodes_of(one, &bindings(one, &decision.moves)));
        assert!(first.is_disjoint(&second));
    }

    #[test]
    fn who_may_not_move_is_as_it_is_and_its_nodes_are_nobody_elses() {
        let both = [seen(100, &[4, 7]), seen(200, &[1, 5, 6])];
        let asked = applications(&both, |s| s.pid != 200, &places(8, 1)).unwrap();
        let fixed = &asked[1].clusters;
        assert_eq!((fixed.len(), fixed[0].fixed, fixed[0].nodes), (1, true, 3));
        assert!(
            (fixed[0].weight - 151f64.ln()).abs() < 1e-12,
            "{}",
            fixed[0].weight
        );
        let machine = Machine::named("machine-a").unwrap();
        let decision = Scheduler::new(&machine, Settings::default()).step(0, &places(8, 1), &asked);
        assert!(
            decision
                .moves
                .iter()
                .all(|m| m.application == 100 && ![1, 5, 6].contains(&m.to.0))
        );
        assert!(!decision.moves.is_empty());
        let idle = Seen {
            threads: vec![],
            ..seen(300, &[2])
        };
        assert_eq!(
            applications(&[idle], |_| false, &places(8, 1)).unwrap()[0].clusters,
            []
        );
    }

    #[test]
    fn more_processes_than_nodes_is_an_error_in_one_line() {
        let all: Vec<Seen> = (0..3).map(|n| seen(100 * (n + 1), &[n])).collect();
        let error = applications(&all, |_| true, &places(2, 4))
            .unwrap_err()
            .to_string();
        assert!(error.contains("3 programs") && !error.contains('\n'), "{error}");
    }

    #[test]
    fn a_process_that_needs_all_nodes_leaves_nothing_to_choose() {
        let places = |count: u32| -> Vec<Place> {
            let nodes = (0..count).map(NodeId);
            nodes.map(|node| Place { node, threads: 2 }).collect()
        };
        let of = |nodes: &[usize]| {
            let cluster = |nodes: &usize| Cluster {
                nodes: *nodes,
                ..Cluster::default()
            };
            [Application {
                clusters: nodes.iter().map(cluster).collect(),
                ..Application::default()
            }]
        };
        assert!(nothing_to_choose(&places(4), &of(&[4])));
        assert!(nothing_to_choose(&places(1), &of(&[1])));
        assert!(!nothing_to_choose(&places(4), &of(&[3])));
        assert!(!nothing_to_choose(&places(4), &of(&[2, 2])));
        assert!(!nothing_to_choose(&places(1), &of(&[])));
    }
}

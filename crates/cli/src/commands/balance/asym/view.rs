//! From what was seen of processes to what the scheduler is asked, and back.

use nodewise_control::asym::{Application, ThreadMove};
use nodewise_machine::NodeId;
use nodewise_placement::asym::{AsymError, Cluster, Crew, Place, clusters_from_counters, weight};
use std::collections::{BTreeMap, BTreeSet};

/// A process at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    pub pid: u32,
    pub name: String,
    /// How long we have followed it, nanoseconds.
    pub run_ns: u64,
    /// Those at work.
    pub threads: Vec<Thread>,
    /// All of its threads.
    pub all: BTreeSet<u32>,
    /// Bytes by node.
    pub resident: Vec<u64>,
    /// CPUs that it may be given.
    pub cpus: Vec<u32>,
    /// Nodes whose memory it may have.
    pub nodes: Vec<NodeId>,
    /// It has bound itself, or somebody has.
    pub pinned: bool,
}

/// A thread at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Thread {
    pub tid: u32,
    /// Where it runs.
    pub node: NodeId,
    /// By the node of the memory, a second.
    pub accesses: Vec<f64>,
}

impl Seen {
    /// Nodes that its threads run on.
    pub fn runs_on(&self) -> BTreeSet<NodeId> {
        self.threads.iter().map(|t| t.node).collect()
    }

    /// By node, of all its threads.
    fn accesses(&self) -> Vec<f64> {
        let mut sums = vec![0.0; self.resident.len()];
        for thread in &self.threads {
            sums.iter_mut().zip(&thread.accesses).for_each(|(s, n)| *s += n);
        }
        sums
    }

    /// All threads in one cluster that stays where it is.
    fn as_fixed(&self) -> Cluster {
        let at: Vec<NodeId> = self.runs_on().into_iter().collect();
        let away = |t: &Thread| -> f64 {
            let others = t.accesses.iter().enumerate().filter(|(m, _)| *m != t.node.index());
            others.map(|(_, n)| n).sum()
        };
        Cluster {
            application: self.pid,
            threads: self.threads.iter().map(|t| t.tid).collect(),
            nodes: at.len(),
            weight: weight(self.threads.iter().map(away).sum()),
            at,
            fixed: true,
            ..Cluster::default()
        }
    }

    fn with(&self, clusters: Vec<Cluster>) -> Application {
        Application {
            id: self.pid,
            clusters,
            run_ns: self.run_ns,
            accesses: self.accesses(),
        }
    }
}

/// What the scheduler is asked: those of `seen` that `may_move` says, in clusters; the others as they are.
///
/// # Errors
/// More of them than nodes: one line.
pub fn applications(
    seen: &[Seen],
    may_move: impl Fn(&Seen) -> bool,
    places: &[Place],
) -> Result<Vec<Application>, AsymError> {
    let (free, fixed): (Vec<&Seen>, Vec<&Seen>) = seen.iter().partition(|s| may_move(s));
    let taken: BTreeSet<NodeId> = fixed.iter().flat_map(|s| s.runs_on()).collect();
    let open: Vec<Place> = places.iter().copied().filter(|p| !taken.contains(&p.node)).collect();
    let mut clusters = clusters(&free, &open)?;
    let of = |one: &Seen| match may_move(one) {
        true => one.with(clusters.remove(&one.pid).unwrap_or_default()),
        false => one.with(if one.threads.is_empty() { vec![] } else { vec![one.as_fixed()] }),
    };
    Ok(seen.iter().map(of).collect())
}

/// By process.
fn clusters(free: &[&Seen], open: &[Place]) -> Result<BTreeMap<u32, Vec<Cluster>>, AsymError> {
    let all = || free.iter().flat_map(|s| s.threads.iter().map(|t| (s.pid, t)));
    if all().next().is_none() {
        return Ok(BTreeMap::new());
    }
    let crew: Vec<Crew> = all()
        .map(|(application, t)| Crew { application, thread: t.tid, remote: 0.0 })
        .collect();
    let nodes: Vec<NodeId> = all().map(|(_, t)| t.node).collect();
    let accesses: Vec<Vec<f64>> = all().map(|(_, t)| t.accesses.clone()).collect();
    let mut of: BTreeMap<u32, Vec<Cluster>> = BTreeMap::new();
    for cluster in clusters_from_counters(&crew, &nodes, &accesses, open)? {
        of.entry(cluster.application).or_default().push(cluster);
    }
    for one in free {
        let Some(clusters) = of.get_mut(&one.pid) else {
            continue;
        };
        share_out(&one.resident, clusters);
    }
    Ok(of)
}

/// A node's memory goes with the clusters that have threads there, in equal parts.
fn share_out(resident: &[u64], clusters: &mut [Cluster]) {
    let there = |cluster: &Cluster, node: usize| cluster.at.iter().any(|n| n.index() == node);
    for node in 0..resident.len() {
        let sharers = clusters.iter().filter(|c| there(c, node)).count() as u64;
        for cluster in clusters.iter_mut() {
            let part = if there(cluster, node) { resident[node] / sharers.max(1) } else { 0 };
            cluster.resident.push(part);
        }
    }
}

/// Where each thread at work of a process that moves is to run: those that are not told to move, where they are.
pub fn bindings(seen: &Seen, moves: &[ThreadMove]) -> Vec<(u32, NodeId)> {
    let to = |tid: u32| {
        let told = moves.iter().find(|m| m.application == seen.pid && m.threads.contains(&tid));
        told.map(|m| m.to)
    };
    let each = |t: &Thread| (t.tid, to(t.tid).unwrap_or(t.node));
    seen.threads.iter().map(each).collect()
}

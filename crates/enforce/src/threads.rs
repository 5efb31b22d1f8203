//! Assigns the threads of this run to CPUs and nodes, whatever their number was when recorded.

use crate::{EnforceError, Host};
use nodewise_machine::{CpuId, NodeId};
use nodewise_placement::{NodeCpus, Outside, PagePolicy, ThreadBinding, thread_order};

/// How threads are bound to CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Binding {
    /// As in the map, adapted to the threads and nodes of this run; without a map, compact.
    AsMapped,
    /// Compact: fills the nodes one after another.
    Compact,
    /// Round-robin over the nodes.
    Scatter,
    /// In the order of CPU numbers.
    Identity,
    /// By a thread policy that needs no profile: `likwid:M0:0-3`, `hwloc:numa:1`, `file:FILE`.
    Named(String),
    /// Threads are not bound; distributions by thread use the nodes that they would be bound to.
    None,
}

impl std::str::FromStr for Binding {
    type Err = EnforceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unknown = |hint: &str| {
            EnforceError::new(format!(
                "unknown binding `{text}`{hint}; known: map, compact, scatter, identity, cpus:LIST, likwid:EXPR, hwloc:EXPR, \
                 file:FILE, none"
            ))
        };
        let (name, parameter) = text.split_once(':').map_or((text, None), |(n, p)| (n, Some(p)));
        let known = NAMES.iter().copied();
        match (
            nodewise_input::resolve(name, known).map_err(|hint| unknown(&hint))?,
            parameter,
        ) {
            ("map", None) => Ok(Self::AsMapped),
            ("compact", None) => Ok(Self::Compact),
            ("scatter", None) => Ok(Self::Scatter),
            ("identity", None) => Ok(Self::Identity),
            ("none", None) => Ok(Self::None),
            (name @ ("cpus" | "likwid" | "hwloc" | "file"), Some(parameter)) => {
                Ok(Self::Named(format!("{name}:{parameter}")))
            }
            (name @ ("sharing-aware" | "asym" | "recorded"), None) => Err(needs_profile(name)),
            _ => Err(unknown("")),
        }
    }
}

/// Names of bindings, without their parameters; the last three need a profile.
const NAMES: &[&str] = &[
    "map",
    "compact",
    "scatter",
    "identity",
    "none",
    "cpus",
    "likwid",
    "hwloc",
    "file",
    "sharing-aware",
    "asym",
    "recorded",
];

fn needs_profile(policy: &str) -> EnforceError {
    let error = thread_order(policy, &NodeCpus::default(), &HostFiles).err();
    EnforceError::new(error.map_or_else(String::new, |e| e.to_string()))
}

/// Reads files of this host for thread policies.
struct HostFiles;

impl Outside for HostFiles {
    fn read(&self, path: &str) -> Result<String, String> {
        nodewise_input::text(std::path::Path::new(path)).map_err(|e| format!("cannot read {path}: {e}"))
    }

    fn plugin(&self, path: &str) -> Result<Box<dyn PagePolicy>, String> {
        Err(format!("{path} is no thread policy"))
    }
}

/// The CPU and node of every thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Threads {
    /// The name of the policy that assigned them.
    pub name: String,
    /// The CPU of each thread, by OpenMP number or else order of creation.
    pub cpus: Vec<CpuId>,
    /// The logical node of each CPU in `cpus`.
    pub nodes: Vec<NodeId>,
}

impl Threads {
    /// Assigns `count` threads to CPUs of `host`. If no node has a CPU, everything is on node 0.
    ///
    /// # Errors
    /// An expression or a file does not fit this host; the error has one line.
    pub fn new(
        host: &Host,
        count: usize,
        binding: &Binding,
        map: Option<&ThreadBinding>,
    ) -> Result<Self, EnforceError> {
        if let Binding::Named(name) = binding {
            return Self::named(name, host, count);
        }
        let name = match (binding, map) {
            (Binding::AsMapped | Binding::None, Some(map)) if !map.cpus.is_empty() => &map.name,
            (Binding::Scatter, _) => "scatter",
            (Binding::Identity, _) => "identity",
            _ => "compact",
        };
        let (name, bound) = match (order(host, name), map) {
            (Some(order), None) => (name, assign_in_order(&order, count)),
            (Some(order), Some(map)) => match exact(host, count, map).filter(|_| name == map.name) {
                Some(exact) => (name, exact),
                None => (name, assign_in_order(&order, count)),
            },
            (None, Some(map)) => (
                name,
                exact(host, count, map).unwrap_or_else(|| match name.starts_with("file:") {
                    true => scaled(host, count, map),
                    false => redistributed(host, count, map),
                }),
            ),
            (None, None) => ("compact", assign_in_order(&compact(host), count)),
        };
        Ok(Self::of(name, bound))
    }

    fn of(name: &str, bound: Vec<Bound>) -> Self {
        let (cpus, nodes) = bound.into_iter().unzip();
        Self {
            name: name.to_owned(),
            cpus,
            nodes,
        }
    }

    fn named(name: &str, host: &Host, count: usize) -> Result<Self, EnforceError> {
        let here = NodeCpus {
            name: "what may be used of this host".to_owned(),
            nodes: host.nodes.iter().map(|n| n.cpus.clone()).collect(),
        };
        let order = thread_order(name, &here, &HostFiles);
        let order = order.map_err(|e| EnforceError::new(format!("--bind {e}")))?;
        let node = |cpu: &CpuId| here.nodes.iter().position(|n| n.contains(cpu)).unwrap_or(0);
        let bound: Vec<Bound> = order.iter().map(|c| (*c, NodeId(node(c) as u32))).collect();
        Ok(Self::of(name, assign_in_order(&bound, count)))
    }

    /// The value of `OMP_PLACES` that binds thread i to its CPU, with `OMP_PROC_BIND=close`.
    #[must_use]
    pub fn openmp_places(&self) -> String {
        let places: Vec<_> = self.cpus.iter().map(|c| format!("{{{c}}}")).collect();
        places.join(",")
    }
}

type Bound = (CpuId, NodeId);

/// The order of CPUs for policies that assign CPUs in a fixed order; none for others.
fn order(host: &Host, name: &str) -> Option<Vec<Bound>> {
    match name {
        "compact" => Some(compact(host)),
        "scatter" => Some(scatter(host)),
        "identity" => {
            let mut order = compact(host);
            order.sort_unstable();
            Some(order)
        }
        _ => None,
    }
}

fn compact(host: &Host) -> Vec<Bound> {
    let of = |(n, node): (usize, &crate::HostNode)| {
        node.cpus
            .iter()
            .map(|c| (*c, NodeId(n as u32)))
            .collect::<Vec<_>>()
    };
    host.nodes.iter().enumerate().flat_map(of).collect()
}

fn scatter(host: &Host) -> Vec<Bound> {
    let rounds = host.nodes.iter().map(|n| n.cpus.len()).max().unwrap_or(0);
    let round = |r: usize| {
        let of = move |(n, node): (usize, &crate::HostNode)| Some((*node.cpus.get(r)?, NodeId(n as u32)));
        host.nodes.iter().enumerate().filter_map(of).collect::<Vec<_>>()
    };
    (0..rounds).flat_map(round).collect()
}

/// Assigns CPUs in this order; with more threads than CPUs, starts again at the first.
fn assign_in_order(order: &[Bound], count: usize) -> Vec<Bound> {
    order
        .iter()
        .copied()
        .cycle()
        .take(if order.is_empty() { 0 } else { count })
        .collect()
}

/// The map's own CPUs, if this machine and number of threads are those it was made for.
fn exact(host: &Host, count: usize, map: &ThreadBinding) -> Option<Vec<Bound>> {
    let here = |(cpu, node): (&CpuId, &NodeId)| {
        host.nodes
            .get(node.index())?
            .cpus
            .contains(cpu)
            .then_some((*cpu, *node))
    };
    let bound: Option<Vec<_>> = map.cpus.iter().zip(&map.nodes).map(here).collect();
    bound.filter(|b| b.len() == count)
}

/// The node of the recorded thread at the same fraction of all threads.
fn recorded(i: usize, count: usize, map: &ThreadBinding) -> NodeId {
    map.nodes[i * map.nodes.len() / count]
}

/// Gives equal shares to all nodes with CPUs, as computed affinities do: threads are distributed in the order of their
/// recorded nodes, so that those of one node stay together.
fn redistributed(host: &Host, count: usize, map: &ThreadBinding) -> Vec<Bound> {
    if host.cpu_count() == 0 {
        return Vec::new();
    }
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_key(|i| recorded(*i, count, map));
    let mut bound = vec![Bound::default(); count];
    let mut next = order.into_iter();
    for (node, share) in shares(host, count, map).into_iter().enumerate() {
        let cpus = host.nodes[node].cpus.iter().cycle().take(share);
        let mut threads: Vec<usize> = next.by_ref().take(share).collect();
        threads.sort_unstable();
        for (thread, cpu) in threads.into_iter().zip(cpus) {
            bound[thread] = (*cpu, NodeId(node as u32));
        }
    }
    bound
}

/// Number of the `count` threads on each node: equal, as far as the nodes' CPUs allow. A binding to selected nodes
/// stays on them while there is room.
fn shares(host: &Host, count: usize, map: &ThreadBinding) -> Vec<usize> {
    let mut taken = vec![0; host.nodes.len()];
    let cpus = |n: &usize| host.nodes[*n].cpus.len();
    let chosen = |n: &usize| map.nodes.contains(&NodeId(*n as u32));
    let room: usize = (0..taken.len()).filter(chosen).map(|n| cpus(&n)).sum();
    let keeps = map.name == "asym" && room >= count;
    for _ in 0..count {
        let next = (0..taken.len())
            .filter(|n| cpus(n) > 0 && (!keeps || chosen(n)))
            .min_by_key(|n| (taken[*n] / cpus(n), taken[*n] % cpus(n)));
        if let Some(node) = next {
            taken[node] += 1;
        }
    }
    taken
}

/// Binds thread i near the recorded thread at the same fraction of all threads: to the next free CPU of that thread's
/// node, else to a free CPU of the node with the nearest number.
fn scaled(host: &Host, count: usize, map: &ThreadBinding) -> Vec<Bound> {
    let mut free: Vec<Vec<CpuId>> = host
        .nodes
        .iter()
        .map(|n| n.cpus.iter().rev().copied().collect())
        .collect();
    let mut bound = Vec::with_capacity(count);
    for i in 0..count {
        if free.iter().all(Vec::is_empty) {
            return assign_in_order(&bound, count);
        }
        let home = recorded(i, count, map).index();
        let nearest = (0..free.len())
            .filter(|n| !free[*n].is_empty())
            .min_by_key(|n| (n.abs_diff(home), *n));
        if let Some((node, cpu)) = nearest.and_then(|n| Some((n, free[n].pop()?))) {
            bound.push((cpu, NodeId(node as u32)));
        }
    }
    bound
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_bindings_may_be_shortened_but_not_misspelt() {
        let of = |text: &str| text.parse::<Binding>().map_err(|e| e.to_string());
        assert_eq!(of("sca"), Ok(Binding::Scatter));
        assert_eq!(of("lik:M0:0"), Ok(Binding::Named("likwid:M0:0".into())));
        for (text, said) in [
            (
                "compct",
                "unknown binding `compct` (did you mean compact?); known: map, ",
            ),
            (
                "cpsu:0-3",
                "unknown binding `cpsu:0-3` (did you mean cpus?); known: map, ",
            ),
            ("scatter:1", "unknown binding `scatter:1`; known: map, "),
            ("cpus", "unknown binding `cpus`; known: map, "),
            ("sharing", "nodewise map --affinity sharing-aware"),
        ] {
            let error = of(text).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }

    fn map(name: &str, nodes: &[u32]) -> ThreadBinding {
        ThreadBinding {
            name: name.into(),
            cpus: (0..nodes.len() as u32).map(|i| CpuId(i + 100)).collect(),
            nodes: nodes.iter().copied().map(NodeId).collect(),
        }
    }

    fn nodes(threads: &Threads) -> Vec<u32> {
        threads.nodes.iter().map(|n| n.0).collect()
    }

    #[test]
    fn names_deal_cpus_as_they_say() {
        let host = Host::pretended(2, 2);
        let of = |binding| nodes(&Threads::new(&host, 6, &binding, None).unwrap());
        assert_eq!(of(Binding::AsMapped), [0, 0, 1, 1, 0, 0]);
        assert_eq!(of(Binding::Scatter), [0, 1, 0, 1, 0, 1]);
        assert_eq!(of(Binding::Identity), [0, 0, 1, 1, 0, 0]);
    }

    #[test]
    fn twice_the_threads_keep_their_share_of_the_nodes() {
        let host = Host::pretended(4, 4);
        let mapped = map("sharing-aware", &[3, 3, 1, 1, 0, 0, 2, 2]);
        let threads = Threads::new(&host, 16, &Binding::AsMapped, Some(&mapped)).unwrap();
        assert_eq!(nodes(&threads), [3, 3, 3, 3, 1, 1, 1, 1, 0, 0, 0, 0, 2, 2, 2, 2]);
        let mut cpus = threads.cpus.clone();
        cpus.sort_unstable();
        cpus.dedup();
        assert_eq!(cpus.len(), 16);
    }

    #[test]
    fn fewer_nodes_and_threads_than_recorded_take_equal_shares_of_neighbours() {
        // Two threads on each of eight nodes, reduced to two nodes, in blocks and round-robin.
        let blocks: Vec<u32> = (0..16).map(|i| i / 8).collect();
        let dealt: Vec<u32> = (0..16).map(|i| i % 2).collect();
        for recorded in [blocks, dealt] {
            for (here, cpus, count) in [(2, 4, 4), (2, 8, 8), (2, 8, 15), (3, 4, 8), (2, 2, 9)] {
                let mapped = map("sharing-aware", &recorded);
                let host = Host::pretended(here, cpus);
                let threads = Threads::new(&host, count, &Binding::AsMapped, Some(&mapped)).unwrap();
                for node in 0..here {
                    let share = nodes(&threads).iter().filter(|n| **n == node).count();
                    assert!(share.abs_diff(count / here as usize) <= 1, "{threads:?}");
                }
            }
        }
        let mapped = map("sharing-aware", &[0, 0, 0, 0, 1, 1, 1, 1]);
        let threads = Threads::new(&Host::pretended(2, 4), 4, &Binding::AsMapped, Some(&mapped)).unwrap();
        assert_eq!(threads.openmp_places(), "{0},{1},{4},{5}");
    }

    #[test]
    fn a_map_for_this_machine_is_followed_to_the_cpu() {
        let host = Host::pretended(2, 4);
        let mapped = ThreadBinding {
            name: "file:bind".into(),
            cpus: vec![CpuId(5), CpuId(2)],
            nodes: vec![NodeId(1), NodeId(0)],
        };
        let threads = Threads::new(&host, 2, &Binding::AsMapped, Some(&mapped)).unwrap();
        assert_eq!(threads.openmp_places(), "{5},{2}");
    }

    #[test]
    fn a_full_node_overflows_to_its_neighbour() {
        let host = Host::pretended(2, 2);
        let threads = Threads::new(&host, 4, &Binding::AsMapped, Some(&map("file:x", &[0, 0]))).unwrap();
        assert_eq!(nodes(&threads), [0, 0, 1, 1]);
    }

    #[test]
    fn expressions_name_cpus_of_this_host_and_what_needs_a_profile_says_how() {
        let host = Host::pretended(2, 4);
        let threads = |text: &str| Threads::new(&host, 3, &text.parse().unwrap(), None);
        assert_eq!(threads("likwid:M1:0-1").unwrap().openmp_places(), "{4},{5},{4}");
        assert_eq!(
            threads("hwloc:numa:1.core:2 pu:0").unwrap().openmp_places(),
            "{6},{0},{6}"
        );
        let error = threads("hwloc:numa:2").unwrap_err().to_string();
        assert_eq!(
            error,
            "--bind hwloc:numa:2: `numa:2`: there are numa:0 to numa:1 there"
        );
        let error = "asym".parse::<Binding>().unwrap_err().to_string();
        assert!(error.contains("nodewise map --affinity asym"), "{error}");
    }

    #[test]
    fn threads_on_chosen_nodes_stay_on_them_whatever_their_number() {
        let host = Host::pretended(4, 4);
        let mapped = map("asym", &[3, 3, 3, 3, 1, 1, 1, 1]);
        for count in [4, 6, 8] {
            let threads = Threads::new(&host, count, &Binding::AsMapped, Some(&mapped)).unwrap();
            assert!(nodes(&threads).iter().all(|n| [1, 3].contains(n)), "{threads:?}");
        }
    }
}

//! CPUs of each node, and the thread policies that need no profile.

use super::{file, hwloc, likwid};
use crate::PolicyError;
use crate::policies::Outside;
use nodewise_machine::{CpuId, Machine};

/// Nodes with their CPUs, and whose they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeCpus {
    /// As messages name the machine.
    pub name: String,
    /// By node, ascending within each; empty for nodes of memory alone.
    pub nodes: Vec<Vec<CpuId>>,
}

impl From<&Machine> for NodeCpus {
    fn from(machine: &Machine) -> Self {
        Self {
            name: machine.name.clone(),
            nodes: machine.nodes.iter().map(|n| n.cpus.clone()).collect(),
        }
    }
}

impl NodeCpus {
    /// All CPUs, node by node (compact).
    pub(super) fn compact(&self) -> Vec<CpuId> {
        self.nodes.concat()
    }

    /// Over the nodes in turn.
    pub(super) fn scatter(&self) -> Vec<CpuId> {
        let rounds = self.nodes.iter().map(Vec::len).max().unwrap_or(0);
        let round = |r| {
            self.nodes
                .iter()
                .filter_map(move |n: &Vec<CpuId>| n.get(r).copied())
        };
        (0..rounds).flat_map(round).collect()
    }

    /// As CPUs are numbered.
    pub(super) fn identity(&self) -> Vec<CpuId> {
        let mut all = self.compact();
        all.sort_unstable();
        all
    }
}

/// The CPU of thread 0, 1, …; more threads than CPUs begin again. `None`: the policy goes by a profile.
///
/// # Errors
/// One line: what is wrong with the expression or file, or which policies there are.
pub(super) fn by_name(
    text: &str,
    cpus: &NodeCpus,
    outside: &dyn Outside,
) -> Result<Option<Vec<CpuId>>, PolicyError> {
    let at = |e: PolicyError| PolicyError(format!("{text}: {e}"));
    let order = match text.split_once(':').unwrap_or((text, "")) {
        ("compact", "") => cpus.compact(),
        ("scatter", "") => cpus.scatter(),
        ("identity", "") => cpus.identity(),
        ("sharing-aware" | "asym" | "recorded", "") => return Ok(None),
        ("cpus", list) => numbered(list, cpus).map_err(at)?,
        ("likwid", expression) => likwid::order(expression, cpus).map_err(at)?,
        ("hwloc", expression) => hwloc::order(expression, cpus).map_err(at)?,
        ("file", path) => {
            let content = outside.read(path).map_err(PolicyError)?;
            file::cpus(&content, cpus).map_err(|e| PolicyError(format!("{path}: {e}")))?
        }
        _ => {
            let known: Vec<_> = super::THREAD_POLICIES.iter().map(|p| p.0).collect();
            return Err(PolicyError(format!(
                "unknown affinity `{text}`; known: {}",
                known.join(", ")
            )));
        }
    };
    Ok(Some(order))
}

/// The CPU of thread 0, 1, … under a policy that needs no profile; more threads than CPUs begin again.
///
/// # Errors
/// One line: what is wrong with the expression or file, which policies there are, or that this one needs a
/// profile, and how to use it then.
pub fn thread_order(text: &str, cpus: &NodeCpus, outside: &dyn Outside) -> Result<Vec<CpuId>, PolicyError> {
    by_name(text, cpus, outside)?.ok_or_else(|| {
        PolicyError(format!(
            "`{text}` goes by what threads share, so it needs a profile: \
             `nodewise map --affinity {text} --policy P -o FILE`, then `nodewise run --policy map:FILE`"
        ))
    })
}

/// CPUs by the kernel's numbers.
pub(super) fn numbered(list: &str, cpus: &NodeCpus) -> Result<Vec<CpuId>, PolicyError> {
    let known = cpus.identity();
    let count = known.last().map_or(0, |c| c.0 as usize + 1);
    let numbers = positions(list, count, |item| beyond(&cpus.name, count, item))?;
    let all = numbers.into_iter().map(|n| CpuId(n as u32));
    all.map(|c| match known.binary_search(&c) {
        Ok(_) => Ok(c),
        Err(_) => Err(PolicyError(format!("{} has no CPU {c}", cpus.name))),
    })
    .collect()
}

/// Places of a list such as `0-3,7`, each below `count`; `out` says what is wrong with an item that is not.
pub(super) fn positions(
    list: &str,
    count: usize,
    out: impl Fn(&str) -> String,
) -> Result<Vec<usize>, PolicyError> {
    let mut all = Vec::new();
    for item in list.split(',') {
        let (first, last) = item.split_once('-').unwrap_or((item, item));
        let number = |text: &str| text.parse::<usize>().ok().filter(|_| !text.starts_with('+'));
        let (Some(first), Some(last)) = (number(first), number(last)) else {
            return Err(PolicyError(format!(
                "`{item}` is neither a number nor a range such as 0-3"
            )));
        };
        if last < first {
            return Err(PolicyError(format!(
                "`{item}` runs backwards; write {last}-{first}"
            )));
        }
        if last >= count {
            return Err(PolicyError(out(item)));
        }
        all.extend(first..=last);
    }
    Ok(all)
}

/// What is wrong with CPUs that a set of so many does not have.
pub(super) fn beyond(of: &str, count: usize, item: &str) -> String {
    match count {
        0 => format!("{of} has no CPUs"),
        1 => format!("{of} has 1 CPU, number 0; `{item}` is out of range"),
        _ => format!("{of} has {count} CPUs, 0-{}; `{item}` is out of range", count - 1),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::policies::Nothing;

    /// Three nodes of four CPUs, dealt out alternately, and one of memory alone.
    pub fn cpus() -> NodeCpus {
        let node = |n: u32| (0..4).map(|i| CpuId(i * 3 + n)).collect();
        NodeCpus {
            name: "test".into(),
            nodes: vec![node(0), node(1), node(2), Vec::new()],
        }
    }

    /// Numbers of CPUs, or why there are none.
    pub fn numbers(order: Result<Vec<CpuId>, PolicyError>) -> Result<Vec<u32>, String> {
        let order = order.map_err(|e| e.to_string())?;
        Ok(order.into_iter().map(|c| c.0).collect())
    }

    #[test]
    fn what_goes_by_a_profile_says_how_to_use_it() {
        for policy in ["asym", "sharing-aware"] {
            let error = thread_order(policy, &cpus(), &Nothing).unwrap_err().to_string();
            assert!(
                error.contains(&format!("nodewise map --affinity {policy}")),
                "{error}"
            );
        }
    }

    #[test]
    fn lists_are_the_kernels_numbers_in_their_order() {
        let order = |text| numbers(thread_order(text, &cpus(), &Nothing));
        assert_eq!(order("cpus:7,0-2").unwrap(), [7, 0, 1, 2]);
        let refused = |text| order(text).unwrap_err();
        assert!(refused("cpus:12").contains("test has 12 CPUs, 0-11"));
        assert!(refused("cpus:").contains("neither a number nor a range"));
        assert!(refused("cpus:0x0f").contains("neither a number nor a range"));
    }

    #[test]
    fn names_order_all_cpus() {
        for (name, first) in [
            ("compact", [0, 3, 6]),
            ("scatter", [0, 1, 2]),
            ("identity", [0, 1, 2]),
        ] {
            let order = thread_order(name, &cpus(), &Nothing).unwrap();
            assert_eq!(order[..3], first.map(CpuId), "{name}");
            assert_eq!(order.len(), 12);
        }
    }
}

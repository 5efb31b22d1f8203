//! CPUs of each node, and lists of them.

use crate::PolicyError;
use nodewise_machine::{CpuId, Machine};

/// The nodes of a machine with their CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeCpus {
    /// The machine's name in messages.
    pub name: String,
    /// CPUs by node, ascending within each; empty for nodes without CPUs.
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

    /// The CPUs of all nodes in turn (scatter).
    pub(super) fn scatter(&self) -> Vec<CpuId> {
        let rounds = self.nodes.iter().map(Vec::len).max().unwrap_or(0);
        let round = |r| {
            self.nodes
                .iter()
                .filter_map(move |n: &Vec<CpuId>| n.get(r).copied())
        };
        (0..rounds).flat_map(round).collect()
    }

    /// In the order of CPU numbers (identity).
    pub(super) fn identity(&self) -> Vec<CpuId> {
        let mut all = self.compact();
        all.sort_unstable();
        all
    }
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

/// Positions from a list such as `0-3,7`, each below `count`; `out` makes the error for an item that is not.
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

/// The error for CPUs beyond a set of `count`.
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

    /// Three nodes of four CPUs, numbered alternately over the nodes, and a node without CPUs.
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
}

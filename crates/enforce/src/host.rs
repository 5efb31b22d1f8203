//! Nodes and CPUs of this host that a placed program may use.

use crate::EnforceError;
use nodewise_machine::{CpuId, Machine};
use std::path::Path;

/// When the kernel makes transparent huge pages of 2 MiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HugePages {
    /// Wherever an aligned range of 2 MiB is available.
    Always,
    /// Only where the program asks for them (`madvise`).
    OnRequest,
    /// Transparent huge pages are turned off.
    Never,
}

/// A node that memory may be placed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostNode {
    /// The kernel's number of the node.
    pub os_index: u32,
    /// CPUs of the node that may be used, ascending.
    pub cpus: Vec<CpuId>,
}

/// The nodes and CPUs that may be used. Node i of a placement is `nodes[i]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// The nodes, in the order of `--nodes` if given, else ascending.
    pub nodes: Vec<HostNode>,
    /// When the kernel makes transparent huge pages.
    pub huge: HugePages,
    /// Why the kernel's interleave weights cannot be set, once that was tried.
    pub weights_refused: Option<String>,
    /// Whether there is only one node to choose from.
    pub single: bool,
    /// Whether the user chose the nodes.
    pub chosen: bool,
    /// Whether the host is invented for a trace: nothing is bound or placed.
    pub pretended: bool,
}

impl Host {
    /// This host, restricted to the cpuset and the affinity of this process. `wanted` lists the nodes to use by the
    /// kernel's numbers; if empty, all allowed ones are used.
    ///
    /// # Errors
    /// The host cannot be read, or a wanted node does not exist or is not allowed here.
    pub fn this(wanted: &[u32]) -> Result<Self, EnforceError> {
        let machine =
            Machine::from_sysfs(Path::new("/sys"), "this").map_err(|e| EnforceError::new(e.to_string()))?;
        let nodes = nodewise_linux::mempolicy::allowed_nodes()
            .unwrap_or_else(|_| machine.nodes.iter().map(|n| n.os_index).collect());
        let cpus = nodewise_linux::affinity::allowed_cpus()
            .map_err(|e| EnforceError::new(format!("cannot read the CPU affinity: {e}")))?;
        let allowed = allowed(&machine, &nodes, &cpus);
        Ok(Self {
            nodes: select(&allowed, wanted)?,
            huge: huge_pages(Path::new("/sys")),
            weights_refused: None,
            single: allowed.len() < 2,
            chosen: !wanted.is_empty(),
            pretended: false,
        })
    }

    /// An invented host of `nodes` nodes with `cpus` CPUs each, numbered node by node.
    #[must_use]
    pub fn pretended(nodes: u32, cpus: u32) -> Self {
        let node = |n: u32| HostNode {
            os_index: n,
            cpus: (n * cpus..(n + 1) * cpus).map(CpuId).collect(),
        };
        Self {
            nodes: (0..nodes).map(node).collect(),
            huge: HugePages::Never,
            weights_refused: None,
            single: false,
            chosen: false,
            pretended: true,
        }
    }

    /// Number of CPUs that may be used.
    #[must_use]
    pub fn cpu_count(&self) -> usize {
        self.nodes.iter().map(|n| n.cpus.len()).sum()
    }
}

/// Nodes with memory among `nodes`, each with its CPUs among `cpus`.
fn allowed(machine: &Machine, nodes: &[u32], cpus: &[u32]) -> Vec<HostNode> {
    let usable = |n: &&nodewise_machine::Node| {
        nodes.contains(&n.os_index) && (n.memory > 0 || machine.nodes.len() == 1)
    };
    let node = |n: &nodewise_machine::Node| HostNode {
        os_index: n.os_index,
        cpus: n.cpus.iter().copied().filter(|c| cpus.contains(&c.0)).collect(),
    };
    machine.nodes.iter().filter(usable).map(node).collect()
}

fn select(allowed: &[HostNode], wanted: &[u32]) -> Result<Vec<HostNode>, EnforceError> {
    if wanted.is_empty() {
        return Ok(allowed.to_vec());
    }
    let find = |w: &u32| {
        allowed.iter().find(|n| n.os_index == *w).cloned().ok_or_else(|| {
            let known: Vec<_> = allowed.iter().map(|n| n.os_index.to_string()).collect();
            EnforceError::new(format!(
                "--nodes: node {w} does not exist or is not allowed here; allowed: {}",
                known.join(",")
            ))
        })
    };
    wanted.iter().map(find).collect()
}

fn huge_pages(sysfs: &Path) -> HugePages {
    let path = sysfs.join("kernel/mm/transparent_hugepage/enabled");
    match std::fs::read_to_string(path).unwrap_or_default() {
        text if text.contains("[always]") => HugePages::Always,
        text if text.contains("[madvise]") => HugePages::OnRequest,
        _ => HugePages::Never,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_has_a_node_with_cpus() {
        let host = Host::this(&[]).unwrap();
        assert!(host.cpu_count() > 0);
        assert_eq!(Host::this(&[host.nodes[0].os_index]).unwrap().nodes.len(), 1);
    }

    #[test]
    fn a_node_that_is_not_there_is_refused() {
        let error = Host::this(&[4000]).unwrap_err().to_string();
        assert!(error.contains("node 4000 does not exist"), "{error}");
    }
}

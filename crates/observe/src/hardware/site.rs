//! CPUs and memory of each node that measurements may use.

use super::caches::caches;
use super::chase;
use super::settings::Settings;
use crate::{Error, ErrorKind};
use nodewise_analysis::figures;
use nodewise_linux::node_memory::NodeMemory;
use nodewise_linux::{Host, affinity, mempolicy, probe};
use nodewise_machine::{Machine, format_list};
use std::io;

/// Memory used on a node, as a multiple of the caches through which it is reached: one half is the chain, which is
/// twice the caches; reading the other half evicts the chain from them.
const CACHES_MULTIPLE: u64 = 4;
/// Bytes of memory below which a node is left out.
const MIN_NODE_BYTES: u64 = 16 << 20;
/// Number of pages whose node is checked.
const CHECKED_PAGES: usize = 512;

/// All nodes, by the machine's numbers.
pub(super) struct Site {
    pub nodes: Vec<Place>,
    /// What was left out, one line each.
    pub notes: Vec<String>,
}

/// CPUs and memory of one node.
pub(super) struct Place {
    /// The kernel's number of the node.
    os_index: u32,
    /// CPUs that may be used, ascending.
    pub cpus: Vec<u32>,
    /// Memory on the node, if any could be allocated.
    pub memory: Option<NodeMemory>,
    /// How far the chain has been followed: index of a word.
    pub at: usize,
}

impl Site {
    /// Finds the CPUs, allocates memory on every node, and builds a chain in the first half of it.
    pub(super) fn prepare(host: &Host, machine: &Machine, settings: &Settings) -> Result<Self, Error> {
        let here = |why: String| Error::new(ErrorKind::Unavailable, why);
        let allowed =
            affinity::allowed_cpus().map_err(|e| here(format!("cannot ask for allowed CPUs: {e}")))?;
        let mut site = Self::of(machine, &allowed);
        if site.nodes.iter().all(|n| n.cpus.is_empty()) {
            return Err(here("none of the machine's CPUs may be used here".to_owned()));
        }
        if let Err(error) = probe::thread_affinity()
            && machine.node_count() > 1
        {
            let text =
                format!("threads cannot be bound to CPUs ({error}); nodes cannot be told apart without that");
            return Err(here(text));
        }
        site.take(host, machine, settings);
        if site.nodes.iter().all(|n| n.memory.is_none()) {
            return Err(here(site.notes.pop().unwrap_or_default()));
        }
        Ok(site)
    }

    /// The nodes with their allowed CPUs, without memory.
    fn of(machine: &Machine, allowed: &[u32]) -> Self {
        let (mut nodes, mut notes) = (Vec::new(), Vec::new());
        for (index, node) in machine.nodes.iter().enumerate() {
            let all = node.cpus.iter().map(|c| c.0);
            let (cpus, not): (Vec<u32>, Vec<u32>) = all.partition(|c| allowed.contains(c));
            if !not.is_empty() {
                notes.push(format!(
                    "node {index}: CPUs {} may not be used here",
                    format_list(&not)
                ));
            }
            let (os_index, memory, at) = (node.os_index, None, 0);
            nodes.push(Place {
                os_index,
                cpus,
                memory,
                at,
            });
        }
        Self { nodes, notes }
    }

    /// Allocates memory on every node that is allowed and has enough.
    fn take(&mut self, host: &Host, machine: &Machine, settings: &Settings) {
        let reaching = self.reaching(host);
        let wanted = settings.memory.unwrap_or(CACHES_MULTIPLE * reaching);
        // Half of what is left, as other programs may need memory meanwhile.
        let share = host.memory_left() / 2 / machine.node_count() as u64;
        let allowed = mempolicy::allowed_nodes().ok();
        let mut least = wanted;
        for (node, shown) in machine.nodes.iter().enumerate() {
            let free = host
                .free_memory(shown.os_index)
                .map_or(u64::MAX, |m| m.free + m.inactive_files);
            let bytes = wanted.min(share).min(free / 2);
            let taken = if allowed.as_ref().is_some_and(|a| !a.contains(&shown.os_index)) {
                Err("its memory may not be used here".to_owned())
            } else if bytes < MIN_NODE_BYTES.min(wanted) {
                Err(format!(
                    "{} of its memory could be used, too little to measure",
                    figures::bytes(bytes)
                ))
            } else {
                self.placed(host, node, shown.os_index, bytes as usize)
            };
            match taken {
                Ok(memory) => {
                    least = least.min(bytes);
                    self.nodes[node].memory = Some(memory);
                }
                Err(why) => self.notes.push(format!("node {node}: {why}")),
            }
        }
        self.note_small_memory(least, reaching, settings.memory);
    }

    /// The largest total of caches, in bytes, through which CPUs of one node reach memory.
    fn reaching(&self, host: &Host) -> u64 {
        let with_cpus = self.nodes.iter().filter(|n| !n.cpus.is_empty());
        with_cpus.map(|n| caches(host, &n.cpus)).max().unwrap_or(0)
    }

    /// Adds a note if the smallest memory of a node is less than the caches through which it is reached, or than was
    /// asked for.
    fn note_small_memory(&mut self, least: u64, reaching: u64, requested: Option<u64>) {
        if let Some(requested) = requested.filter(|a| least >> 20 < a >> 20) {
            let text = format!(
                "{} a node instead of {}: there is no room for more",
                figures::bytes(least),
                figures::bytes(requested)
            );
            self.notes.push(text);
        }
        if least >> 20 < reaching >> 20 && self.nodes.iter().any(|n| n.memory.is_some()) {
            let text = format!(
                "{} a node are less than the {} of caches that reach it: some loads hit a cache",
                figures::bytes(least),
                figures::bytes(reaching)
            );
            self.notes.push(text);
        }
    }

    /// Memory on a node: bound to it, or first touched by one of its CPUs where binding is refused.
    fn placed(
        &mut self,
        host: &Host,
        node: usize,
        os_index: u32,
        bytes: usize,
    ) -> Result<NodeMemory, String> {
        let mut memory = NodeMemory::reserve(bytes)
            .map_err(|e| format!("cannot get {}: {e}", figures::bytes(bytes as u64)))?;
        let cpus = self.nodes[node].cpus.clone();
        let bound = memory.bind(os_index);
        if let Err(error) = &bound {
            self.note_once(refused(
                "bind memory to a node (mbind)",
                error,
                "its first touch decides",
            ));
            if cpus.is_empty() && self.nodes.len() > 1 {
                return Err("has no CPU of ours to touch its memory first".to_owned());
            }
        }
        touch(&mut memory, &cpus, node).map_err(|e| format!("cannot start a thread: {e}"))?;
        match misplaced_pages(&memory, os_index) {
            Ok(None) => Ok(memory),
            Ok(Some(pages)) => Err(format!("{pages} asked for there lie elsewhere")),
            Err(error) => {
                let instead = if bound.is_err() && balanced(host) {
                    "they were not looked at, and NUMA balancing (kernel.numa_balancing) may have moved them"
                } else {
                    "they were not looked at"
                };
                self.note_once(refused("say where pages are (move_pages)", &error, instead));
                Ok(memory)
            }
        }
    }

    /// Gives up memory that is no longer on its node, and returns the nodes: the kernel moves pages that are not bound
    /// towards the CPUs that read them, and bound ones out of a cpuset that shrinks. Adds a note.
    pub(super) fn drop_moved(&mut self) -> Vec<usize> {
        let mut gone = Vec::new();
        for (node, place) in self.nodes.iter_mut().enumerate() {
            let looked = place.memory.as_ref().map(|m| misplaced_pages(m, place.os_index));
            if let Some(Ok(Some(pages))) = looked {
                let text = format!(
                    "node {node}: {pages} were moved away meanwhile; what was measured of it is left out"
                );
                self.notes.push(text);
                place.memory = None;
                gone.push(node);
            }
        }
        gone
    }

    fn note_once(&mut self, text: String) {
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }

    /// Bytes of memory used on each node.
    pub(super) fn memory(&self) -> Vec<u64> {
        let bytes = |n: &Place| n.memory.as_ref().map_or(0, |m| m.bytes() as u64);
        self.nodes.iter().map(bytes).collect()
    }

    /// The share of the memory on huge pages.
    pub(super) fn huge(&self, host: &Host) -> f64 {
        let taken = || self.nodes.iter().filter_map(|n| n.memory.as_ref());
        let huge: u64 = taken().filter_map(|m| m.huge_bytes(host).ok()).sum();
        huge as f64 / taken().map(|m| m.bytes() as f64).sum::<f64>().max(1.0)
    }
}

/// Touches memory by one of these CPUs, and builds a chain in the first part of it.
fn touch(memory: &mut NodeMemory, cpus: &[u32], node: usize) -> io::Result<()> {
    let run = || {
        // Without binding, touching bound memory only takes longer; of other memory the caller checks where its pages
        // are.
        let _ = affinity::bind_this_thread(cpus);
        memory.populate();
        let words = memory.words_mut();
        let chain = chase::within(words.len());
        chase::lay(&mut words[..chain], 1 + node as u64);
    };
    std::thread::scope(|scope| std::thread::Builder::new().spawn_scoped(scope, run).map(drop))
}

/// Describes pages on other nodes, `3 of 512 pages`, if they are more than one in a hundred.
fn misplaced_pages(memory: &NodeMemory, os_index: u32) -> io::Result<Option<String>> {
    let found = memory.nodes(CHECKED_PAGES)?;
    let misplaced = found.iter().filter(|n| **n != Some(os_index)).count();
    Ok((misplaced * 100 > found.len()).then(|| format!("{misplaced} of {} pages", found.len())))
}

/// Whether automatic NUMA balancing is turned on.
fn balanced(host: &Host) -> bool {
    host.line("proc/sys/kernel/numa_balancing")
        .is_some_and(|l| l != "0")
}

fn refused(what: &str, error: &io::Error, instead: &str) -> String {
    let remedy = if error.kind() == io::ErrorKind::PermissionDenied {
        "; in a container, allow it CAP_SYS_NICE"
    } else {
        ""
    };
    format!("the kernel does not {what}: {error}{remedy}; {instead}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(cpus: &[&[u32]]) -> Site {
        let place = |cpus: &&[u32]| Place {
            os_index: 0,
            cpus: cpus.to_vec(),
            memory: NodeMemory::reserve(1).ok(),
            at: 0,
        };
        Site {
            nodes: cpus.iter().map(place).collect(),
            notes: Vec::new(),
        }
    }

    #[test]
    fn memory_that_is_less_than_asked_for_or_than_caches_is_said() {
        let notes = |least: u64, reaching: u64, requested: Option<u64>| {
            let mut site = site(&[&[0]]);
            site.note_small_memory(least << 20, reaching << 20, requested.map(|a| a << 20));
            site.notes
        };
        assert!(notes(64, 16, None).is_empty() && notes(64, 16, Some(64)).is_empty());
        assert_eq!(
            notes(20, 16, Some(1024)),
            ["20 MiB a node instead of 1 GiB: there is no room for more"]
        );
        assert!(notes(8, 16, None)[0].starts_with("8 MiB a node are less than the 16 MiB of caches"));
    }

    #[test]
    fn caches_of_nodes_without_cpus_do_not_count() {
        let root = std::env::temp_dir().join(format!("nodewise-site-{}", std::process::id()));
        let folder = root.join("sys/devices/system/cpu/cpu0/cache/index2");
        std::fs::create_dir_all(&folder).unwrap();
        for (file, text) in [("level", "2"), ("size", "1M"), ("shared_cpu_list", "0")] {
            std::fs::write(folder.join(file), text).unwrap();
        }
        let host = Host::at(&root);
        // Not even if the kernel reports no caches for them, where 32 MiB would be assumed.
        assert_eq!(site(&[&[0], &[]]).reaching(&host), 1 << 20);
        assert!(site(&[&[0], &[1]]).reaching(&host) > 1 << 20);
        std::fs::remove_dir_all(&root).unwrap();
    }
}

//! Where we may measure: CPUs of each node, and memory on it that is ours.

use super::caches::caches;
use super::{Settings, chase, room};
use crate::{Error, ErrorKind};
use nodewise_linux::node_memory::NodeMemory;
use nodewise_linux::{Host, affinity, mempolicy, probe};
use nodewise_machine::{Machine, format_list};
use std::io;

/// Memory of a node to measure with, times the caches that reach it: half of it is the chain, and is
/// twice the caches; half drives the chain out of them.
const OVER_CACHES: u64 = 4;
/// With less a node is left out.
const LEAST: u64 = 16 << 20;
/// Pages whose node is looked at.
const LOOKED_AT: usize = 512;

/// All nodes, by the machine's numbers.
pub(super) struct Site {
    pub nodes: Vec<Place>,
    /// What was left out, a line each.
    pub notes: Vec<String>,
}

/// A node.
pub(super) struct Place {
    /// CPUs that may be used, ascending.
    pub cpus: Vec<u32>,
    /// Memory that lies there.
    pub memory: Option<NodeMemory>,
    /// Where the chain has been walked to, in words.
    pub at: usize,
}

impl Site {
    /// Finds CPUs, takes memory on every node, and lays a chain through the first half of it.
    pub(super) fn look(host: &Host, machine: &Machine, settings: &Settings) -> Result<Self, Error> {
        let here = |why: String| Error::new(ErrorKind::NotHere, why);
        let allowed =
            affinity::allowed_cpus().map_err(|e| here(format!("cannot ask for allowed CPUs: {e}")))?;
        let mut site = Self {
            nodes: Vec::new(),
            notes: Vec::new(),
        };
        for node in &machine.nodes {
            let all: Vec<u32> = node.cpus.iter().map(|c| c.0).collect();
            let (cpus, not): (Vec<u32>, Vec<u32>) = all.iter().partition(|c| allowed.contains(c));
            if !not.is_empty() {
                let text = format!(
                    "node {}: CPUs {} may not be used here",
                    site.nodes.len(),
                    format_list(&not)
                );
                site.notes.push(text);
            }
            let (memory, at) = (None, 0);
            site.nodes.push(Place { cpus, memory, at });
        }
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

    /// Memory on every node that is allowed and has room.
    fn take(&mut self, host: &Host, machine: &Machine, settings: &Settings) {
        let reaching = self
            .nodes
            .iter()
            .map(|n| caches(host, &n.cpus))
            .max()
            .unwrap_or(0);
        let wanted = settings.memory.unwrap_or(OVER_CACHES * reaching);
        // Half of what is left may be needed by others meanwhile.
        let share = room::left(host) / 2 / machine.node_count() as u64;
        let allowed = mempolicy::allowed_nodes().ok();
        let mut narrow: Option<u64> = None;
        for (node, shown) in machine.nodes.iter().enumerate() {
            if allowed.as_ref().is_some_and(|a| !a.contains(&shown.os_index)) {
                self.notes
                    .push(format!("node {node}: its memory may not be used here"));
                continue;
            }
            let free = room::free_on(host, shown.os_index).unwrap_or(u64::MAX);
            let bytes = wanted.min(share).min(free / 2);
            if bytes < LEAST.min(wanted) {
                let text = format!(
                    "node {node}: {} MiB of its memory could be used, too little to measure",
                    bytes >> 20
                );
                self.notes.push(text);
                continue;
            }
            match self.placed(node, shown.os_index, bytes as usize) {
                Ok(memory) => {
                    narrow = narrow.max((bytes < reaching).then_some(bytes));
                    self.nodes[node].memory = Some(memory);
                }
                Err(why) => self.notes.push(format!("node {node}: {why}")),
            }
        }
        if let Some(bytes) = narrow {
            let text = format!(
                "{} MiB a node are less than the {} MiB of caches that reach it: some loads hit a cache",
                bytes >> 20,
                reaching >> 20
            );
            self.notes.push(text);
        }
    }

    /// Memory that lies on a node: bound to it, or touched by one of its CPUs where binding is refused.
    fn placed(&mut self, node: usize, os_index: u32, bytes: usize) -> Result<NodeMemory, String> {
        let mut memory =
            NodeMemory::reserve(bytes).map_err(|e| format!("cannot get {} MiB: {e}", bytes >> 20))?;
        let cpus = self.nodes[node].cpus.clone();
        if let Err(error) = memory.bind(os_index) {
            self.say_once(refused(
                "bind memory to a node (mbind)",
                &error,
                "its first touch decides",
            ));
            if cpus.is_empty() && self.nodes.len() > 1 {
                return Err("has no CPU of ours to touch its memory first".to_owned());
            }
        }
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // Not being bound costs time only where memory is.
                let _ = affinity::bind_this_thread(&cpus);
                memory.populate();
                let half = memory.words().len() / 2;
                chase::lay(&mut memory.words_mut()[..half], 1 + node as u64);
            });
        });
        match memory.nodes(LOOKED_AT) {
            Err(error) => self.say_once(refused(
                "say where pages are (move_pages)",
                &error,
                "they were not looked at",
            )),
            Ok(found) => {
                let elsewhere = found.iter().filter(|n| **n != Some(os_index)).count();
                if elsewhere * 100 > found.len() {
                    return Err(format!(
                        "{elsewhere} of {} pages asked for there lie elsewhere",
                        found.len()
                    ));
                }
            }
        }
        Ok(memory)
    }

    fn say_once(&mut self, text: String) {
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }

    /// Bytes taken on each node.
    pub(super) fn memory(&self) -> Vec<u64> {
        let bytes = |n: &Place| n.memory.as_ref().map_or(0, |m| m.bytes() as u64);
        self.nodes.iter().map(bytes).collect()
    }

    /// The share of it on huge pages.
    pub(super) fn huge(&self, host: &Host) -> f64 {
        let taken = || self.nodes.iter().filter_map(|n| n.memory.as_ref());
        let huge: u64 = taken().filter_map(|m| m.huge_bytes(host).ok()).sum();
        huge as f64 / taken().map(|m| m.bytes() as f64).sum::<f64>().max(1.0)
    }
}

fn refused(what: &str, error: &io::Error, instead: &str) -> String {
    let mend = if error.kind() == io::ErrorKind::PermissionDenied {
        "; in a container, allow it CAP_SYS_NICE"
    } else {
        ""
    };
    format!("the kernel does not {what}: {error}{mend}; {instead}")
}

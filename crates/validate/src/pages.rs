//! Compares the nodes of a run's pages, read from the kernel's `numa_maps`, with the predicted nodes.

use nodewise_linux::Host;
use nodewise_linux::numa_maps::{Range, RangeKind};
use nodewise_machine::Machine;
use nodewise_placement::Mapping;
use serde::Serialize;

/// Smallest resident size of a memory range that counts, bytes; smaller ones are stacks and the like, not arrays.
const MIN_RANGE_BYTES: u64 = 64 << 10;

/// Predicted and actual distribution of a program's memory over nodes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PagesSeen {
    /// Bytes by node of all accessed pages under the predicted mapping.
    pub predicted_bytes: Vec<u64>,
    /// Bytes by node of the program's anonymous memory in an untimed run, at the time when it was largest.
    pub seen_bytes: Vec<u64>,
    /// Overlap of the two distributions, 0 to 1: the sum over nodes of the smaller of the two shares.
    pub agreement: f64,
}

impl PagesSeen {
    pub(crate) fn new(predicted_bytes: Vec<u64>, seen_bytes: Vec<u64>) -> Self {
        Self {
            agreement: agreement(&predicted_bytes, &seen_bytes),
            predicted_bytes,
            seen_bytes,
        }
    }
}

/// Bytes by node under a mapping of pages of `page_size` bytes.
pub fn predicted(mapping: &Mapping, page_size: u64, nodes: usize) -> Vec<u64> {
    let mut bytes = vec![0; nodes];
    for node in &mapping.nodes {
        bytes[node.index()] += page_size;
    }
    bytes
}

fn agreement(a: &[u64], b: &[u64]) -> f64 {
    let share = |of: &[u64], at: usize| of[at] as f64 / (of.iter().sum::<u64>() as f64).max(1.0);
    (0..a.len().min(b.len()))
        .map(|n| share(a, n).min(share(b, n)))
        .sum()
}

/// Reads the memory of a process tree repeatedly, and keeps the reading with most bytes.
pub struct Watch<'a> {
    host: &'a Host,
    machine: &'a Machine,
    most: Vec<u64>,
}

impl<'a> Watch<'a> {
    pub fn new(host: &'a Host, machine: &'a Machine) -> Self {
        Self {
            host,
            machine,
            most: vec![0; machine.node_count()],
        }
    }

    /// Reads the memory of the descendants of `pid`. `pid` itself is a nodewise process, whose memory is not counted.
    pub fn look(&mut self, pid: u32) {
        let children = self.host.with_descendants(&[pid]);
        let children = children.iter().filter(|child| **child != pid);
        // A process that has ended in the meantime has no memory ranges.
        let ranges: Vec<Range> = children
            .flat_map(|c| self.host.numa_maps(*c).unwrap_or_default())
            .collect();
        let seen = self.by_node(&ranges);
        if seen.iter().sum::<u64>() >= self.most.iter().sum() {
            self.most = seen;
        }
    }

    fn by_node(&self, ranges: &[Range]) -> Vec<u64> {
        let mut bytes = vec![0; self.machine.node_count()];
        let ours = |r: &&Range| matches!(r.kind, RangeKind::Anonymous | RangeKind::Heap);
        let large = |r: &&Range| r.bytes().map(|(_, bytes)| bytes).sum::<u64>() >= MIN_RANGE_BYTES;
        for (node, held) in ranges.iter().filter(ours).filter(large).flat_map(Range::bytes) {
            let index = self.machine.nodes.iter().position(|n| n.os_index == node);
            if let Some(index) = index {
                bytes[index] += held;
            }
        }
        bytes
    }

    /// Bytes by node of the reading with most bytes; `None` if no memory was seen.
    pub fn seen(self) -> Option<Vec<u64>> {
        (self.most.iter().sum::<u64>() > 0).then_some(self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_agree_as_far_as_they_overlap() {
        assert_eq!(agreement(&[10, 10], &[500, 500]), 1.0);
        assert_eq!(agreement(&[10, 0], &[0, 7]), 0.0);
        assert!((agreement(&[75, 25], &[50, 50]) - 0.75).abs() < 1e-12);
        assert_eq!(agreement(&[0, 0], &[1, 1]), 0.0);
    }

    #[test]
    fn arrays_count_and_files_and_stacks_do_not() {
        let (host, machine) = (Host::default(), Machine::named("nehalem-2s").unwrap());
        let lines = [
            "1000 default anon=100 N0=60 N1=40 kernelpagesize_kB=4",
            "2000 default heap anon=20 N1=20 kernelpagesize_kB=4",
            "3000 default stack anon=90 N0=90 kernelpagesize_kB=4",
            "4000 default anon=2 N0=2 kernelpagesize_kB=4",
            "5000 default file=/lib/x.so mapped=99 N0=99 kernelpagesize_kB=4",
        ];
        let ranges: Vec<Range> = lines.iter().filter_map(|l| Range::parse(l)).collect();
        assert_eq!(
            Watch::new(&host, &machine).by_node(&ranges),
            [60 * 4096, 60 * 4096]
        );
    }
}

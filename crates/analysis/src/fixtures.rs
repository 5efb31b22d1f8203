//! Small machines and histograms for tests.

use crate::{Affinity, Entry, Histogram, Votes};
use nodewise_machine::{CpuId, Machine, Node, NodeId, Route};
use nodewise_profile::{ObjectId, PageNumber, ThreadId};

/// A machine with these CPUs on each node; remote latency is twice the local one.
pub(crate) fn machine(cpus: &[&[u32]]) -> Machine {
    let n = cpus.len();
    let node = |(i, cpus): (usize, &&[u32])| Node {
        os_index: i as u32,
        cpus: cpus.iter().copied().map(CpuId).collect(),
        memory: 1 << 30,
        bandwidth: 10_000.0,
        kind: None,
        socket: None,
        cache: None,
    };
    let latency = |r, m| if r == m { 100.0 } else { 200.0 };
    Machine {
        name: "test".into(),
        title: String::new(),
        page_size: 4096,
        nodes: cpus.iter().enumerate().map(node).collect(),
        latency_ns: (0..n).map(|r| (0..n).map(|m| latency(r, m)).collect()).collect(),
        links: Vec::new(),
        routes: vec![vec![Route::default(); n]; n],
        hop_rules: Vec::new(),
        backplane: None,
        sources: Vec::new(),
    }
}

/// Thread i on node i.
pub(crate) fn thread_per_node(nodes: u32) -> Affinity {
    Affinity {
        name: "identity".into(),
        cpus: (0..nodes).map(CpuId).collect(),
        nodes: (0..nodes).map(NodeId).collect(),
    }
}

/// Pages 0, 1, … of one object. `pages[p][t]` is the number of reads of page p by thread t; a zero makes no cell.
pub(crate) fn histogram(pages: &[Vec<u64>]) -> Histogram {
    let mut out = Histogram::empty(pages.iter().map(Vec::len).max().unwrap_or(0), 0);
    for (page, reads) in pages.iter().enumerate() {
        let cells = reads.iter().enumerate().filter(|(_, r)| **r > 0);
        let cells: Vec<_> = cells
            .map(|(t, &reads)| Entry {
                reads,
                thread: ThreadId(t as u32),
                ..Entry::default()
            })
            .collect();
        out.push(PageNumber(page as u64), ObjectId(0), &cells);
    }
    out
}

/// Votes with as many observations of each node, of weight 3.
pub(crate) fn votes(by_node: &[u32]) -> Votes {
    let mut votes = Votes::default();
    for (node, n) in (0..).map(NodeId).zip(by_node) {
        (0..*n).for_each(|_| votes.add(node, 3.0));
    }
    votes
}

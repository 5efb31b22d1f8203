//! Sums over pages, from which pictures are drawn.

use nodewise_analysis::{Affinity, Histogram, NodeCounts, SharingClass};
use nodewise_machine::NodeId;
use nodewise_placement::Mapping;
use nodewise_profile::{ObjectKind, Profile};
use std::ops::Range;

/// Number of different nodes that fit into a byte; nodes with larger numbers are shown as the last one.
pub const NODES: usize = 255;

/// Layout of a row of sums.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Number of memory nodes.
    pub nodes: usize,
    /// Number of policies (mappings).
    pub policies: usize,
}

impl Shape {
    const ACCESSES: usize = 0;
    const WRITES: usize = 1;
    const EXCLUSIVE: usize = 2;
    const CLASSES: usize = 3;
    const SENDERS: usize = Self::CLASSES + SharingClass::ALL.len();

    /// Number of sums in a row.
    #[must_use]
    pub fn width(self) -> usize {
        self.policy(self.policies)
    }

    /// Index of a policy's local accesses in a row; its numbers of pages by home follow.
    fn policy(self, policy: usize) -> usize {
        Self::SENDERS + self.nodes + policy * (1 + self.nodes)
    }

    /// The named sums of a row.
    #[must_use]
    pub fn read(self, row: &[u64]) -> Sums<'_> {
        Sums { shape: self, row }
    }
}

/// The sums of some pages.
#[derive(Clone, Copy, Debug)]
pub struct Sums<'a> {
    shape: Shape,
    row: &'a [u64],
}

impl<'a> Sums<'a> {
    /// Number of loads and stores.
    #[must_use]
    pub fn accesses(self) -> u64 {
        self.row[Shape::ACCESSES]
    }

    /// Store instructions over the pages.
    #[must_use]
    pub fn writes(self) -> u64 {
        self.row[Shape::WRITES]
    }

    /// Accesses by the node that accesses each page most.
    #[must_use]
    pub fn exclusive(self) -> u64 {
        self.row[Shape::EXCLUSIVE]
    }

    /// Accesses by sharing class.
    #[must_use]
    pub fn classes(self) -> &'a [u64] {
        &self.row[Shape::CLASSES..Shape::SENDERS]
    }

    /// Accesses by the node they come from.
    #[must_use]
    pub fn nodes(self) -> &'a [u64] {
        &self.row[Shape::SENDERS..][..self.shape.nodes]
    }

    /// Number of accesses that are local under a policy.
    #[must_use]
    pub fn local(self, policy: usize) -> u64 {
        self.row[self.shape.policy(policy)]
    }

    /// Number of pages on each node under a policy.
    #[must_use]
    pub fn homes(self, policy: usize) -> &'a [u64] {
        &self.row[self.shape.policy(policy) + 1..][..self.shape.nodes]
    }
}

/// The histogram with placements of threads and pages, in a few bytes per page.
#[derive(Debug)]
pub struct Pages {
    /// Page × thread counts.
    pub histogram: Histogram,
    /// The CPU and node of each thread.
    pub affinity: Affinity,
    /// Home of each page under each mapping.
    pub homes: Vec<Vec<u8>>,
    /// Kind of each object, by object number.
    kinds: Vec<ObjectKind>,
    /// How rows of sums are laid out.
    pub shape: Shape,
}

impl Pages {
    /// Builds it from mappings parallel to the histogram; each mapping is freed as soon as it is converted.
    #[must_use]
    pub fn new(
        profile: &Profile,
        mut histogram: Histogram,
        affinity: &Affinity,
        mappings: Vec<Mapping>,
        nodes: usize,
    ) -> Self {
        histogram.pages.shrink_to_fit();
        histogram.objects.shrink_to_fit();
        histogram.offsets.shrink_to_fit();
        histogram.entries.shrink_to_fit();
        Self {
            shape: Shape {
                nodes: nodes.min(NODES),
                policies: mappings.len(),
            },
            affinity: narrowed(affinity),
            homes: mappings.into_iter().map(|m| homes(&m)).collect(),
            kinds: profile.objects.iter().map(|o| o.kind).collect(),
            histogram,
        }
    }

    /// Adds the sums of pages to a row.
    pub fn add(&self, pages: Range<usize>, counts: &mut NodeCounts, row: &mut [u64]) {
        for page in pages.map(|index| self.histogram.page(index)) {
            let kind = self.kinds.get(page.object.index()).copied().unwrap_or_default();
            let counts = counts.load(page.entries, &self.affinity);
            row[Shape::ACCESSES] += counts.total();
            row[Shape::WRITES] += page.entries.iter().map(|e| e.writes).sum::<u64>();
            row[Shape::EXCLUSIVE] += counts.dominant().1;
            row[Shape::CLASSES + SharingClass::of(kind, counts).index()] += counts.total();
            for node in counts.touched() {
                row[Shape::SENDERS + node.index()] += counts.of(*node);
            }
            for (policy, homes) in self.homes.iter().enumerate() {
                let home = usize::from(homes[page.index]);
                let at = self.shape.policy(policy);
                row[at] += counts.of(NodeId(home as u32));
                row[at + 1 + home] += 1;
            }
        }
    }

    /// Adds the accesses of each thread to some pages.
    pub fn add_threads(&self, pages: Range<usize>, row: &mut [u64]) {
        let offset = |page: usize| self.histogram.offsets[page] as usize;
        for entry in &self.histogram.entries[offset(pages.start)..offset(pages.end)] {
            row[entry.thread.index()] += entry.accesses();
        }
    }

    /// Memory in use in addition to the histogram, bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.homes.iter().map(Vec::len).sum::<usize>() + self.kinds.len()
    }
}

/// A node number as a byte; larger numbers become the last one ([`NODES`] − 1).
#[must_use]
pub fn narrow(node: NodeId) -> u8 {
    node.index().min(NODES - 1) as u8
}

/// Clamps node numbers to a byte.
#[must_use]
pub fn narrowed(affinity: &Affinity) -> Affinity {
    let nodes = affinity.nodes.iter().map(|n| NodeId(narrow(*n).into())).collect();
    Affinity {
        nodes,
        ..affinity.clone()
    }
}

/// The homes of a mapping.
#[must_use]
pub fn homes(mapping: &Mapping) -> Vec<u8> {
    mapping.nodes.iter().map(|n| narrow(*n)).collect()
}

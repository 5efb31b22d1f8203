//! Pages that are read alike: those of an object that the same nodes read.

use crate::Context;
use nodewise_machine::NodeId;
use nodewise_profile::{ObjectId, ObjectKind};
use std::collections::BTreeMap;

/// A node reads a page, for the grouping, if it fetches this part of its lines.
const READER_SHARE: f64 = 0.1;
/// Unknown shares of the linear program: more take it longer than a user waits. Lighter groups go where most of their
/// lines are fetched.
const MAX_UNKNOWNS: usize = 512;

/// Lines that a CPU fetches and writes back.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Lines {
    pub fetched: f64,
    pub written: f64,
}

impl std::ops::AddAssign for Lines {
    fn add_assign(&mut self, other: Self) {
        self.fetched += other.fetched;
        self.written += other.written;
    }
}

/// Pages of one object with the same readers.
pub(super) struct Group {
    /// By CPU that runs threads.
    pub readers: Vec<Lines>,
    /// Indices in the histogram, ascending.
    pub pages: Vec<u32>,
}

/// All pages: those whose shares are to be found, and the lines of the others, whose nodes are fixed.
pub(super) struct Groups {
    /// The node of each CPU that runs threads.
    pub cpus: Vec<NodeId>,
    pub nodes: usize,
    /// Groups whose shares are to be found, the heaviest first.
    pub free: Vec<Group>,
    /// `[cpu * nodes + memory]`.
    fixed: Vec<Lines>,
}

impl Groups {
    /// Arrays and files are grouped; stacks, pools and images stay where they are first touched, as rules cannot move
    /// them.
    pub fn of(context: &Context<'_>, first_touch: &[NodeId]) -> Self {
        let histogram = context.histogram;
        let (slots, cpus) = context.affinity.used_cpus();
        let mut all = Self {
            nodes: context.machine.node_count(),
            fixed: vec![Lines::default(); cpus.len() * context.machine.node_count()],
            cpus,
            free: Vec::new(),
        };
        let counted = histogram.entries.iter().any(|e| e.lines > 0);
        let mut groups: BTreeMap<(ObjectId, Vec<bool>), Group> = BTreeMap::new();
        for (page, first_touched) in first_touch.iter().enumerate() {
            let mut readers = vec![Lines::default(); all.cpus.len()];
            for entry in histogram.page(page).entries {
                // Samples have no lines.
                let fetched = if counted {
                    f64::from(entry.lines)
                } else {
                    entry.accesses() as f64
                };
                if let Some(slot) = slots.get(entry.thread.index()) {
                    readers[*slot as usize] += Lines {
                        fetched,
                        written: fetched.min(entry.writes as f64),
                    };
                }
            }
            let object = histogram.objects[page];
            let kind = context.profile.object(object).map(|o| o.kind);
            if !kind.is_some_and(ObjectKind::is_array_or_file) {
                add(&mut all.fixed, &readers, *first_touched);
                continue;
            }
            let group = groups
                .entry((object, all.who(&readers)))
                .or_insert_with(|| Group {
                    readers: vec![Lines::default(); readers.len()],
                    pages: Vec::new(),
                });
            group.pages.push(page as u32);
            group
                .readers
                .iter_mut()
                .zip(&readers)
                .for_each(|(sum, r)| *sum += *r);
        }
        let weight = |g: &Group| -> f64 { g.readers.iter().map(|r| r.fetched).sum() };
        all.free = groups.into_values().collect();
        all.free.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
        all
    }

    /// How many groups have shares to be found.
    pub fn unknown(&self) -> usize {
        self.free.len().min((MAX_UNKNOWNS / self.nodes.max(1)).max(1))
    }

    /// The lines of all pages whose node is fixed, those of lighter groups included: `[cpu * nodes + memory]`.
    pub fn constant(&self) -> Vec<Lines> {
        let mut fixed = self.fixed.clone();
        for group in &self.free[self.unknown()..] {
            add(&mut fixed, &group.readers, self.heaviest(&group.readers));
        }
        fixed
    }

    /// The node whose CPUs have most lines; the lowest of equals.
    pub fn heaviest(&self, readers: &[Lines]) -> NodeId {
        let lines = self.by_node(readers);
        let most = (0..lines.len())
            .rev()
            .max_by(|a, b| lines[*a].total_cmp(&lines[*b]));
        NodeId(most.unwrap_or(0) as u32)
    }

    /// The nodes that read a page.
    fn who(&self, readers: &[Lines]) -> Vec<bool> {
        let lines = self.by_node(readers);
        let all: f64 = lines.iter().sum();
        lines.iter().map(|l| *l > READER_SHARE * all).collect()
    }

    fn by_node(&self, readers: &[Lines]) -> Vec<f64> {
        let mut lines = vec![0.0; self.nodes];
        for (reader, node) in readers.iter().zip(&self.cpus) {
            lines[node.index()] += reader.fetched + reader.written;
        }
        lines
    }
}

/// Adds lines by CPU to those that are fixed, `[cpu * nodes + memory]`.
fn add(fixed: &mut [Lines], readers: &[Lines], memory: NodeId) {
    let nodes = fixed.len() / readers.len().max(1);
    for (cpu, lines) in readers.iter().enumerate() {
        fixed[cpu * nodes + memory.index()] += *lines;
    }
}

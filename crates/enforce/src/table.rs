//! The binary table that the preload reads. Mirror of `runtime/preload/table.h`.

use crate::live::Live;
use crate::sites::Sites;
use nodewise_machine::NodeId;
use nodewise_placement::{Distribution, NodeRun, ObjectPage, Order, cumulative};

const MAGIC: u64 = 0x3165_6c62_6174_776e;
const VERSION: u32 = 3;
const SECTIONS: usize = 12;
const HEADER: usize = 8 + 4 + 4 + 8 + 16 + 4 + 4 + 24 + SECTIONS * 8;
/// Matches any site, thread or sequence.
pub(crate) const ANY: u32 = u32::MAX;
/// Largest number of nodes in a table.
pub(crate) const NODES: u32 = 128;

/// Bits of [`Table::flags`], as in `table.h`.
pub(crate) mod flags {
    pub(crate) const BIND_THREADS: u32 = 1;
    pub(crate) const SPLIT_HUGE: u32 = 2;
    pub(crate) const PLACE_REST: u32 = 4;
    pub(crate) const MAIN_HOME: u32 = 8;
    pub(crate) const OPENMP_PLACES: u32 = 16;
    pub(crate) const FOLLOWED: u32 = 32;
}

/// A module of the program: the executable or a shared library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableModule {
    pub device: u64,
    pub inode: u64,
    /// Whether it has line tables; if so, code that no rule names still counts as a frame.
    pub sourced: bool,
}

/// A rule in the form that the preload reads.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TableRule {
    pub kind: u32,
    pub site: u32,
    pub thread: u32,
    pub sequence: u32,
    /// The pattern of memory that has a name (`runtime/preload/named.c`).
    pub name: Option<String>,
    pub distribution: Distribution,
    pub pages: u64,
    pub runs: Vec<NodeRun>,
    /// Accesses to a page relative to the program's mean. Used by `nodewise run` itself, not by the preload.
    pub weight: f64,
}

impl TableRule {
    fn run(&self, page: ObjectPage) -> Option<NodeId> {
        let run = self
            .runs
            .get(self.runs.partition_point(|r| r.first + r.len <= page.index))?;
        (page.pages == self.pages && run.first <= page.index).then_some(run.node)
    }
}

/// A variable that a rule applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableVariable {
    pub address: u64,
    pub bytes: u64,
    pub module: u32,
    pub rule: u32,
}

/// Everything that `nodewise run` tells the preload.
#[derive(Debug)]
pub struct Table {
    pub(crate) flags: u32,
    /// Device and inode of the executable; zeros match any.
    pub(crate) target: (u64, u64),
    /// Base pages that are placed together.
    pub(crate) granule: u32,
    pub(crate) fallback: Distribution,
    /// The kernel's number of each logical node.
    pub(crate) nodes: Vec<u32>,
    pub(crate) thread_nodes: Vec<NodeId>,
    pub(crate) thread_cpus: Vec<u32>,
    pub(crate) modules: Vec<TableModule>,
    pub(crate) sites: Sites,
    pub(crate) rules: Vec<TableRule>,
    pub(crate) variables: Vec<TableVariable>,
}

/// A section of the table under construction.
#[derive(Default)]
struct Section {
    bytes: Vec<u8>,
    count: u32,
}

impl Section {
    /// Appends a text with a zero at its end; returns where it begins.
    fn text(&mut self, text: &str) -> u32 {
        let at = self.count;
        self.bytes.extend(text.bytes().filter(|b| *b != 0).chain([0]));
        self.count = self.bytes.len() as u32;
        at
    }

    fn entry(&mut self, fields: impl FnOnce(&mut Vec<u8>)) {
        fields(&mut self.bytes);
        self.count += 1;
    }
}

trait Put {
    fn u32(&mut self, value: u32) -> &mut Self;
    fn u64(&mut self, value: u64) -> &mut Self;
}

impl Put for Vec<u8> {
    fn u32(&mut self, value: u32) -> &mut Self {
        self.extend(value.to_le_bytes());
        self
    }

    fn u64(&mut self, value: u64) -> &mut Self {
        self.extend(value.to_le_bytes());
        self
    }
}

impl Table {
    /// The table as the preload library maps it: `runtime/preload/table.h`.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let (frames, sites, ranges) = self.code();
        let mut parts = Section::default();
        let mut texts = Section::default();
        let (runs, rules) = self.rules(&mut parts, &mut texts);
        let fallback = put_distribution(&self.fallback, &mut parts);
        let sections = [
            numbers(self.nodes.iter().copied()),
            numbers(self.thread_nodes.iter().map(|n| n.0)),
            numbers(self.thread_cpus.iter().copied()),
            self.modules(),
            frames,
            sites,
            ranges,
            parts,
            runs,
            rules,
            self.variables(),
            texts,
        ];
        self.assemble(&fallback, &sections)
    }

    /// The logical node on which a page of an object is wanted. Mirror of `nw_wanted`.
    ///
    /// The middle page of a granule decides for all of its pages.
    #[must_use]
    pub(crate) fn wanted(&self, object: &Live, page: u64) -> Option<NodeId> {
        let whole = object.whole;
        let (first, pages, mapping) = match whole.pages {
            0 => (object.page, object.pages, object.page),
            pages => (0, pages, whole.before),
        };
        let granule = match whole.pages {
            0 if pages < u64::from(self.granule) => 1,
            0 => u64::from(self.granule),
            _ => u64::from(whole.granule.max(1)),
        };
        let own = page - object.page + mapping;
        let block = own / granule;
        let from = (block * granule).max(first);
        let until = ((block + 1) * granule).min(first + pages);
        let index = from + (until - from).saturating_sub(1) / 2 - first;
        let at = ObjectPage {
            index,
            pages,
            number: block.wrapping_add(whole.phase),
            turn: block - first / granule,
            thread: object.thread,
        };
        match self.rules.get(object.rule as usize) {
            Some(rule) => rule
                .run(at)
                .or_else(|| rule.distribution.node(at, &self.thread_nodes)),
            None => self.fallback.node(at, &self.thread_nodes),
        }
    }

    fn assemble(&self, fallback: &[u8], sections: &[Section; SECTIONS]) -> Vec<u8> {
        let bytes: usize = HEADER
            + sections
                .iter()
                .map(|s| s.bytes.len().next_multiple_of(8))
                .sum::<usize>();
        let mut out = Vec::with_capacity(bytes);
        out.u64(MAGIC).u32(VERSION).u32(self.flags).u64(bytes as u64);
        out.u64(self.target.0).u64(self.target.1).u32(self.granule).u32(0);
        out.extend(fallback);
        let mut offset = HEADER;
        for section in sections {
            out.u32(offset as u32).u32(section.count);
            offset += section.bytes.len().next_multiple_of(8);
        }
        for section in sections {
            out.extend(&section.bytes);
            out.resize(out.len().next_multiple_of(8), 0);
        }
        out
    }

    fn modules(&self) -> Section {
        let mut modules = Section::default();
        for module in &self.modules {
            modules.entry(|b| {
                b.u64(module.device)
                    .u64(module.inode)
                    .u64(u64::from(module.sourced));
            });
        }
        modules
    }

    /// Sections of frames, sites and code ranges.
    fn code(&self) -> (Section, Section, Section) {
        let (mut frames, mut sites, mut ranges) =
            (Section::default(), Section::default(), Section::default());
        let mut pool = |ids: &[u32]| {
            let first = frames.count;
            for id in ids {
                frames.entry(|b| {
                    b.u32(*id);
                });
            }
            first
        };
        for site in self.sites.sites.iter().flatten() {
            let first = pool(&site.frames);
            sites.entry(|b| {
                b.u32(first)
                    .u32(site.frames.len() as u32)
                    .u32(u32::from(site.by_name))
                    .u32(site.objects);
            });
        }
        for range in &self.sites.ranges {
            let first = pool(&range.frames);
            ranges.entry(|b| {
                b.u64(range.start).u64(range.end);
                b.u32(range.module)
                    .u32(first)
                    .u32(range.frames.len() as u32)
                    .u32(0);
            });
        }
        (frames, sites, ranges)
    }

    /// Sections of distribution runs and rules.
    fn rules(&self, parts: &mut Section, texts: &mut Section) -> (Section, Section) {
        let (mut runs, mut rules) = (Section::default(), Section::default());
        for rule in &self.rules {
            let first = runs.count;
            for run in &rule.runs {
                runs.entry(|b| {
                    b.u64(run.first).u64(run.len).u32(run.node.0).u32(0);
                });
            }
            let how = put_distribution(&rule.distribution, parts);
            let name = rule.name.as_ref().map_or(ANY, |name| texts.text(name));
            rules.entry(|b| {
                b.u32(rule.kind)
                    .u32(rule.site)
                    .u32(rule.thread)
                    .u32(rule.sequence);
                b.extend(how);
                b.u64(rule.pages).u32(first).u32(rule.runs.len() as u32);
                b.u32(name).u32(0);
            });
        }
        (runs, rules)
    }

    fn variables(&self) -> Section {
        let mut variables = Section::default();
        for v in &self.variables {
            variables.entry(|b| {
                b.u64(v.address).u64(v.bytes).u32(v.module).u32(v.rule);
            });
        }
        variables
    }
}

fn numbers(values: impl Iterator<Item = u32>) -> Section {
    let mut section = Section::default();
    for value in values {
        section.entry(|b| {
            b.u32(value);
        });
    }
    section
}

/// Serialises an `nw_distribution` and appends its parts to the pool.
fn put_distribution(distribution: &Distribution, pool: &mut Section) -> Vec<u8> {
    let listed = |nodes: &[NodeId]| nodes.iter().map(|n| (*n, 1.0)).collect();
    let (kind, repeat, parameter, parts) = match distribution {
        Distribution::FirstTouch => (0, 0, 0, Vec::new()),
        Distribution::Node(node) => (1, 0, 0, listed(&[*node])),
        Distribution::Interleave(nodes) => (1, 0, 0, listed(nodes)),
        Distribution::Block(parts) => (2, 0, 0, cumulative(parts)),
        Distribution::ByThread { repeat } => (3, *repeat, 0, Vec::new()),
        Distribution::Allocator => (4, 0, 0, Vec::new()),
        Distribution::Dealt(dealt) => {
            let (kind, parameter) = match dealt.order {
                Order::Cyclic => (5, 0),
                Order::Skew => (6, 0),
                Order::Prime(prime) => (7, u64::from(prime)),
                Order::Random(seed) => (8, seed),
            };
            (kind, dealt.block, parameter, listed(&dealt.nodes))
        }
    };
    let mut out = Vec::new();
    out.u32(kind)
        .u32(repeat)
        .u32(parts.len() as u32)
        .u32(pool.count)
        .u64(parameter);
    for (node, until) in parts {
        pool.entry(|b| {
            b.u64(f64::to_bits(until)).u32(node.0).u32(0);
        });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_aligned_and_counted() {
        let table = Table {
            flags: 0,
            target: (1, 2),
            granule: 1,
            fallback: "interleave 0,1".parse().unwrap(),
            nodes: vec![0, 1, 2],
            thread_nodes: vec![NodeId(0)],
            thread_cpus: vec![5],
            modules: Vec::new(),
            sites: Sites::default(),
            rules: Vec::new(),
            variables: Vec::new(),
        };
        let bytes = table.to_bytes();
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!(bytes.len() % 8, 0);
        assert_eq!(word(16) as usize, bytes.len());
        let first_section = HEADER - SECTIONS * 8;
        assert_eq!(
            (word(first_section) as usize, word(first_section + 4)),
            (HEADER, 3)
        );
    }
}

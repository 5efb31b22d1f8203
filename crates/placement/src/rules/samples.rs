//! The recogniser's input: a mapping grouped by object.

use super::apply::object_page;
use super::{Distribution, Named, NodeRun, Rule, Selector};
use crate::{Context, Mapping, ObjectPage};
use nodewise_machine::NodeId;
use nodewise_profile::{BASE_PAGE_SIZE, Object, ObjectId, ObjectKind};
use std::collections::BTreeMap;

/// A page of an object with its node in the mapping.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub at: ObjectPage,
    /// Index of the first base page in the object, and the number of base pages.
    pub first: u64,
    pub len: u64,
    pub home: NodeId,
    pub first_touch: NodeId,
    pub accesses: u64,
}

/// The recorded pages of one object.
#[derive(Clone, Debug)]
pub(super) struct Piece<'a> {
    pub object: &'a Object,
    pub samples: Vec<Sample>,
    pub accesses: u64,
}

/// Objects that one selector can match.
#[derive(Clone, Debug)]
pub(super) struct Group<'a> {
    pub selector: Selector,
    /// The objects of the group, by descending accesses.
    pub pieces: Vec<Piece<'a>>,
    pub accesses: u64,
}

/// The groups of objects that rules can address, by descending accesses. The others (stacks, pools of small
/// allocations, small files, images) are left to the default.
pub(super) fn groups<'a>(context: &Context<'a>, mapping: &Mapping, first_touch: &[NodeId]) -> Vec<Group<'a>> {
    let mut groups: BTreeMap<(ObjectKind, String), Group<'a>> = BTreeMap::new();
    for (id, samples) in samples(context, mapping, first_touch) {
        let Some(object) = context.profile.object(id) else {
            continue;
        };
        let selector = selector(context, object);
        let key = (
            object.kind,
            selector
                .site
                .clone()
                .or_else(|| selector.name.clone())
                .unwrap_or_default(),
        );
        let accesses = samples.iter().map(|s| s.accesses).sum();
        let group = groups.entry(key).or_insert(Group {
            selector,
            pieces: Vec::new(),
            accesses: 0,
        });
        if group.selector.name != rule_name(object) {
            group.selector.name = None;
        }
        group.pieces.push(Piece {
            object,
            samples,
            accesses,
        });
        group.accesses += accesses;
    }
    let mut groups: Vec<_> = groups.into_values().collect();
    groups
        .iter_mut()
        .for_each(|g| g.pieces.sort_by_key(|p| std::cmp::Reverse(p.accesses)));
    groups.sort_by_key(|g| std::cmp::Reverse(g.accesses));
    groups
}

fn samples(
    context: &Context<'_>,
    mapping: &Mapping,
    first_touch: &[NodeId],
) -> BTreeMap<ObjectId, Vec<Sample>> {
    let mut objects: BTreeMap<ObjectId, Vec<Sample>> = BTreeMap::new();
    let shift = context.histogram.shift;
    for page in context.histogram.iter() {
        let Some(object) = context.profile.object(page.object).filter(|o| has_rules(o)) else {
            continue;
        };
        let first = page.page.0.saturating_sub(object.first_page.0);
        let end = (page.page.0 + (1 << shift))
            .saturating_sub(object.first_page.0)
            .min(object.pages);
        objects.entry(page.object).or_default().push(Sample {
            at: object_page(object, page.page, shift),
            first,
            len: end.saturating_sub(first).max(1),
            home: mapping.nodes[page.index],
            first_touch: first_touch[page.index],
            accesses: page.accesses(),
        });
    }
    objects
}

/// Files smaller than this (4 MiB, in base pages) get no rules: what every program maps besides its data.
const SMALLEST_FILE: u64 = 1024;

/// Whether the object can have rules.
fn has_rules(object: &Object) -> bool {
    // Pages of a file that is mapped in parts, or several times, are numbered by address.
    let is_whole = object.bytes.div_ceil(BASE_PAGE_SIZE) == object.pages;
    object.kind.is_mappable()
        || (object.kind == ObjectKind::File && object.pages >= SMALLEST_FILE && is_whole)
}

/// The object's name on one line, if it has one.
pub(super) fn name(object: &Object) -> Option<String> {
    (!object.name.is_empty()).then(|| object.name.replace('\n', " "))
}

/// Its name as a rule has it.
fn rule_name(object: &Object) -> Option<String> {
    match object.kind {
        ObjectKind::File => Some(Named::escaped(&object.name)),
        _ => name(object),
    }
}

fn selector(context: &Context<'_>, object: &Object) -> Selector {
    let site = context.profile.site(object.site).filter(|s| !s.frames.is_empty());
    Selector {
        kind: object.kind,
        site: site.map(|s| s.to_string().replace('\n', " ")),
        name: rule_name(object),
        thread: None,
        sequence: None,
    }
}

impl Sample {
    /// The node of the page under a distribution.
    pub fn under(&self, distribution: &Distribution, threads: &[NodeId]) -> NodeId {
        distribution.node(self.at, threads).unwrap_or(self.first_touch)
    }
}

impl Piece<'_> {
    /// Accesses to pages that have the same node under a distribution as in the mapping.
    pub fn agreement(&self, distribution: &Distribution, threads: &[NodeId]) -> u64 {
        let agrees = |s: &&Sample| s.under(distribution, threads) == s.home;
        self.samples.iter().filter(agrees).map(|s| s.accesses).sum()
    }

    /// At most about `count` samples, chosen by a hash of their index, so that no period in the mapping is missed.
    pub fn thinned(&self, count: usize) -> Self {
        let keep = |s: &&Sample| {
            let hash = (s.at.index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            (hash * self.samples.len() as u64) >> 32 < count as u64
        };
        let samples: Vec<_> = self.samples.iter().filter(keep).copied().collect();
        let accesses = samples.iter().map(|s| s.accesses).sum();
        Self {
            object: self.object,
            samples,
            accesses,
        }
    }

    /// The rule for this object alone, or for all that `selector` matches if one is given: the distribution, and runs
    /// for pages where the mapping differs.
    pub fn rule(&self, selector: Selector, distribution: Distribution, threads: &[NodeId]) -> Rule {
        let mut runs: Vec<NodeRun> = Vec::new();
        let mut joins = false; // whether the previous sample ended the last run
        for sample in &self.samples {
            let differs = sample.under(&distribution, threads) != sample.home;
            if differs {
                match runs.last_mut().filter(|r| joins && r.node == sample.home) {
                    Some(run) => run.len = sample.first + sample.len - run.first,
                    None => runs.push(NodeRun {
                        first: sample.first,
                        len: sample.len,
                        node: sample.home,
                    }),
                }
            }
            joins = differs;
        }
        Rule {
            object: selector,
            distribution,
            runs,
            pages: self.object.pages.max(1),
            weight: 1.0,
        }
    }
}

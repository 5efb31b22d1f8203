//! Applies rules to the pages of a profile of any size and thread count.

use super::{Distribution, Placement};
use crate::{Context, Mapping, ObjectPage};
use nodewise_machine::NodeId;
use nodewise_profile::{Object, ObjectId, PageNumber, Profile};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// How much of a placement applied to a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Objects that a rule matched.
    pub matched_objects: usize,
    /// Objects with recorded pages.
    pub objects: usize,
    /// Pages of matched objects.
    pub matched_pages: u64,
    /// Number of recorded pages.
    pub pages: u64,
    /// Rules that matched nothing, by index.
    pub unmatched_rules: Vec<usize>,
    /// Whether the placement is for more nodes than the machine has ([`Placement::folded`]).
    pub folded: bool,
}

/// The node of each page of the context under the placement's rules. Threads are on the nodes of the context's
/// affinity; pages without a rule get their first-touch node.
#[must_use]
pub fn apply(placement: &Placement, context: &Context<'_>) -> (Mapping, Applied) {
    let histogram = context.histogram;
    let matched = Matched::new(placement, context);
    let mut nodes = context.first_touch();
    let mut applied = Applied {
        pages: histogram.len() as u64,
        folded: matches!(matched.placement, Cow::Owned(_)),
        ..Applied::default()
    };
    let mut objects = BTreeSet::new();
    for (node, (page, id)) in nodes
        .iter_mut()
        .zip(histogram.pages.iter().zip(&histogram.objects))
    {
        let rule = matched.rule(*id);
        objects.insert((id, rule));
        applied.matched_pages += u64::from(rule.is_some());
        if let Some(chosen) = matched.node(*page, *id) {
            *node = chosen;
        }
    }
    applied.objects = objects.len();
    let used: BTreeSet<usize> = objects.iter().filter_map(|(_, rule)| *rule).collect();
    applied.matched_objects = objects.iter().filter(|(_, rule)| rule.is_some()).count();
    let rules = 0..matched.placement.rules.len();
    applied.unmatched_rules = rules.filter(|r| !used.contains(r)).collect();
    let policy = matched.placement.policy.clone();
    (Mapping { policy, nodes }, applied)
}

/// The pages that neither a rule nor the default places; they get their first-touch node.
pub(super) fn undecided(placement: &Placement, context: &Context<'_>) -> Vec<bool> {
    let matched = Matched::new(placement, context);
    let pages = context.histogram.pages.iter().zip(&context.histogram.objects);
    pages
        .map(|(page, id)| matched.node(*page, *id).is_none())
        .collect()
}

/// A placement with the rule of each object.
struct Matched<'a> {
    placement: Cow<'a, Placement>,
    context: Context<'a>,
    threads: Vec<NodeId>,
    rules: Vec<Option<usize>>,
}

impl<'a> Matched<'a> {
    fn new(placement: &'a Placement, context: &Context<'a>) -> Self {
        let placement = placement.folded(context.machine.node_count() as u32);
        Self {
            threads: context.affinity.by_number(context.profile),
            rules: rule_of_objects(&placement, context.profile),
            placement,
            context: *context,
        }
    }

    /// The rule of an object.
    fn rule(&self, object: ObjectId) -> Option<usize> {
        self.rules.get(object.index()).copied().flatten()
    }

    /// The node by the object's rule, else by the default.
    fn node(&self, page: PageNumber, object: ObjectId) -> Option<NodeId> {
        let of = self.context.profile.object(object)?;
        let at = object_page(of, page, self.context.histogram.shift);
        match self.rule(object) {
            Some(rule) => self.placement.rules[rule].node(at, &self.threads),
            None => self.placement.default.node(at, &self.threads),
        }
    }
}

/// The first matching rule of each object.
fn rule_of_objects(placement: &Placement, profile: &Profile) -> Vec<Option<usize>> {
    let sites: Vec<String> = profile.sites.iter().map(ToString::to_string).collect();
    let site = |o: &Object| sites.get(o.site.index()).map_or("", String::as_str);
    let rule = |o: &Object| placement.rules.iter().position(|r| r.object.names(o, site(o)));
    profile.objects.iter().map(rule).collect()
}

/// The properties of a page that distributions use. A large page has the position of the middle of its overlap with the
/// object.
pub(crate) fn object_page(object: &Object, page: PageNumber, shift: u32) -> ObjectPage {
    let first = page.0.max(object.first_page.0) - object.first_page.0;
    let end = (page.0 + (1 << shift))
        .saturating_sub(object.first_page.0)
        .min(object.pages.max(1))
        .max(first + 1);
    ObjectPage {
        index: first + (end - first - 1) / 2,
        pages: object.pages.max(1),
        number: page.virtual_number() >> shift,
        turn: (page.virtual_number() >> shift) - (object.first_page.virtual_number() >> shift),
        thread: object.thread.0,
    }
}

impl Placement {
    /// The same rules without page runs: what carries over to another input size.
    #[must_use]
    pub fn without_runs(&self) -> Self {
        let mut bare = self.clone();
        bare.rules.iter_mut().for_each(|r| r.runs.clear());
        bare
    }

    /// Whether any rule or default places pages other than by the kernel's first touch.
    #[must_use]
    pub fn decides_anything(&self) -> bool {
        self.default != Distribution::FirstTouch
            || self
                .rules
                .iter()
                .any(|r| r.distribution != Distribution::FirstTouch || !r.runs.is_empty())
    }
}

//! What matching loops to data would gain: the transformed program, predicted by the same simulation
//! (Majo & Gross 4 and 5).
//!
//! Objects whose regions conflict get the distribution that removes the conflict. In the regions whose
//! loops would change, each access to such a page is made by the thread that has its place on the
//! page's node; all else stays. Barriers between parts cost nothing here.

use crate::advice::deals;
use crate::blame::conflict;
use crate::verdict::WORTH_IT;
use nodewise_analysis::{Affinity, Conflict, Division, Histogram, Remedy, Usage};
use nodewise_machine::NodeId;
use nodewise_placement::{Context, Mapping};
use nodewise_profile::{Access, AccessSource, ObjectId, RegionId, ThreadId};
use nodewise_simulation::{Parameters, Range, Simulation, simulate};
use std::collections::{BTreeMap, BTreeSet};

/// The program with matching loops.
#[derive(Clone, Debug, PartialEq)]
pub struct Matched {
    /// First-touch's time as it is over this program's.
    pub speedup: Range,
    /// Typical time, seconds.
    pub seconds: f64,
}

impl Matched {
    /// Predicts it; `None` where no objects conflict, or nothing removes that.
    ///
    /// # Errors
    /// When the accesses cannot be read to their end.
    pub fn predict<S: AccessSource>(
        context: &Context<'_>,
        usage: &Usage,
        simulation: &Simulation,
        mappings: &[Mapping],
        accesses: &S,
    ) -> Result<Option<Self>, S::Error> {
        let mut plan = Plan::new(context, best(simulation, mappings));
        let in_order = Affinity::in_order(context.profile, context.machine);
        for id in (0..context.profile.objects.len()).map(ObjectId::from_index) {
            let conflict = conflict(context, &in_order, usage, id).filter(Conflict::shows);
            if let Some(conflict) = conflict.filter(|c| c.remedy != Remedy::None) {
                plan.object(context, (id, conflict.remedy), usage.divisions(id));
            }
        }
        if plan.moved.is_empty() {
            return Ok(None);
        }
        let mapping = [Mapping {
            policy: "matched".into(),
            nodes: plan.homes.clone(),
        }];
        let source = Transformed {
            source: accesses,
            histogram: context.histogram,
            plan,
        };
        let matched = simulate(context, &mapping, &source, &Parameters::default())?;
        let (before, after) = (simulation.baseline().seconds, matched.baseline().seconds);
        let ratio = |of: fn(&Range) -> f64| of(&before) / of(&after).max(f64::MIN_POSITIVE);
        let ratios = [ratio(|r| r.min), ratio(|r| r.typical), ratio(|r| r.max)];
        let least = ratios.into_iter().fold(f64::INFINITY, f64::min);
        let most = ratios.into_iter().fold(0.0, f64::max);
        Ok(Some(Self {
            speedup: Range::new(least, ratios[1], most),
            seconds: after.typical,
        }))
    }

    /// Whether it is worth the work by itself.
    #[must_use]
    pub fn pays(&self) -> bool {
        self.speedup.typical >= 1.0 + WORTH_IT && self.speedup.min >= 1.0
    }
}

/// The fastest mapping: what else there is stays where that puts it.
fn best<'m>(simulation: &Simulation, mappings: &'m [Mapping]) -> &'m Mapping {
    let predicted = mappings.iter().zip(&simulation.predictions);
    let best = predicted.min_by(|a, b| a.1.seconds.typical.total_cmp(&b.1.seconds.typical));
    best.map_or(&mappings[0], |b| b.0)
}

/// Which accesses move to which thread.
struct Plan {
    /// Nodes with CPUs, ascending: the processors of the paper.
    nodes: Vec<NodeId>,
    /// Threads on each of them.
    teams: Vec<Vec<ThreadId>>,
    /// By thread: its place in its node's team.
    ranks: Vec<usize>,
    /// Home of each page.
    homes: Vec<NodeId>,
    /// Where loops change.
    moved: BTreeSet<(ObjectId, RegionId)>,
}

impl Plan {
    fn new(context: &Context<'_>, base: &Mapping) -> Self {
        let mut by_node: BTreeMap<NodeId, Vec<ThreadId>> = BTreeMap::new();
        let mut ranks = Vec::new();
        for (thread, node) in context.affinity.nodes.iter().enumerate() {
            let team = by_node.entry(*node).or_default();
            ranks.push(team.len());
            team.push(ThreadId::from_index(thread));
        }
        Self {
            nodes: by_node.keys().copied().collect(),
            teams: by_node.into_values().collect(),
            ranks,
            homes: base.nodes.clone(),
            moved: BTreeSet::new(),
        }
    }

    fn object(&mut self, context: &Context<'_>, (id, remedy): (ObjectId, Remedy), divisions: &[Division]) {
        let dealing: Vec<&Division> = divisions.iter().filter(|d| deals(d)).collect();
        // One division a dimension says where its blocks are; ascending ones where rows belong.
        let mut dimensions: BTreeMap<Option<usize>, &Division> = BTreeMap::new();
        for division in dealing
            .iter()
            .filter(|d| remedy != Remedy::StaticInverse || !d.inverse)
        {
            dimensions.entry(division.pattern.dimension()).or_insert(division);
        }
        for page in dealing[0].pages() {
            let block = |d: &&Division| Some(self.index(d.node(page, context.affinity)?));
            let blocks: Option<Vec<usize>> = dimensions.values().map(block).collect();
            if let Some(blocks) = blocks {
                self.homes[page] = self.nodes[blocks.iter().sum::<usize>() % self.nodes.len()];
            }
        }
        self.moved.extend(dealing.iter().map(|d| (id, d.region)));
    }

    fn index(&self, node: NodeId) -> usize {
        self.nodes.binary_search(&node).unwrap_or(0)
    }

    /// Who makes a thread's accesses to a page at `home`.
    fn thread(&self, thread: ThreadId, home: NodeId) -> ThreadId {
        let team = &self.teams[self.index(home)];
        self.ranks
            .get(thread.index())
            .map_or(thread, |rank| team[rank % team.len()])
    }
}

/// The accesses of the transformed program.
struct Transformed<'a, S> {
    source: &'a S,
    histogram: &'a Histogram,
    plan: Plan,
}

impl<S: AccessSource> AccessSource for Transformed<'_, S> {
    type Error = S::Error;

    fn visit(&self, visit: &mut dyn FnMut(&[Access])) -> Result<(), S::Error> {
        let mut out = Vec::new();
        self.source.visit(&mut |rows| {
            out.clear();
            for row in rows {
                if self.plan.moved.contains(&(row.object, row.region)) {
                    self.split(row, &mut out);
                } else {
                    out.push(*row);
                }
            }
            visit(&out);
        })
    }
}

impl<S> Transformed<'_, S> {
    /// Splits a run where pages change homes.
    fn split(&self, row: &Access, out: &mut Vec<Access>) {
        let mut page = row.page;
        let end = row.page.offset(row.len.into());
        while page < end {
            let large = page.align_down(self.histogram.shift);
            let home = self
                .histogram
                .pages
                .binary_search(&large)
                .ok()
                .map(|i| self.plan.homes[i]);
            let beyond = large.offset(1 << self.histogram.shift).min(end);
            out.push(Access {
                page,
                len: (beyond.0 - page.0) as u32,
                thread: home.map_or(row.thread, |home| self.plan.thread(row.thread, home)),
                ..*row
            });
            page = beyond;
        }
    }
}

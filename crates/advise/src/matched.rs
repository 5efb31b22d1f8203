//! Predicted gain of loops that match their data: the transformed program in the same simulation (Majo & Gross 4 and
//! 5).
//!
//! Objects whose regions conflict get the distribution that removes the conflict. In the regions whose loops would
//! change, each access to an item is made by the thread of the same rank on the node of the item's block. Everything
//! else is unchanged. A page that holds several blocks is on the node of its middle byte (see `square`), so accesses to
//! its other blocks are remote. Barriers between loops are assumed to cost nothing.

use crate::gain::MIN_GAIN;
use crate::loops::{conflict, is_schedulable};
use crate::square::LatinSquare;
use nodewise_analysis::{Affinity, Conflict, Division, Remedy, Usage};
use nodewise_machine::NodeId;
use nodewise_placement::{Context, Mapping};
use nodewise_profile::{Access, AccessSource, ObjectId, PageNumber, RegionId, ThreadId};
use nodewise_simulation::{Range, ScenarioCost, Simulation, simulate};
use std::collections::{BTreeMap, BTreeSet};

/// The program with matching loops.
#[derive(Clone, Debug, PartialEq)]
pub struct Matched {
    /// Time of first-touch divided by the time of this program.
    pub speedup: Range,
    /// The same in each scenario of the simulation.
    pub by_scenario: Vec<f64>,
    /// The same where all uncertain quantities are at ends of their ranges, as [`nodewise_simulation::Prediction::jointly`].
    pub jointly: Vec<f64>,
    /// Predicted time in the typical scenario, seconds.
    pub seconds: f64,
}

impl Matched {
    /// Predicts the transformed program; `None` if no objects conflict, or nothing removes the conflicts.
    ///
    /// # Errors
    /// If the accesses cannot be read to their end.
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
        if plan.changed_loops.is_empty() {
            return Ok(None);
        }
        let mapping = [Mapping {
            policy: "matched".into(),
            nodes: plan.homes.clone(),
        }];
        let source = Transformed {
            source: accesses,
            plan,
        };
        let matched = simulate(context, &mapping, &source, &simulation.parameters)?;
        let (before, after) = (simulation.baseline(), matched.baseline());
        let speedups = |before: &[ScenarioCost], after: &[ScenarioCost]| -> Vec<f64> {
            let both = before.iter().zip(after);
            both.map(|(before, after)| before.seconds / after.seconds.max(f64::MIN_POSITIVE))
                .collect()
        };
        let by_scenario = speedups(&before.by_scenario, &after.by_scenario);
        Ok(Some(Self {
            speedup: Range::spanning(&by_scenario),
            by_scenario,
            jointly: speedups(&before.jointly, &after.jointly),
            seconds: after.seconds.typical,
        }))
    }

    /// Whether it gains more than a placement with the speed-up `gain`, by enough to be worth a change.
    #[must_use]
    pub(crate) fn beats(&self, gain: Range) -> bool {
        self.speedup.typical >= (1.0 + gain.typical) * (1.0 + MIN_GAIN)
    }

    /// Whether its gain alone is worth a change.
    #[must_use]
    pub fn pays(&self) -> bool {
        self.speedup.typical >= 1.0 + MIN_GAIN && self.speedup.min >= 1.0
    }
}

/// The fastest mapping, in which all other objects are placed.
fn best<'m>(simulation: &Simulation, mappings: &'m [Mapping]) -> &'m Mapping {
    let predicted = mappings.iter().zip(&simulation.predictions);
    let best = predicted.min_by(|a, b| a.1.seconds.typical.total_cmp(&b.1.seconds.typical));
    best.map_or(&mappings[0], |b| b.0)
}

/// Assignment of accesses to threads in the transformed program.
struct Plan {
    /// Nodes with CPUs, ascending: the processors of Majo & Gross.
    nodes: Vec<NodeId>,
    /// The threads on each of these nodes.
    teams: Vec<Vec<ThreadId>>,
    /// The rank of each thread in its node's team.
    ranks: Vec<usize>,
    /// The home of each page.
    homes: Vec<NodeId>,
    /// The blocks of each array.
    squares: BTreeMap<ObjectId, LatinSquare>,
    /// Pairs of object and region whose loops change.
    changed_loops: BTreeSet<(ObjectId, RegionId)>,
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
            squares: BTreeMap::new(),
            changed_loops: BTreeSet::new(),
        }
    }

    fn object(&mut self, context: &Context<'_>, (id, remedy): (ObjectId, Remedy), divisions: &[Division]) {
        let schedulable: Vec<&Division> = divisions.iter().filter(|d| is_schedulable(d)).collect();
        let object = &context.profile.objects[id.index()];
        let square = LatinSquare::of(object, remedy, &schedulable, self.nodes.len());
        for page in schedulable[0].pages() {
            let at = context.histogram.pages[page];
            self.homes[page] = self.nodes[square.home(at, context.histogram.shift)];
        }
        self.squares.insert(id, square);
        self.changed_loops
            .extend(schedulable.iter().map(|d| (id, d.region)));
    }

    /// The thread that makes a thread's accesses to items of `node`: the one with the same rank there.
    fn thread(&self, thread: ThreadId, node: usize) -> ThreadId {
        let team = &self.teams[node];
        self.ranks
            .get(thread.index())
            .map_or(thread, |rank| team[rank % team.len()])
    }
}

/// The accesses of the transformed program.
struct Transformed<'a, S> {
    source: &'a S,
    plan: Plan,
}

impl<S: AccessSource> AccessSource for Transformed<'_, S> {
    type Error = S::Error;

    fn visit(&self, visit: &mut dyn FnMut(&[Access])) -> Result<(), S::Error> {
        let mut out = Vec::new();
        self.source.visit(&mut |rows| {
            out.clear();
            for row in rows {
                match self.plan.squares.get(&row.object) {
                    Some(square) if self.plan.changed_loops.contains(&(row.object, row.region)) => {
                        let pages = (0..row.len).map(|i| row.page.offset(i.into()));
                        pages.for_each(|page| self.divide(square, row, page, &mut out));
                    }
                    _ => out.push(*row),
                }
            }
            visit(&out);
        })
    }
}

impl<S> Transformed<'_, S> {
    /// Divides a row's accesses to one page among the nodes of its items.
    fn divide(&self, square: &LatinSquare, row: &Access, page: PageNumber, out: &mut Vec<Access>) {
        let mut left = [row.reads, row.writes, row.lines];
        let mut share_left = 1.0;
        for (node, share) in square.owners(page) {
            let part = left.map(|count| (count as f64 * (share / share_left).min(1.0)).round() as u64);
            left = [0, 1, 2].map(|i| left[i] - part[i]);
            share_left = (share_left - share).max(f64::MIN_POSITIVE);
            if part != [0; 3] {
                out.push(Access {
                    page,
                    len: 1,
                    thread: self.plan.thread(row.thread, node),
                    reads: part[0],
                    writes: part[1],
                    lines: part[2],
                    ..*row
                });
            }
        }
    }
}

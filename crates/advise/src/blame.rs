//! Facts on each object: its cost, who placed it, who uses it and how.

use crate::cost::cost_shares;
use crate::distribution::{Distribution, Divided, can_be_copied};
use crate::few_lines::FewLines;
use crate::gain::saved;
use crate::loops::conflict;
use crate::users::{FirstTouched, Pass, UsedBy, first_touched, pass, used_by};
use nodewise_analysis::{
    Affinity, Conflict, Metrics, Pattern, Remedy, Samples, SharingClass, Usage, object_names,
};
use nodewise_placement::{Context, Mapping};
use nodewise_profile::ObjectId;
use nodewise_simulation::Simulation;
use std::collections::BTreeMap;

/// What the placement of one object costs, and who placed and uses it.
#[derive(Clone, Debug, PartialEq)]
pub struct Blame {
    /// The object that the facts are about.
    pub object: ObjectId,
    /// Its name; objects with equal names are numbered: `grid #2`.
    pub name: String,
    /// The object's part of [`Blame::saved_share`], which is divided among objects in proportion to the time that their
    /// cache lines spend, under first-touch, on distance and in queues longer than the mean.
    pub cost_share: f64,
    /// Share of the run time under first-touch that the best placement is predicted to save; 0 if none pays. It is the
    /// same for all objects: the sum of their `cost_share`.
    pub saved_share: f64,
    /// Local fraction of the object's accesses under first-touch.
    pub local_fraction: f64,
    /// Mean exclusivity of the object's pages, weighted by accesses.
    pub exclusivity: f64,
    /// The site and thread that touched most of its pages first.
    pub first_touched: Option<FirstTouched>,
    /// The region that uses it most.
    pub used_by: Option<UsedBy>,
    /// Sharing class of most of its accesses.
    pub sharing: SharingClass,
    /// How threads divide it, over all regions.
    pub pattern: Pattern,
    /// How each region divides it, the busiest first.
    pub passes: Vec<Pass>,
    /// The conflict between regions that give its pages to different nodes, if there is one.
    pub conflict: Option<Conflict>,
    /// The distribution that suits the object, even if it gains little.
    pub distribution: Option<Distribution>,
    /// Name of a costlier object that is to be cut into the same blocks, if this object is to be cut.
    pub cut_as: Option<String>,
    /// Its pages whose accesses go to a few cache lines, if there are any.
    pub few_lines: Option<FewLines>,
}

impl Blame {
    /// Whether most accesses to the object are to a few lines, so that its users say nothing about its best placement.
    #[must_use]
    pub fn is_of_few_lines(&self) -> bool {
        self.few_lines.is_some_and(|f| f.is_most)
    }

    /// The conflict of the object's loops, unless most of its accesses are to a few lines.
    #[must_use]
    pub fn loops_in_conflict(&self) -> Option<&Conflict> {
        self.conflict.as_ref().filter(|_| !self.is_of_few_lines())
    }
}

/// The facts on all objects that were accessed, the costliest first.
pub(crate) fn blame(
    context: &Context<'_>,
    simulation: &Simulation,
    first_touch: &Mapping,
    usage: &Usage,
    few_lines: &BTreeMap<ObjectId, FewLines>,
) -> Vec<Blame> {
    let objects = &context.profile.objects;
    let cost_shares = cost_shares(context, simulation, first_touch);
    let in_order = Affinity::in_order(context.profile, context.machine);
    let measured = &simulation.measured;
    let mut touched = first_touched(context);
    let saved = saved(simulation);
    let accessed: Vec<ObjectId> = measured.objects.keys().copied().collect();
    let names = object_names(context.profile, &accessed);
    let wasted = |id: &ObjectId| cost_shares[id.index()].wasted;
    let mut costliest: Vec<_> = measured.objects.iter().zip(names).collect();
    costliest.retain(|((id, _), _)| id.index() < objects.len());
    costliest.sort_by(|a, b| wasted(b.0.0).total_cmp(&wasted(a.0.0)));
    let mut cuts: Vec<Cuts> = Vec::new();
    let mut all = Vec::new();
    for ((&id, metrics), name) in costliest {
        let costs = (saved * wasted(&id), saved);
        let ends = (touched.remove(&id), used_by(context, usage, id));
        let mut blame = one(context, (usage, &in_order), (id, name), metrics, costs, ends);
        blame.few_lines = few_lines.get(&id).copied();
        let own = Cuts::of(&blame);
        let like = own.as_ref().and_then(|own| cuts.iter().find(|c| c.is_like(own)));
        blame.cut_as = like.map(|c| c.name.clone());
        blame.distribution = suited(context, usage, &blame);
        cuts.extend(own);
        all.push(blame);
    }
    all
}

/// The facts from a profile of samples, objects with most remote samples first, without facts that need exact counts.
pub(crate) fn of_samples(
    context: &Context<'_>,
    simulation: &Simulation,
    first_touch: &Mapping,
    usage: &Usage,
    samples: &Samples,
) -> Vec<Blame> {
    let counted = blame(context, simulation, first_touch, usage, &BTreeMap::new());
    let mut all: Vec<Blame> = counted.into_iter().map(without_counts).collect();
    let remote = |b: &Blame| samples.object(b.object).samples as f64 * (1.0 - b.local_fraction);
    all.sort_by(|a, b| remote(b).total_cmp(&remote(a)));
    all
}

/// Removes what samples do not show: cost, intensity, and the loops that made the accesses.
fn without_counts(blame: Blame) -> Blame {
    Blame {
        pattern: match blame.pattern {
            Pattern::ReadShared => Pattern::Uniform,
            Pattern::Gather => Pattern::Random,
            pattern => pattern,
        },
        cost_share: 0.0,
        saved_share: 0.0,
        conflict: None,
        distribution: None,
        passes: Vec::new(),
        ..blame
    }
}

/// The parameters that determine the blocks of a block-exclusive object.
struct Cuts {
    name: String,
    dimensions: u32,
    /// Number of rows in the loops; loops may leave out boundary rows.
    rows: u32,
}

impl Cuts {
    fn of(blame: &Blame) -> Option<Self> {
        let Remedy::BlockExclusive { dimensions } = blame.conflict.as_ref()?.remedy else {
            return None;
        };
        let mut loops = blame.passes.iter().map(|p| &p.division);
        let columns = loops.find(|d| d.is_significant() && d.pattern == Pattern::YWise);
        Some(Self {
            name: blame.name.clone(),
            dimensions,
            rows: columns.map_or(1, |d| d.repeat),
        })
    }

    /// Whether two objects may be cut into the same blocks.
    fn is_like(&self, other: &Self) -> bool {
        self.dimensions == other.dimensions && self.rows.abs_diff(other.rows) * 10 <= self.rows
    }
}

fn one(
    context: &Context<'_>,
    (usage, in_order): (&Usage, &Affinity),
    (object, name): (ObjectId, String),
    metrics: &Metrics,
    (cost_share, saved_share): (f64, f64),
    (first_touched, used_by): (Option<FirstTouched>, Option<UsedBy>),
) -> Blame {
    let divisions = usage.divisions(object);
    Blame {
        object,
        name,
        cost_share,
        saved_share,
        local_fraction: metrics.local_fraction(),
        exclusivity: metrics.application_exclusivity(),
        first_touched,
        used_by,
        sharing: metrics.sharing(),
        pattern: usage.pattern(object),
        passes: divisions.iter().map(|d| pass(context, d)).collect(),
        conflict: conflict(context, in_order, usage, object),
        distribution: None,
        cut_as: None,
        few_lines: None,
    }
}

/// The distribution that suits the object; `None` if most of its accesses are to a few lines.
fn suited(context: &Context<'_>, usage: &Usage, blame: &Blame) -> Option<Distribution> {
    let object = &context.profile.objects[blame.object.index()];
    let writes: u64 = usage.regions(blame.object).map(|(_, u)| u.writes).sum();
    let divided = Divided {
        conflict: blame.conflict.as_ref(),
        pattern: blame.pattern,
        divisions: usage.divisions(blame.object),
        can_be_copied: can_be_copied(object, writes, context.machine),
    };
    let distribution = Distribution::of(object, &divided);
    distribution.filter(|_| !blame.is_of_few_lines())
}

//! What each object costs, who put it there, who uses it, and what to change.

use crate::Pattern;
use crate::pattern::{self, Shape};
use crate::snippet::{self, Place};
use crate::usage::Usage;
use crate::verdict::percent;
use nodewise_analysis::{Metrics, SharingClass, measure};
use nodewise_machine::NodeId;
use nodewise_placement::{Context, Mapping};
use nodewise_profile::{Object, ObjectId, ObjectKind, RegionKind, SiteId, ThreadId};
use nodewise_simulation::Simulation;
use std::collections::BTreeMap;

/// Below this share of the memory time an object is left alone.
const COSTS: f64 = 0.02;
/// One thread that first touched this share of an object's pages placed it.
const PLACED_ALONE: f64 = 0.9;
/// Above this exclusivity a page has a home, though its threads share it.
const AT_HOME: f64 = 0.7;

/// Who put an object where it is.
#[derive(Clone, Debug, PartialEq)]
pub struct FirstTouched {
    /// `file:line` where most of its pages were first touched.
    pub at: String,
    /// The thread that first touched most of them.
    pub thread: ThreadId,
    /// How many threads first touched any.
    pub threads: usize,
    /// Share of pages first touched by `thread`.
    pub largest_share: f64,
}

/// Who uses an object most.
#[derive(Clone, Debug, PartialEq)]
pub struct UsedBy {
    /// `file:line` of the region.
    pub at: String,
    /// Threads that use it there.
    pub threads: usize,
    /// Share of its accesses made there.
    pub share: f64,
    /// Whether it is mostly read there.
    pub reads: bool,
}

/// One object's bill.
#[derive(Clone, Debug, PartialEq)]
pub struct Blame {
    /// Which.
    pub object: ObjectId,
    /// Its name.
    pub name: String,
    /// Share of the memory time that its remote lines, and those in longer queues than the mean,
    /// waste under first-touch: what a perfect placement would save at most.
    pub cost_share: f64,
    /// Local fraction of its accesses under first-touch.
    pub local_fraction: f64,
    /// Who placed it.
    pub first_touched: Option<FirstTouched>,
    /// Who uses it.
    pub used_by: Option<UsedBy>,
    /// Class of most of its accesses.
    pub sharing: SharingClass,
    /// How threads divide it.
    pub pattern: Pattern,
    /// What happened, one sentence.
    pub sentence: String,
    /// What to do, one sentence.
    pub advice: String,
    /// C that does it.
    pub snippet: Option<String>,
}

/// All objects that were accessed, the costliest first.
#[must_use]
pub fn blame(
    context: &Context<'_>,
    simulation: &Simulation,
    first_touch: &Mapping,
    usage: &Usage,
) -> Vec<Blame> {
    let objects = &context.profile.objects;
    let shapes = pattern::shapes(context.histogram, objects.len());
    let bills = bills(context, simulation, first_touch);
    let nodes = context.machine.node_count();
    let measured = measure(
        context.profile,
        context.histogram,
        context.affinity,
        &first_touch.nodes,
        nodes,
    );
    let mut touched = first_touched(context);
    let total: f64 = bills.iter().map(|b| b.wait).sum();
    let mut all: Vec<Blame> = measured
        .objects
        .iter()
        .filter(|(id, _)| id.index() < objects.len())
        .map(|(&id, metrics)| {
            let cost = bills[id.index()].wasted / total.max(1e-9);
            let ends = (touched.remove(&id), used_by(context, usage, id));
            one(context, id, &shapes[id.index()], metrics, cost, ends)
        })
        .collect();
    all.sort_by(|a, b| b.cost_share.total_cmp(&a.cost_share));
    all
}

/// What first-touch makes of one object, in line-nanoseconds.
#[derive(Clone, Copy, Default)]
struct Bill {
    /// All its lines.
    wait: f64,
    /// The part beyond local latency at the mean load: what a perfect placement would save.
    wasted: f64,
}

fn bills(context: &Context<'_>, simulation: &Simulation, first_touch: &Mapping) -> Vec<Bill> {
    let mut bills = vec![Bill::default(); context.profile.objects.len()];
    let loaded = &simulation.baseline().loaded_ns;
    let idle = |node: NodeId| context.machine.latency(node, node);
    let queues: Vec<f64> = context
        .machine
        .cpu_nodes()
        .map(|n| loaded[n.index()][n.index()] - idle(n))
        .collect();
    let mean_queue = queues.iter().sum::<f64>() / queues.len().max(1) as f64;
    for (page, home) in context.histogram.iter().zip(&first_touch.nodes) {
        let Some(bill) = bills.get_mut(page.object.index()) else {
            continue;
        };
        for entry in page.entries {
            let node = context.affinity.node(entry.thread);
            let latency = loaded[node.index()][home.index()];
            bill.wait += f64::from(entry.lines) * latency;
            bill.wasted += f64::from(entry.lines) * (latency - idle(node) - mean_queue).max(0.0);
        }
    }
    bills
}

/// First touches of one object, in pages.
#[derive(Default)]
struct Touches {
    threads: BTreeMap<ThreadId, u64>,
    sites: BTreeMap<SiteId, u64>,
}

fn first_touched(context: &Context<'_>) -> BTreeMap<ObjectId, FirstTouched> {
    let mut objects: BTreeMap<ObjectId, Touches> = BTreeMap::new();
    for touch in &context.profile.first_touches {
        let touches = objects.entry(touch.object).or_default();
        *touches.threads.entry(touch.thread).or_default() += u64::from(touch.len);
        *touches.sites.entry(touch.site).or_default() += u64::from(touch.len);
    }
    let summary = |touches: &Touches| {
        let (&thread, &most) = touches.threads.iter().max_by_key(|t| t.1)?;
        let (&site, _) = touches.sites.iter().max_by_key(|s| s.1)?;
        Some(FirstTouched {
            at: place_of_site(context, site),
            thread,
            threads: touches.threads.len(),
            largest_share: most as f64 / touches.threads.values().sum::<u64>() as f64,
        })
    };
    objects
        .iter()
        .filter_map(|(&object, touches)| Some((object, summary(touches)?)))
        .collect()
}

/// `file:line` of a site's innermost frame, or its function.
fn place_of_site(context: &Context<'_>, site: SiteId) -> String {
    let frame = context.profile.site(site).and_then(|s| s.frames.first());
    frame.map_or_else(|| "an unknown place".to_owned(), place_of_frame)
}

fn place_of_frame(frame: &nodewise_profile::Frame) -> String {
    match frame.line {
        _ if frame.file.is_empty() && frame.function.is_empty() => "an unknown place".to_owned(),
        _ if frame.file.is_empty() => frame.function.clone(),
        line => format!("{}:{line}", frame.file_name()),
    }
}

fn used_by(context: &Context<'_>, usage: &Usage, object: ObjectId) -> Option<UsedBy> {
    let total: u64 = usage.regions(object).map(|(_, u)| u.accesses()).sum();
    let (region, cell) = usage.regions(object).max_by_key(|(_, u)| u.accesses())?;
    let described = context.profile.regions.get(region.index());
    let at = match described {
        Some(r) if r.kind == RegionKind::OpenMp => place_of_frame(&r.frame),
        _ => "serial code".to_owned(),
    };
    Some(UsedBy {
        at,
        threads: cell.threads(),
        share: cell.accesses() as f64 / total.max(1) as f64,
        reads: cell.reads >= 4 * cell.writes,
    })
}

fn one(
    context: &Context<'_>,
    id: ObjectId,
    shape: &Shape,
    metrics: &Metrics,
    cost_share: f64,
    (first_touched, used_by): (Option<FirstTouched>, Option<UsedBy>),
) -> Blame {
    let object = &context.profile.objects[id.index()];
    let mut blame = Blame {
        object: id,
        name: object.name.clone(),
        cost_share,
        local_fraction: metrics.local_fraction(),
        first_touched,
        used_by,
        sharing: metrics.sharing(),
        pattern: shape.pattern(),
        sentence: String::new(),
        advice: String::new(),
        snippet: None,
    };
    blame.sentence = sentence(&blame, shape);
    let nodes = context.machine.node_count();
    (blame.advice, blame.snippet) = advice(&blame, object, nodes, metrics.application_exclusivity());
    blame
}

fn sentence(blame: &Blame, shape: &Shape) -> String {
    let count = |n: usize| {
        if n == 1 {
            "one thread".to_owned()
        } else {
            format!("{n} threads")
        }
    };
    let mut text = format!("`{}`: ", blame.name);
    if let Some(touch) = &blame.first_touched {
        let alone = touch.largest_share >= PLACED_ALONE;
        text += &format!(
            "first touched by {} at {}, ",
            count(if alone { 1 } else { touch.threads }),
            touch.at
        );
    }
    match &blame.used_by {
        Some(used) => {
            let verb = if used.reads { "read" } else { "used" };
            text += &format!("{verb} by {} at {}", count(used.threads), used.at);
        }
        None => text += &format!("used by {}", count(shape.threads())),
    }
    let remote = percent(1.0 - blame.local_fraction);
    text + &format!(
        "; {remote} of its accesses are remote, they waste {} of the memory time.",
        percent(blame.cost_share)
    )
}

fn advice(blame: &Blame, object: &Object, nodes: usize, exclusivity: f64) -> (String, Option<String>) {
    if blame.cost_share < COSTS || nodes < 2 {
        return ("leave it alone: it costs next to nothing".into(), None);
    }
    if matches!(
        object.kind,
        ObjectKind::Stack | ObjectKind::Tls | ObjectKind::Image
    ) {
        return (
            "bind threads (OMP_PROC_BIND=close), so that they stay with it".into(),
            None,
        );
    }
    let place = Place::new(blame, object, nodes);
    let alone = blame
        .first_touched
        .as_ref()
        .is_some_and(|t| t.largest_share >= PLACED_ALONE);
    let (from, to) = (&place.touched, &place.used);
    match blame.pattern {
        Pattern::OneThread => (
            format!("first touch it in the thread that uses it, at {to}"),
            None,
        ),
        Pattern::Block if alone => (
            format!(
                "parallelise the initialisation loop at {from} with the same schedule as {to}: each thread then first touches what it uses"
            ),
            Some(snippet::parallel_initialisation(&place)),
        ),
        Pattern::RepeatedBlock { .. } if alone => (
            format!(
                "initialise it at {from} with the loop nest and schedule of {to}: threads take a part of every plane"
            ),
            Some(snippet::parallel_initialisation(&place)),
        ),
        Pattern::Block | Pattern::RepeatedBlock { .. } => (
            format!(
                "give the loops at {from} and {to} the same schedule(static) and thread count: they divide it differently"
            ),
            Some(snippet::same_schedule(&place)),
        ),
        Pattern::Irregular => (
            format!("schedule {to} statically, so that pages keep their thread; else place it by `locality`"),
            Some(snippet::same_schedule(&place)),
        ),
        _ if exclusivity >= AT_HOME => (
            format!(
                "initialise it in parallel as {to} uses it, or place it by `locality`: one node makes {} of a page's accesses",
                percent(exclusivity)
            ),
            alone.then(|| snippet::parallel_initialisation(&place)),
        ),
        Pattern::ReadShared => (
            "interleave it: all threads read it; if it fits, a copy on each node is better still".into(),
            Some(snippet::interleave(&place)),
        ),
        Pattern::Gather => (
            "interleave it: threads pick words all over it; renumbering would make that local".into(),
            Some(snippet::interleave(&place)),
        ),
        Pattern::Uniform => (
            "interleave it: every node uses every page, no home suits it".into(),
            Some(snippet::interleave(&place)),
        ),
    }
}

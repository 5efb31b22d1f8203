//! What each object costs, who put it there, who uses it, and what to change.

use crate::advice::{Case, advice, places};
use crate::verdict::{percent, worth_it};
use crate::{Distribution, Matched};
use nodewise_analysis::{
    Affinity, Conflict, Division, Metrics, Pattern, RegionUse, Remedy, SharingClass, Usage,
};
use nodewise_machine::NodeId;
use nodewise_placement::{Context, Mapping};
use nodewise_profile::{Frame, ObjectId, RegionKind, SiteId, Thread, ThreadId};
use nodewise_simulation::Simulation;
use std::collections::BTreeMap;

/// One thread that first touched this share of an object's pages placed it.
const PLACED_ALONE: f64 = 0.9;
/// Where an object is used that only the main thread uses.
const SERIAL: &str = "serial code";

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

impl FirstTouched {
    /// Whether one thread placed it.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        self.largest_share >= PLACED_ALONE
    }
}

/// How one region divides an object, and what its loop should be.
#[derive(Clone, Debug, PartialEq)]
pub struct Pass {
    /// The function that the region was outlined from; empty for serial code.
    pub function: String,
    /// `file:line` of the region.
    pub at: String,
    /// What was recognised there.
    pub division: Division,
}

/// One object's bill.
#[derive(Clone, Debug, PartialEq)]
pub struct Blame {
    /// Which.
    pub object: ObjectId,
    /// Its name; numbered where others have the same, `grid #2`.
    pub name: String,
    /// Its part of [`Blame::saved_share`]: that is divided over all objects in proportion to the time
    /// their lines spend on distance, and in queues longer than the mean, under first-touch.
    pub cost_share: f64,
    /// Share of the run time under first-touch that the best placement is predicted to save; 0 where
    /// none pays. The same for all objects: the sum of their shares.
    pub saved_share: f64,
    /// Local fraction of its accesses under first-touch.
    pub local_fraction: f64,
    /// Who placed it.
    pub first_touched: Option<FirstTouched>,
    /// Who uses it.
    pub used_by: Option<UsedBy>,
    /// Class of most of its accesses.
    pub sharing: SharingClass,
    /// How threads divide it, over all regions.
    pub pattern: Pattern,
    /// How each region divides it, the busiest first.
    pub passes: Vec<Pass>,
    /// Regions that give its pages to different nodes.
    pub conflict: Option<Conflict>,
    /// Where its pages belong, whatever that is worth.
    pub distribution: Option<Distribution>,
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
    matched: Option<&Matched>,
) -> Vec<Blame> {
    let objects = &context.profile.objects;
    let bills = bills(context, simulation, first_touch);
    let in_order = Affinity::in_order(context.profile, context.machine);
    let measured = &simulation.measured;
    let mut touched = first_touched(context);
    let saved = saved(simulation);
    let accessed: Vec<ObjectId> = measured.objects.keys().copied().collect();
    let names = names(context, &accessed);
    let wasted = |id: &ObjectId| bills[id.index()].wasted;
    let mut costliest: Vec<_> = measured.objects.iter().zip(names).collect();
    costliest.retain(|((id, _), _)| id.index() < objects.len());
    costliest.sort_by(|a, b| wasted(b.0.0).total_cmp(&wasted(a.0.0)));
    let mut squares: Vec<Square> = Vec::new();
    let mut all = Vec::new();
    for ((&id, metrics), name) in costliest {
        let costs = (saved * wasted(&id), saved);
        let ends = (touched.remove(&id), used_by(context, usage, id));
        let found = (usage, &in_order, matched);
        let blame = one(context, found, (id, name), metrics, costs, ends, &squares);
        squares.extend(Square::of(&blame));
        all.push(blame);
    }
    all
}

/// What makes the cuts of a block-exclusive object.
struct Square {
    name: String,
    dimensions: u32,
    /// As far as loops show them: boundaries may be left out.
    rows: u32,
}

impl Square {
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

    /// Whether their cuts may be the same.
    fn is_like(&self, other: &Self) -> bool {
        self.dimensions == other.dimensions && self.rows.abs_diff(other.rows) * 10 <= self.rows
    }
}

/// Share of the baseline's time that the best placement is predicted to save.
fn saved(simulation: &Simulation) -> f64 {
    let best = worth_it(simulation).into_iter().next();
    best.filter(|_| simulation.is_memory_bound())
        .map_or(0.0, |best| 1.0 - 1.0 / best.speedup.typical)
}

/// What to call each object: equal names are numbered in the order of the profile.
fn names(context: &Context<'_>, accessed: &[ObjectId]) -> Vec<String> {
    let name = |id: &ObjectId| match context.profile.object(*id) {
        Some(object) if object.name.is_empty() => object.kind.name(),
        Some(object) => object.name.as_str(),
        None => "",
    };
    let mut seen: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for id in accessed {
        seen.entry(name(id)).or_default().0 += 1;
    }
    let numbered = |id: &ObjectId| {
        let name = name(id);
        let (all, before) = seen.get_mut(name).expect("counted above");
        *before += 1;
        match *all {
            1 => name.to_owned(),
            _ => format!("{name} #{before}"),
        }
    };
    accessed.iter().map(numbered).collect()
}

/// What first-touch makes of one object, as a share of all objects.
#[derive(Clone, Copy, Default)]
struct Bill {
    /// Time that all its lines take.
    wait: f64,
    /// The part beyond local latency at the mean load.
    wasted: f64,
}

/// Shares, each summing to 1. Where no line waits longer than it must, all time counts as wasted: a
/// placement that gains all the same takes load off something that every line shares.
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
    let sum = |part: fn(&Bill) -> f64| bills.iter().map(part).sum::<f64>();
    let (wait, wasted) = (sum(|b| b.wait).max(1e-9), sum(|b| b.wasted));
    for bill in &mut bills {
        bill.wait /= wait;
        bill.wasted = if wasted > 0.0 {
            bill.wasted / wasted
        } else {
            bill.wait
        };
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
pub(crate) fn place_of_site(context: &Context<'_>, site: SiteId) -> String {
    let frame = context.profile.site(site).and_then(|s| s.frames.first());
    frame.map_or_else(|| "an unknown place".to_owned(), place_of_frame)
}

fn place_of_frame(frame: &Frame) -> String {
    match frame.line {
        _ if frame.file.is_empty() && frame.function.is_empty() => "an unknown place".to_owned(),
        _ if frame.file.is_empty() => frame.function.clone(),
        line if frame.is_library() => format!("{}:{line} of the standard library", frame.file_name()),
        line => format!("{}:{line}", frame.file_name()),
    }
}

fn used_by(context: &Context<'_>, usage: &Usage, object: ObjectId) -> Option<UsedBy> {
    let total: u64 = usage.regions(object).map(|(_, u)| u.accesses()).sum();
    let (region, cell) = usage.regions(object).max_by_key(|(_, u)| u.accesses())?;
    let described = context.profile.regions.get(region.index());
    let (at, threads) = match described {
        Some(r) if r.kind == RegionKind::OpenMp => (place_of_frame(&r.frame), cell.threads()),
        _ => outside_openmp(context, cell),
    };
    Some(UsedBy {
        at,
        threads,
        share: cell.accesses() as f64 / total.max(1) as f64,
        reads: cell.reads >= 4 * cell.writes,
    })
}

/// The start routine of most of the threads that the program started itself, and their number; serial
/// code where there are none.
fn outside_openmp(context: &Context<'_>, cell: &RegionUse) -> (String, usize) {
    let mut routines: BTreeMap<&Frame, usize> = BTreeMap::new();
    for id in cell.thread_ids() {
        let thread = context.profile.threads.get(id.index());
        let own = |t: &&Thread| t.openmp.is_none() && !["", "main"].contains(&&*t.start.function);
        if let Some(thread) = thread.filter(own) {
            *routines.entry(&thread.start).or_default() += 1;
        }
    }
    // The main thread may run the routine too; what it does elsewhere, as to fill it, is not told apart.
    let main = match cell.thread_ids().next() {
        Some(ThreadId(0)) => " and by the main thread",
        _ => "",
    };
    match routines.into_iter().max_by_key(|r| r.1) {
        Some((start, threads)) => (routine(start) + main, threads),
        None => (SERIAL.to_owned(), cell.threads()),
    }
}

/// `worker (pool.c:12)`; the standard library's wrapper says nothing about the program.
fn routine(start: &Frame) -> String {
    match start.function.as_str() {
        name if name.contains("execute_native_thread_routine") => "code of std::thread".to_owned(),
        name if start.file.is_empty() => name.to_owned(),
        name => format!("{name} ({})", place_of_frame(start)),
    }
}

fn one(
    context: &Context<'_>,
    (usage, in_order, matched): (&Usage, &Affinity, Option<&Matched>),
    (id, name): (ObjectId, String),
    metrics: &Metrics,
    (cost_share, saved_share): (f64, f64),
    (first_touched, used_by): (Option<FirstTouched>, Option<UsedBy>),
    squares: &[Square],
) -> Blame {
    let mut blame = Blame {
        object: id,
        name,
        cost_share,
        saved_share,
        local_fraction: metrics.local_fraction(),
        first_touched,
        used_by,
        sharing: metrics.sharing(),
        pattern: usage.pattern(id),
        passes: usage.divisions(id).iter().map(|d| pass(context, d)).collect(),
        conflict: conflict(context, in_order, usage, id),
        distribution: None,
        sentence: String::new(),
        advice: String::new(),
        snippet: None,
    };
    blame.sentence = sentence(&blame);
    let own = Square::of(&blame);
    let first = own.and_then(|own| squares.iter().find(|s| s.is_like(&own)));
    let known = (matched, first.map(|s| s.name.as_str()));
    let case = Case::new(context, &blame, usage, metrics.application_exclusivity(), known);
    (blame.distribution, blame.advice, blame.snippet) = advice(&blame, &case);
    blame
}

/// Threads own their stacks, whatever others read there.
pub(crate) fn conflict(
    context: &Context<'_>,
    in_order: &Affinity,
    usage: &Usage,
    id: ObjectId,
) -> Option<Conflict> {
    let object = context.profile.object(id).filter(|o| o.kind.is_mappable())?;
    let divisions = usage.divisions(id);
    (object.pages > 1).then(|| Conflict::of(divisions, context.affinity, in_order))?
}

fn pass(context: &Context<'_>, division: &Division) -> Pass {
    let (function, at) = match context.profile.regions.get(division.region.index()) {
        Some(r) if r.kind == RegionKind::OpenMp => (r.frame.function.clone(), place_of_frame(&r.frame)),
        _ => (String::new(), SERIAL.to_owned()),
    };
    Pass {
        function,
        at,
        division: division.clone(),
    }
}

fn sentence(blame: &Blame) -> String {
    let count = |n: usize| {
        if n == 1 {
            "one thread".to_owned()
        } else {
            format!("{n} threads")
        }
    };
    let mut text = format!("`{}`: ", blame.name);
    if let Some(touch) = &blame.first_touched {
        let alone = touch.is_alone();
        text += &format!(
            "first touched by {} at {}, ",
            count(if alone { 1 } else { touch.threads }),
            touch.at
        );
    }
    match &blame.used_by {
        Some(_) if blame.conflict.is_some() => text += &divided(blame),
        Some(used) => {
            let verb = if used.reads { "read" } else { "used" };
            let at = if used.at == SERIAL { "in" } else { "at" };
            text += &format!("{verb} by {} {at} {}", count(used.threads), used.at);
        }
        None => text += "used nowhere",
    }
    text + "; " + &bill(blame)
}

/// Which loops divide it which way, and what that makes of its pages.
fn divided(blame: &Blame) -> String {
    let mut ways: Vec<(Pattern, bool)> = Vec::new();
    let significant = || blame.passes.iter().filter(|p| p.division.is_of_loops());
    for way in significant().map(|p| (p.division.pattern, p.division.inverse)) {
        if !ways.contains(&way) {
            ways.push(way);
        }
    }
    ways.sort_by_key(|way| (way.0.dimension(), way.1));
    let one = |way: &(Pattern, bool)| {
        let passes = significant().filter(|p| (p.division.pattern, p.division.inverse) == *way);
        let down = if way.1 { " counting down" } else { "" };
        let name = match way.0 {
            Pattern::Blocks => "in blocks out of the threads' order",
            pattern => pattern.name(),
        };
        format!("{name}{down} {}", places(passes))
    };
    let ways: Vec<String> = ways.iter().map(one).collect();
    let conflict = blame.conflict.as_ref().expect("divided differently");
    let shared = match conflict.shows() {
        true => format!("{} of its pages are uniformly shared", percent(conflict.share)),
        false => format!(
            "bound in order, {} of its pages would be uniformly shared",
            percent(conflict.share_in_order)
        ),
    };
    let fine = match conflict.block_pages {
        Some(pages) if conflict.is_finer_than_pages() => {
            format!(", and loops cannot match it at this size: a node's part of a row is {pages:.2} pages")
        }
        _ => String::new(),
    };
    format!("used {}: {shared}{fine}", ways.join(", "))
}

/// How far away it is and what of the predicted gain that accounts for.
fn bill(blame: &Blame) -> String {
    let remote = match 1.0 - blame.local_fraction {
        r if r <= 0.0 => "all of its accesses are local".to_owned(),
        r => format!("{} of its accesses are remote", percent(r)),
    };
    let (own, all) = (percent(blame.cost_share), percent(blame.saved_share));
    match own.strip_suffix(" %").unwrap_or_default() {
        _ if blame.saved_share <= 0.0 => format!("{remote}; no placement is predicted to pay."),
        _ if own == all => {
            format!("{remote}; it accounts for all of the {all} of the run time predicted to be saved.")
        }
        own => format!("{remote}; it accounts for {own} of the {all} of the run time predicted to be saved."),
    }
}

//! Advice on one object: a sentence and C code.

use crate::blame::Blame;
use crate::distribution::Distribution;
use crate::loops::is_schedulable;
use crate::matched::Matched;
use crate::phrases::{dimension_names, faster, percent, places};
use crate::snippet::{self, SnippetNames};
use crate::users::FirstTouched;
use nodewise_analysis::{Assignment, Conflict, Pattern, Remedy, Roles};
use nodewise_placement::Context;
use nodewise_profile::{Object, ObjectKind};

/// An object whose [`Blame::cost_share`] is below this is left alone: the share of the run time that the best placement
/// saves on it.
const MIN_COST_SHARE: f64 = 0.02;
/// Above this exclusivity a page has a clear home, even if threads share it.
const MIN_EXCLUSIVITY: f64 = 0.7;

/// For contended lines: they stay in the caches of the threads that read them, and the cost is in the writes.
const CONTENDED_LINES_ADVICE: &str = "no placement follows from this: what caches hold does not depend on where the page lies; \
                         keep what different threads write on lines of their own, and wait less often";

/// The advice on an object, and C code that follows it. `matched` is the prediction for matching the loops of all
/// objects in conflict.
pub(crate) fn advice(
    blame: &Blame,
    context: &Context<'_>,
    matched: Option<&Matched>,
) -> (String, Option<String>) {
    let object = &context.profile.objects[blame.object.index()];
    let names = SnippetNames::new(blame, context.profile);
    match (&blame.conflict, blame.distribution) {
        _ if blame.is_of_few_lines() => (CONTENDED_LINES_ADVICE.into(), None),
        _ if context.machine.node_count() < 2 => (left_alone(), None),
        _ if is_out_of_reach(object) => (
            "leave it alone: a library's own data and code, which no placement of the program's reaches"
                .into(),
            None,
        ),
        (Some(conflict), Some(distribution)) if conflict.remedy != Remedy::None => {
            matching(blame, (context, matched), &names, distribution)
        }
        _ if blame.cost_share < MIN_COST_SHARE => (left_alone(), None),
        (Some(conflict), _) => unmatched(blame, conflict, &names),
        _ if object.kind.is_private() => (
            "bind threads (OMP_PROC_BIND=close), so that they stay with it".into(),
            None,
        ),
        _ if !object.kind.is_mappable() => (pooled(object.kind, &names.used), None),
        (None, distribution) => match in_any_order(blame, context, distribution, &names.used) {
            Some(advice) => (advice, None),
            None => by_pattern(blame, &names, distribution),
        },
    }
}

/// Advice if parts of an object are one thread's each, but another thread's in each run: code that gives parts to threads by
/// number would be wrong.
fn in_any_order(
    blame: &Blame,
    context: &Context<'_>,
    distribution: Option<Distribution>,
    to: &str,
) -> Option<String> {
    let by_thread = matches!(blame.pattern, Pattern::Blocks | Pattern::XWise)
        || matches!(
            distribution,
            Some(Distribution::BindRows | Distribution::BindColumns | Distribution::BlockExclusive { .. })
        );
    if !by_thread {
        return None;
    }
    match Roles::of(context.profile)?.assignment {
        Assignment::Fixed => None,
        Assignment::Arrival => Some(format!(
            "threads take its parts at {to} in order of arrival: place it by a map, under which `nodewise run` sends threads to \
             their parts, or give threads their parts by number"
        )),
        Assignment::Dynamic => Some(format!(
            "threads take its parts at {to} as they come free: interleave it, or give threads their parts by number (a static \
             schedule)"
        )),
    }
}

/// Whether no placement can reach an object: code, constants, and the private data of a shared library.
fn is_out_of_reach(object: &Object) -> bool {
    let library = object
        .name
        .split_once(".so")
        .is_some_and(|(_, rest)| rest.is_empty() || rest.starts_with(['.', ' ']));
    object.kind == ObjectKind::Image
        || (library && matches!(object.kind, ObjectKind::Static | ObjectKind::File))
}

/// Advice for memory that is of no one array: files and shared memory, which rules name, and what no rule reaches.
fn pooled(kind: ObjectKind, to: &str) -> String {
    let what = match kind {
        ObjectKind::Arena => "allocate what threads use at",
        ObjectKind::File => {
            return "have `nodewise run` place it before it is used: by the rule that `nodewise map` writes for it, or by --place".into();
        }
        _ => "map what threads use at",
    };
    format!("{what} {to} in those threads, so that each first touches its own; no map places such memory")
}

fn left_alone() -> String {
    "leave it alone: it costs next to nothing".into()
}

/// Advice for an object that regions divide differently, if a distribution with matching schedules suits all of them.
fn matching(
    blame: &Blame,
    (context, matched): (&Context<'_>, Option<&Matched>),
    names: &SnippetNames,
    distribution: Distribution,
) -> (String, Option<String>) {
    let (how, snippet) = match (distribution, &blame.cut_as) {
        (Distribution::BlockExclusive { dimensions }, Some(first)) => (
            format!(
                "distribute it block-exclusive over {} with the same cuts as `{first}`, whose schedules meet it at {}",
                dimension_names(dimensions),
                places(blame.passes.iter().filter(|p| is_schedulable(&p.division))).trim_start_matches("at ")
            ),
            names.code(|p| snippet::same_square(p, dimensions, first)),
        ),
        (Distribution::BlockExclusive { dimensions }, None) => (
            format!(
                "distribute it block-exclusive over {} and give the loops {} the schedule that meets it",
                dimension_names(dimensions),
                places(blame.passes.iter().filter(|p| is_schedulable(&p.division)))
            ),
            names.code(|p| snippet::block_exclusive(p, blame, dimensions)),
        ),
        _ => (
            format!(
                "bind its rows to the threads that use them and give the loops that count down, {}, the schedule \
                 static-inverse",
                places(
                    blame
                        .passes
                        .iter()
                        .filter(|p| p.division.inverse && is_schedulable(&p.division))
                )
            ),
            names.code(|p| snippet::static_inverse(p, blame)),
        ),
    };
    let shows = blame.conflict.as_ref().is_some_and(Conflict::shows);
    let gain = match matched {
        _ if !shows => format!("needless while threads are bound `{}`", context.affinity.name),
        Some(matched) if matched.pays() => {
            let [typical, range] = faster(matched.speedup);
            format!("predicted {typical} first-touch {range}")
        }
        _ => "predicted to gain little on this run".to_owned(),
    };
    (format!("{how}: {gain}"), snippet)
}

/// Advice for an object that regions divide differently, if no distribution suits their loops.
fn unmatched(blame: &Blame, conflict: &Conflict, names: &SnippetNames) -> (String, Option<String>) {
    let loops = || blame.passes.iter().filter(|p| p.division.is_of_loops());
    let inside = loops().find(|p| p.division.pattern == Pattern::ZWise);
    let doubt = loops().find_map(|p| p.division.alternative_causes());
    let change = percent(conflict.share);
    let what = match (inside, doubt) {
        _ if conflict.is_finer_than_pages() => too_fine(conflict.block_pages.unwrap_or_default()),
        (Some(pass), Some(doubt)) if !pass.division.has_owners() => format!(
            "no home suits it: {}, {doubt}; if they are divided, parallelise an outer loop",
            places(std::iter::once(pass))
        ),
        (Some(pass), None) if !pass.division.has_owners() => format!(
            "parallelise an outer loop {}: its blocks are smaller than a page",
            places(std::iter::once(pass))
        ),
        (_, Some(doubt)) => format!(
            "{change} of its pages change nodes between the loops {}: {doubt}",
            places(loops())
        ),
        _ => format!(
            "if the loops {} can have one schedule, give them one: {change} of its pages change nodes between them",
            places(loops())
        ),
    };
    (
        format!("{what}; else deal its pages over the nodes"),
        names.code(|p| snippet::place(p, "nw_cyclic(NW_PAGES, 1)", 1)),
    )
}

/// Advice if matching loops would help only a larger array.
fn too_fine(block_pages: f64) -> String {
    format!(
        "no distribution suits it at this size: a node's part of a row would be {block_pages:.2} pages, and a page \
         has one home; with rows {:.0} times as long, or padded so, block-exclusive would",
        (1.0 / block_pages).ceil()
    )
}

fn by_pattern(
    blame: &Blame,
    names: &SnippetNames,
    distribution: Option<Distribution>,
) -> (String, Option<String>) {
    let alone = blame.first_touched.as_ref().is_some_and(FirstTouched::is_alone);
    let (from, to) = (&names.touched, &names.used);
    match (blame.pattern, distribution) {
        (Pattern::OneThread, _) => (
            format!("first touch it in the thread that uses it, at {to}"),
            None,
        ),
        (Pattern::Blocks, _) => (blocks(blame, to), None),
        (Pattern::Irregular, _) => (
            format!(
                "place it by `locality`, or first touch it where {to} uses it; if threads take its parts there as \
                 they come free, a static schedule would keep pages with their thread"
            ),
            None,
        ),
        (Pattern::XWise, _) if alone => (
            format!(
                "parallelise the initialisation loop at {from} with the same schedule as {to}, so that each thread \
                 first touches what it uses; or bind its rows"
            ),
            names.code(|p| snippet::bind(p, Distribution::BindRows)),
        ),
        (_, Some(Distribution::BindRows)) => (
            format!(
                "bind its rows to the threads that use them at {to}; or initialise it at {from} with the loops of {to}"
            ),
            names.code(|p| snippet::bind(p, Distribution::BindRows)),
        ),
        (_, Some(Distribution::BindColumns)) => (
            columns(blame, names),
            names.code(|p| snippet::bind(p, Distribution::BindColumns)),
        ),
        _ if blame.exclusivity >= MIN_EXCLUSIVITY => (
            format!(
                "initialise it in parallel as {to} uses it, or place it by `locality`: one node makes {} of a page's accesses",
                percent(blame.exclusivity)
            ),
            (alone && blame.pattern != Pattern::Strided)
                .then(|| names.code(snippet::parallel_initialisation))
                .flatten(),
        ),
        (_, Some(Distribution::Replicate)) => (
            "replicate it: all threads read it and none writes it after initialisation; else interleave it"
                .into(),
            names.code(snippet::replicate),
        ),
        (_, Some(Distribution::BlockExclusive { .. })) => (
            format!("distribute it block-exclusive, as the loops at {to} are scheduled"),
            names.code(|p| snippet::place(p, "nw_block_exclusive(3)", 2)),
        ),
        (pattern, Some(Distribution::Cyclic { pages })) => (
            format!("interleave it: {}", why_cyclic(pattern)),
            names.code(|p| snippet::cyclic(p, pages)),
        ),
        (_, _) => ("place it by `locality`".into(), None),
    }
}

/// Advice if each thread uses its own block, but perhaps another one in the next run.
fn blocks(blame: &Blame, to: &str) -> String {
    let doubt = blame
        .passes
        .iter()
        .find_map(|p| p.division.alternative_causes())
        .unwrap_or_default();
    format!("first touch each block in the thread that uses it, at {to}, or place it by `locality`: {doubt}")
}

/// Advice for repeated blocks, which may be the columns of a matrix: a profile does not contain an array's extents.
fn columns(blame: &Blame, names: &SnippetNames) -> String {
    let (from, to) = (&names.touched, &names.used);
    let mut all = blame.passes.iter().map(|p| &p.division);
    let rows = all
        .find(|d| d.has_owners() && d.repeat > 1)
        .map_or(0, |d| d.repeat);
    format!(
        "if it is a matrix of about {rows} rows, bind its columns to the threads that use them at {to}; or initialise it \
         at {from} with the loops of {to}"
    )
}

fn why_cyclic(pattern: Pattern) -> &'static str {
    match pattern {
        Pattern::Strided => "its pages go to the threads in turn",
        Pattern::ReadShared => {
            "all threads read it, and it is written too often or too large for a copy on each node"
        }
        Pattern::Gather | Pattern::Random => {
            "threads pick words all over it; renumbering would make that local"
        }
        _ => "every node uses every page, no home suits it",
    }
}

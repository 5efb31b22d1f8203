//! Tests verdict, facts and snippets on small programs.

mod claims;
mod few_lines;
mod programs;
mod qualified;
mod undecided;

use nodewise_advise::{Distribution, VerdictKind, advise};
use nodewise_analysis::{Affinity, Histogram, Pattern, Usage, compact_order, scatter_order};
use nodewise_machine::Machine;
use nodewise_placement::{Context, Mapping};
use nodewise_profile::{
    Access, FirstTouch, InMemory, Object, ObjectId, ObjectKind, PageNumber, Profile, Region, RegionId,
    SiteId, ThreadId,
};
use nodewise_simulation::{Parameters, simulate};

use programs::*;

#[test]
fn a_master_that_initialises_blocks_of_others_is_blamed() {
    let advice = advice("opteron-6386", &program(|_| 0, owner, 64_000, 512_000));
    assert_eq!(
        advice.verdict.outcome,
        VerdictKind::Place,
        "{}",
        advice.verdict.sentence
    );
    assert_eq!(advice.verdict.policy, "locality");
    assert!(advice.verdict.gain.min > 0.0);
    assert!(advice.verdict.sentence.ends_with("no stock command comes close."));
    assert_eq!(
        advice.verdict.next.as_deref(),
        Some("nodewise map 'a profile' --machine my.toml --affinity compact --policy locality -o app.map")
    );
    assert_eq!(
        advice.verdict.then.as_deref(),
        Some(
            "run the build of ./solve that was made without nodewise-cc (--plain PATH names it here): \
             nodewise run --policy map:app.map -- PROGRAM"
        )
    );
    let rhs = &advice.objects[0];
    assert_eq!(rhs.blame.pattern, Pattern::XWise);
    assert!(
        rhs.sentence
            .starts_with("`rhs`: first touched by one thread at init.c:30, read by 64 threads at solve.c:88"),
        "{}",
        rhs.sentence
    );
    assert!(
        rhs.advice.contains(
            "parallelise the initialisation loop at init.c:30 with the same schedule as solve.c:88"
        )
    );
    assert!(rhs.snippet.as_ref().unwrap().contains("rhs[i] = 0;"));
}

#[test]
fn blame_adds_up_to_the_gain_and_equal_names_are_told_apart() {
    let (mut profile, accesses) = program(|_| 0, owner, 64_000, 512_000);
    let second = Object {
        first_page: profile.objects[1].first_page.offset(u64::from(PAGES / 4)),
        ..profile.objects[1].clone()
    };
    profile.objects.push(second.clone());
    let mut rows = Vec::new();
    nodewise_profile::AccessSource::visit(&accesses, &mut |r| rows.extend_from_slice(r)).expect("in memory");
    for row in rows.iter_mut().filter(|r| r.page >= second.first_page) {
        row.object = ObjectId(2);
    }
    let advice = advice("opteron-6386", &(profile, InMemory::new(rows)));
    let gain = 1.0 - 1.0 / (1.0 + advice.verdict.gain.typical);
    let total: f64 = advice.objects.iter().map(|o| o.blame.cost_share).sum();
    assert!((total - gain).abs() < 1e-9, "{total} of {gain}");
    let [large, small] = &advice.objects[..] else {
        panic!("two objects");
    };
    assert_eq!((&*large.blame.name, &*small.blame.name), ("rhs #2", "rhs #1"));
    assert!(large.blame.cost_share > small.blame.cost_share && small.blame.cost_share > 0.0);
    assert!(
        large.sentence.contains("predicted to be saved"),
        "{}",
        large.sentence
    );
    assert!(
        advice.verdict.sentence.contains("× as fast as first-touch"),
        "{}",
        advice.verdict.sentence
    );
}

#[test]
fn threads_of_the_program_itself_are_named_by_their_start_routine() {
    let (mut profile, accesses) = program(|_| 0, owner, 64_000, 512_000);
    profile.regions[1] = Region::default();
    for thread in &mut profile.threads[1..] {
        thread.openmp = None;
        thread.start = frame("worker", "src/pool.c", 12);
    }
    let sentence = &advice("opteron-6386", &(profile, accesses)).objects[0].sentence;
    assert!(
        sentence.contains("read by 63 threads at worker (pool.c:12)"),
        "{sentence}"
    );
}

#[test]
fn a_program_that_everybody_reads_gets_the_stock_command() {
    let everybody = |_| (0..THREADS).step_by(4).collect();
    let advice = advice("opteron-6386", &program(|_| 0, everybody, 6_400, 51_200));
    assert_eq!(
        advice.verdict.outcome,
        VerdictKind::Stock,
        "{}",
        advice.verdict.sentence
    );
    assert_eq!(advice.verdict.next, None);
    let then = advice.verdict.then.unwrap();
    assert!(
        then.ends_with(": env 'OMP_PLACES={0}:64' OMP_PROC_BIND=close numactl --interleave=all PROGRAM"),
        "{then}"
    );
    assert_eq!(advice.objects[0].blame.pattern, Pattern::ReadShared);
    assert!(
        advice.objects[0]
            .snippet
            .as_ref()
            .unwrap()
            .contains("nw_replicate(rhs);")
    );
}

#[test]
fn a_well_placed_program_is_left_alone() {
    let advice = advice("opteron-6386", &program(|p| p / 16, owner, 64_000, 512_000));
    assert_eq!(
        advice.verdict.outcome,
        VerdictKind::LeaveAlone,
        "{}",
        advice.verdict.sentence
    );
    assert!(
        advice.objects[0].advice.starts_with("leave it alone"),
        "{:?}",
        advice.objects[0]
    );
    assert_eq!(advice.objects[0].blame.cost_share, 0.0);
    assert!(!advice.objects[0].sentence.contains("saved"));
}

#[test]
fn a_program_that_hardly_uses_memory_is_called_so() {
    let advice = advice("opteron-6386", &program(|_| 0, owner, 64, 5_120_000));
    assert_eq!(
        advice.verdict.outcome,
        VerdictKind::NotMemoryBound,
        "{}",
        advice.verdict.sentence
    );
}

#[test]
fn an_empty_profile_is_not_judged() {
    let (profile, _) = program(|_| 0, owner, 1, 1);
    let machine = Machine::named("opteron-6386").expect("shipped");
    let histogram = Histogram::empty(1, 0);
    let affinity = Affinity::of_cpus("compact", &profile, &machine, &compact_order(&machine));
    let context = Context {
        profile: &profile,
        histogram: &histogram,
        affinity: &affinity,
        machine: &machine,
    };
    let mapping = Mapping {
        policy: "first-touch".into(),
        nodes: vec![],
    };
    let nothing = InMemory::default();
    let simulation = simulate(
        &context,
        std::slice::from_ref(&mapping),
        &nothing,
        &Parameters::default(),
    )
    .unwrap();
    let advice = advise(
        &context,
        &simulation,
        &mapping,
        &Usage::default(),
        None,
        &report_options(),
        None,
    );
    assert_eq!(advice.verdict.outcome, VerdictKind::Unknown);
    assert!(advice.objects.is_empty());
}

#[test]
fn what_threads_of_one_node_share_has_a_home_there() {
    // Every eighth thread: the threads of one node if threads are assigned to the nodes in turn.
    let node = |p: u32| (0..8).map(|t| 8 * t + p / 128).collect();
    let program = program(|_| 0, node, 8_000, 64_000);
    let advice = bound_advice("opteron-6386", scatter_order, &program);
    let rhs = &advice.objects[0];
    assert_eq!(rhs.blame.pattern, Pattern::ReadShared);
    assert!(rhs.advice.contains("place it by `locality`"), "{}", rhs.advice);
}

/// Two loops over `rhs`; the second divides it as `again(page)` says.
fn two_loops(toucher: fn(u32) -> u32, again: fn(u32) -> u32) -> (Profile, InMemory) {
    loops(toucher, owner, again)
}

fn loops(toucher: fn(u32) -> u32, once: fn(u32) -> Vec<u32>, again: fn(u32) -> u32) -> (Profile, InMemory) {
    let (mut profile, first) = program(toucher, once, 64_000, 512_000);
    let region = profile.regions[1].clone();
    profile.regions.push(Region {
        frame: frame("sweep", "src/solve.c", 99),
        ..region
    });
    let mut rows = Vec::new();
    nodewise_profile::AccessSource::visit(&first, &mut |r| rows.extend_from_slice(r)).expect("in memory");
    let second: Vec<Access> = rows.iter().filter(|r| r.region == RegionId(1)).copied().collect();
    rows.extend(second.into_iter().map(|row| Access {
        region: RegionId(2),
        thread: ThreadId(again((row.page.0 - (1 << 20)) as u32)),
        ..row
    }));
    (profile, InMemory::new(rows))
}

/// A loop over rows and one over columns, both over a grid's inner points. A row has 64 pages; the first and the last
/// row are left out.
fn rows_and_columns(toucher: fn(u32) -> u32) -> (Profile, InMemory) {
    let (profile, both) = two_loops(toucher, |p| p % 64);
    let mut rows = Vec::new();
    nodewise_profile::AccessSource::visit(&both, &mut |r| rows.extend_from_slice(r)).expect("in memory");
    let inner = (1 << 20) + 64..(1 << 20) + u64::from(PAGES) - 64;
    rows.retain(|r| r.region != RegionId(2) || inner.contains(&r.page.0));
    (profile, InMemory::new(rows))
}

#[test]
fn loops_over_rows_and_columns_are_to_match_their_data() {
    let advice = advice("opteron-6386", &rows_and_columns(|p| p / 16));
    assert_eq!(
        advice.verdict.outcome,
        VerdictKind::Match,
        "{}",
        advice.verdict.sentence
    );
    assert!(advice.verdict.gain.min >= 0.0 && advice.verdict.gain.typical > 0.03);
    let rhs = &advice.objects[0];
    assert_eq!(
        rhs.blame.distribution,
        Some(Distribution::BlockExclusive { dimensions: 0b11 })
    );
    let share = rhs.blame.conflict.as_ref().unwrap().share;
    assert!(
        (share - 7.0 / 8.0 * 14.0 / 16.0).abs() < 1e-9,
        "{share} on eight nodes"
    );
    let sentence = "used x-wise at solve.c:88, y-wise at solve.c:99: 77 % of its pages are uniformly shared";
    assert!(rhs.sentence.contains(sentence), "{}", rhs.sentence);
    let snippet = rhs.snippet.as_ref().unwrap();
    assert!(
        snippet.contains("solve.c:99 (sweep)")
            && snippet.contains("nw_for_exclusive (j, j_first, j_last, columns, i_part)")
    );
}

/// Recurrences keep their bounds, nothing is invented that a profile cannot know, and what is allocated is released.
#[test]
fn a_snippet_is_whole() {
    let advice = advice("opteron-6386", &rows_and_columns(|p| p / 16));
    let snippet = advice.objects[0].snippet.as_ref().unwrap();
    for line in [
        "static nw_cuts rows, columns; /* at file scope",
        "nw_bind_openmp(); /* at the start of main",
        "nw_adopt(rhs, item, 2, extents);",
        "nw_meet(nw_part(columns, j_part), j_first, j_last)",
        "nw_meet(nw_part(rows, i_part), i_first, i_last)",
        "nw_distr_free(distr);",
        "nw_forget(rhs); /* before rhs is freed */",
    ] {
        assert!(snippet.contains(line), "no {line} in\n{snippet}");
    }
    assert!(!snippet.contains("nx ="), "{snippet}");
    // Both loops ascend.
    assert!(!snippet.contains("counting down"), "{snippet}");
}

#[test]
fn the_second_array_of_the_same_loops_gets_the_cuts_of_the_first() {
    let (mut profile, accesses) = rows_and_columns(|p| p / 16);
    let far = 1 << 24;
    let second = Object {
        name: "lhs".into(),
        first_page: profile.objects[1].first_page.offset(far),
        ..profile.objects[1].clone()
    };
    profile.objects.push(second);
    let mut rows = Vec::new();
    nodewise_profile::AccessSource::visit(&accesses, &mut |r| rows.extend_from_slice(r)).expect("in memory");
    let again: Vec<Access> = rows.clone();
    rows.extend(again.into_iter().map(|row| Access {
        object: ObjectId(2),
        page: row.page.offset(far),
        ..row
    }));
    let touches = profile.first_touches.clone();
    profile
        .first_touches
        .extend(touches.into_iter().map(|touch| FirstTouch {
            object: ObjectId(2),
            page: touch.page.offset(far),
            ..touch
        }));
    let advice = advice("opteron-6386", &(profile, InMemory::new(rows)));
    let [first, second] = &advice.objects[..] else {
        panic!("two objects");
    };
    let same = format!("with the same cuts as `{}`", first.blame.name);
    assert!(second.advice.contains(&same), "{}", second.advice);
    let snippet = second.snippet.as_ref().unwrap();
    assert!(!snippet.contains("nw_for_exclusive") && snippet.contains("nw_block_exclusive(3)"));
    compile(snippet);
}

/// If each node's part of a row is shorter than a page, a page has several owners but one home.
#[test]
fn blocks_finer_than_pages_are_not_advised() {
    let (mut profile, first) = two_loops(|p| p / 16, |p| p % 64);
    // Columns again, but with eight threads on each page and two pages per row.
    let mut rows = Vec::new();
    nodewise_profile::AccessSource::visit(&first, &mut |r| rows.extend_from_slice(r)).expect("in memory");
    rows.retain(|r| r.region != RegionId(2));
    let mut columns = Vec::new();
    for row in rows.iter().filter(|r| r.region == RegionId(1)) {
        let half = (row.page.0 % 2) as u32 * 32;
        columns.extend((0..32).map(|t| Access {
            region: RegionId(2),
            thread: ThreadId(half + t),
            reads: row.reads / 32,
            lines: row.lines / 32,
            ..*row
        }));
    }
    rows.extend(columns);
    profile.objects[1].bytes = u64::from(PAGES) * 4096;
    let advice = advice("opteron-6386", &(profile, InMemory::new(rows)));
    let rhs = &advice.objects[0];
    let conflict = rhs.blame.conflict.as_ref().unwrap();
    assert!(conflict.is_finer_than_pages(), "{conflict:?}");
    assert_eq!(rhs.blame.distribution, Some(Distribution::Cyclic { pages: 1 }));
    assert_ne!(advice.verdict.outcome, VerdictKind::Match);
    assert!(
        rhs.sentence.contains("a node's part of a row is 0.25 pages"),
        "{}",
        rhs.sentence
    );
}

#[test]
fn the_verdict_names_what_beats_the_best_placement() {
    // The master thread fills the array, so placement helps; one loop divides rows and one columns, so matching helps
    // more.
    let advice = advice("opteron-6386", &rows_and_columns(|_| 0));
    assert!(matches!(
        advice.verdict.outcome,
        VerdictKind::Place | VerdictKind::Stock
    ));
    let sentence = &advice.verdict.sentence;
    let more = "Matching the loops over `rhs` to their data, as below, is predicted";
    assert!(sentence.contains(more), "{sentence}");
}

#[test]
fn loops_that_count_down_get_the_inverse_schedule() {
    let advice = advice("opteron-6386", &two_loops(|p| p / 16, |p| 63 - p / 16));
    let rhs = &advice.objects[0];
    assert_eq!(rhs.blame.distribution, Some(Distribution::BindRows));
    let inverse = "the loops that count down, at solve.c:99, the schedule static-inverse: predicted";
    assert!(rhs.advice.contains(inverse), "{}", rhs.advice);
}

/// The names of arrays and the values of `item`, `nx` … are the reader's to define; all other code must be valid C.
#[test]
fn every_snippet_is_c() {
    let everybody = |_| (0..THREADS).step_by(4).collect();
    let rows = |p: u32| p / 16;
    let inner_columns = |p: u32| match p / 128 {
        0 | 7 => vec![],
        _ => vec![p % 128 / 2],
    };
    let mut snippets = Vec::new();
    for program in [
        program(|_| 0, owner, 64_000, 512_000),
        program(|_| 0, inner_columns, 64_000, 512_000),
        program(|_| 0, |p| vec![p % 64], 64_000, 512_000),
        program(|_| 0, |p| vec![p * p * 31 % 97 % 64], 64_000, 512_000),
        program(|_| 0, everybody, 6_400, 51_200),
        rows_and_columns(rows),
        two_loops(rows, |p| 63 - p / 16),
        two_loops(|_| 0, |p| p * p * 31 % 97 % 64),
    ] {
        snippets.extend(advice("opteron-6386", &program).objects[0].snippet.clone());
    }
    // Excluded are chunks in turn, which a plain schedule does not produce, and loops whose pages have owners in no
    // order: a profile does not show whether these could be scheduled statically.
    assert_eq!(snippets.len(), 6);
    for snippet in &snippets {
        compile(snippet);
    }
}

fn compile(snippet: &str) {
    let (includes, code): (Vec<&str>, Vec<&str>) = snippet.lines().partition(|l| l.starts_with("#include"));
    let text = format!(
        "{}\n#include <stddef.h>\nvoid *numa_alloc_interleaved(size_t);\n\
         void f(double *rhs, double *lhs, long nx, long ny, size_t item, size_t bytes, long i_first, long i_last,\n\
         long j_first, long j_last)\n{{\n{}\n}}\n",
        includes.join("\n"),
        code.join("\n")
    );
    let include = concat!(env!("CARGO_MANIFEST_DIR"), "/../../lib/include");
    let mut compiler = std::process::Command::new("cc")
        .args([
            "-x",
            "c",
            "-std=c11",
            "-fopenmp",
            "-fsyntax-only",
            "-I",
            include,
            "-",
        ])
        .stdin(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("a C compiler");
    std::io::Write::write_all(&mut compiler.stdin.take().expect("piped"), text.as_bytes()).expect("it reads");
    let output = compiler.wait_with_output().expect("it ends");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}\n{text}");
}

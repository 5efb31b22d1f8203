//! Tests that no unproven causes are claimed, and that no code is written for objects without a variable.

use super::*;
use nodewise_advise::Pass;

/// Two halves in reverse order do not prove a loop that counts down: two threads have only one other order.
#[test]
fn of_two_threads_nothing_says_that_a_loop_counts_down() {
    let forth: fn(u32) -> u32 = |p| p / 512;
    let back: fn(u32) -> u32 = |p| 1 - p / 512;
    let half: fn(u32) -> Vec<u32> = |p| vec![p / 512];
    let other: fn(u32) -> Vec<u32> = |p| vec![1 - p / 512];
    let mut doubts = 0;
    for bound in [
        loops(forth, half, back),
        loops(back, half, back),
        loops(|_| 0, other, back),
        loops(|_| 0, other, |p| p / 16 % 2),
    ] {
        let advice = bound_advice("opteron-6386", scatter_order, &bound);
        let rhs = &advice.objects[0];
        let all = format!(
            "{} {} {} {:?}",
            advice.verdict.sentence, rhs.sentence, rhs.advice, rhs.snippet
        );
        for claim in [
            "static-inverse",
            "static_inverse",
            "loops that count down",
            "counting down",
            "counts down */",
        ] {
            assert!(!all.contains(claim), "{claim}: {all}");
        }
        let doubt = |p: &Pass| {
            p.division
                .alternative_causes()
                .is_some_and(|d| d.contains("4 threads or more"))
        };
        doubts += usize::from(rhs.blame.passes.iter().any(doubt));
    }
    assert_eq!(doubts, 4);
}

/// Chunks assigned in turn produce the same pages as columns, so they do not prove a second dimension.
#[test]
fn chunks_dealt_in_turn_are_not_distributed_over_two_dimensions() {
    let found = advice("opteron-6386", &two_loops(|p| p / 16, |p| p % 64));
    let rhs = &found.objects[0];
    assert_ne!(found.verdict.outcome, VerdictKind::Match);
    assert_eq!(rhs.blame.distribution, Some(Distribution::Cyclic { pages: 1 }));
    assert!(
        rhs.sentence
            .contains("used in chunks dealt in turn at solve.c:99, x-wise at solve.c:88"),
        "{}",
        rhs.sentence
    );
    assert!(!rhs.advice.contains("block-exclusive"), "{}", rhs.advice);
    // Without another loop, the object should be initialised as it is used, which is not a plain static schedule.
    let alone = advice(
        "opteron-6386",
        &program(|_| 0, |p| vec![p / 4 % 64], 64_000, 512_000),
    );
    let alone = &alone.objects[0];
    assert!(
        alone
            .advice
            .starts_with("initialise it in parallel as solve.c:88"),
        "{}",
        alone.advice
    );
    assert_eq!(alone.snippet, None);
}

/// Neither the code of `main` nor a library's private data is an array.
#[test]
fn code_is_written_about_variables_only() {
    for (kind, name) in [
        (ObjectKind::Heap, "main"),
        (ObjectKind::Heap, "fill"),
        (ObjectKind::Heap, "heap"),
        (ObjectKind::Heap, "__cxx_global_var_init.6"),
        (ObjectKind::Static, "libm.so.6 (static data)"),
        (ObjectKind::File, "libm.so.6"),
        (ObjectKind::Arena, "small allocations"),
    ] {
        let (mut profile, accesses) = program(|_| 0, owner, 64_000, 512_000);
        (profile.objects[1].kind, profile.objects[1].name) = (kind, name.into());
        profile.sites[1].frames.insert(0, frame("fill", "init.c", 21));
        let rhs = &advice("opteron-6386", &(profile, accesses)).objects[0];
        assert_eq!(rhs.snippet, None, "{name}");
        assert_eq!(
            rhs.advice.starts_with("leave it alone"),
            name.starts_with("libm"),
            "{}",
            rhs.advice
        );
    }
}

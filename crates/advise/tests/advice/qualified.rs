//! Tests what a verdict says of its own limits: samples, parts of a run, recordings that ended early.

use super::*;

/// Each thread touches its own pages first, so that all accesses are local.
fn local_program() -> (Profile, InMemory) {
    program(|page| page / 16, owner, 64_000, 512_000)
}

#[test]
fn samples_that_are_all_local_leave_nothing_alone_and_name_the_recording_that_tells() {
    let verdict = sampled_advice("opteron-6386", &local_program(), 1000).verdict;
    assert_eq!(verdict.outcome, VerdictKind::Unknown);
    assert!(
        verdict.sentence.contains("cannot exclude") && verdict.sentence.contains("100 % of the samples"),
        "{}",
        verdict.sentence
    );
    assert_eq!(
        verdict.next.as_deref(),
        Some("nodewise record --via emulate -- ./solve")
    );
}

#[test]
fn samples_that_a_placement_would_make_local_name_the_dry_run() {
    let verdict = sampled_advice("opteron-6386", &program(|_| 0, owner, 64_000, 512_000), 1000).verdict;
    assert_eq!(verdict.outcome, VerdictKind::Unknown);
    assert!(
        verdict.sentence.contains("under locality"),
        "{}",
        verdict.sentence
    );
    assert_eq!(
        verdict.next.as_deref(),
        Some("nodewise balance --dry-run -- ./solve")
    );
}

#[test]
fn a_program_that_a_signal_ended_is_said_in_the_verdict() {
    let (mut profile, accesses) = local_program();
    let mut sentence = |status| {
        profile.meta.exit_status = Some(status);
        advice("opteron-6386", &(profile.clone(), accesses.clone()))
            .verdict
            .sentence
    };
    assert!(sentence(139).contains(" The program was ended by signal 11 while it was recorded"));
    assert_eq!(sentence(1), sentence(0));
}

#[test]
fn a_profile_that_is_cut_short_is_said_in_the_verdict_counted_or_sampled() {
    let (mut profile, accesses) = local_program();
    profile.meta.truncated = Some("the disk was full".into());
    let cut = (profile, accesses);
    for verdict in [
        advice("opteron-6386", &cut).verdict,
        sampled_advice("opteron-6386", &cut, 1000).verdict,
    ] {
        assert!(
            verdict
                .sentence
                .ends_with(" The profile is cut short: the disk was full."),
            "{}",
            verdict.sentence
        );
    }
    let nothing = advice("opteron-6386", &(cut.0, InMemory::new(Vec::new()))).verdict;
    assert!(
        nothing.sentence.ends_with("nothing to judge."),
        "{}",
        nothing.sentence
    );
}

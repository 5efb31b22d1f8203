//! Tests that a verdict is given only if no plausible value of an unknown quantity would reverse it.

use super::programs::{THREADS, advice_with, owner, program, speedup};
use nodewise_advise::{Verdict, VerdictKind};
use nodewise_profile::{AccessSource, Coverage, InMemory, Profile, RegionKind, Slice};
use nodewise_simulation::{Parameters, Range, UNKNOWN_CORES};

/// A recording that took 64 ms of each thread's CPU, a third of it in counting code.
fn timed((mut profile, accesses): (Profile, InMemory)) -> (Profile, InMemory) {
    for thread in &mut profile.threads {
        thread.cpu_ns = 64_000_000;
    }
    profile.meta.wall_ns = 64_000_000;
    profile.meta.host_cpus = THREADS;
    profile.meta.coverage = Coverage {
        samples: 4000,
        instrumented: 1.0,
        counting: Some(0.35),
        ..Coverage::default()
    };
    (profile, accesses)
}

/// Programs with little to much memory traffic, well and badly placed.
fn programs() -> Vec<(Profile, InMemory)> {
    let traffic = [64, 640, 2_000, 6_400, 20_000, 64_000];
    let homes: [fn(u32) -> u32; 2] = [|_| 0, |p| p / 16];
    let cases = traffic
        .into_iter()
        .flat_map(|lines| homes.map(|home| (lines, home)));
    cases
        .map(|(lines, home)| program(home, owner, lines, 512_000))
        .collect()
}

fn verdict(program: &(Profile, InMemory), parameters: &Parameters) -> Verdict {
    advice_with("opteron-6386", program, parameters).verdict
}

/// Nine values from one end of a range to the other, with equal ratios.
fn through(range: Range) -> impl Iterator<Item = f64> {
    (0..9).map(move |i| range.min * (range.max / range.min).powf(f64::from(i) / 8.0))
}

/// Checks that no value which `set` sets reverses a verdict given without it. Returns the kind of that verdict.
fn none_turns(program: &(Profile, InMemory), range: Range, set: impl Fn(f64) -> Parameters) -> VerdictKind {
    let default_verdict = verdict(program, &Parameters::default());
    let verdicts: Vec<Verdict> = through(range).map(|v| verdict(program, &set(v))).collect();
    let known_by_plain = verdicts.iter().all(|v| v.outcome != VerdictKind::Undecided);
    if default_verdict.outcome != VerdictKind::Undecided {
        for v in verdicts.iter().filter(|v| v.outcome != VerdictKind::Undecided) {
            assert_eq!(
                v.outcome.is_to_act(),
                default_verdict.outcome.is_to_act(),
                "{}\n{}",
                default_verdict.sentence,
                v.sentence
            );
        }
    } else if known_by_plain && default_verdict.sentence.contains("recording slowed") {
        let acts = |v: &&Verdict| v.outcome.is_to_act();
        assert!(
            verdicts.iter().any(|v| acts(&v)) && !verdicts.iter().all(|v| acts(&v)),
            "{}",
            default_verdict.sentence
        );
    }
    default_verdict.outcome
}

#[test]
fn no_cost_of_recording_within_its_bounds_turns_a_verdict() {
    let mut kinds = Vec::new();
    for program in programs().into_iter().map(timed) {
        let cost = Range::new(1.0, 2.1, 200.0);
        kinds.push(none_turns(&program, cost, |cost| Parameters {
            plain_cpu_ns: Some(64e6 * f64::from(THREADS) / cost),
            ..Parameters::default()
        }));
    }
    for kind in [VerdictKind::Undecided, VerdictKind::Place] {
        assert!(kinds.contains(&kind), "no case of {kind:?} among {kinds:?}");
    }
    assert!(
        kinds
            .iter()
            .any(|k| matches!(k, VerdictKind::LeaveAlone | VerdictKind::NotMemoryBound))
    );
}

#[test]
fn no_time_of_an_access_turns_the_verdict_on_an_emulated_run() {
    let range = Parameters::default().assumed_ns;
    let kinds: Vec<VerdictKind> = programs()
        .iter()
        .map(|program| {
            none_turns(program, range, |ns| Parameters {
                assumed_ns: Range::exactly(ns),
                ..Parameters::default()
            })
        })
        .collect();
    assert!(kinds.contains(&VerdictKind::Undecided), "{kinds:?}");
}

/// "Leave it alone" holds whatever the hardware's quantities are; a gain that another value would end is said to depend
/// on that.
#[test]
fn no_quantity_of_the_hardware_turns_a_verdict_that_does_not_say_so() {
    type Set = fn(&mut Parameters, Range);
    let default = Parameters {
        plain_cpu_ns: Some(64e6 * f64::from(THREADS) / 2.0),
        ..Parameters::default()
    };
    let quantities: [(Range, Set); 3] = [
        (default.parallelism, |p, value| p.parallelism = value),
        (default.miss, |p, value| p.miss = value),
        (default.queue_ns, |p, value| p.queue_ns = value),
    ];
    let traffic = (0..24).map(|i| (64.0 * 1.4_f64.powi(i)) as u64);
    let programs = traffic.map(|lines| timed(program(|_| 0, owner, lines, 512_000)));
    let (mut doubted, mut left) = (0, 0);
    for program in programs {
        let found = verdict(&program, &default);
        let says = found.sentence.contains("It may gain next to nothing");
        let is_left = matches!(
            found.outcome,
            VerdictKind::LeaveAlone | VerdictKind::NotMemoryBound
        );
        for (range, set) in quantities {
            for value in through(range) {
                let mut parameters = default.clone();
                set(&mut parameters, Range::exactly(value));
                let other = verdict(&program, &parameters);
                let acts = other.outcome.is_to_act();
                let is_idle = matches!(
                    other.outcome,
                    VerdictKind::LeaveAlone | VerdictKind::NotMemoryBound
                );
                assert!(
                    !(is_left && acts || found.outcome.is_to_act() && is_idle && !says),
                    "{}\n{}",
                    found.sentence,
                    other.sentence
                );
            }
        }
        doubted += i32::from(says);
        left += i32::from(is_left);
    }
    assert!(doubted > 0 && left > 0, "{doubted} doubted, {left} left alone");
}

/// Nor does it turn with how far remote memory is, where no source says it; the machine is to be measured then.
#[test]
fn no_assumed_distance_turns_a_verdict_that_does_not_say_so() {
    let known = Parameters {
        parallelism: Range::exactly(5.0),
        miss: Range::exactly(0.8),
        queue_ns: Range::exactly(25.0),
        assumed_bandwidth: Range::exactly(1.0),
        plain_cpu_ns: Some(64e6 * f64::from(THREADS) / 2.0),
        ..Parameters::default()
    };
    let (mut left, mut to_measure) = (0, 0);
    for lines in (0..40).map(|i| (64.0 * 1.2_f64.powi(i)) as u64) {
        let program = timed(program(|_| 0, owner, lines, 512_000));
        let verdict = |parameters: &Parameters| advice_with("westmere-4s", &program, parameters).verdict;
        let found = verdict(&known);
        let turns_on_it = found
            .sentence
            .contains("depends on how much longer remote memory of westmere-4s");
        if found.outcome == VerdictKind::Undecided && turns_on_it {
            let then = found.then.unwrap_or_default();
            assert!(
                then.contains("nodewise topo --measure -o measured.toml"),
                "{then}"
            );
            assert!(then.contains("--machine measured.toml"), "{then}");
            to_measure += 1;
        }
        if matches!(
            found.outcome,
            VerdictKind::LeaveAlone | VerdictKind::NotMemoryBound
        ) {
            left += 1;
            for distance in through(known.assumed_latency) {
                let measured = Parameters {
                    assumed_latency: Range::exactly(distance),
                    ..known.clone()
                };
                let other = verdict(&measured);
                assert!(
                    !other.outcome.is_to_act(),
                    "{}\n{}",
                    found.sentence,
                    other.sentence
                );
            }
        }
        for machine in ["nehalem-2s", "opteron-6386"] {
            let stated = advice_with(machine, &program, &known).verdict; // by their papers
            assert!(
                !stated.sentence.contains("remote memory of"),
                "{}",
                stated.sentence
            );
        }
    }
    assert!(
        left > 0 && to_measure > 0,
        "{left} left alone, {to_measure} to be measured"
    );
}

/// What is left alone although it would gain where all ranges are at an end at once says so.
#[test]
fn all_quantities_together_turn_no_verdict_that_does_not_say_so() {
    let default = Parameters {
        recording_cost: Some(Range::exactly(2.0)),
        assumed_bandwidth: Range::exactly(1.0),
        assumed_latency: Range::exactly(1.0),
        ..Parameters::default()
    };
    let (mut said, mut silent) = (0, 0);
    for lines in (0..40).map(|i| (64.0 * 1.25_f64.powi(i)) as u64) {
        let program = timed(program(|_| 0, owner, lines, 512_000));
        let found = verdict(&program, &default);
        if !matches!(
            found.outcome,
            VerdictKind::LeaveAlone | VerdictKind::NotMemoryBound
        ) {
            continue;
        }
        let acts = |parallelism, end: fn(Range) -> f64| {
            let parameters = Parameters {
                parallelism: Range::exactly(parallelism),
                miss: Range::exactly(end(default.miss)),
                queue_ns: Range::exactly(end(default.queue_ns)),
                ..default.clone()
            };
            verdict(&program, &parameters).outcome.is_to_act()
        };
        let ends = [default.parallelism.min, default.parallelism.max];
        let gains = ends.iter().any(|p| acts(*p, |r| r.min) || acts(*p, |r| r.max));
        let says = found.sentence.contains("With all ranges at an end at once");
        assert!(says || !gains, "{}", found.sentence);
        said += i32::from(says);
        silent += i32::from(!says);
    }
    assert!(said > 0 && silent > 0, "{said} say so, {silent} do not");
}

/// The range of what recording cost is wide where it was not measured, so that no verdict to leave a program alone may rest
/// on the typical value: at any cost, and any value of another quantity beside it, no change pays.
#[test]
fn an_unknown_cost_and_another_quantity_turn_no_verdict_together() {
    type Set = fn(&mut Parameters, Range);
    let default = Parameters {
        core_factor: UNKNOWN_CORES,
        ..Parameters::default()
    };
    let others: [(Range, Set); 6] = [
        (default.parallelism, |p, v| p.parallelism = v),
        (default.miss, |p, v| p.miss = v),
        (default.queue_ns, |p, v| p.queue_ns = v),
        (default.assumed_bandwidth, |p, v| p.assumed_bandwidth = v),
        (default.assumed_latency, |p, v| p.assumed_latency = v),
        (default.core_factor, |p, v| p.core_factor = v),
    ];
    let (mut left, mut by_both) = (0, 0);
    for lines in (0..30).map(|i| (8.0 * 1.35_f64.powi(i)) as u64) {
        let program = timed(program(|_| 0, owner, lines, 512_000));
        let found = verdict(&program, &default);
        by_both += i32::from(
            found
                .sentence
                .contains("only if the other unknown quantities are at their limits"),
        );
        if !matches!(
            found.outcome,
            VerdictKind::LeaveAlone | VerdictKind::NotMemoryBound
        ) {
            continue;
        }
        left += 1;
        for cost in through(Range::new(1.0, 2.0, 8.0)) {
            for (range, set) in others {
                for end in [range.min, range.max] {
                    let mut known = Parameters {
                        recording_cost: Some(Range::exactly(cost)),
                        core_factor: Range::exactly(1.0),
                        ..default.clone()
                    };
                    set(&mut known, Range::exactly(end));
                    let other = verdict(&program, &known);
                    assert!(
                        !other.outcome.is_to_act(),
                        "{}\n{}",
                        found.sentence,
                        other.sentence
                    );
                }
            }
        }
    }
    assert!(
        left > 0 && by_both > 0,
        "{left} left alone, {by_both} undecided by both"
    );
}

/// Nor may a verdict to act: the placement would lose, at another cost and with other values of everything else that is unknown.
#[test]
fn an_unknown_cost_and_all_other_quantities_make_no_recommendation_a_loss() {
    let default = Parameters {
        core_factor: UNKNOWN_CORES,
        ..Parameters::default()
    };
    let (mut acting, mut by_all) = (0, 0);
    let machines = ["opteron-6386", "nehalem-2s", "westmere-4s", "epyc-2s-nps4"];
    // Pages of all threads, of those of a few, and of single ones; placed with their users, on one node, and evenly.
    let users: [fn(u32) -> Vec<u32>; 4] = [
        owner,
        |p| vec![p % 8],
        |p| vec![p % 20],
        |p| vec![p % 8, p % THREADS],
    ];
    let homes: [fn(u32) -> u32; 3] = [|_| 0, |p| p / 16, |p| p % 4];
    let placed = homes
        .into_iter()
        .flat_map(|home| users.map(|users| (home, users)));
    let cases =
        placed.flat_map(|(home, users)| (0..24).map(move |i| (home, users, (64.0 * 1.4_f64.powi(i)) as u64)));
    // Memory weighs least, or most, as the model has it.
    type End = fn(Range) -> f64;
    let ends: [[End; 2]; 2] = [[|r| r.min, |r| r.max], [|r| r.max, |r| r.min]];
    for ((home, users, lines), machine) in cases.flat_map(|case| machines.map(|machine| (case, machine))) {
        let program = timed(program(home, users, lines, 512_000));
        let found = advice_with(machine, &program, &default).verdict;
        if found
            .sentence
            .contains("it would lose only if the other unknown quantities are at their limits")
        {
            by_all += 1;
            assert!(
                found.outcome == VerdictKind::Undecided && found.gain.min < 0.0,
                "{}",
                found.sentence
            );
        }
        if !matches!(found.outcome, VerdictKind::Place | VerdictKind::Stock) {
            continue;
        }
        acting += 1;
        let (few, many) = (default.parallelism.min, default.parallelism.max);
        for (parallelism, [weighs, computes]) in
            [few, many].into_iter().flat_map(|p| ends.map(|end| (p, end)))
        {
            let known = Parameters {
                parallelism: Range::exactly(parallelism),
                miss: Range::exactly(weighs(default.miss)),
                queue_ns: Range::exactly(weighs(default.queue_ns)),
                recording_cost: Some(Range::exactly(weighs(Range::new(1.0, 2.0, 8.0)))),
                assumed_bandwidth: Range::exactly(computes(default.assumed_bandwidth)),
                assumed_latency: Range::exactly(weighs(default.assumed_latency)),
                core_factor: Range::exactly(computes(default.core_factor)),
                ..Parameters::default()
            };
            let speedup = speedup(machine, &program, &known, &found.policy);
            assert!(
                speedup > 0.99,
                "{speedup} by {}: {}",
                found.policy,
                found.sentence
            );
        }
    }
    assert!(
        acting > 0 && by_all > 0,
        "{acting} recommend a placement, {by_all} are undecided by all"
    );
}

/// How long the machine's cores compute decides how much memory weighs: a verdict that turns on it says so.
#[test]
fn cores_of_unknown_speed_turn_no_verdict() {
    let of = |lines, core_factor| {
        let known = Parameters {
            plain_cpu_ns: Some(60e6 * f64::from(THREADS)),
            core_factor,
            ..Parameters::default()
        };
        verdict(&timed(program(|_| 0, owner, lines, 512_000)), &known)
    };
    let (mut undecided, mut decided) = (0, 0);
    for lines in (0..30).map(|i| (64.0 * 1.35_f64.powi(i)) as u64) {
        let found = of(lines, UNKNOWN_CORES);
        let turns = found.sentence.contains("how long its cores compute");
        undecided += i32::from(found.outcome == VerdictKind::Undecided && turns);
        decided += i32::from(!turns);
        let is_left = matches!(
            found.outcome,
            VerdictKind::LeaveAlone | VerdictKind::NotMemoryBound
        );
        for factor in through(UNKNOWN_CORES) {
            let other = of(lines, Range::exactly(factor));
            let acts = other.outcome.is_to_act();
            let said = format!("{}\nat {factor}: {}", found.sentence, other.sentence);
            assert!(!(is_left && acts), "{said}");
            let idle = !acts && found.outcome.is_to_act();
            assert!(!idle || turns, "{said}");
        }
    }
    assert!(
        undecided > 0 && decided > 0,
        "{undecided} undecided, {decided} without a word on cores"
    );
}

#[test]
fn an_undecided_verdict_says_what_it_depends_on_and_how_to_know() {
    let all = programs().into_iter().map(timed);
    let undecided = all
        .map(|p| verdict(&p, &Parameters::default()))
        .find(|v| v.outcome == VerdictKind::Undecided && v.sentence.contains("recording slowed"));
    let undecided = undecided.expect("one of them depends on what recording cost");
    assert!(
        undecided
            .sentence
            .starts_with("Undecided: on opteron-6386 the best placement gains between ")
    );
    assert!(
        undecided.sentence.contains("the plain build was not timed"),
        "{}",
        undecided.sentence
    );
    assert_eq!(undecided.next, None);
    let then = undecided.then.unwrap();
    assert!(
        then.contains("nodewise record --plain PLAIN -- ./solve;")
            && then.contains(
                "nodewise report 'a profile' --machine my.toml --affinity compact --plain-cpu 1.5s"
            ),
        "{then}"
    );
}

/// Threads that are no team, one of which was busy at a time while other processes used this share of the CPU time.
fn one_at_a_time((mut profile, accesses): (Profile, InMemory), others: Option<f64>) -> (Profile, InMemory) {
    let wall_ns = 64_000_000 * u64::from(THREADS);
    profile.threads.iter_mut().for_each(|t| t.openmp = None);
    profile
        .regions
        .iter_mut()
        .for_each(|r| r.kind = RegionKind::Serial);
    profile.slices = vec![Slice {
        start_ns: 0,
        end_ns: wall_ns,
    }];
    (profile.meta.wall_ns, profile.meta.others) = (wall_ns, others);
    (profile, accesses)
}

/// Threads that read the same pages one after the other find them equally far wherever they lie; all at a time they load
/// one controller.
#[test]
fn what_ran_at_a_time_beside_other_processes_decides_nothing() {
    let verdicts = |others| -> Vec<Verdict> {
        let traffic = [64, 256, 1_024, 4_096].into_iter();
        let all = |_| (0..THREADS).collect();
        let programs = traffic.map(|lines| program(|_| 0, all, lines, 512_000));
        let programs = programs.map(timed).map(|p| one_at_a_time(p, others));
        let known = Parameters {
            plain_cpu_ns: Some(60e6 * f64::from(THREADS)),
            ..Parameters::default()
        };
        programs.map(|p| verdict(&p, &known)).collect()
    };
    let turned = |v: &&Verdict| v.sentence.contains("how many of its threads run at a time");
    for others in [None, Some(0.4)] {
        let all = verdicts(others);
        let undecided = all
            .iter()
            .filter(turned)
            .find(|v| v.outcome == VerdictKind::Undecided);
        let then = undecided.expect("one turns on it").then.clone().unwrap();
        assert!(
            then.contains("while nothing else runs on the host")
                && then.ends_with("nodewise record -- ./solve"),
            "{then}"
        );
    }
    assert_eq!(verdicts(Some(0.000_1)).iter().filter(turned).count(), 0);
}

#[test]
fn where_the_interval_of_a_measured_cost_turns_the_verdict_a_longer_run_is_asked_for() {
    let costs: Vec<f64> = (0..60).map(|i| 1.06_f64.powi(i)).collect();
    let mut longer_runs = 0;
    for program in programs().into_iter().map(timed) {
        for cost in &costs {
            let found = verdict(
                &program,
                &Parameters {
                    plain_cpu_ns: Some(64e6 * f64::from(THREADS) / cost),
                    ..Parameters::default()
                },
            );
            if found.outcome == VerdictKind::Undecided && found.sentence.contains("recording slowed") {
                assert!(
                    found.sentence.contains("measured, by few samples"),
                    "{}",
                    found.sentence
                );
                let then = found.then.unwrap_or_default();
                assert!(then.starts_with("record a longer run"), "{then}");
                longer_runs += 1;
            }
        }
    }
    assert!(longer_runs > 0);
}

#[test]
fn a_verdict_on_a_short_run_says_that_it_is_one() {
    for (scale, short) in [(1, true), (100, false)] {
        let (mut profile, accesses) = timed(program(|_| 0, owner, 64, 512_000));
        for thread in &mut profile.threads {
            thread.cpu_ns = 8_000_000 * scale;
        }
        let found = verdict(&(profile, accesses), &Parameters::default());
        assert_eq!(
            found.sentence.contains("The run is short ("),
            short,
            "{}",
            found.sentence
        );
    }
}

#[test]
fn a_verdict_on_few_accesses_says_how_many() {
    for (reads, few) in [(1, true), (512_000, false)] {
        let (mut profile, all) = timed(program(|_| 0, owner, 1, reads));
        let mut rows = Vec::new();
        all.visit(&mut |part| rows.extend_from_slice(part))
            .expect("in memory");
        rows.retain(|row| !few || row.writes == 0); // without its initialisation
        let accesses = InMemory::new(rows);
        for thread in &mut profile.threads {
            thread.cpu_ns = 800_000_000;
        }
        let found = verdict(&(profile, accesses), &Parameters::default());
        let says = found
            .sentence
            .contains("counted: percentages of so few say little");
        assert_eq!(says, few, "{}", found.sentence);
    }
}

//! The terminal summary: one screen, at any width, without escape sequences unless asked for.

mod sample;

use nodewise_report::FewLines;
use nodewise_report::text::{Screen, write};

#[test]
fn the_summary_fits_one_screen() {
    for width in [80, 100, 140] {
        let text = write(&sample::report(), Screen { width, colour: false });
        assert!(
            text.lines().count() <= 32,
            "{} lines at {width}",
            text.lines().count()
        );
        // Code and commands are not wrapped, so that they can be copied.
        for line in text
            .lines()
            .filter(|l| !l.starts_with("      ") && !l.starts_with("  next: "))
        {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}

#[test]
fn the_verdict_and_its_command_come_before_the_figures() {
    let report = sample::report();
    let text = write(
        &report,
        Screen {
            width: 200,
            colour: false,
        },
    );
    let verdict = text.find(&report.verdict.sentence).unwrap();
    let next = text.find("next: nodewise map").unwrap();
    let table = text.find("predicted time").unwrap();
    assert!(verdict < next && next < table);
}

#[test]
fn colour_is_given_only_when_asked_for() {
    let report = sample::report();
    assert!(
        !write(
            &report,
            Screen {
                width: 100,
                colour: false
            }
        )
        .contains('\x1b')
    );
    assert!(
        write(
            &report,
            Screen {
                width: 100,
                colour: true
            }
        )
        .contains("\x1b[1")
    );
}

#[test]
fn every_policy_and_its_figures_are_shown() {
    let report = sample::report();
    let text = write(
        &report,
        Screen {
            width: 100,
            colour: false,
        },
    );
    for policy in &report.policies {
        let line = text.lines().find(|l| l.starts_with(&policy.policy)).unwrap();
        assert!(
            line.contains(&nodewise_report::percent(policy.local_fraction)),
            "{line}"
        );
    }
}

#[test]
fn on_one_node_the_program_is_described_and_the_way_on_named() {
    let mut report = sample::report();
    report.machine.nodes.truncate(1);
    let text = write(
        &report,
        Screen {
            width: 100,
            colour: false,
        },
    );
    assert!(text.contains("--machine epyc-2s-nps4") && text.contains("nodewise topo --list"));
    assert!(text.contains("grid: 8 MiB"), "{text}");
    assert!(
        !text.contains("predicted time") && !text.contains("first touched by"),
        "{text}"
    );
}

#[test]
fn on_one_node_the_number_of_objects_that_are_not_described_is_said() {
    let mut report = sample::report();
    report.machine.nodes.truncate(1);
    let all: Vec<_> = report.objects.iter().cycle().take(12).cloned().collect();
    report.objects = all;
    let screen = Screen {
        width: 100,
        colour: false,
    };
    let text = write(&report, screen);
    assert!(
        text.contains("\nand 7 more objects (--html FILE or --json)\n"),
        "{text}"
    );
}

#[test]
fn moves_are_told_with_who_made_them_and_what_became_of_them() {
    let report = sample::balanced();
    let moves = report.moves.as_ref().unwrap();
    assert_eq!(
        (moves.ours, moves.kernel, moves.ping_pongs, moves.multiple),
        (14 * 128, 128, 256, 0)
    );
    assert_eq!((moves.pages, moves.incorrect), (13 * 128, None));
    assert_eq!(moves.pages_by_moves, [0, 12 * 128, 0, 128]);
    let screen = Screen {
        width: 200,
        colour: false,
    };
    let text = write(&report, screen);
    for part in [
        "1,792 by out-w:threshold=2",
        "128 by kernel",
        "256 brought a page back",
        "131 pages by its own count",
        " and 1 more pair (--json); of grid",
        "budget 300",
    ] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    assert!(!write(&sample::report(), screen).contains("Moved while it ran"));
}

#[test]
fn samples_claim_neither_time_nor_load() {
    let report = sample::sampled();
    let screen = Screen {
        width: 200,
        colour: false,
    };
    let text = write(&report, screen);
    for claim in [
        "predicted time",
        "speed-up",
        "access balance",
        "of the run time",
        "exact",
        "memory bound",
    ] {
        assert!(!text.contains(claim), "{claim}: {text}");
    }
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["samples of 3.33 k pages", "no time is predicted"] {
        assert!(words.contains(part), "no {part}: {text}");
    }
    assert!(
        report
            .policies
            .iter()
            .all(|p| p.seconds.is_none() && p.access_balance.is_none())
    );
    assert!(
        report
            .objects
            .iter()
            .all(|o| o.cost_share.is_none() && o.snippet.is_none())
    );
    let grid = report.objects.iter().find(|o| o.name == "grid").unwrap();
    let seen = grid.sampled.as_ref().unwrap();
    let [low, high] = seen.range.unwrap();
    assert!(seen.judged > 0 && low <= grid.exclusivity && grid.exclusivity <= high);
    assert!(!report.verdict.outcome.is_to_act());
}

#[test]
fn too_few_samples_are_no_ground_for_a_verdict() {
    let report = sample::sampled_at_least(u32::MAX);
    assert!(
        report.verdict.sentence.starts_with("Too few samples"),
        "{}",
        report.verdict.sentence
    );
    assert_eq!(report.verdict.next, None);
    assert!(
        report
            .objects
            .iter()
            .all(|o| o.sampled.as_ref().unwrap().range.is_none())
    );
}

#[test]
fn waiting_in_objects_that_are_not_described_is_said_too() {
    let few = |object: Option<&str>, pages, share| FewLines {
        object: object.map(str::to_owned),
        pages,
        share,
    };
    let mut report = sample::report();
    report.few_lines = vec![
        few(Some("grid"), 1, 0.31),
        few(Some("barrier"), 1, 0.12),
        few(None, 2, 0.06),
    ];
    let screen = Screen {
        width: 400,
        colour: false,
    };
    let line =
        "18.0 % of all accesses are to a few lines of 1 page of `barrier`, 2 pages of no object: waiting";
    let text = write(&report, screen);
    assert!(text.contains("`grid`") && text.contains(line), "{text}");
    let others = [1, 4].map(|pages| few(Some("lock"), pages, 0.01));
    report.few_lines.extend(others);
    let line = "1 page of `lock` and 4 more pages (--json): waiting";
    assert!(write(&report, screen).contains(line));
    report.few_lines.truncate(3);
    // Where no object is described, all of them are named.
    report.machine.nodes.truncate(1);
    let text = write(&report, screen);
    assert!(
        text.contains("49.0 % of all accesses") && text.contains("1 page of `grid`"),
        "{text}"
    );
    report.few_lines.clear();
    assert!(!write(&report, screen).contains("a few lines of"));
}

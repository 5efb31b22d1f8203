//! The terminal summary: one screen, at any width, without escape sequences unless asked for.

mod sample;

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
        // Code and commands stay whole: they are there to be copied.
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
    assert!(text.contains("grid: 8.00 MiB"), "{text}");
    assert!(
        !text.contains("predicted time") && !text.contains("first touched by"),
        "{text}"
    );
    assert!(!nodewise_report::html::write(&report).contains("What each policy would cost"));
}

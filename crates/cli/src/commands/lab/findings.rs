//! Converts the results of a laboratory to the form of the report.

use nodewise_lab::{Experiment, GuestObject, GuestRun, GuestSlice, Session, VirtualMachine};
use nodewise_report::lab::{
    self as report, Balance, Counts, LabRun, Node, Object, Placement, Results, SCHEMA, Slice,
};
use std::ffi::OsString;

pub fn of(machine: &VirtualMachine, experiment: &Experiment, session: &Session) -> report::Experiment {
    let mut runs: Vec<LabRun> = session.outcomes.iter().map(run).collect();
    for (run, own) in runs.iter_mut().zip(&experiment.commands) {
        run.command = Some(words(own));
    }
    let results = match runs.len() {
        1 => Results::One(Box::new(runs.remove(0))),
        _ => Results::Compared { runs },
    };
    report::Experiment {
        schema: SCHEMA,
        nodewise: env!("CARGO_PKG_VERSION").to_owned(),
        machine: machine.machine.name.clone(),
        title: machine.machine.title.clone(),
        scale: scale(machine).map(ToOwned::to_owned),
        nodes: nodes(machine),
        linux: named("Linux", &session.kernel),
        qemu: named("QEMU", &session.qemu),
        boot_seconds: session.boot_seconds,
        command: words(&experiment.command),
        bind: experiment.bind.clone(),
        huge_pages: experiment.huge_pages.name(),
        results,
    }
}

fn words(command: &[OsString]) -> Vec<String> {
    command.iter().map(|w| w.to_string_lossy().into_owned()).collect()
}

/// How the machine was scaled: its title without the name.
pub fn scale(machine: &VirtualMachine) -> Option<&str> {
    let line = machine.scale.as_deref()?;
    let bare = line.strip_prefix(&machine.machine.name);
    Some(bare.and_then(|l| l.strip_prefix(": ")).unwrap_or(line))
}

/// A name followed by its version.
fn named(name: &str, version: &str) -> String {
    if version.starts_with(name) {
        version.to_owned()
    } else {
        format!("{name} {version}")
    }
}

fn nodes(machine: &VirtualMachine) -> Vec<Node> {
    let all = machine.machine.nodes.iter().enumerate();
    all.map(|(number, node)| Node {
        node: number as u32,
        cpus: node.cpus.iter().map(|c| c.0).collect(),
        memory_bytes: node.memory,
    })
    .collect()
}

fn run(outcome: &GuestRun) -> LabRun {
    let (own, other) = (sum(&outcome.accesses), sum(&outcome.other_accesses));
    let all = own + other;
    let counted = !outcome.accesses.is_empty();
    let mut objects: Vec<Object> = outcome.objects.iter().filter_map(object).collect();
    objects.sort_by_key(|o| std::cmp::Reverse(o.accesses.iter().sum::<u64>()));
    let risen = |name: &str| outcome.kernel.get(name).copied();
    LabRun {
        under: outcome.under.clone(),
        command: None,
        exit_status: outcome.ended.then_some(outcome.exit_status),
        accesses: counted.then(|| outcome.accesses.clone()),
        local_fraction: outcome.local_fraction(),
        slices: outcome.slices.iter().map(slice).collect(),
        reachable_fraction: outcome.reachable_fraction(),
        access_balance: outcome.access_balance(),
        over_objects: outcome.over_objects,
        elsewhere: counted.then(|| outcome.other_accesses.clone()),
        elsewhere_share: (all > 0).then(|| other as f64 / all as f64),
        pages: outcome.pages.clone(),
        placement: outcome.placement.as_deref().and_then(placement),
        pages_migrated: risen("numa_pages_migrated"),
        balance: outcome.balance.as_deref().and_then(balance),
        hint_faults: risen("numa_hint_faults"),
        kernel: outcome.kernel.clone(),
        objects,
        notes: outcome.notes.clone(),
    }
}

fn slice(seen: &GuestSlice) -> Slice {
    Slice {
        end_seconds: seen.end_ns as f64 / 1e9,
        local_fraction: seen.local_fraction(),
        accesses: seen.accesses.clone(),
    }
}

/// The placement that `nodewise run` reported; `None` if it placed nothing.
fn placement(text: &str) -> Option<Placement> {
    let mut report: serde_json::Value = serde_json::from_str(text).ok()?;
    serde_json::from_value(report["achieved"].take()).ok()
}

/// The summary that `nodewise balance` reported.
fn balance(text: &str) -> Option<Balance> {
    serde_json::from_str(text).ok()
}

fn sum(counts: &Counts) -> u64 {
    counts.iter().flatten().sum()
}

/// An object of the report; `None` if it was never accessed.
fn object(seen: &GuestObject) -> Option<Object> {
    let all = sum(&seen.accesses);
    let local: u64 = (0..seen.accesses.len())
        .filter_map(|n| seen.accesses[n].get(n))
        .sum();
    let width = seen.accesses.first().map_or(0, Vec::len);
    let on = |node: usize| seen.accesses.iter().map(|row| row[node]).sum();
    (all > 0).then(|| Object {
        process: seen.process,
        rule: seen.rule,
        page: seen.page,
        pages: seen.pages,
        thread: seen.thread,
        accesses: (0..width).map(on).collect(),
        matrix: seen.accesses.clone(),
        local_fraction: local as f64 / all as f64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_all_and_untouched_objects_are_left_out() {
        let seen = |accesses: Counts| GuestObject {
            pages: 16,
            accesses,
            ..GuestObject::default()
        };
        let outcome = GuestRun {
            accesses: vec![vec![6, 1], vec![1, 1]],
            other_accesses: vec![vec![1, 0], vec![0, 0]],
            objects: vec![
                seen(vec![vec![0, 0], vec![0, 0]]),
                seen(vec![vec![1, 0], vec![1, 0]]),
                seen(vec![vec![5, 1], vec![0, 1]]),
            ],
            kernel: [("numa_hint_faults".to_owned(), 7)].into(),
            placement: Some(
                r#"{"achieved": {"processes": 1, "total": PLACED, "default": PLACED, "rules": []}}"#.replace(
                    "PLACED",
                    r#"{"objects": 2, "pages": 9, "touched": 8, "right": 7, "wanted": [4, 5], "got": [3, 5]}"#,
                ),
            ),
            ..GuestRun::default()
        };
        let run = run(&outcome);
        assert_eq!(run.elsewhere_share, Some(0.1));
        assert_eq!((run.hint_faults, run.pages_migrated), (Some(7), None));
        let rules = run.placement.unwrap().rules;
        assert_eq!(
            (rules.right, rules.wanted, rules.got),
            (7, vec![4, 5], vec![3, 5])
        );
        assert!(placement(r#"{"achieved": null}"#).is_none());
        assert_eq!(run.objects.len(), 2);
        assert_eq!(run.objects[0].accesses, [5, 2], "the most accessed first");
        assert_eq!(run.objects[1].local_fraction, 0.5);
        let uncounted = super::run(&GuestRun::default());
        assert_eq!((uncounted.accesses, uncounted.elsewhere), (None, None));
    }
}

use super::*;
use std::process::Command;

fn records(mut source: Source) -> (u32, Vec<Record>) {
    let mut child = Command::new("/bin/sh")
        .args(["-c", "true; /bin/true"])
        .spawn()
        .unwrap();
    child.wait().unwrap();
    let mut records = Vec::new();
    source.drain(&mut records);
    (child.id(), records)
}

fn faults(records: &[Record], of: u32) -> usize {
    records
        .iter()
        .filter(|r| matches!(r, Record::Fault(f) if f.pid == of && f.address > 0))
        .count()
}

#[test]
fn a_child_and_its_own_are_followed_where_that_is_permitted() {
    let Ok(source) = Source::of_children(1) else {
        return; // perf_event_paranoid
    };
    assert_eq!(source.scope(), Scope::Threads);
    let (child, records) = records(source);
    assert!(faults(&records, child) > 20);
    let grandchild = records.iter().find_map(|r| match r {
        Record::Began { pid, parent, .. } if *parent == child && *pid != child => Some(*pid),
        _ => None,
    });
    let grandchild = grandchild.expect("it was started");
    assert!(faults(&records, grandchild) > 20);
    assert!(
        records
            .iter()
            .any(|r| matches!(r, Record::Named { pid, executed: true, .. } if *pid == grandchild))
    );
    assert!(
        records
            .iter()
            .any(|r| matches!(r, Record::Ended { pid, .. } if *pid == child))
    );
    assert!(
        records
            .iter()
            .any(|r| matches!(r, Record::Mapped { path, .. } if path.contains("libc")))
    );
}

#[test]
fn of_everybody_a_longer_period_reports_fewer_where_that_is_permitted() {
    let (Ok(all), Ok(mut some)) = (Source::of_everybody(1), Source::of_everybody(1)) else {
        return; // perf_event_paranoid
    };
    some.set_period(10);
    let mut some_records = Vec::new();
    let (child, all_records) = records(all);
    some.drain(&mut some_records);
    let (many, few) = (faults(&all_records, child), faults(&some_records, child));
    assert!(many > 20 && few > 0 && few * 4 < many, "{many}, {few}");
}

#[test]
fn who_has_ended_ends_no_wait() {
    let mut child = Command::new("/bin/sleep").arg("60").spawn().unwrap();
    let source = Source::of_threads(&[child.id()], 1);
    child.kill().unwrap();
    child.wait().unwrap();
    let Ok(source) = source else {
        return; // perf_event_paranoid
    };
    let (began, limit) = (clock::monotonic(), Duration::from_millis(30));
    assert!(!source.wait(limit));
    assert!(clock::monotonic() - began >= limit);
}

#[test]
fn of_threads_that_are_gone_nothing_is_seen() {
    assert!(Source::of_threads(&[i32::MAX as u32], 1).is_err());
}

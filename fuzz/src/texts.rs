//! Texts: maps, policies as they are written in commands, what the kernel says of processes.

use crate::understood;
use nodewise_machine::{Machine, parse_bytes, parse_list};
use nodewise_placement::policies::Nothing;
use nodewise_placement::{Placement, migration_policy, page_policies, page_policy};
use std::sync::LazyLock;

static MACHINE: LazyLock<Machine> = LazyLock::new(|| Machine::named("nehalem-2s").unwrap());

/// A map; one that is read is written and read again.
pub fn map(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let placement = Placement::read(text);
    understood(placement.is_ok());
    if let Ok(placement) = placement {
        assert_eq!(Placement::read(&placement.to_toml()).as_ref(), Ok(&placement));
    }
}

/// What follows `--policy`, `--affinity`, `--under`, `--page-size`, `--nodes`.
pub fn policy(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let _ = page_policy(text, &MACHINE, &Nothing).err().map(|e| e.to_string());
    let _ = page_policies(text, &MACHINE, &Nothing)
        .err()
        .map(|e| e.to_string());
    let _ = migration_policy(text, &MACHINE).err().map(|e| e.to_string());
    let _ = text.parse::<nodewise_lab::RunPlacement>();
    let _ = (parse_bytes(text), parse_list(text));
    let cpus = nodewise_placement::NodeCpus::from(&*MACHINE);
    let _ = nodewise_placement::thread_order(text, &cpus, &Nothing);
}

/// Lines and files of `/proc` and of tracefs.
pub fn kernel(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    for line in text.lines() {
        if let Some(range) = nodewise_linux::numa_maps::Range::parse(line) {
            range.bytes().for_each(drop);
        }
        let _ = nodewise_linux::maps::Area::parse(line);
    }
    let _ = nodewise_linux::process::Status::parse(text);
    let (stat, schedstat) = text.split_once('\n').unwrap_or((text, ""));
    let _ = nodewise_linux::process::Task::parse(stat, Some(schedstat));
    if let Some(point) = nodewise_linux::tracepoint::Tracepoint::parse(text) {
        let _ = ["address", "error_code"].map(|name| point.value(name, &[0; 64]));
    }
}

//! Machine files, and what a kernel shows of a machine.

use crate::folder::own;
use crate::understood;
use nodewise_machine::Machine;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::LazyLock;

static ROOT: LazyLock<PathBuf> = LazyLock::new(|| own("sysfs").join("sys"));

/// A machine file; one that is read is written and read again.
pub fn machine(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let machine = Machine::parse(text, "fuzz.toml").ok();
    understood(machine.is_some());
    machine.iter().for_each(again);
}

fn again(machine: &Machine) {
    let written = machine.to_toml();
    let read = Machine::parse(&written, "again.toml").unwrap_or_else(|e| panic!("{e}\n{written}"));
    assert_eq!(read.node_count(), machine.node_count());
}

/// Files below `/sys` as the shipped captures have them: a path a line, its content behind tabs.
pub fn sysfs(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let _ = fs::remove_dir_all(&*ROOT);
    fs::create_dir_all(&*ROOT).unwrap();
    let mut file: Option<(PathBuf, String)> = None;
    for line in text.lines().take(4096) {
        match line.strip_prefix('\t') {
            Some(content) => file.iter_mut().for_each(|(_, text)| text.extend([content, "\n"])),
            None => write(file.replace((line.into(), String::new()))),
        }
    }
    write(file);
    if let Ok(machine) = Machine::from_sysfs(&ROOT, "this") {
        again(&machine);
    }
}

/// Names that lead elsewhere are left out, and those that the file system does not take.
fn write(file: Option<(PathBuf, String)>) {
    let Some((path, text)) = file else { return };
    let inside = |path: &Path| path.components().all(|c| matches!(c, Component::Normal(_)));
    if inside(&path) && path.as_os_str().len() < 200 {
        let path = ROOT.join(path);
        let made = path
            .parent()
            .is_some_and(|folder| fs::create_dir_all(folder).is_ok());
        let _ = made.then(|| fs::write(path, text));
    }
}

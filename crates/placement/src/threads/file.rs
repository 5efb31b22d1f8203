//! Affinities from files: TOML with `cpus = […]` (a map file's binding will do), or CSV lines
//! `thread,cpu`.

use super::NodeCpus;
use crate::PolicyError;
use nodewise_machine::CpuId;
use std::collections::BTreeMap;

/// The CPU of each thread number.
pub(super) fn cpus(text: &str, machine: &NodeCpus) -> Result<Vec<CpuId>, PolicyError> {
    let cpus = match text.parse::<toml::Table>() {
        Ok(table) => from_toml(&table)?,
        Err(_) => from_csv(text)?,
    };
    if cpus.is_empty() {
        return Err(PolicyError("no CPUs in it".into()));
    }
    let known = machine.identity();
    match cpus.iter().find(|c| known.binary_search(c).is_err()) {
        Some(cpu) => Err(PolicyError(format!("{} has no CPU {cpu}", machine.name))),
        None => Ok(cpus),
    }
}

fn from_toml(table: &toml::Table) -> Result<Vec<CpuId>, PolicyError> {
    let binding = table.get("binding").and_then(toml::Value::as_table);
    let cpus = table
        .get("cpus")
        .or_else(|| binding?.get("cpus"))
        .and_then(toml::Value::as_array);
    let number = |v: &toml::Value| v.as_integer().and_then(|n| u32::try_from(n).ok()).map(CpuId);
    cpus.and_then(|list| list.iter().map(number).collect())
        .ok_or_else(|| PolicyError("`cpus = [0, 1, …]`, the CPU of each thread, is missing".into()))
}

fn from_csv(text: &str) -> Result<Vec<CpuId>, PolicyError> {
    let mut cpus = BTreeMap::new();
    let lines = text.lines().enumerate().map(|(i, l)| (i + 1, l.trim()));
    for (number, line) in lines.filter(|(_, l)| !l.is_empty() && !l.starts_with('#') && *l != "thread,cpu") {
        let pair = line
            .split_once(',')
            .and_then(|(t, c)| Some((t.trim().parse().ok()?, c.trim().parse().ok()?)));
        let Some((thread, cpu)) = pair else {
            return Err(PolicyError(format!(
                "line {number}: `{line}` is not `thread,cpu`"
            )));
        };
        if cpus.insert(thread, CpuId(cpu)).is_some() {
            return Err(PolicyError(format!(
                "line {number}: thread {thread} is bound twice"
            )));
        }
    }
    let missing = (0u32..)
        .zip(cpus.keys())
        .find(|(expected, thread)| expected != *thread);
    match missing {
        Some((thread, _)) => Err(PolicyError(format!("thread {thread} is not bound"))),
        None => Ok(cpus.into_values().collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::machine;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<Vec<u32>, String> {
        let cpus = cpus(text, &NodeCpus::from(&machine(2, 2))).map_err(|e| e.to_string())?;
        Ok(cpus.into_iter().map(|c| c.0).collect())
    }

    #[test]
    fn both_forms_are_read() {
        for text in [
            "cpus = [3, 0]",
            "[binding]\ncpus = [3, 0]",
            "thread,cpu\n1,0\n# last\n0, 3\n",
        ] {
            assert_eq!(read(text), Ok(vec![3, 0]), "{text}");
        }
    }

    #[test]
    fn defects_are_named_in_one_line() {
        for (text, expected) in [
            ("cpus = [4]", "test has no CPU 4"),
            (
                "cpus = [-1]",
                "`cpus = [0, 1, …]`, the CPU of each thread, is missing",
            ),
            ("0;1", "line 1: `0;1` is not `thread,cpu`"),
            ("0,1\n0,2", "line 2: thread 0 is bound twice"),
            ("0,1\n2,2", "thread 1 is not bound"),
            ("thread,cpu", "no CPUs in it"),
        ] {
            assert_eq!(read(text), Err(expected.into()), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in any::<String>()) {
            if let Err(error) = read(&text) {
                prop_assert!(!error.contains('\n'));
            }
        }
    }
}

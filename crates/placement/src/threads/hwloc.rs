//! CPUs as an expression in the syntax of `hwloc-calc`: `numa:0-1.core:0-3`; several are separated by spaces.
//!
//! `numa` are memory nodes. A machine's description lists CPUs, but not which of them share a core, so `core` and `pu`
//! both mean its CPUs, numbered node by node (hwloc's logical order). This is for machines that hwloc-calc cannot know,
//! as they are simulated; for this host, `cpus:LIST` takes the output of hwloc-calc.

// Why: docs/decisions/structure.md

use super::node_cpus::{NodeCpus, positions};
use crate::PolicyError;
use nodewise_machine::CpuId;

/// The CPU of each thread: the distinct CPUs of the expression, in its order.
pub(super) fn order(expression: &str, cpus: &NodeCpus) -> Result<Vec<CpuId>, PolicyError> {
    let mut all: Vec<CpuId> = Vec::new();
    for place in expression.split_whitespace() {
        for cpu in location(place, cpus)? {
            if !all.contains(&cpu) {
                all.push(cpu);
            }
        }
    }
    match all.is_empty() {
        true => Err(PolicyError(
            "no CPU in it; write numa:0-1, numa:0.core:0-3, pu:0,2 or core:all".into(),
        )),
        false => Ok(all),
    }
}

/// The levels of objects that contain each other: machine, node, CPU.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Depth {
    Machine,
    Node,
    Core,
    Pu,
}

fn location(text: &str, cpus: &NodeCpus) -> Result<Vec<CpuId>, PolicyError> {
    let (mut sets, mut within) = (vec![cpus.compact()], None);
    for object in text.split('.') {
        let (kind, index) = object.split_once(':').unwrap_or((object, "all"));
        let depth = depth(kind)?;
        if within.is_some_and(|outer| outer >= depth) {
            return Err(PolicyError(format!(
                "`{text}`: `{kind}` is not inside what stands before it"
            )));
        }
        within = Some(depth);
        let inner = |set: &Vec<CpuId>| chosen(&children(depth, set, cpus), kind, index);
        let found: Result<Vec<_>, _> = sets.iter().map(inner).collect();
        sets = found?.concat();
    }
    Ok(sets.concat())
}

fn depth(kind: &str) -> Result<Depth, PolicyError> {
    match kind.to_ascii_lowercase().as_str() {
        "machine" | "all" => Ok(Depth::Machine),
        "numa" | "numanode" | "node" => Ok(Depth::Node),
        "core" => Ok(Depth::Core),
        "pu" => Ok(Depth::Pu),
        "package" | "socket" | "die" | "group" | "cache" | "l1" | "l2" | "l3" | "l1cache" | "l2cache"
        | "l3cache" => Err(PolicyError(format!(
            "which CPUs share a `{kind}` is not in a machine's description; use numa, core or pu"
        ))),
        _ => Err(PolicyError(format!(
            "`{kind}` is no kind of object; known: machine, numa, core, pu"
        ))),
    }
}

/// The objects of a level inside a set of CPUs. Nodes are directly below the machine.
fn children(depth: Depth, set: &[CpuId], cpus: &NodeCpus) -> Vec<Vec<CpuId>> {
    match depth {
        Depth::Machine => vec![set.to_vec()],
        Depth::Node => cpus.nodes.clone(),
        Depth::Core | Depth::Pu => set.iter().map(|c| vec![*c]).collect(),
    }
}

/// `all`, `odd`, `even`, `2-` (from 2 on), `1:3` (three from 1 on), or a list `0-3,7`.
fn chosen(objects: &[Vec<CpuId>], kind: &str, index: &str) -> Result<Vec<Vec<CpuId>>, PolicyError> {
    let count = objects.len();
    let every = |from: usize| Ok((from..count).step_by(2).collect());
    let places = match index {
        "all" => Ok((0..count).collect()),
        "even" => every(0),
        "odd" => every(1),
        _ => match (index.strip_suffix('-'), index.split_once(':')) {
            (Some(from), _) if count > 0 => listed(&format!("{from}-{}", count - 1), count, kind),
            (_, Some((from, many))) => {
                let numbers = from
                    .parse::<usize>()
                    .ok()
                    .zip(many.parse::<usize>().ok().filter(|m| *m > 0));
                let last = numbers.and_then(|(from, many)| from.checked_add(many - 1));
                let last =
                    last.ok_or_else(|| PolicyError(format!("`{kind}:{index}` is not {kind}:FROM:COUNT")))?;
                listed(&format!("{from}-{last}"), count, kind)
            }
            _ => listed(index, count, kind),
        },
    };
    Ok(places?.into_iter().map(|i| objects[i].clone()).collect())
}

fn listed(list: &str, count: usize, kind: &str) -> Result<Vec<usize>, PolicyError> {
    positions(list, count, |item| match count.checked_sub(1) {
        None => format!("there is no {kind} there"),
        Some(last) => format!("`{kind}:{item}`: there are {kind}:0 to {kind}:{last} there"),
    })
}

#[cfg(test)]
mod tests {
    use super::super::node_cpus::tests::{cpus, numbers};
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<Vec<u32>, String> {
        numbers(order(text, &cpus()))
    }

    #[test]
    fn places_are_read_as_hwloc_calc_reads_them() {
        for (text, expected) in [
            ("numa:0-1", vec![0, 3, 6, 9, 1, 4, 7, 10]),
            ("numa:1.core:0-2", vec![1, 4, 7]),
            ("numa:0-1.pu:0", vec![0, 1]),
            ("pu:0,2", vec![0, 6]),
            ("core:10-", vec![8, 11]),
            ("core:3:2", vec![9, 1]),
            ("numa:2 pu:0 numa:2", vec![2, 5, 8, 11, 0]),
            ("numa:odd", vec![1, 4, 7, 10]),
            ("machine:0.numa:2.core:1.pu:0", vec![5]),
        ] {
            assert_eq!(read(text), Ok(expected), "{text}");
        }
        assert_eq!(read("core:all").unwrap().len(), 12);
    }

    #[test]
    fn defects_are_named_in_one_line_with_the_remedy() {
        for (text, expected) in [
            (
                "package:0",
                "which CPUs share a `package` is not in a machine's description; use numa, core or pu",
            ),
            (
                "thing:0",
                "`thing` is no kind of object; known: machine, numa, core, pu",
            ),
            ("numa:7", "`numa:7`: there are numa:0 to numa:3 there"),
            ("numa:0.core:4", "`core:4`: there are core:0 to core:3 there"),
            (
                "numa:3",
                "no CPU in it; write numa:0-1, numa:0.core:0-3, pu:0,2 or core:all",
            ),
            (
                "core:0.numa:0",
                "`core:0.numa:0`: `numa` is not inside what stands before it",
            ),
            ("pu:1:0", "`pu:1:0` is not pu:FROM:COUNT"),
            ("pu:x", "`x` is neither a number nor a range such as 0-3"),
            (
                "",
                "no CPU in it; write numa:0-1, numa:0.core:0-3, pu:0,2 or core:all",
            ),
        ] {
            assert_eq!(read(text), Err(expected.into()), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_names_each_cpu_once_or_is_refused_in_a_line(
            text in "(numa|core|pu|x)(:[0-9a-]{0,3})?(\\.(core|pu):[0-9,-]{1,4})?|\\PC*"
        ) {
            match read(&text) {
                Ok(mut found) => {
                    let count = found.len();
                    found.sort_unstable();
                    found.dedup();
                    prop_assert!(count > 0 && found.len() == count && found.iter().all(|c| *c < 12));
                }
                Err(error) => prop_assert!(!error.contains('\n') || text.contains('\n')),
            }
        }
    }
}

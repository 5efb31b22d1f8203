//! CPUs as an expression in the syntax of `likwid-pin -c`: thread domains, and numbers in them.
//!
//! N is the whole machine, M0, M1, … are its memory nodes; in each, CPUs are numbered from 0, node by node. Sockets
//! (S), dies (D) and cache groups (C) are not part of a machine's description.
//!
//! For the host it runs on, likwid-pin itself prints lists, which `cpus:LIST` takes. This parser is for machines that
//! are simulated, and for the CPUs that a cpuset leaves.

// Why: docs/decisions/structure.md

use super::node_cpus::{NodeCpus, beyond, numbered, positions};
use crate::PolicyError;
use nodewise_machine::CpuId;

/// The CPU of each thread, in the order of the expression.
pub(super) fn order(expression: &str, cpus: &NodeCpus) -> Result<Vec<CpuId>, PolicyError> {
    let parts: Result<Vec<_>, _> = expression.split('@').map(|part| self::part(part, cpus)).collect();
    let order = parts?.concat();
    match order.is_empty() {
        true => Err(PolicyError(
            "no CPU in it; write N:0-3, M0:0-3@M1:0-3, E:N:4:1:2 or M:scatter".into(),
        )),
        false => Ok(order),
    }
}

fn part(text: &str, cpus: &NodeCpus) -> Result<Vec<CpuId>, PolicyError> {
    if let Some(rest) = text.strip_prefix("E:") {
        return spread(rest, cpus);
    }
    match text.split_once(':') {
        Some(("N", "scatter")) => Ok(cpus.compact()),
        Some(("M", "scatter")) => Ok(cpus.scatter()),
        Some((kind, "scatter")) => Err(no_domain(kind, cpus)),
        Some((name, list)) => {
            let domain = domain(name, cpus)?;
            let places = positions(list, domain.len(), |item| beyond(name, domain.len(), item))?;
            Ok(places.into_iter().map(|i| domain[i]).collect())
        }
        None => numbered(text, cpus),
    }
}

/// `DOMAIN:THREADS[:CHUNK:STRIDE]`: THREADS CPUs, in chunks whose starts are STRIDE apart.
fn spread(text: &str, cpus: &NodeCpus) -> Result<Vec<CpuId>, PolicyError> {
    let fields: Vec<&str> = text.split(':').collect();
    let (name, numbers) = match fields.as_slice() {
        [name, threads] => (*name, [*threads, "1", "1"]),
        [name, threads, chunk, stride] => (*name, [*threads, *chunk, *stride]),
        _ => {
            return Err(PolicyError(format!(
                "`E:{text}` is not E:DOMAIN:THREADS[:CHUNK:STRIDE]"
            )));
        }
    };
    let number = |text: &str| {
        let number = text.parse::<usize>().ok().filter(|n| *n > 0);
        number.ok_or_else(|| PolicyError(format!("`E:…:{text}` is not a number above 0")))
    };
    let [threads, chunk, stride] = numbers.map(number);
    let (threads, chunk, stride) = (threads?, chunk?, stride?);
    if chunk > stride {
        return Err(PolicyError(format!(
            "chunks of {chunk} overlap {stride} apart; the stride is as long at least"
        )));
    }
    let domain = domain(name, cpus)?;
    let found: Vec<CpuId> = (0..domain.len())
        .filter(|i| i % stride < chunk)
        .map(|i| domain[i])
        .take(threads)
        .collect();
    match found.len() == threads {
        true => Ok(found),
        false => Err(PolicyError(format!(
            "{name} has {} CPUs, {} of them that way, not {threads}",
            domain.len(),
            found.len()
        ))),
    }
}

fn domain(name: &str, cpus: &NodeCpus) -> Result<Vec<CpuId>, PolicyError> {
    let node = name.strip_prefix('M').and_then(|n| n.parse::<usize>().ok());
    match (name, node) {
        ("N", _) => Ok(cpus.compact()),
        (_, Some(node)) if node < cpus.nodes.len() => Ok(cpus.nodes[node].clone()),
        _ => Err(no_domain(name, cpus)),
    }
}

fn no_domain(name: &str, cpus: &NodeCpus) -> PolicyError {
    let nodes = match cpus.nodes.len() {
        0 | 1 => "M0".to_owned(),
        count => format!("M0 to M{}", count - 1),
    };
    PolicyError(match name.chars().next() {
        Some('S' | 'D' | 'C') => format!(
            "what shares a socket, die or cache (`{name}`) is not in a machine's description; use N (all of {}) \
             or its memory nodes, {nodes}",
            cpus.name
        ),
        _ => format!(
            "{} has no domain `{name}`; it has N (all CPUs) and {nodes} (memory nodes)",
            cpus.name
        ),
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
    fn domains_number_their_cpus_from_0() {
        for (text, expected) in [
            ("N:0-4", vec![0, 3, 6, 9, 1]),
            ("M1:0,2", vec![1, 7]),
            ("M2:0-1@M0:3", vec![2, 5, 9]),
            ("E:M0:2", vec![0, 3]),
            ("E:M0:2:1:2", vec![0, 6]),
            ("E:N:4:2:4", vec![0, 3, 1, 4]),
            ("M:scatter", vec![0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]),
            ("7,1-2", vec![7, 1, 2]),
        ] {
            assert_eq!(read(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn defects_are_named_in_one_line_with_the_remedy() {
        for (text, expected) in [
            (
                "S0:0-3",
                "what shares a socket, die or cache (`S0`) is not in a machine's description; use N (all of test) or its memory nodes, M0 to M3",
            ),
            (
                "M4:0",
                "test has no domain `M4`; it has N (all CPUs) and M0 to M3 (memory nodes)",
            ),
            ("M0:0-4", "M0 has 4 CPUs, 0-3; `0-4` is out of range"),
            ("M0:3-1", "`3-1` runs backwards; write 1-3"),
            ("M3:0", "M3 has no CPUs"),
            ("M0:x", "`x` is neither a number nor a range such as 0-3"),
            ("E:M0:4:1:2", "M0 has 4 CPUs, 2 of them that way, not 4"),
            ("E:M0", "`E:M0` is not E:DOMAIN:THREADS[:CHUNK:STRIDE]"),
            ("E:M0:0", "`E:…:0` is not a number above 0"),
            ("12", "test has 12 CPUs, 0-11; `12` is out of range"),
        ] {
            assert_eq!(read(text), Err(expected.into()), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_names_cpus_that_are_there_or_is_refused_in_a_line(text in "[NMSE0-9:,@a-c-]{0,12}|\\PC*") {
            match read(&text) {
                Ok(found) => prop_assert!(!found.is_empty() && found.iter().all(|c| *c < 12)),
                Err(error) => prop_assert!(!error.contains('\n') || text.contains('\n')),
            }
        }

        #[test]
        fn a_domain_s_list_is_that_of_its_node(node in 0usize..3, list in proptest::collection::vec(0usize..4, 1..6)) {
            let text: Vec<String> = list.iter().map(ToString::to_string).collect();
            let found = order(&format!("M{node}:{}", text.join(",")), &cpus()).unwrap();
            prop_assert_eq!(found, list.iter().map(|i| cpus().nodes[node][*i]).collect::<Vec<_>>());
        }
    }
}

//! `run --place OBJECTS=HOW`: rules of the command line.

use crate::{EnforceError, Host};
use nodewise_files::pieces::{Policy, one_each, turns};
use nodewise_machine::NodeId;
use nodewise_placement::{Distribution, NAMED_KINDS, Named, Rule, Selector};
use nodewise_profile::ObjectKind;

/// What can be named besides files and shared memory: the program's own memory.
const OWN: [(&str, ObjectKind); 2] = [("heap", ObjectKind::Heap), ("mapping", ObjectKind::Mapping)];

/// Reads a rule of the command line.
///
/// # Errors
/// One line: no `=`, objects or a distribution that are not known, a node that is not here.
pub(crate) fn rule(text: &str, host: &Host) -> Result<Rule, EnforceError> {
    let refuse = |why: String| EnforceError::usage(format!("--place {text}: {why}"));
    let (objects, how) = text
        .rsplit_once('=')
        .filter(|(objects, how)| !objects.is_empty() && !how.is_empty())
        .ok_or_else(|| refuse("write OBJECTS=HOW, as in 'file:*.gguf=interleave'".into()))?;
    let object = selector(objects).ok_or_else(|| {
        refuse(format!(
            "objects are a path, {}:PATTERN, or heap, mapping (the program's own memory)",
            NAMED_KINDS.join(":PATTERN, ")
        ))
    })?;
    Ok(Rule {
        object,
        distribution: distribution(how, host).map_err(refuse)?,
        runs: Vec::new(),
        pages: 0,
        weight: 1.0,
    })
}

fn selector(objects: &str) -> Option<Selector> {
    let own = OWN.iter().find(|(name, _)| *name == objects);
    let name = match own {
        Some(_) => None,
        None => {
            Named::new(objects)?;
            Some(objects.to_owned())
        }
    };
    Some(Selector {
        kind: own.map_or(ObjectKind::File, |(_, kind)| *kind),
        site: None,
        name,
        thread: None,
        sequence: None,
    })
}

/// A policy as `files` takes it, with the kernel's node numbers, or a distribution in the notation of maps.
fn distribution(how: &str, host: &Host) -> Result<Distribution, String> {
    let numbers: Vec<u32> = host.nodes.iter().map(|n| n.os_index).collect();
    let all = (0..numbers.len() as u32).map(NodeId);
    if let Ok(known) = Distribution::among(how, numbers.len() as u32) {
        return Ok(known);
    }
    // There nothing is placed, and a command that is meant for a larger machine runs.
    if host.single && (how.parse::<Distribution>().is_ok() || Policy::parse(how).is_ok()) {
        return Ok(Distribution::FirstTouch);
    }
    Ok(match Policy::parse(how) {
        Ok(Policy::Interleave) => Distribution::Interleave(all.collect()),
        Ok(Policy::Block) => {
            let share = 1.0 / numbers.len() as f64;
            Distribution::Block(all.map(|node| (node, share)).collect())
        }
        Ok(Policy::Node(node)) => match numbers.iter().position(|n| *n == node) {
            Some(at) => Distribution::Node(NodeId(at as u32)),
            None => {
                return Err(format!(
                    "no such node, or not allowed here; nodes: {}",
                    list(&numbers)
                ));
            }
        },
        Ok(Policy::Weighted(weights)) => {
            one_each(&weights, numbers.len())?;
            let nodes: Vec<u32> = all.map(|node| node.0).collect();
            Distribution::Interleave(turns(&weights, &nodes).into_iter().map(NodeId).collect())
        }
        _ => {
            return Err(
                "how: interleave, block, node:N, weighted:W,W,…, or a distribution of maps such as `block by thread`"
                    .to_owned(),
            );
        }
    })
}

fn list(numbers: &[u32]) -> String {
    let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
    numbers.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_as_files_and_maps_write_them() {
        let host = Host::pretended(2, 4);
        for (text, kind, how) in [
            ("file:*.gguf=interleave", ObjectKind::File, "interleave 0,1"),
            (
                "model=1.gguf=block by thread",
                ObjectKind::File,
                "block by thread",
            ),
            ("shm=weighted:3,1", ObjectKind::File, "interleave 0,0,1,0"),
            ("memfd:ram*=node:1", ObjectKind::File, "node 1"),
            ("heap=block", ObjectKind::Heap, "block 0:0.5 1:0.5"),
            ("mapping=node 0", ObjectKind::Mapping, "node 0"),
            ("hugetlb=first-touch", ObjectKind::File, "first-touch"),
        ] {
            let rule = rule(text, &host).unwrap();
            assert_eq!(
                (rule.object.kind, &*rule.distribution.to_string()),
                (kind, how),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_no_rule_says_what_to_write() {
        let host = Host::pretended(2, 4);
        for (text, expected) in [
            ("shm", "write OBJECTS=HOW"),
            ("=interleave", "write OBJECTS=HOW"),
            (
                "file:[=interleave",
                "objects are a path, file:PATTERN, shm:PATTERN",
            ),
            ("shm=everywhere", "how: interleave, block"),
            ("shm=node:7", "nodes: 0,1"),
            ("shm=node 7", "how: "),
            ("shm=weighted:1", "1 weight for 2 nodes"),
        ] {
            let error = rule(text, &host).unwrap_err().to_string();
            assert!(error.contains(expected) && !error.contains('\n'), "{error}");
        }
    }
}

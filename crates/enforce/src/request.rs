//! Parses the value of `--policy` of `nodewise run`.

use crate::EnforceError;
use nodewise_files::pieces;
use nodewise_placement::{Placement, makes_copies, not_a_placement};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A placement map, or a policy that needs no profile.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// The rules of a map file.
    Map(Box<Placement>),
    /// The kernel's default, first-touch.
    FirstTouch,
    /// Interleaved by virtual page number (Diener eq. 6).
    Interleave,
    /// Interleaved in the order of faults, as `numactl --interleave` does.
    RoundRobin,
    /// On one node, by the kernel's number, while it has room.
    Node(u32),
    /// Interleaved in the order of faults, by the kernel's weights (Linux 6.9).
    Weighted,
    /// Interleaved by these weights, one for each node.
    WeightedBy(Vec<u32>),
}

impl Request {
    /// Parses a policy of the command line.
    ///
    /// # Errors
    /// The map cannot be read, the policy is unknown, or it needs a profile and therefore a map.
    pub fn parse(policy: &OsStr) -> Result<Self, EnforceError> {
        if let Some(file) = policy.as_bytes().strip_prefix(b"map:") {
            return read_map(Path::new(OsStr::from_bytes(file)));
        }
        let policy = &*policy.to_string_lossy();
        let unknown = |hint: &str| {
            EnforceError::new(format!(
                "unknown policy `{policy}`{hint}; known: map:FILE, first-touch, interleave, round-robin, node:N, weighted, weighted:W,W,…"
            ))
        };
        if makes_copies(policy) {
            return Err(EnforceError::new(not_a_placement(policy)));
        }
        if Path::new(policy).extension().is_some_and(|e| e == "so") {
            return Err(needs_profile(policy));
        }
        let (name, rest) = policy.split_once(':').unwrap_or((policy, ""));
        if name == "map" {
            return Err(no_file());
        }
        let known = PLACED.iter().chain(DECIDED).copied();
        match (
            nodewise_input::resolve(name, known).map_err(|hint| unknown(&hint))?,
            rest,
        ) {
            ("first-touch", "") => Ok(Self::FirstTouch),
            ("interleave", "") => Ok(Self::Interleave),
            ("round-robin", "") => Ok(Self::RoundRobin),
            ("weighted", "") => Ok(Self::Weighted),
            ("weighted", weights) => weighted(policy, weights),
            ("node", number) => number
                .parse()
                .map(Self::Node)
                .map_err(|_| EnforceError::new(format!("--policy {policy}: not a node number"))),
            (name, rest) if DECIDED.contains(&name) => Err(needs_profile(&match rest {
                "" => name.to_owned(),
                parameter => format!("{name}:{parameter}"),
            })),
            _ => Err(unknown("")),
        }
    }

    /// File name of the program that the map's rules were made for.
    #[must_use]
    pub fn program(&self) -> Option<&str> {
        match self {
            Self::Map(placement) => Some(&placement.program)
                .filter(|p| !p.is_empty())
                .map(String::as_str),
            _ => None,
        }
    }
}

/// Policies that place pages without a map.
const PLACED: &[&str] = &["first-touch", "interleave", "round-robin", "weighted", "node"];
/// Policies that decide from a profile.
const DECIDED: &[&str] = &[
    "locality",
    "balanced",
    "mixed",
    "frequency",
    "random",
    "hot",
    "hot-objects",
    "fill",
];

fn weighted(policy: &str, weights: &str) -> Result<Request, EnforceError> {
    if weights == "readers" {
        return Err(needs_profile(policy));
    }
    match pieces::Policy::parse(policy) {
        Ok(pieces::Policy::Weighted(weights)) => Ok(Request::WeightedBy(weights)),
        Ok(_) => Err(EnforceError::new(format!(
            "--policy {policy}: write weighted:3,1"
        ))),
        Err(error) => Err(EnforceError::usage(error.to_string())),
    }
}

fn needs_profile(policy: &str) -> EnforceError {
    EnforceError::new(format!(
        "--policy {policy} needs a profile: `nodewise map --policy {policy} -o FILE`, then --policy map:FILE"
    ))
}

fn no_file() -> EnforceError {
    EnforceError::new("--policy map: needs a file: map:FILE")
}

fn read_map(path: &Path) -> Result<Request, EnforceError> {
    if path.as_os_str().is_empty() {
        return Err(no_file());
    }
    let text = nodewise_input::text(path).map_err(|e| EnforceError::io("read the map", path, &e))?;
    let placement =
        Placement::read(&text).map_err(|e| EnforceError::new(format!("{}: {e}", path.display())))?;
    Ok(Request::Map(Box::new(placement)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_without_a_map_are_read() {
        assert_eq!(Request::parse("node:3".as_ref()).unwrap(), Request::Node(3));
        assert_eq!(
            Request::parse("round-robin".as_ref()).unwrap(),
            Request::RoundRobin
        );
    }

    #[test]
    fn names_may_be_shortened_and_have_any_case() {
        let of = |policy: &str| Request::parse(policy.as_ref());
        assert_eq!(of("inter").unwrap(), Request::Interleave);
        assert_eq!(of("Round-Robin").unwrap(), Request::RoundRobin);
        assert_eq!(of("no:2").unwrap(), Request::Node(2));
        assert_eq!(of("Weighted:3,0").unwrap(), Request::WeightedBy(vec![3, 0]));
    }

    #[test]
    fn what_cannot_be_run_says_why_in_one_line() {
        for (policy, expected) in [
            ("mixed:0.9", "needs a profile"),
            ("./mine.so", "needs a profile"),
            ("magic", "unknown policy `magic`; known: "),
            (
                "interlave",
                "unknown policy `interlave` (did you mean interleave?); known: ",
            ),
            ("interleave:2", "unknown policy `interleave:2`; known: "),
            ("loc", "map --policy locality -o"),
            ("loaclity", "did you mean locality?"),
            ("map", "needs a file"),
            ("node:x", "not a node number"),
            ("weighted:0,0", "write weighted:3,1"),
            ("weighted:300", "up to 255"),
            ("weighted:readers", "needs a profile"),
            ("map:", "needs a file"),
            ("map:/nonexistent.map", "cannot read the map /nonexistent.map"),
        ] {
            let error = Request::parse(policy.as_ref()).unwrap_err().to_string();
            assert!(error.contains(expected) && !error.contains('\n'), "{error}");
        }
    }
}

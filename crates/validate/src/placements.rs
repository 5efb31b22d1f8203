//! The placements under which every program is predicted and run; `nodewise run` can enforce all of them.

use nodewise_machine::Machine;
use nodewise_tune::Invocation;
use std::ffi::OsString;
use std::path::Path;

/// The affinity in all placements, both predicted and run: threads are bound node by node, one to each CPU.
pub const AFFINITY: &str = "compact";

/// A placement of pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placement {
    /// A policy of the kernel or the preload library, as `run --policy` names it.
    Named(String),
    /// The rules of a map that places each page on the node that uses it most.
    Locality,
}

/// All placements on a machine: the reference first.
pub fn all(machine: &Machine) -> Vec<Placement> {
    // A node without CPUs (CXL memory) would make all accesses remote.
    let first = machine.cpu_nodes().next().map_or(0, |n| n.0);
    let named = [
        "first-touch".to_owned(),
        "interleave".to_owned(),
        format!("node:{first}"),
    ];
    let named = named.into_iter().map(Placement::Named);
    named.chain([Placement::Locality]).collect()
}

impl Placement {
    /// Name of the placement in documents and tables.
    pub fn name(&self) -> &str {
        match self {
            Self::Named(policy) => policy,
            Self::Locality => "locality",
        }
    }

    /// The placement in the syntax of `simulate --policy`. A map is predicted by its rules, which may differ from the
    /// policy that it was made with.
    pub fn predicted(&self, map: &Path) -> String {
        match self {
            Self::Named(policy) => policy.clone(),
            Self::Locality => format!("map:{}", map.display()),
        }
    }

    /// The command that runs a program under this placement.
    pub fn invocation(&self, own: &Path, map: &Path, threads: usize, command: &[OsString]) -> Invocation {
        let threads = threads.to_string();
        let policy = self.predicted(map);
        let bind: &[&str] = match self {
            Self::Named(_) => &["--bind", AFFINITY],
            // The map contains the same binding of threads.
            Self::Locality => &[],
        };
        let words = ["run", "--policy", &policy, "--threads", &threads];
        let words = words.iter().chain(bind).chain(&["--"]).map(OsString::from);
        let own = [own.as_os_str().to_owned()];
        Invocation::plain(
            &own.into_iter()
                .chain(words)
                .chain(command.iter().cloned())
                .collect::<Vec<_>>(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_bound_alike_under_all() {
        let machine = Machine::named("nehalem-2s").unwrap();
        let placements = all(&machine);
        let names: Vec<&str> = placements.iter().map(Placement::name).collect();
        assert_eq!(names, ["first-touch", "interleave", "node:0", "locality"]);
        let line = |p: &Placement| {
            let invocation = p.invocation(Path::new("nodewise"), Path::new("a.map"), 8, &["./cg".into()]);
            invocation.command.join(" ".as_ref()).into_string().unwrap()
        };
        assert_eq!(
            line(&placements[1]),
            "nodewise run --policy interleave --threads 8 --bind compact -- ./cg"
        );
        assert_eq!(
            line(&placements[3]),
            "nodewise run --policy map:a.map --threads 8 -- ./cg"
        );
    }
}

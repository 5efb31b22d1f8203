//! Results of a laboratory experiment: which CPU node accessed which memory node, under each placement. The JSON is
//! documented in `docs/lab.md` and stable.

mod matrix;
mod over_time;
mod panel;
pub mod svg;
pub mod text;

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of the JSON.
pub const SCHEMA: u32 = 1;

/// Access counts as `[cpu_node][memory_node]`.
pub type Counts = Vec<Vec<u64>>;

/// Results of one laboratory session: a command in a virtual machine.
#[derive(Clone, Debug, Serialize)]
pub struct Experiment {
    /// Version of the format, [`SCHEMA`].
    pub schema: u32,
    /// The version of nodewise that ran the experiment.
    pub nodewise: String,
    /// Name of the simulated machine.
    pub machine: String,
    /// The machine in one line.
    pub title: String,
    /// How the machine was scaled, in words; `null` if it was not.
    pub scale: Option<String>,
    /// The memory nodes of the guest.
    pub nodes: Vec<Node>,
    /// Version of the guest's kernel.
    pub linux: String,
    /// Version of QEMU, the emulator.
    pub qemu: String,
    /// Wall time on the host from the emulator's start to the first user-mode instruction, seconds.
    pub boot_seconds: f64,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// How threads were bound.
    pub bind: String,
    /// The guest kernel's setting of transparent huge pages: `always`, `madvise`, `never`.
    pub huge_pages: &'static str,
    /// Results of the runs.
    #[serde(flatten)]
    pub results: Results,
}

/// A node of the guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Node {
    /// Number of the node.
    pub node: u32,
    /// Numbers of its virtual CPUs.
    pub cpus: Vec<u32>,
    /// Size of its memory, bytes.
    pub memory_bytes: u64,
}

/// Results of one or several runs. In the JSON the fields of a single run are at the top level; several runs are a
/// list.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Results {
    /// A single run under one placement.
    One(Box<LabRun>),
    /// The same command under several placements, or a batch of commands.
    Compared {
        /// The runs, in the requested order.
        runs: Vec<LabRun>,
    },
}

/// Results of the command under one placement.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LabRun {
    /// The placement, as written on the command line.
    pub under: String,
    /// Program and arguments of this run; left out if all runs have the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// Exit status of the command as a shell reports it; `null` if it did not run to its end.
    pub exit_status: Option<u8>,
    /// Number of user-mode reads and writes; `null` without counters.
    pub accesses: Option<Counts>,
    /// Share of local accesses; `null` without accesses.
    pub local_fraction: Option<f64>,
    /// Accesses and local fraction of each slice; empty without `--slice`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub slices: Vec<Slice>,
    /// The local fraction if each page had been, during the whole run, on the node that accessed it most.
    pub reachable_fraction: Option<f64>,
    /// Access balance over home nodes; `null` without accesses.
    pub access_balance: Option<f64>,
    /// Whether `accesses` are limited to known objects; if not, they are to all memory that the program touched.
    pub over_objects: bool,
    /// Accesses to the program's other memory; `null` without counters.
    pub elsewhere: Option<Counts>,
    /// `elsewhere` as a share of all accesses; `null` without accesses.
    pub elsewhere_share: Option<f64>,
    /// Number of touched pages of the objects, by their node at the end of the run.
    pub pages: Vec<u64>,
    /// The result of placement; `null` if no pages were placed.
    pub placement: Option<Placement>,
    /// Number of pages that the kernel's NUMA balancing moved; `null` if the kernel did not report it.
    pub pages_migrated: Option<i64>,
    /// The summary of `nodewise balance`; `null` if it did not run.
    pub balance: Option<Balance>,
    /// Number of NUMA hinting faults; `null` if the kernel did not report it.
    pub hint_faults: Option<i64>,
    /// Increments of the guest's counters in `/proc/vmstat` during the run.
    pub kernel: BTreeMap<String, i64>,
    /// Objects with accesses, most accessed first.
    pub objects: Vec<Object>,
    /// Remarks that are necessary to interpret the figures.
    pub notes: Vec<String>,
}

/// A slice of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Slice {
    /// End of the slice, in seconds of the guest's clock since the run began.
    pub end_seconds: f64,
    /// Number of user-mode reads and writes, as in [`LabRun::accesses`].
    pub accesses: Counts,
    /// Share of local accesses; `null` without accesses.
    pub local_fraction: Option<f64>,
}

/// The summary that `nodewise balance` reported, in pages of 4 KiB.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Balance {
    /// Number of pages that the balancer moved.
    pub pages_moved: u64,
    /// Number of moves that were carried out.
    pub migrations: u64,
    /// Number of moves back to the node that the page had just left.
    pub ping_pongs: u64,
    /// Number of second and later moves to yet another node.
    pub multiple: u64,
    /// Number of hinting faults that the balancer received.
    pub samples: u64,
}

/// The placement that `nodewise run` achieved, read back from the kernel at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// Placement of objects by the rules of a map.
    #[serde(rename(deserialize = "total"))]
    pub rules: Placed,
    /// Placement of objects without a rule.
    pub default: Placed,
}

/// Number of objects and their pages, with requested and actual nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placed {
    /// Number of objects that were placed.
    pub objects: u64,
    /// Number of pages of these objects.
    pub pages: u64,
    /// Number of pages that had physical memory when they were queried.
    pub touched: u64,
    /// Number of touched pages that were on the requested node.
    pub right: u64,
    /// Number of pages requested on each node.
    pub wanted: Vec<u64>,
    /// Number of touched pages on each node.
    pub got: Vec<u64>,
}

/// An allocation, or a program's writable data.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Object {
    /// Identifier of the process that owns the object.
    pub process: u32,
    /// Index of the map's rule that placed the object, from 0; `null` if none did.
    pub rule: Option<u32>,
    /// Page number of the object's first page.
    pub page: u64,
    /// Length of the object in pages.
    pub pages: u64,
    /// Number of the allocating thread, in order of creation.
    pub thread: u32,
    /// Number of reads and writes by memory node.
    pub accesses: Vec<u64>,
    /// Number of reads and writes, `[cpu_node][memory_node]`.
    pub matrix: Counts,
    /// Share of local accesses.
    pub local_fraction: f64,
}

impl LabRun {
    /// A label that distinguishes the run: its placement and, if runs differ in it, its command without folders.
    fn name(&self) -> String {
        let name = |word: &String| word.rsplit('/').next().unwrap_or_default().to_owned();
        let command = self.command.iter().flatten().map(name);
        std::iter::once(self.under.clone())
            .chain(command)
            .collect::<Vec<_>>()
            .join(" ")
    }
}

impl Experiment {
    /// All runs, as a slice even if there is only one.
    #[must_use]
    pub fn runs(&self) -> &[LabRun] {
        match &self.results {
            Results::One(run) => std::slice::from_ref(run),
            Results::Compared { runs } => runs,
        }
    }

    /// Pretty-printed JSON, ending in a newline.
    #[must_use]
    pub fn json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("plain structs serialize");
        text.push('\n');
        text
    }

    /// A sentence on how accesses were counted, with the warning that times are not those of hardware.
    fn method(&self) -> String {
        let mut runs = self.runs().iter().filter(|r| r.accesses.is_some());
        let counted = match runs.next() {
            None => "nothing was counted",
            Some(run) if !run.over_objects => "every user-mode read and write was counted",
            _ => "every user-mode read and write of the command's objects was counted",
        };
        format!(
            "{}, {}; {counted}. Times in there say nothing about NUMA.",
            self.linux, self.qemu
        )
    }

    /// Describes the guest, as in `machine-a: 8 nodes, 8 of 64 CPUs …`.
    fn place(&self) -> String {
        let nodes = crate::plural(self.nodes.len(), "node");
        let scale = self.scale.as_deref().map_or(String::new(), |s| format!(", {s}"));
        format!("{}: {nodes}{scale}", self.machine)
    }

    /// Indices of the nodes with CPUs, which are the rows of the matrices shown.
    fn readers(&self) -> Vec<usize> {
        let with = |(i, n): (usize, &Node)| (!n.cpus.is_empty()).then_some(i);
        self.nodes.iter().enumerate().filter_map(with).collect()
    }
}

/// For tests: two policies on four nodes, the last of which has no CPUs.
#[cfg(test)]
pub(crate) fn example() -> Experiment {
    let node = |n: u32| Node {
        node: n,
        cpus: if n < 3 { vec![2 * n, 2 * n + 1] } else { Vec::new() },
        memory_bytes: 256 << 20,
    };
    let run = |under: &str, accesses: Counts, local: f64| LabRun {
        under: under.to_owned(),
        accesses: Some(accesses),
        local_fraction: Some(local),
        reachable_fraction: Some(0.95),
        access_balance: Some(0.5),
        over_objects: true,
        elsewhere: Some(vec![vec![5, 0, 0, 0]; 4]),
        elsewhere_share: Some(0.02),
        pages: vec![512, 512, 512, 8],
        pages_migrated: Some(1234),
        hint_faults: Some(98_765),
        ..LabRun::default()
    };
    let local = vec![
        vec![300, 0, 0, 0],
        vec![0, 300, 0, 0],
        vec![0, 0, 300, 100],
        vec![0; 4],
    ];
    let even = vec![vec![50; 4], vec![50; 4], vec![49, 1, 50, 50], vec![0; 4]];
    Experiment {
        schema: SCHEMA,
        nodewise: "0".to_owned(),
        machine: "four<&>".to_owned(),
        title: "four nodes".to_owned(),
        scale: Some("6 of 12 CPUs".to_owned()),
        nodes: (0..4).map(node).collect(),
        linux: "Linux 6.1".to_owned(),
        qemu: "QEMU 7.2".to_owned(),
        boot_seconds: 3.0,
        command: vec!["./solve".to_owned(), "--size".to_owned(), "a b".to_owned()],
        bind: "compact".to_owned(),
        huge_pages: "always",
        results: Results::Compared {
            runs: vec![run("mixed:0.9", local, 0.9), run("interleave", even, 0.25)],
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Collects the names of all fields.
    fn keys(value: &serde_json::Value, into: &mut std::collections::BTreeSet<String>) {
        match value {
            serde_json::Value::Object(members) => members.iter().for_each(|(key, value)| {
                into.insert(key.clone());
                keys(value, into);
            }),
            serde_json::Value::Array(items) => items.iter().for_each(|v| keys(v, into)),
            _ => {}
        }
    }

    #[test]
    fn every_key_is_documented() {
        let page = include_str!("../../../docs/lab.md");
        let section = page.split_once("## JSON").unwrap().1;
        let section = section.split("\n## ").next().unwrap();
        let object = Object {
            process: 77,
            rule: Some(0),
            page: 1 << 33,
            pages: 1,
            thread: 0,
            accesses: vec![1],
            matrix: vec![vec![1]],
            local_fraction: 1.0,
        };
        let full = LabRun {
            command: Some(vec!["./solve".to_owned()]),
            objects: vec![object],
            placement: Some(Placement::default()),
            balance: Some(Balance::default()),
            ..example().runs()[0].clone()
        };
        let full = Experiment {
            results: Results::Compared { runs: vec![full] },
            ..example()
        };
        let mut real = std::collections::BTreeSet::new();
        keys(&serde_json::from_str(&full.json()).unwrap(), &mut real);
        let named =
            |key: &&String| section.contains(&format!("`{key}`")) || section.contains(&format!("`{key}[]`"));
        let missing: Vec<_> = real.iter().filter(|k| !named(k)).collect();
        assert!(
            missing.is_empty() && real.len() > 25,
            "not documented: {missing:?}"
        );
    }

    #[test]
    fn one_run_lies_flat_and_several_are_a_list() {
        let several = example();
        let read = |e: &Experiment| serde_json::from_str::<serde_json::Value>(&e.json()).unwrap();
        assert_eq!(read(&several)["runs"][1]["accesses"][2][1], 1);
        let one = Experiment {
            results: Results::One(Box::new(several.runs()[0].clone())),
            ..several
        };
        assert_eq!(read(&one)["accesses"][2][3], 100);
        assert!(read(&one).get("runs").is_none());
    }
}

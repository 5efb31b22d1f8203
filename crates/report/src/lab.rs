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

/// A command in a virtual machine.
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
    /// How it was scaled, in words; none: as it is.
    pub scale: Option<String>,
    /// Nodes as the guest had them.
    pub nodes: Vec<Node>,
    /// Version of the guest's kernel.
    pub linux: String,
    /// Version of QEMU, the emulator.
    pub qemu: String,
    /// From the emulator's start to the first instruction of user mode, seconds of the host.
    pub boot_seconds: f64,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// How threads were bound.
    pub bind: String,
    /// Where the kernel makes huge pages by itself: `always`, `madvise`, `never`.
    pub huge_pages: &'static str,
    /// What the runs came to.
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

/// One run lies flat in the JSON, several are a list.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Results {
    /// A single run under one placement.
    One(Box<Run>),
    /// The same command under each of several.
    Compared {
        /// In the order asked for.
        runs: Vec<Run>,
    },
}

/// Results of the command under one placement.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Run {
    /// The placement, as asked for.
    pub under: String,
    /// Its own program and arguments, where the runs differ in them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// The command's, as a shell gives it; none if it did not run to its end.
    pub exit_status: Option<u8>,
    /// Reads and writes of user mode; none without counters.
    pub accesses: Option<Counts>,
    /// Local accesses over all; none without accesses.
    pub local_fraction: Option<f64>,
    /// The same over time; empty without `--slice`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub slices: Vec<Slice>,
    /// What it would be with each page, all along, on the node that accessed it most.
    pub reachable_fraction: Option<f64>,
    /// Evenness over home nodes; none without accesses.
    pub access_balance: Option<f64>,
    /// Whether `accesses` are those of objects; else of everything the program touched.
    pub over_objects: bool,
    /// Accesses to other memory of the program; none without counters.
    pub elsewhere: Option<Counts>,
    /// `elsewhere` as a share of all accesses; none without accesses.
    pub elsewhere_share: Option<f64>,
    /// Touched pages of the objects by the node they ended on.
    pub pages: Vec<u64>,
    /// The result of placement; none if no pages were placed.
    pub placement: Option<Placement>,
    /// Pages the kernel moved to balance; none if it did not say.
    pub pages_migrated: Option<i64>,
    /// What the balancer did; none if there was none.
    pub balance: Option<Balance>,
    /// Faults the kernel took to learn who accesses what; none if it did not say.
    pub hint_faults: Option<i64>,
    /// What the guest's counters in `/proc/vmstat` rose by.
    pub kernel: BTreeMap<String, i64>,
    /// Objects with accesses, most accessed first.
    pub objects: Vec<Object>,
    /// What a reader of these figures must know.
    pub notes: Vec<String>,
}

/// A slice of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Slice {
    /// When it ended, seconds of the guest's clock after the run began.
    pub end_seconds: f64,
    /// Reads and writes of user mode, as `accesses` of the run.
    pub accesses: Counts,
    /// Local accesses over all; none without accesses.
    pub local_fraction: Option<f64>,
}

/// What `nodewise balance` says it did, of 4 KiB pages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Balance {
    /// Number of pages that it moved.
    pub pages_moved: u64,
    /// Number of moves that were carried out.
    pub migrations: u64,
    /// Pages that came back to where they were.
    pub ping_pongs: u64,
    /// Pages moved more than once without coming back.
    pub multiple: u64,
    /// Hinting faults it saw.
    pub samples: u64,
}

/// What `nodewise run` placed, as it read it back at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// By the rules of a map.
    #[serde(rename(deserialize = "total"))]
    pub rules: Placed,
    /// Placement of objects without a rule.
    pub default: Placed,
}

/// Objects, and pages wanted against got.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placed {
    /// Number of objects that were placed.
    pub objects: u64,
    /// Number of pages of these objects.
    pub pages: u64,
    /// Pages with memory when looked at.
    pub touched: u64,
    /// Of those, where they were wanted.
    pub right: u64,
    /// Pages wanted on each node.
    pub wanted: Vec<u64>,
    /// Pages with memory on each node.
    pub got: Vec<u64>,
}

/// An allocation, or a program's writable data.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Object {
    /// The process that has it.
    pub process: u32,
    /// The map's rule that placed it, from 0.
    pub rule: Option<u32>,
    /// Its first page's number.
    pub page: u64,
    /// Its length in pages.
    pub pages: u64,
    /// The allocating thread, by order of creation.
    pub thread: u32,
    /// Reads and writes by node of the memory.
    pub accesses: Vec<u64>,
    /// The same by node of the CPU too, as the run's.
    pub matrix: Counts,
    /// Local accesses over all.
    pub local_fraction: f64,
}

impl Run {
    /// What tells it from the others: the placement, and a command of its own without folders.
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
    /// The runs, whatever their number.
    #[must_use]
    pub fn runs(&self) -> &[Run] {
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

    /// Where and how it was counted; the clock's warning.
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

    /// `machine-a: 8 nodes, 8 of 64 CPUs …`.
    fn place(&self) -> String {
        let nodes = crate::plural(self.nodes.len(), "node");
        let scale = self.scale.as_deref().map_or(String::new(), |s| format!(", {s}"));
        format!("{}: {nodes}{scale}", self.machine)
    }

    /// Nodes with CPUs: the rows worth showing.
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
    let run = |under: &str, accesses: Counts, local: f64| Run {
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
        ..Run::default()
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

    /// The names of all fields.
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
        let full = Run {
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

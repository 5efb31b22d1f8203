//! Reads every shipped machine from what Linux showed in a virtual machine of that description (`nodewise lab
//! --capture`; kept in `zoo/` by `tests/lab-machines/run --write`), and checks that it agrees with the machine's file
//! as far as Linux shows it.

use nodewise_machine::{Machine, NodeId};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A machine as its file describes it, as the kernel's files, and as read from these.
struct Case {
    whole: Machine,
    files: BTreeMap<String, String>,
    read: Machine,
}

impl Case {
    fn of(name: &str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/zoo/{name}.txt"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let files = unpacked(&text);
        let root = Root::with(name, &files);
        Self {
            whole: Machine::named(name).unwrap(),
            read: Machine::from_sysfs(&root.0, "this").unwrap_or_else(|e| panic!("{name}: {e}")),
            files,
        }
    }

    fn of_node(&self, node: usize, file: &str) -> Option<&str> {
        let path = format!("devices/system/node/node{node}/{file}");
        self.files.get(&path).map(|text| text.trim())
    }

    fn distances(&self, node: usize) -> Vec<f64> {
        let row = self.of_node(node, "distance").unwrap().split_whitespace();
        row.map(|d| d.parse().unwrap()).collect()
    }

    /// The nearest node with CPUs, for which the HMAT states a memory's figures.
    fn initiator(&self, memory: NodeId) -> NodeId {
        let readers = self.whole.cpu_nodes();
        let latency = |r: &NodeId| self.whole.latency(*r, memory);
        let own = (!self.whole.nodes[memory.index()].cpus.is_empty()).then_some(memory);
        own.unwrap_or_else(|| readers.min_by(|a, b| latency(a).total_cmp(&latency(b))).unwrap())
    }
}

/// The files in a packed text: paths begin a line, contents are indented by a tab.
fn unpacked(text: &str) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    let mut path = String::new();
    for line in text.lines() {
        match line.strip_prefix('\t') {
            Some(content) => files
                .entry(path.clone())
                .or_insert_with(String::new)
                .extend([content, "\n"]),
            None => path = line.to_owned(),
        }
    }
    files
}

/// A folder for a copy of sysfs, removed at the end.
struct Root(PathBuf);

impl Root {
    fn with(name: &str, files: &BTreeMap<String, String>) -> Self {
        let root = std::env::temp_dir().join(format!("nodewise-zoo-{name}-{}", std::process::id()));
        for (file, text) in files {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Self(root)
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A single test for all machines, so that no other test creates or removes their folders at the same time.
#[test]
fn every_shipped_machine_is_read_from_what_linux_shows_of_it() {
    for name in Machine::names() {
        let case = Case::of(name);
        nodes_cpus_and_memory(name, &case);
        distances(name, &case);
        local_figures(name, &case);
        let saved = Machine::parse(&case.read.to_toml(), "saved").unwrap();
        assert_eq!(saved, case.read, "{name}");
    }
}

fn nodes_cpus_and_memory(name: &str, case: &Case) {
    let (read, whole) = (&case.read, &case.whole);
    assert_eq!(read.node_count(), whole.node_count(), "{name}");
    let total = |m: &Machine| m.nodes.iter().map(|n| n.memory).sum::<u64>() as f64;
    for (index, (shown, was)) in read.nodes.iter().zip(&whole.nodes).enumerate() {
        assert_eq!(shown.os_index as usize, index, "{name}");
        assert_eq!(shown.cpus.is_empty(), was.cpus.is_empty(), "{name}: node {index}");
        // The kernel reserves part of the first node's memory; small nodes have a minimum size.
        let (part, wanted) = (
            shown.memory as f64 / total(read),
            was.memory as f64 / total(whole),
        );
        assert!(
            (part - wanted).abs() < 0.06,
            "{name}: node {index} has {part} of the memory, not {wanted}"
        );
    }
    let order = |m: &Machine| {
        let mut nodes: Vec<NodeId> = m.cpus().into_iter().map(|(_, node)| node).collect();
        nodes.dedup();
        nodes
    };
    let contiguous = order(whole).len() == whole.cpu_nodes().count();
    assert_eq!(
        order(read).len() == read.cpu_nodes().count(),
        contiguous || read.cpus().len() == read.cpu_nodes().count(),
        "{name}: CPUs are numbered node by node, or not, as they were"
    );
}

/// The kernel shows one row per node: latencies relative to the node's own, 10 for local, at most 254.
fn distances(name: &str, case: &Case) {
    for reader in case.whole.node_ids() {
        let row = case.distances(reader.index());
        for memory in case.whole.node_ids() {
            let relative = case.whole.latency(reader, memory) / case.whole.latency(reader, reader);
            let wanted = match reader == memory {
                true => 10.0,
                false => (10.0 * relative).round().clamp(11.0, 254.0),
            };
            assert_eq!(row[memory.index()], wanted, "{name}: from {reader} to {memory}");
        }
    }
}

/// HMAT: the figures of each memory as seen by its nearest CPUs. Linux shows no others.
fn local_figures(name: &str, case: &Case) {
    for memory in case.whole.node_ids() {
        let shown = |file: &str| -> Option<f64> {
            let text = case.of_node(memory.index(), &format!("access0/initiators/{file}"))?;
            text.parse().ok()
        };
        let initiator = case.initiator(memory);
        let latency = case.whole.latency(initiator, memory);
        let read = shown("read_latency").unwrap_or_else(|| panic!("{name}: no latency of {memory}"));
        assert!(
            (read - latency).abs() <= 1.0,
            "{name}: {memory}: {read} ns, not {latency}"
        );
        let bandwidth = case.whole.route(initiator, memory).bandwidth;
        let read = shown("read_bandwidth").unwrap_or_else(|| panic!("{name}: no bandwidth of {memory}"));
        assert!(
            (read / bandwidth - 1.0).abs() < 0.02,
            "{name}: {memory}: {read} MB/s, not {bandwidth}"
        );
        assert_eq!(
            case.read.latency(initiator, memory).round(),
            read_latency(case, memory),
            "{name}"
        );
    }
}

fn read_latency(case: &Case, memory: NodeId) -> f64 {
    let text = case
        .of_node(memory.index(), "access0/initiators/read_latency")
        .unwrap();
    text.parse().unwrap()
}

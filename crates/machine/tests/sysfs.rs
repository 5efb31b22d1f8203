//! Reads machines from copies of sysfs files as kernels show them.

use nodewise_machine::{Machine, MachineError, NodeId};
use std::path::PathBuf;

/// A copy of sysfs in a folder of its own, which is removed at the end.
struct Sysfs(PathBuf);

impl Sysfs {
    fn new(test: &str) -> Self {
        let root = std::env::temp_dir().join(format!("nodewise-sysfs-{test}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&root);
        Self(root)
    }

    fn with(self, file: &str, text: &str) -> Self {
        let path = self.0.join("devices/system").join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    fn node(self, index: u32, cpus: &str, kilobytes: u64, distances: &str) -> Self {
        let meminfo =
            format!("Node {index} MemTotal:       {kilobytes} kB\nNode {index} MemFree:        1 kB\n");
        let folder = format!("node/node{index}");
        self.with(&format!("{folder}/cpulist"), &format!("{cpus}\n"))
            .with(&format!("{folder}/meminfo"), &meminfo)
            .with(&format!("{folder}/distance"), &format!("{distances}\n"))
    }

    fn machine(&self) -> Result<Machine, MachineError> {
        Machine::from_sysfs(&self.0, "this")
    }
}

impl Drop for Sysfs {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn assumed(machine: &Machine, field: &str) -> bool {
    machine.sources.iter().any(|s| s.field == field && s.assumed)
}

#[test]
fn gaps_are_closed_and_the_kernels_numbers_kept() {
    let sysfs = Sysfs::new("gaps")
        .with("node/online", "0,2,7\n")
        .node(0, "0-1,6", 1 << 20, "10 20 30")
        .node(2, "2-3", 1 << 20, "20 10 20")
        .node(7, "4-5", 2 << 20, "30 20 10");
    let machine = sysfs.machine().unwrap();
    assert_eq!(
        machine.nodes.iter().map(|n| n.os_index).collect::<Vec<_>>(),
        [0, 2, 7]
    );
    assert_eq!(machine.nodes[0].cpus.len(), 3);
    assert_eq!(machine.nodes[2].memory, 2 << 30);
    assert_eq!(machine.numa_factor(), 3.0);
    assert_eq!(machine.links.len(), 6);
    assert!(
        ["latency_ns", "bandwidth", "links"]
            .iter()
            .all(|field| assumed(&machine, field))
    );
    assert_eq!(Machine::parse(&machine.to_toml(), "saved").unwrap(), machine);
}

#[test]
fn memory_without_cpus_is_a_node_and_hmat_gives_its_figures() {
    let sysfs = Sysfs::new("hmat")
        .with("node/online", "0-2\n")
        .node(0, "0-3", 8 << 20, "10 21 17")
        .node(1, "4-7", 8 << 20, "21 10 28")
        .node(2, "", 16 << 20, "17 28 10");
    let sysfs = [(0, "80", "100000"), (1, "80", "100000"), (2, "250", "30000")]
        .iter()
        .fold(sysfs, |sysfs, (node, latency, bandwidth)| {
            let folder = format!("node/node{node}/access0/initiators");
            sysfs
                .with(&format!("{folder}/read_latency"), &format!("{latency}\n"))
                .with(&format!("{folder}/read_bandwidth"), &format!("{bandwidth}\n"))
        });
    let machine = sysfs.machine().unwrap();
    assert_eq!(machine.cpu_nodes().collect::<Vec<_>>(), [NodeId(0), NodeId(1)]);
    assert_eq!(machine.latency(NodeId(0), NodeId(0)), 80.0);
    assert_eq!(
        machine.latency(NodeId(0), NodeId(2)),
        250.0,
        "the nearest CPUs see the stated latency"
    );
    assert!((machine.latency(NodeId(1), NodeId(2)) - 250.0 * 28.0 / 17.0).abs() < 1e-9);
    assert_eq!(machine.nodes[2].bandwidth, 30_000.0);
    assert!(!assumed(&machine, "bandwidth") && assumed(&machine, "latency_ns"));
}

#[test]
fn cpus_of_a_node_without_memory_go_to_the_nearest_that_has_some() {
    let sysfs = Sysfs::new("memoryless")
        .with("node/online", "0-2\n")
        .node(0, "0-1", 1 << 20, "10 20 40")
        .node(1, "2-3", 1 << 20, "20 10 20")
        .node(2, "4-5", 0, "40 20 10");
    let machine = sysfs.machine().unwrap();
    assert_eq!(machine.node_count(), 2);
    assert_eq!(
        machine.nodes[1].cpus.iter().map(|c| c.0).collect::<Vec<_>>(),
        [2, 3, 4, 5]
    );
}

#[test]
fn a_kernel_without_numa_is_one_node() {
    let machine = Sysfs::new("flat").with("cpu/online", "0-7\n").machine().unwrap();
    assert_eq!(
        (machine.node_count(), machine.cpus().len(), machine.numa_factor()),
        (1, 8, 1.0)
    );
}

#[test]
fn sixty_four_nodes_are_read() {
    let row = vec!["10"; 64].join(" ");
    let sysfs = (0..64).fold(Sysfs::new("many").with("node/online", "0-63\n"), |sysfs, n| {
        sysfs.node(n, &format!("{n}"), 1 << 20, &row)
    });
    assert_eq!(sysfs.machine().unwrap().links.len(), 64 * 63);
}

#[test]
fn a_memory_side_cache_is_said() {
    let sysfs = Sysfs::new("cached")
        .with("node/online", "0\n")
        .node(0, "0-1", 8 << 20, "10")
        .with("node/node0/memory_side_cache/index1/size", "17179869184\n");
    let machine = sysfs.machine().unwrap();
    let said = machine.sources.iter().find(|s| s.field == "nodes.cache").unwrap();
    assert!(
        said.assumed
            && said
                .text
                .starts_with("memory-side caches, 16G of node 0, are not predicted"),
        "{}",
        said.text
    );
    assert!(!machine.has_memory_side_caches(), "nothing says what it delivers");
}

#[test]
fn what_is_missing_or_odd_is_named() {
    let error = Sysfs::new("none").machine().unwrap_err().to_string();
    assert!(error.contains("cpu/online"), "{error}");
    let short = Sysfs::new("short")
        .with("node/online", "0-1\n")
        .node(0, "0", 1, "10")
        .node(1, "1", 1, "20 10");
    let error = short.machine().unwrap_err().to_string();
    assert!(
        error.contains("node0/distance") && error.contains("2 distances"),
        "{error}"
    );
}

#[test]
fn this_host_is_a_machine() {
    let machine = Machine::load("this").unwrap();
    assert!(machine.node_count() >= 1 && !machine.cpus().is_empty());
}

#[test]
fn packages_and_dax_devices_say_what_memory_belongs_to_and_is() {
    let sysfs = Sysfs::new("kinds")
        .with("node/online", "0-4\n")
        .node(0, "0-1", 8 << 20, "10 21 14 31 31")
        .node(1, "2-3", 8 << 20, "21 10 31 14 30")
        .node(2, "", 16 << 20, "14 31 10 31 31")
        .node(3, "", 16 << 20, "31 14 31 10 31")
        .node(4, "", 16 << 20, "31 30 31 31 10")
        .with("cpu/cpu0/topology/physical_package_id", "0\n")
        .with("cpu/cpu2/topology/physical_package_id", "1\n");
    let bus = sysfs.0.join("bus/dax/devices");
    std::fs::create_dir_all(&bus).unwrap();
    for (name, below, node) in [
        (
            "dax0.0",
            "platform/ACPI0017:00/root0/decoder0.0/region0/dax_region0",
            2,
        ),
        ("dax1.0", "LNXSYSTM:00/ndbus0/region1/dax1.0", 3),
        ("dax2.0", "platform/hmem.0", 4),
    ] {
        let device = sysfs.0.join("devices").join(below).join(name);
        std::fs::create_dir_all(&device).unwrap();
        std::fs::write(device.join("target_node"), format!("{node}\n")).unwrap();
        std::os::unix::fs::symlink(&device, bus.join(name)).unwrap();
    }
    let machine = sysfs.machine().unwrap();
    let kinds: Vec<String> = machine
        .nodes
        .iter()
        .map(|n| n.kind.map_or("?".to_owned(), |k| k.to_string()))
        .collect();
    assert_eq!(kinds, ["dram", "dram", "cxl", "persistent", "?"]);
    let sockets: Vec<Option<u32>> = machine.nodes.iter().map(|n| n.socket).collect();
    assert_eq!(sockets, [Some(0), Some(1), Some(0), Some(1), Some(1)]);
    assert_eq!(Machine::parse(&machine.to_toml(), "saved").unwrap(), machine);
}

#[test]
fn a_package_that_the_kernel_does_not_know_is_none() {
    let sysfs = Sysfs::new("package")
        .with("node/online", "0\n")
        .node(0, "0", 1 << 20, "10")
        .with("cpu/cpu0/topology/physical_package_id", "-1\n");
    let node = &sysfs.machine().unwrap().nodes[0];
    assert_eq!((node.socket, node.kind), (None, None));
}

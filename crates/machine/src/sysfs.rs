//! Reads a machine from the kernel's view of this host, below an injected root.
//!
//! The kernel knows nodes, CPUs, memory and relative distances, and where the firmware has an HMAT
//! (ACPI 6.2) the latency and bandwidth between a memory node and its nearest CPUs. It never knows
//! links or routes. What is missing is filled in and marked as assumed.

use crate::text::{format_bytes, parse_list};
use crate::{CpuId, ErrorKind, Link, LinkId, Machine, MachineError, MemoryKind, Node, NodeId, Route, Source};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Assumed local latency if it is not known, ns: servers of the last ten years have between 75 and 140.
const LOCAL_NS: f64 = 100.0;
/// Assumed bandwidth of a node if it is not known, MB/s: two to three channels of DDR4.
const NODE_BANDWIDTH: f64 = 50_000.0;

impl Machine {
    /// The host whose sysfs is mounted at `root` (`/sys` on a live system). CPUs of a node without memory are assigned
    /// to the nearest node that has memory.
    ///
    /// # Errors
    /// A node's files are missing or cannot be understood.
    pub fn from_sysfs(root: &Path, name: &str) -> Result<Self, MachineError> {
        let sysfs = Sysfs { root };
        let all = sysfs.nodes()?;
        let distances = sysfs.distances(&all)?;
        let (mut nodes, distances) = with_memory(all, &distances);
        set_kinds(&mut nodes, &sysfs.dax_nodes());
        set_sockets(&mut nodes, &distances);
        let latency_ns = latencies(&nodes, &distances);
        let (links, routes) = crossbar(&nodes, &latency_ns);
        let machine = Self {
            name: name.to_owned(),
            title: "this host, as its kernel shows it".to_owned(),
            page_size: 4096,
            sources: sources(&nodes),
            nodes: nodes.into_iter().map(|n| n.node).collect(),
            latency_ns,
            links,
            routes,
            hop_rules: Vec::new(),
            backplane: None,
        };
        machine
            .validate()
            .map_err(|e| e.at(&root.display().to_string()))?;
        Ok(machine)
    }
}

/// A private link for each ordered pair. A remote reader's bandwidth is the memory's own, reduced in the ratio of local
/// to remote latency.
fn crossbar(nodes: &[SysfsNode], latency_ns: &[Vec<f64>]) -> (Vec<Link>, Vec<Vec<Route>>) {
    let count = nodes.len();
    let mut links = Vec::new();
    let mut routes = vec![vec![Route::default(); count]; count];
    for (memory, found) in nodes.iter().enumerate() {
        let nearest = latency_ns
            .iter()
            .map(|row| row[memory])
            .fold(f64::INFINITY, f64::min);
        for (reader, row) in routes.iter_mut().enumerate() {
            let bandwidth = (found.node.bandwidth * nearest / latency_ns[reader][memory]).round();
            row[memory].bandwidth = bandwidth;
            if reader != memory {
                row[memory].links.push(LinkId(links.len() as u32));
                let (from, to) = (NodeId(memory as u32), NodeId(reader as u32));
                links.push(Link {
                    from,
                    to,
                    bandwidth,
                    class: None,
                });
            }
        }
    }
    (links, routes)
}

/// The nodes that have memory, including the CPUs of nodes that have none, and the distances among them.
fn with_memory(all: Vec<SysfsNode>, distances: &[Vec<f64>]) -> (Vec<SysfsNode>, Vec<Vec<f64>>) {
    let kept: Vec<usize> = (0..all.len()).filter(|n| all[*n].node.memory > 0).collect();
    if kept.is_empty() {
        return (all, distances.to_vec());
    }
    let nearest = |n: usize| {
        kept.iter()
            .copied()
            .min_by(|a, b| distances[n][*a].total_cmp(&distances[n][*b]))
    };
    let mut cpus: Vec<Vec<CpuId>> = vec![Vec::new(); all.len()];
    let mut sockets: Vec<Option<u32>> = all.iter().map(|found| found.node.socket).collect();
    for (n, found) in all.iter().enumerate() {
        let kept = nearest(n).unwrap_or(n);
        cpus[kept].extend(&found.node.cpus);
        sockets[kept] = sockets[kept].or(found.node.socket);
    }
    let mut nodes: Vec<SysfsNode> = all.into_iter().filter(|f| f.node.memory > 0).collect();
    for (found, n) in nodes.iter_mut().zip(&kept) {
        found.node.cpus = std::mem::take(&mut cpus[*n]);
        found.node.cpus.sort_unstable();
        found.node.socket = sockets[*n];
    }
    let row = |r: &usize| kept.iter().map(|m| distances[*r][*m]).collect();
    (nodes, kept.iter().map(row).collect())
}

/// The kind of each node. Memory with CPUs is DRAM where there is other memory, too (else it may be HBM alone); memory
/// behind a DAX device is what the device is; what the firmware set aside without saying what it is (`hmem`) is HBM if
/// its bandwidth is higher than that of all nodes with CPUs. Others stay unknown.
fn set_kinds(nodes: &mut [SysfsNode], dax: &BTreeMap<u32, MemoryKind>) {
    let with_cpus = nodes.iter().filter(|n| !n.node.cpus.is_empty());
    let widest = with_cpus
        .map(|n| {
            if n.hmat_bandwidth {
                n.node.bandwidth
            } else {
                f64::INFINITY
            }
        })
        .fold(0.0, f64::max);
    let has_others = nodes.iter().any(|n| n.node.cpus.is_empty());
    for found in nodes {
        let node = &mut found.node;
        let is_wider = found.hmat_bandwidth && node.bandwidth > widest;
        node.kind = match node.cpus.is_empty() {
            false => has_others.then_some(MemoryKind::Dram),
            true => dax
                .get(&node.os_index)
                .copied()
                .or(is_wider.then_some(MemoryKind::Hbm)),
        };
    }
}

/// Memory without CPUs belongs to the socket of the nearest node with CPUs.
fn set_sockets(nodes: &mut [SysfsNode], distances: &[Vec<f64>]) {
    for n in 0..nodes.len() {
        if nodes[n].node.cpus.is_empty() {
            let with_cpus = (0..nodes.len()).filter(|r| !nodes[*r].node.cpus.is_empty());
            let nearest = with_cpus.min_by(|a, b| distances[*a][n].total_cmp(&distances[*b][n]));
            nodes[n].node.socket = nearest.and_then(|r| nodes[r].node.socket);
        }
    }
}

/// Latencies from distances: a memory's nearest CPUs have its local latency, others a larger one in proportion to their
/// distance.
fn latencies(nodes: &[SysfsNode], distances: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let latency = |reader: usize, memory: usize| {
        let readers = (0..nodes.len()).filter(|r| !nodes[*r].node.cpus.is_empty());
        let nearest = readers
            .map(|r| distances[r][memory])
            .fold(f64::INFINITY, f64::min);
        // A distance of 10 is local by definition (ACPI 6.5, 5.2.17).
        let nearest_ns = nodes[memory].hmat_ns.unwrap_or(LOCAL_NS * nearest / 10.0);
        nearest_ns * distances[reader][memory] / nearest
    };
    (0..nodes.len())
        .map(|r| (0..nodes.len()).map(|m| latency(r, m)).collect())
        .collect()
}

/// A node, with what the firmware says about it.
struct SysfsNode {
    node: Node,
    /// Read latency from its nearest CPUs, ns.
    hmat_ns: Option<f64>,
    /// Whether the firmware stated [`Node::bandwidth`].
    hmat_bandwidth: bool,
    /// Size of the memory-side cache in front of it, bytes.
    cache: Option<u64>,
}

struct Sysfs<'a> {
    root: &'a Path,
}

impl Sysfs<'_> {
    fn path(&self, below: &str) -> PathBuf {
        self.root.join("devices/system").join(below)
    }

    fn text(&self, below: &str) -> Result<String, MachineError> {
        let path = self.path(below);
        let text = std::fs::read_to_string(&path);
        text.map_err(|e| {
            MachineError::new(
                ErrorKind::Unreadable,
                format!("cannot read {}: {e}", path.display()),
            )
        })
    }

    fn list(&self, below: &str) -> Result<Vec<u32>, MachineError> {
        let text = self.text(below)?;
        let odd = || {
            MachineError::invalid(format!(
                "{} holds {text:?}, not a list",
                self.path(below).display()
            ))
        };
        parse_list(&text).ok_or_else(odd)
    }

    /// All online nodes, ascending; one node for kernels without NUMA, which show none.
    fn nodes(&self) -> Result<Vec<SysfsNode>, MachineError> {
        if !self.path("node/online").exists() {
            let cpus = self.list("cpu/online")?;
            return Ok(vec![found(0, cpus, 0, None, None)]);
        }
        self.list("node/online")?
            .into_iter()
            .map(|n| self.node(n))
            .collect()
    }

    fn node(&self, index: u32) -> Result<SysfsNode, MachineError> {
        let cpus = self.list(&format!("node/node{index}/cpulist"))?;
        let meminfo = self.text(&format!("node/node{index}/meminfo"))?;
        let total = meminfo.lines().find_map(|line| line.split_once("MemTotal:"));
        let kilobytes = total.and_then(|(_, rest)| rest.split_whitespace().next()?.parse::<u64>().ok());
        let hmat = |what: &str| {
            // Class 1 is of the nearest CPUs, class 0 of the nearest initiator, which may be a GPU (Linux, numaperf.rst).
            let of = |class: u32| {
                let below = format!("node/node{index}/access{class}/initiators/{what}");
                let text = self.text(&below).ok()?;
                text.trim().parse::<f64>().ok().filter(|v| *v > 0.0)
            };
            of(1).or_else(|| of(0))
        };
        let package = cpus.first().and_then(|cpu| {
            let text = self
                .text(&format!("cpu/cpu{cpu}/topology/physical_package_id"))
                .ok()?;
            text.trim().parse().ok()
        });
        let mut found = found(
            index,
            cpus,
            kilobytes.unwrap_or(0) * 1024,
            hmat("read_latency"),
            hmat("read_bandwidth"),
        );
        found.node.socket = package;
        found.cache = self
            .text(&format!("node/node{index}/memory_side_cache/index1/size"))
            .ok()
            .and_then(|size| size.trim().parse().ok())
            .filter(|size| *size > 0);
        Ok(found)
    }

    /// Nodes whose memory is behind a DAX device, by the bus on which the device hangs.
    fn dax_nodes(&self) -> BTreeMap<u32, MemoryKind> {
        let devices = std::fs::read_dir(self.root.join("bus/dax/devices"));
        let kind = |entry: std::fs::DirEntry| {
            let target = std::fs::read_to_string(entry.path().join("target_node")).ok()?;
            let target = target.trim().parse().ok()?;
            // /sys/devices/platform/ACPI0017:00/root0/decoder0.0/region0/dax_region0/dax0.0 for CXL,
            // …/ndbus0/region0/dax0.0/dax0.0 for persistent memory.
            let on = entry.path().canonicalize().ok()?;
            let on = on.to_string_lossy();
            match () {
                () if on.contains("/ndbus") => Some((target, MemoryKind::Persistent)),
                () if on.contains("/ACPI0017") || on.contains("/dax_region") => {
                    Some((target, MemoryKind::Cxl))
                }
                () => None,
            }
        };
        devices.into_iter().flatten().flatten().filter_map(kind).collect()
    }

    fn distances(&self, nodes: &[SysfsNode]) -> Result<Vec<Vec<f64>>, MachineError> {
        if let [_] = nodes {
            return Ok(vec![vec![10.0]]);
        }
        let row = |found: &SysfsNode| {
            let below = format!("node/node{}/distance", found.node.os_index);
            let row: Vec<f64> = self
                .text(&below)?
                .split_whitespace()
                .filter_map(|d| d.parse().ok())
                .collect();
            if row.len() == nodes.len() && row.iter().all(|d| *d > 0.0) {
                return Ok(row);
            }
            Err(MachineError::invalid(format!(
                "{} does not hold {} distances",
                self.path(&below).display(),
                nodes.len()
            )))
        };
        nodes.iter().map(row).collect()
    }
}

fn found(
    index: u32,
    cpus: Vec<u32>,
    memory: u64,
    hmat_ns: Option<f64>,
    hmat_bandwidth: Option<f64>,
) -> SysfsNode {
    let node = Node {
        os_index: index,
        cpus: cpus.into_iter().map(CpuId).collect(),
        memory,
        bandwidth: hmat_bandwidth.unwrap_or(NODE_BANDWIDTH),
        kind: None,
        socket: None,
        cache: None,
    };
    SysfsNode {
        node,
        hmat_ns,
        hmat_bandwidth: hmat_bandwidth.is_some(),
        cache: None,
    }
}

fn sources(nodes: &[SysfsNode]) -> Vec<Source> {
    let mut all = vec![
        Source::stated("nodes", "sysfs: node lists, CPU lists, memory"),
        Source::assumed("page_size", "4 KiB, the common base page"),
    ];
    all.push(if nodes.iter().all(|n| n.hmat_ns.is_some()) {
        Source::assumed(
            "latency_ns",
            "HMAT for the nearest CPUs; further ones in proportion to the distance table",
        )
    } else {
        Source::assumed(
            "latency_ns",
            &format!("{LOCAL_NS} ns locally, remote in proportion to the distance table"),
        )
    });
    all.push(if nodes.iter().all(|n| n.hmat_bandwidth) {
        Source::stated("bandwidth", "HMAT, read bandwidth from the nearest CPUs")
    } else {
        Source::assumed(
            "bandwidth",
            &format!("{NODE_BANDWIDTH} MB/s a node; the kernel does not say"),
        )
    });
    let cached = |n: &SysfsNode| Some(format!("{} of node {}", format_bytes(n.cache?), n.node.os_index));
    let cached: Vec<String> = nodes.iter().filter_map(cached).collect();
    if !cached.is_empty() {
        let figures = match nodes.iter().any(|n| n.hmat_ns.is_some() || n.hmat_bandwidth) {
            true => "of the memory behind it",
            false => "of neither",
        };
        all.push(Source::assumed(
            "nodes.cache",
            &format!(
                "memory-side caches, {}, are not predicted: the kernel does not say what they deliver (`nodes.cache` in a file does), and \
                 the figures here are {figures}",
                cached.join(", ")
            ),
        ));
    }
    if nodes.len() > 1 {
        all.push(Source::assumed("links", "a private link per ordered pair, narrower in proportion to the latency; the kernel does not know links"));
    }
    all.sort_by(|a, b| (a.assumed, &a.field).cmp(&(b.assumed, &b.field)));
    all
}

//! Builds a machine from a file's entries, and derives the parts that the file leaves out.

use crate::file::{CacheEntry, HitLatency, LinkEntry, MachineFile, NodeEntry};
use crate::hops::way_bandwidth;
use crate::listed::RouteEntry;
use crate::routing::{SharedLink, shortest_paths};
use crate::text::{parse_bytes, parse_list};
use crate::validation::{positive, square};
use crate::{CpuId, Link, Machine, MachineError, MemoryCache, Node, NodeId, Route, Source};
use std::collections::BTreeSet;

impl MachineFile {
    pub(crate) fn into_machine(self) -> Result<Machine, MachineError> {
        self.check_shapes()?;
        let nodes = self.nodes()?;
        let links = self.shared_links()?;
        let page_size = parse_bytes(&self.page_size).ok_or_else(|| {
            MachineError::invalid(format!("page_size {:?} is not a size such as 4K", self.page_size))
        })?;
        let machine = Machine {
            page_size,
            routes: self.routes(&links, &nodes)?,
            links: links.iter().map(SharedLink::shown).collect(),
            nodes,
            sources: self.sources(),
            hop_rules: self.hop_rules,
            latency_ns: self.latency_ns,
            backplane: self.backplane,
            name: self.name,
            title: self.title,
        };
        machine.validate()?;
        Ok(machine)
    }

    fn check_shapes(&self) -> Result<(), MachineError> {
        let count = self.nodes.len();
        if count == 0 {
            return Err(MachineError::invalid("a machine needs at least one node"));
        }
        let matrices = [
            ("latency_ns", Some(&self.latency_ns)),
            ("bandwidth", self.bandwidth.as_ref()),
        ];
        for (what, matrix) in matrices.iter().filter_map(|(what, m)| Some((what, (*m)?))) {
            if !square(matrix, count) {
                return Err(MachineError::invalid(format!(
                    "{what} must be {count} rows of {count}, as there are {count} nodes"
                )));
            }
            positive(matrix.iter().flatten().copied(), what)?;
        }
        self.check_routes(count)?;
        for (index, link) in self.links.iter().enumerate() {
            positive([link.bandwidth], "a link's bandwidth").map_err(|e| e.at(&format!("links[{index}]")))?;
        }
        for (index, route) in self.routes.iter().enumerate() {
            positive(route.bandwidth, "a route's bandwidth")
                .map_err(|e| e.at(&format!("routes[{index}]")))?;
        }
        Ok(())
    }

    fn check_routes(&self, count: usize) -> Result<(), MachineError> {
        let mut seen = BTreeSet::new();
        for (index, route) in self.routes.iter().enumerate() {
            let wrong = |what: &str| Err(MachineError::invalid(format!("routes[{index}]: {what}")));
            if route.from == route.to || route.from.max(route.to) as usize >= count {
                return wrong("must lead between different nodes of the machine");
            }
            if !seen.insert((route.from, route.to)) {
                return wrong(&format!("from {} to {} is given twice", route.from, route.to));
            }
            if route.returns() {
                return wrong("passes a node twice");
            }
        }
        Ok(())
    }

    fn nodes(&self) -> Result<Vec<Node>, MachineError> {
        let matrix = |index: usize| Some(self.bandwidth.as_ref()?[index][index]);
        let node = |(index, entry): (usize, &NodeEntry)| {
            node(entry, index, matrix(index), &self.latency_ns).map_err(|e| e.at(&format!("nodes[{index}]")))
        };
        self.nodes.iter().enumerate().map(node).collect()
    }

    fn sources(&self) -> Vec<Source> {
        let stated = self.sources.iter().map(|(f, t)| Source::stated(f, t));
        let assumed = self.assumed.iter().map(|(f, t)| Source::assumed(f, t));
        let mut all: Vec<Source> = stated.chain(assumed).collect();
        if self.links.is_empty() && self.nodes.len() > 1 && !all.iter().any(|s| s.field == "links") {
            let text = "a private link per ordered pair, as wide as the pair's bandwidth";
            all.push(Source::assumed("links", text));
        }
        all
    }

    /// The links as listed; without a list, one link for each ordered pair, with the bandwidth in the matrix.
    fn shared_links(&self) -> Result<Vec<SharedLink>, MachineError> {
        let count = self.nodes.len();
        match &self.bandwidth {
            _ if !self.links.is_empty() => {
                let listed = self.links.iter().enumerate().map(|(index, entry)| {
                    listed_links(entry, count).map_err(|e| e.at(&format!("links[{index}]")))
                });
                Ok(listed.collect::<Result<Vec<_>, _>>()?.concat())
            }
            _ if count == 1 => Ok(Vec::new()),
            Some(bandwidth) => Ok(crossbar(bandwidth)),
            None => Err(MachineError::invalid(
                "needs `links` or a `bandwidth` matrix to know what crosses between nodes",
            )),
        }
    }

    /// Routes `[reader][memory]`. A route's links are those of its entry, else the path with fewest links. Its
    /// bandwidth is that of its entry, else that in the matrix, else what links, hop rules, backplane and memory
    /// permit.
    fn routes(&self, links: &[SharedLink], nodes: &[Node]) -> Result<Vec<Vec<Route>>, MachineError> {
        let shown: Vec<Link> = links.iter().map(SharedLink::shown).collect();
        let count = nodes.len();
        let mut routes = vec![vec![Route::default(); count]; count];
        for memory in 0..count {
            let mut shortest = shortest_paths(links, count, NodeId(memory as u32));
            for (reader, row) in routes.iter_mut().enumerate() {
                let listed = self.listed_route(reader, memory);
                let route = &mut row[memory];
                route.links = match listed {
                    Some((index, entry)) => {
                        entry.path(links).map_err(|e| e.at(&format!("routes[{index}]")))?
                    }
                    None => shortest[reader]
                        .take()
                        .ok_or_else(|| unreachable(memory, reader))?,
                };
                let way: Vec<&Link> = route.links.iter().map(|l| &shown[l.0 as usize]).collect();
                let shared = self
                    .backplane
                    .filter(|_| reader != memory)
                    .unwrap_or(f64::INFINITY);
                let carried = way_bandwidth(&way, &self.hop_rules)
                    .min(shared)
                    .min(nodes[memory].widest());
                let matrix = self.bandwidth.as_ref().map(|b| b[reader][memory]);
                route.bandwidth = listed
                    .and_then(|(_, r)| r.bandwidth)
                    .or(matrix)
                    .unwrap_or(carried);
            }
        }
        Ok(routes)
    }

    fn listed_route(&self, reader: usize, memory: usize) -> Option<(usize, &RouteEntry)> {
        let same = |r: &&RouteEntry| r.to as usize == reader && r.from as usize == memory;
        let index = self.routes.iter().position(|r| same(&r))?;
        Some((index, &self.routes[index]))
    }
}

fn node(
    entry: &NodeEntry,
    index: usize,
    matrix: Option<f64>,
    latency_ns: &[Vec<f64>],
) -> Result<Node, MachineError> {
    let cpus = parse_list(&entry.cpus)
        .ok_or_else(|| MachineError::invalid(format!("CPU list {:?} cannot be read", entry.cpus)))?;
    let memory = parse_bytes(&entry.memory)
        .ok_or_else(|| MachineError::invalid(format!("memory {:?} cannot be read", entry.memory)))?;
    let bandwidth = entry.bandwidth.or(matrix);
    Ok(Node {
        os_index: entry.os_index.unwrap_or(index as u32),
        cpus: cpus.into_iter().map(CpuId).collect(),
        memory,
        bandwidth: bandwidth
            .ok_or_else(|| MachineError::invalid("needs a bandwidth, there or in the bandwidth matrix"))?,
        kind: entry.kind,
        socket: entry.socket,
        cache: entry
            .cache
            .as_ref()
            .map(|entry| cache(entry, index, latency_ns))
            .transpose()?,
    })
}

/// The cache of node `index`, if its memory has these latencies `[reader][memory]`.
fn cache(entry: &CacheEntry, index: usize, latency_ns: &[Vec<f64>]) -> Result<MemoryCache, MachineError> {
    let memory = parse_bytes(&entry.memory).ok_or_else(|| {
        MachineError::invalid(format!("a cache of {:?} is no size such as 16G", entry.memory))
    })?;
    Ok(MemoryCache {
        memory,
        bandwidth: entry.bandwidth,
        latency_ns: match &entry.latency_ns {
            HitLatency::Own(own) => {
                let further = latency_ns.iter().map(|row| row[index] - latency_ns[index][index]);
                further.map(|further| own + further).collect()
            }
            HitLatency::ByReader(all) => all.clone(),
        },
    })
}

/// One private link for each ordered pair, with the bandwidths of the matrix `[reader][memory]`.
fn crossbar(bandwidth: &[Vec<f64>]) -> Vec<SharedLink> {
    let count = bandwidth.len();
    let pairs = (0..count)
        .flat_map(|m| (0..count).map(move |r| (m, r)))
        .filter(|(m, r)| m != r);
    let link = |(memory, reader): (usize, usize)| SharedLink {
        from: vec![NodeId(memory as u32)],
        to: vec![NodeId(reader as u32)],
        bandwidth: bandwidth[reader][memory],
        class: None,
    };
    pairs.map(link).collect()
}

/// The directed links of an entry: one for `from`/`to`, two for `between`, one for each ordered pair for `among`.
fn listed_links(entry: &LinkEntry, count: usize) -> Result<Vec<SharedLink>, MachineError> {
    let ends = match (&entry.from, &entry.to, &entry.between, &entry.among) {
        (Some(from), Some(to), None, None) => vec![(from.nodes(), to.nodes())],
        (None, None, Some([a, b]), None) => vec![(a.nodes(), b.nodes()), (b.nodes(), a.nodes())],
        (None, None, None, Some(all)) => {
            let pairs = all.iter().flat_map(|a| all.iter().map(move |b| (*a, *b)));
            pairs
                .filter(|(a, b)| a != b)
                .map(|(a, b)| (vec![NodeId(a)], vec![NodeId(b)]))
                .collect()
        }
        _ => {
            return Err(MachineError::invalid(
                "give `from` and `to`, `between`, or `among`",
            ));
        }
    };
    let inside = |end: &[NodeId]| !end.is_empty() && end.iter().all(|n| n.index() < count);
    if ends
        .iter()
        .any(|(from, to)| !inside(from) || !inside(to) || from.iter().any(|n| to.contains(n)))
    {
        return Err(MachineError::invalid(
            "its ends must be different nodes of the machine",
        ));
    }
    let link = |(from, to)| SharedLink {
        from,
        to,
        bandwidth: entry.bandwidth,
        class: entry.class.clone(),
    };
    Ok(ends.into_iter().map(link).collect())
}

fn unreachable(memory: usize, reader: usize) -> MachineError {
    MachineError::invalid(format!(
        "no links lead from node {memory} to node {reader}, directly or over others: add one"
    ))
}

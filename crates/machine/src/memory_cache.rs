//! A memory-side cache: fast memory in front of a node's own, which the hardware fills, as HBM in cache mode.

use crate::text::{format_bytes, parse_bytes};
use crate::validation::positive;
use crate::{Machine, MachineError, MemoryKind, Node, NodeId, Source};
use serde::{Deserialize, Serialize};

/// How the mode of in-package memory is written after a machine's name: `xeonmax:hbm=cache`.
pub(crate) const MODE: &str = "hbm=";

/// A direct-mapped cache of lines of one node's memory, for all CPUs that access it. Tags lie beside the lines: memory is
/// asked after the cache has missed.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryCache {
    /// Its size, bytes.
    pub memory: u64,
    /// What it delivers, MB/s.
    pub bandwidth: f64,
    /// Idle latency of a hit by a CPU of the node, nanoseconds.
    pub latency_ns: f64,
}

impl MemoryCache {
    /// The share of accesses that hit, 0 to 1, where `footprint` bytes of the node's memory are in use, all alike.
    ///
    /// With λ = footprint / size, `conflicts` chooses between 0, no two lines in one place before all places are taken:
    /// min(1, 1/λ); 1/2, pages in random places, used in random order: of a place's k lines the last one used hits,
    /// E\[1/(1+Poisson(λ))\] = (1 − e^−λ)/λ; and 1, the same swept from end to end, where only a line that is alone in its
    /// place hits: e^−λ. Values between are interpolated.
    #[must_use]
    pub fn hits(&self, footprint: f64, conflicts: f64) -> f64 {
        let load = footprint / self.memory.max(1) as f64;
        if load <= 0.0 {
            return 1.0;
        }
        let none = (1.0 / load).min(1.0);
        let random = -(-load).exp_m1() / load;
        let swept = (-load).exp();
        let between = |a: f64, b: f64, at: f64| a + (b - a) * at;
        match conflicts {
            c if c <= 0.5 => between(none, random, 2.0 * c.max(0.0)),
            c => between(random, swept, 2.0 * c.min(1.0) - 1.0),
        }
    }
}

/// A cache as machine files have it.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CacheEntry {
    pub memory: String,
    pub bandwidth: f64,
    pub latency_ns: f64,
}

impl CacheEntry {
    pub fn of(cache: &MemoryCache) -> Self {
        Self {
            memory: format_bytes(cache.memory),
            bandwidth: cache.bandwidth,
            latency_ns: cache.latency_ns,
        }
    }

    pub fn into_cache(self) -> Result<MemoryCache, MachineError> {
        let memory = parse_bytes(&self.memory)
            .filter(|bytes| *bytes > 0)
            .ok_or_else(|| {
                MachineError::invalid(format!("a cache of {:?} is no size such as 16G", self.memory))
            })?;
        positive([self.bandwidth], "a cache's bandwidth")?;
        positive([self.latency_ns], "a cache's latency")?;
        Ok(MemoryCache {
            memory,
            bandwidth: self.bandwidth,
            latency_ns: self.latency_ns,
        })
    }
}

impl Machine {
    /// The machine with its HBM nodes as caches of the nodes with CPUs beside them (cache mode): the n-th HBM node of a socket
    /// belongs to its n-th node with CPUs. Routes to a node carry what those to its HBM carried.
    ///
    /// # Errors
    /// If there is no HBM node without CPUs, or a socket does not have one for each of its nodes with CPUs.
    pub fn with_hbm_as_cache(&self) -> Result<Self, MachineError> {
        let cached = self.cached_by()?;
        let hosts: Vec<NodeId> = self
            .node_ids()
            .filter(|n| !cached.iter().flatten().any(|hbm| hbm == n))
            .collect();
        // The node that stands for a node of the flat machine.
        let of = |old: NodeId| {
            let is = |host: &NodeId| *host == old || cached[host.index()] == Some(old);
            NodeId(hosts.iter().position(is).unwrap_or_default() as u32)
        };
        let route = |r: NodeId, m: NodeId| {
            let mut route = self.route(r, m).clone();
            if let Some(hbm) = cached[m.index()].filter(|_| r != m) {
                route.bandwidth = route.bandwidth.max(self.route(r, hbm).bandwidth);
            }
            route
        };
        let square = |f: &dyn Fn(NodeId, NodeId) -> f64| -> Vec<Vec<f64>> {
            hosts
                .iter()
                .map(|r| hosts.iter().map(|m| f(*r, *m)).collect())
                .collect()
        };
        let mut machine = Self {
            title: format!("{}, HBM as cache", self.title),
            nodes: hosts
                .iter()
                .zip(0..)
                .map(|(n, os_index)| self.with_cache(*n, cached[n.index()], os_index))
                .collect(),
            latency_ns: square(&|r, m| self.latency(r, m)),
            routes: hosts
                .iter()
                .map(|r| hosts.iter().map(|m| route(*r, *m)).collect())
                .collect(),
            ..self.clone()
        };
        for link in &mut machine.links {
            (link.from, link.to) = (of(link.from), of(link.to));
        }
        machine.drop_unused_links();
        machine.sources.push(Source::assumed(
            "nodes.cache",
            "the HBM of the flat mode, direct-mapped, with its bandwidth and idle latency there; a miss takes both latencies",
        ));
        machine
            .sources
            .sort_by(|a, b| (a.assumed, &a.field).cmp(&(b.assumed, &b.field)));
        machine.validate()?;
        Ok(machine)
    }

    /// By node: the HBM node beside it.
    fn cached_by(&self) -> Result<Vec<Option<NodeId>>, MachineError> {
        let error = |what: String| MachineError::invalid(format!("{}: {what}", self.name));
        let is_hbm = |n: &NodeId| {
            let node = &self.nodes[n.index()];
            node.cpus.is_empty() && node.kind == Some(MemoryKind::Hbm)
        };
        let socket = |n: NodeId| self.nodes[n.index()].socket;
        let mut cached = vec![None; self.node_count()];
        if !self.node_ids().any(|n| is_hbm(&n)) {
            return Err(error(
                "no node of HBM without CPUs, which could be a cache".to_owned(),
            ));
        }
        for host in self.cpu_nodes() {
            let of_socket = |nodes: Vec<NodeId>| -> Vec<NodeId> {
                nodes.into_iter().filter(|n| socket(*n) == socket(host)).collect()
            };
            let hosts = of_socket(self.cpu_nodes().collect());
            let hbm = of_socket(self.node_ids().filter(is_hbm).collect());
            if hosts.len() != hbm.len() {
                return Err(error(format!(
                    "{} nodes with CPUs and {} of HBM beside node {host}; each needs one",
                    hosts.len(),
                    hbm.len()
                )));
            }
            cached[host.index()] = hosts.iter().zip(hbm).find(|(h, _)| **h == host).map(|(_, m)| m);
        }
        Ok(cached)
    }

    fn with_cache(&self, id: NodeId, cache: Option<NodeId>, os_index: u32) -> Node {
        let node = &self.nodes[id.index()];
        Node {
            os_index,
            cache: cache.map_or_else(
                || node.cache.clone(),
                |hbm| {
                    let fast = &self.nodes[hbm.index()];
                    Some(MemoryCache {
                        memory: fast.memory,
                        bandwidth: fast.bandwidth,
                        latency_ns: self.latency(id, hbm),
                    })
                },
            ),
            ..node.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hits(load: f64, conflicts: f64) -> f64 {
        let cache = MemoryCache {
            memory: 1 << 30,
            bandwidth: 1.0,
            latency_ns: 1.0,
        };
        cache.hits(load * f64::from(1 << 30), conflicts)
    }

    /// A direct-mapped cache of as many places as pages fit, of which `pages` are used in random order.
    fn counted(places: usize, pages: usize) -> f64 {
        let mut state = 7u64;
        let mut random = move |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % below
        };
        let place: Vec<usize> = (0..pages).map(|_| random(places)).collect();
        let mut held = vec![usize::MAX; places];
        let (mut hit, rounds) = (0, 200 * pages);
        for round in 0..rounds {
            let page = random(pages);
            let last = std::mem::replace(&mut held[place[page]], page);
            hit += usize::from(round >= rounds / 2 && last == page);
        }
        hit as f64 / (rounds / 2) as f64
    }

    #[test]
    fn hits_are_those_of_a_cache_that_is_played() {
        for load in [0.25, 1.0, 3.0] {
            let played = counted(2000, (2000.0 * load) as usize);
            assert!(
                (hits(load, 0.5) - played).abs() < 0.02,
                "{load}: {played} counted, {} by the formula",
                hits(load, 0.5)
            );
        }
        assert_eq!((hits(0.0, 1.0), hits(0.5, 0.0), hits(4.0, 0.0)), (1.0, 1.0, 0.25));
        assert!((hits(1.0, 1.0) - (-1.0f64).exp()).abs() < 1e-12);
        assert!(hits(1.0, 0.75) < hits(1.0, 0.5) && hits(1.0, 0.5) < hits(1.0, 0.25));
    }

    #[test]
    fn hbm_becomes_the_cache_of_the_node_beside_it() {
        let flat = Machine::named("xeonmax-2s-snc4-flat").unwrap();
        let cached = Machine::load("xeonmax-2s-snc4-flat:hbm=cache").unwrap();
        assert_eq!((flat.node_count(), cached.node_count()), (16, 8));
        for id in cached.node_ids() {
            let (now, before) = (&cached.nodes[id.index()], &flat.nodes[id.index()]);
            let cache = now.cache.as_ref().unwrap();
            assert_eq!((&now.cpus, now.bandwidth), (&before.cpus, before.bandwidth));
            assert_eq!(
                (cache.memory, cache.bandwidth, cache.latency_ns),
                (16 << 30, 151_500.0, 129.0)
            );
        }
        assert_eq!(cached.latency_ns[0][4], flat.latency_ns[0][4]);
        assert_eq!(cached.route(NodeId(0), NodeId(4)).bandwidth, 126_400.0);
        assert_eq!(
            Machine::parse(&cached.to_toml(), "again").unwrap().nodes,
            cached.nodes
        );
    }

    #[test]
    fn modes_combine_and_what_cannot_be_is_refused() {
        for spec in [
            "xeonmax-2s-snc4-flat:hbm=cache:snc=1",
            "xeonmax-2s-snc4-flat:snc=1:hbm=cache",
        ] {
            let machine = Machine::load(spec).unwrap();
            let cache = machine.nodes[1].cache.as_ref().unwrap();
            assert_eq!(
                (machine.node_count(), cache.memory, cache.bandwidth),
                (2, 64 << 30, 606_000.0)
            );
            assert_eq!(machine.name, spec);
        }
        let refused = |spec: &str| Machine::load(spec).unwrap_err().to_string();
        assert!(refused("epyc-2s-nps4:hbm=cache").contains("no node of HBM"));
        assert!(refused("xeonmax-2s-snc4-flat:hbm=off").contains("cache or flat"));
    }
}

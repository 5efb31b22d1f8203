//! A machine with its HBM as caches of its nodes: cache mode, beside the flat mode that machine files describe.

use crate::{Machine, MachineError, MemoryCache, MemoryKind, Node, NodeId, Route, Source};

impl Machine {
    /// The machine with its HBM nodes as caches of the nodes with CPUs beside them (cache mode): the n-th HBM node of a socket
    /// belongs to its n-th node with CPUs. Hits take as long as from the HBM, and routes to a node carry what those to its HBM
    /// carried.
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
        // The wider way: where only pairs were measured, that to the HBM has links of its own.
        let route = |r: NodeId, m: NodeId| {
            let memory = self.route(r, m);
            let fast = cached[m.index()].map(|hbm| self.route(r, hbm));
            match fast.filter(|fast| fast.bandwidth > memory.bandwidth) {
                Some(fast) if r == m => Route {
                    bandwidth: fast.bandwidth,
                    links: Vec::new(),
                },
                Some(fast) => fast.clone(),
                None => memory.clone(),
            }
        };
        let square = |f: &dyn Fn(NodeId, NodeId) -> f64| -> Vec<Vec<f64>> {
            hosts
                .iter()
                .map(|r| hosts.iter().map(|m| f(*r, *m)).collect())
                .collect()
        };
        let mut machine = Self {
            title: format!("{}; here with its HBM as cache", self.title),
            nodes: hosts
                .iter()
                .zip(0..)
                .map(|(n, os_index)| self.with_cache(*n, cached[n.index()], os_index, &hosts))
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
    ///
    /// # Errors
    /// Those of [`Machine::with_hbm_as_cache`].
    pub(crate) fn cached_by(&self) -> Result<Vec<Option<NodeId>>, MachineError> {
        let error = |what: String| MachineError::invalid(format!("{}: {what}", self.name));
        let is_hbm = |n: &NodeId| {
            let node = &self.nodes[n.index()];
            node.cpus.is_empty() && node.kind == Some(MemoryKind::Hbm)
        };
        let socket = |n: NodeId| self.nodes[n.index()].socket;
        let mut cached = vec![None; self.node_count()];
        if self.has_memory_side_caches() {
            return Err(error("it has caches already".to_owned()));
        }
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

    fn with_cache(&self, id: NodeId, cache: Option<NodeId>, os_index: u32, hosts: &[NodeId]) -> Node {
        let node = &self.nodes[id.index()];
        Node {
            os_index,
            cache: cache.map(|hbm| MemoryCache {
                memory: self.nodes[hbm.index()].memory,
                bandwidth: self.nodes[hbm.index()].bandwidth,
                latency_ns: hosts.iter().map(|r| self.latency(*r, hbm)).collect(),
            }),
            ..node.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hbm_becomes_the_cache_of_the_node_beside_it() {
        let flat = Machine::named("xeonmax-2s-snc4-flat").unwrap();
        let cached = Machine::load("xeonmax-2s-snc4-flat:hbm=cache").unwrap();
        assert_eq!((flat.node_count(), cached.node_count()), (16, 8));
        for id in cached.node_ids() {
            let (now, before) = (&cached.nodes[id.index()], &flat.nodes[id.index()]);
            let cache = now.cache.as_ref().unwrap();
            assert_eq!((&now.cpus, now.bandwidth), (&before.cpus, before.bandwidth));
            assert_eq!((cache.memory, cache.bandwidth), (16 << 30, 151_500.0));
            assert_eq!(cache.latency_ns[id.index()], 129.0);
            assert_eq!(cached.route(id, id).bandwidth, 151_500.0);
        }
        assert_eq!(cached.latency_ns[0][4], flat.latency_ns[0][4]);
        assert_eq!(cached.route(NodeId(0), NodeId(4)).bandwidth, 126_400.0);
        // Hits in other nodes' caches are as far as their HBM was.
        let of_0 = &cached.nodes[0].cache.as_ref().unwrap().latency_ns;
        assert_eq!(of_0[..6], [129.0, 138.9, 138.9, 138.9, 228.2, 228.2]);
        assert_eq!(
            Machine::parse(&cached.to_toml(), "again").unwrap().nodes,
            cached.nodes
        );
    }

    #[test]
    fn modes_combine_in_either_order_and_what_cannot_be_is_refused() {
        for parts in [1, 2, 4] {
            let load = |modes: String| Machine::load(&format!("xeonmax-2s-snc4-flat:{modes}")).unwrap();
            let after = load(format!("hbm=cache:snc={parts}"));
            let before = load(format!("snc={parts}:hbm=cache"));
            assert_eq!(after.node_count(), 2 * parts);
            for (a, b) in after.nodes.iter().zip(&before.nodes) {
                let (a, b) = (a.cache.as_ref().unwrap(), b.cache.as_ref().unwrap());
                assert_eq!(a.memory, (64 << 30) / parts as u64);
                assert_eq!((a.memory, a.bandwidth), (b.memory, b.bandwidth));
                let same = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-9;
                assert!(a.latency_ns.iter().zip(&b.latency_ns).all(same), "{a:?} {b:?}");
            }
        }
        let refused = |spec: &str| Machine::load(spec).unwrap_err().to_string();
        assert!(refused("epyc-2s-nps4:hbm=cache").contains("no node of HBM"));
        assert!(refused("epyc-2s-nps4:hbm=flat").contains("no node of HBM"));
        assert!(refused("xeonmax-2s-snc4-flat:hbm=off").contains("cache or flat"));
        assert!(refused("xeonmax-2s-snc4-flat:hbm=cache:hbm=cache").contains("caches already"));
        assert!(refused("xeonmax-2s-snc4-flat:hbm=cache:hbm=flat").contains("caches already"));
    }
}

//! A machine with its HBM as caches of its nodes: cache mode, beside the flat mode that machine files describe.

use crate::{Machine, MachineError, MemoryCache, MemoryKind, Node, NodeId, Source};

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

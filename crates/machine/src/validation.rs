//! Consistency checks of machine descriptions from any source.

use crate::hops;
use crate::{CpuId, LinkId, Machine, MachineError, NodeId, Route};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// Tolerance for figures that are rounded to three digits.
const ROUNDING_TOLERANCE: f64 = 1.01;
/// Range of nanoseconds and MB/s in which sums and quotients stay accurate.
const PLAUSIBLE_RANGE: RangeInclusive<f64> = 1e-6..=1e12;

impl Machine {
    /// Checks that the parts are consistent: matrices are square, figures positive, each CPU is on one node, remote
    /// routes consist of existing links that carry their bandwidth, and local routes of none.
    ///
    /// # Errors
    /// The first contradiction found.
    pub fn validate(&self) -> Result<(), MachineError> {
        self.check_nodes()?;
        self.check_figures()?;
        self.check_routes()?;
        hops::check(&self.hop_rules, &self.links)
    }

    fn check_nodes(&self) -> Result<(), MachineError> {
        if self.name.is_empty() {
            return Err(MachineError::invalid("a machine needs a name"));
        }
        let shift = self.page_size.trailing_zeros();
        if !self.page_size.is_power_of_two() || !(12..=16).contains(&shift) {
            return Err(MachineError::invalid(
                "page_size must be a power of two from 4K to 64K",
            ));
        }
        if self.cpu_nodes().next().is_none() {
            return Err(MachineError::invalid("no node has CPUs"));
        }
        let mut numbers: BTreeMap<u32, usize> = BTreeMap::new();
        for (node, shown) in self.nodes.iter().enumerate() {
            if let Some(other) = numbers.insert(shown.os_index, node) {
                return Err(MachineError::invalid(format!(
                    "node {other} and node {node} are both the kernel's node {}",
                    shown.os_index
                )));
            }
        }
        let mut owners: BTreeMap<CpuId, NodeId> = BTreeMap::new();
        for (cpu, node) in self.cpus() {
            if let Some(other) = owners.insert(cpu, node) {
                return Err(MachineError::invalid(format!(
                    "CPU {cpu} is on node {other} and on node {node}"
                )));
            }
        }
        Ok(())
    }

    fn check_figures(&self) -> Result<(), MachineError> {
        let count = self.node_count();
        if !square(&self.latency_ns, count) || !square(&self.routes, count) {
            return Err(MachineError::invalid(format!(
                "latencies and routes must be {count} × {count}"
            )));
        }
        positive(self.latency_ns.iter().flatten().copied(), "a latency")?;
        positive(self.nodes.iter().map(|n| n.bandwidth), "a node's bandwidth")?;
        let caches = || self.nodes.iter().filter_map(|n| n.cache.as_ref());
        positive(caches().map(|c| c.memory as f64), "a cache's size")?;
        positive(caches().map(|c| c.bandwidth), "a cache's bandwidth")?;
        positive(
            caches().flat_map(|c| c.latency_ns.iter().copied()),
            "a cache's latency",
        )?;
        if caches().any(|c| c.latency_ns.len() != count) {
            return Err(MachineError::invalid(format!(
                "a cache's latency is one figure, or one for each of {count} nodes"
            )));
        }
        positive(self.links.iter().map(|l| l.bandwidth), "a link's bandwidth")?;
        positive(
            self.routes.iter().flatten().map(|r| r.bandwidth),
            "a route's bandwidth",
        )?;
        positive(self.backplane, "the backplane's bandwidth")
    }

    fn check_routes(&self) -> Result<(), MachineError> {
        for (reader, row) in self.routes.iter().enumerate() {
            for (memory, route) in row.iter().enumerate() {
                self.check_route(route, reader == memory)
                    .map_err(|e| e.at(&format!("the route from node {memory} to node {reader}")))?;
            }
        }
        Ok(())
    }

    fn check_route(&self, route: &Route, local: bool) -> Result<(), MachineError> {
        let known = route.links.iter().all(|l| (l.0 as usize) < self.links.len());
        if !known || route.links.is_empty() != local {
            return Err(MachineError::invalid(
                "must cross existing links, and a local one none",
            ));
        }
        let distinct: BTreeSet<LinkId> = route.links.iter().copied().collect();
        if distinct.len() < route.links.len() {
            return Err(MachineError::invalid("crosses a link twice"));
        }
        let links = route.links.iter().map(|l| self.links[l.0 as usize].bandwidth);
        let narrowest = links
            .chain(self.backplane.filter(|_| !local))
            .fold(f64::INFINITY, f64::min);
        if route.bandwidth > narrowest * ROUNDING_TOLERANCE {
            return Err(MachineError::invalid(format!(
                "its bandwidth of {} is more than the {narrowest} that get through its links: correct either",
                route.bandwidth
            )));
        }
        Ok(())
    }
}

pub(crate) fn square<T>(matrix: &[Vec<T>], count: usize) -> bool {
    matrix.len() == count && matrix.iter().all(|row| row.len() == count)
}

pub(crate) fn positive(figures: impl IntoIterator<Item = f64>, what: &str) -> Result<(), MachineError> {
    match figures.into_iter().find(|f| !PLAUSIBLE_RANGE.contains(f)) {
        None => Ok(()),
        Some(bad) if bad > 0.0 && bad.is_finite() => Err(MachineError::invalid(format!(
            "{what} is {bad:e}; no machine's is below 0.000001 or above 10¹²"
        ))),
        Some(bad) => Err(MachineError::invalid(format!(
            "{what} is {bad}; figures must be positive"
        ))),
    }
}

//! The linear program that finds the shares.
//!
//! Unknown are the share `x[g][n]` of each group's pages on each node, and the time `T` of the slowest part:
//!
//! - minimise `T`, and a hundredth of the CPUs' mean wait, so that of shares with equal `T` the more local are chosen;
//! - for each controller and channel `r`: the bytes that cross it, over its bandwidth, are at most `T`;
//! - for each CPU: its wait, lines × idle latency ÷ misses in flight, is at most `T`;
//! - the shares of a group add up to 1.
//!
//! It is the time model of `nodewise-simulation` without queueing, with all slices as one.

use super::groups::{Group, Groups, Lines};
use microlp::{ComparisonOp, OptimizationDirection, Problem, SolveOutcome, Variable};
use nodewise_machine::{Channels, Machine, NodeId};

const LINE_BYTES: f64 = 64.0;
/// Misses that a CPU has in flight on average, as in the time model.
const MISSES_IN_FLIGHT: f64 = 5.0;
/// Weight of the mean wait in the objective.
const LOCALITY_WEIGHT: f64 = 0.01;

/// The share of each group on each node, parallel to `groups.free`.
pub(super) fn shares(groups: &Groups, machine: &Machine) -> Result<Vec<Vec<f64>>, String> {
    let unknown = groups.unknown();
    let mut found = match unknown {
        0 => Vec::new(),
        _ => Program::new(groups, machine).solve(unknown)?,
    };
    let whole = |group: &Group| {
        let mut shares = vec![0.0; groups.nodes];
        shares[groups.heaviest(&group.readers).index()] = 1.0;
        shares
    };
    found.extend(groups.free[unknown..].iter().map(whole));
    Ok(found)
}

/// What limits the time, and what lines take of it.
struct Program<'a> {
    groups: &'a Groups,
    /// Of all lines, so that coefficients are near 1.
    scale: f64,
    machine: &'a Machine,
    channels: Channels,
}

/// A resource or a CPU that needs time for lines.
#[derive(Clone, Copy)]
enum Limit {
    /// A node's controller moves the bytes of its memory.
    Controller(NodeId),
    /// A channel moves what crosses it.
    Channel(u32),
    /// A CPU, by its number among those that run threads, waits for what it fetches.
    Cpu(usize),
}

impl<'a> Program<'a> {
    fn new(groups: &'a Groups, machine: &'a Machine) -> Self {
        let all = groups.free.iter().flat_map(|g| &g.readers).map(|r| r.fetched);
        Self {
            groups,
            scale: 1.0 / all.sum::<f64>().max(1.0),
            machine,
            channels: Channels::of(machine),
        }
    }

    fn limits(&self) -> Vec<Limit> {
        let bandwidth = |n: &NodeId| self.machine.nodes[n.index()].bandwidth > 0.0;
        let channels = self.channels.capacity.iter().enumerate();
        let channels = channels
            .filter(|(_, c)| **c > 0.0)
            .map(|(c, _)| Limit::Channel(c as u32));
        let controllers = self.machine.node_ids().filter(bandwidth).map(Limit::Controller);
        controllers
            .chain(channels)
            .chain((0..self.groups.cpus.len()).map(Limit::Cpu))
            .collect()
    }

    /// Nanoseconds that a CPU's lines from and to a memory take of a limit.
    fn time(&self, limit: Limit, lines: Lines, cpu: usize, memory: NodeId) -> f64 {
        let reader = self.groups.cpus[cpu];
        // MB/s are bytes a microsecond.
        let of_bytes = |lines: f64, bandwidth: f64| 1e3 * LINE_BYTES * lines * self.scale / bandwidth;
        match limit {
            Limit::Controller(node) if node == memory => {
                let bandwidth = self.machine.nodes[node.index()].bandwidth;
                of_bytes(lines.fetched + lines.written, bandwidth)
            }
            Limit::Channel(channel) => {
                let crosses = |to, from| self.channels.way(to, from).contains(&channel);
                let fetched = if crosses(reader, memory) {
                    lines.fetched
                } else {
                    0.0
                };
                let written = if crosses(memory, reader) {
                    lines.written
                } else {
                    0.0
                };
                of_bytes(fetched + written, self.channels.capacity[channel as usize])
            }
            Limit::Cpu(waits) if waits == cpu => {
                let wait = self.machine.latency(reader, memory) / MISSES_IN_FLIGHT;
                wait * lines.fetched * self.scale
            }
            _ => 0.0,
        }
    }

    /// Nanoseconds that all of a group takes of a limit if it is on one node.
    fn of_group(&self, limit: Limit, group: &Group, memory: NodeId) -> f64 {
        match limit {
            Limit::Cpu(cpu) => self.time(limit, group.readers[cpu], cpu, memory),
            _ => {
                let each = group.readers.iter().enumerate();
                each.map(|(cpu, lines)| self.time(limit, *lines, cpu, memory))
                    .sum()
            }
        }
    }

    fn constant(&self, limit: Limit, fixed: &[Lines]) -> f64 {
        let nodes = self.groups.nodes;
        let each = |(cell, lines): (usize, &Lines)| {
            self.time(limit, *lines, cell / nodes, NodeId((cell % nodes) as u32))
        };
        fixed.iter().enumerate().map(each).sum()
    }

    /// Mean wait of the CPUs if a group is on one node, as it counts in the objective.
    fn mean_wait(&self, group: &Group, memory: NodeId) -> f64 {
        let cpus = self.groups.cpus.len();
        let each = (0..cpus).map(|cpu| self.of_group(Limit::Cpu(cpu), group, memory));
        LOCALITY_WEIGHT * each.sum::<f64>() / cpus as f64
    }

    fn solve(&self, unknown: usize) -> Result<Vec<Vec<f64>>, String> {
        let nodes: Vec<NodeId> = self.machine.node_ids().collect();
        let groups = &self.groups.free[..unknown];
        let mut problem = Problem::new(OptimizationDirection::Minimize);
        let slowest = problem.add_var(1.0, (0.0, f64::INFINITY));
        let mut share = |group, node| problem.add_var(self.mean_wait(group, node), (0.0, 1.0));
        let shares: Vec<Vec<Variable>> = groups
            .iter()
            .map(|g| nodes.iter().map(|n| share(g, *n)).collect())
            .collect();
        for variables in &shares {
            let sum: Vec<(Variable, f64)> = variables.iter().map(|v| (*v, 1.0)).collect();
            problem.add_constraint(&sum, ComparisonOp::Eq, 1.0);
        }
        let fixed = self.groups.constant();
        for limit in self.limits() {
            let mut sum = vec![(slowest, -1.0)];
            for (group, variables) in groups.iter().zip(&shares) {
                let times = nodes.iter().map(|n| self.of_group(limit, group, *n));
                sum.extend(variables.iter().copied().zip(times).filter(|(_, t)| *t > 0.0));
            }
            problem.add_constraint(&sum, ComparisonOp::Le, -self.constant(limit, &fixed));
        }
        let solution = match problem.solve().map_err(|e| e.to_string())? {
            SolveOutcome::Solution(solution) => solution,
            SolveOutcome::Interrupted(_) => return Err("the solver stopped early".to_owned()),
        };
        let value = |v: &Variable| solution.var_value(*v).clamp(0.0, 1.0);
        Ok(shares.iter().map(|row| row.iter().map(value).collect()).collect())
    }
}

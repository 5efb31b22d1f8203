//! Upper bounds of weighted bandwidth, for branch and bound.
//!
//! Adding a flow may increase the max-min fair bandwidth of others: a flow that is slowed down may leave more to two
//! others. So a cluster's bandwidth without contention is no upper bound. Valid bounds are the capacity of a channel
//! for all flows that cross it together, and, for a single flow, the narrowest channel of its route. Any partition of
//! the flows into such groups gives a bound of the sum.

use super::problem::{Problem, Set, members};
use nodewise_machine::{Channels, Flow};

/// Bounds on weighted sums of rates.
#[derive(Debug)]
pub(super) struct Bound<'a> {
    channels: &'a Channels,
    flows: Vec<(Flow, f64)>,
    covered: Vec<bool>,
    used: Vec<u32>,
    /// By channel: the weighted sum of the contention-free rates of its uncovered flows.
    sums: Vec<f64>,
    /// By channel: the largest weight of its flows.
    heaviest: Vec<f64>,
}

/// The rate of a flow without contention, MB/s.
pub(super) fn alone(channels: &Channels, flow: &Flow) -> f64 {
    let way = channels.way(flow.reader, flow.memory);
    way.iter()
        .map(|c| channels.capacity[*c as usize])
        .fold(f64::INFINITY, f64::min)
}

impl<'a> Bound<'a> {
    pub fn new(channels: &'a Channels) -> Self {
        Self {
            channels,
            flows: Vec::new(),
            covered: Vec::new(),
            used: Vec::new(),
            sums: vec![0.0; channels.capacity.len()],
            heaviest: vec![0.0; channels.capacity.len()],
        }
    }

    /// Upper bound of the weighted sum of these flows' rates, MB/s. As long as it lowers the bound, the flows of one
    /// channel are grouped, the channel that lowers it most first.
    pub fn of(&mut self, flows: impl Iterator<Item = (Flow, f64)>) -> f64 {
        self.flows.clear();
        self.flows.extend(flows);
        self.covered.clear();
        self.covered.resize(self.flows.len(), false);
        let mut total = self.enter();
        let full = |c: usize| self.channels.capacity[c] * self.heaviest[c];
        let saves = |sums: &[f64], c: u32| sums[c as usize] - full(c as usize);
        while let Some(c) = (self.used.iter().copied())
            .max_by(|a, b| saves(&self.sums, *a).total_cmp(&saves(&self.sums, *b)))
            .filter(|c| saves(&self.sums, *c) > 0.0)
        {
            total -= saves(&self.sums, c);
            for ((flow, weight), covered) in self.flows.iter().zip(&mut self.covered) {
                let way = self.channels.way(flow.reader, flow.memory);
                if !*covered && way.contains(&c) {
                    *covered = true;
                    let rate = weight * alone(self.channels, flow);
                    way.iter().for_each(|c| self.sums[*c as usize] -= rate);
                }
            }
            self.sums[c as usize] = 0.0;
        }
        total
    }

    /// Adds each flow's contention-free rate to its channels' sums; returns the total.
    fn enter(&mut self) -> f64 {
        for c in self.used.drain(..) {
            (self.sums[c as usize], self.heaviest[c as usize]) = (0.0, 0.0);
        }
        let mut total = 0.0;
        for (flow, weight) in &self.flows {
            let rate = weight * alone(self.channels, flow);
            total += rate;
            for c in self.channels.way(flow.reader, flow.memory) {
                if self.sums[*c as usize] == 0.0 {
                    self.used.push(*c);
                }
                self.sums[*c as usize] += rate;
                self.heaviest[*c as usize] = weight.max(self.heaviest[*c as usize]);
            }
        }
        total
    }
}

/// Upper bound of P_wbw over all placements, MB/s. Each node contributes half of what it can exchange with the best
/// partners in a cluster; the best nodes are combined with the heaviest clusters, for each cluster size separately.
pub(super) fn of_all_placements(problem: &Problem<'_>) -> f64 {
    let widest = problem.wide.first().map_or(0, |_| problem.size(0));
    let by_node: Vec<Vec<f64>> = (0..problem.nodes.len())
        .map(|i| node(problem, i, widest))
        .collect();
    let of_run = |run: std::ops::Range<usize>| {
        let size = problem.size(run.start);
        let mut best: Vec<f64> = by_node.iter().map(|sums| sums[size - 1]).collect();
        best.sort_by(|a, b| b.total_cmp(a));
        let dealt = run.zip(best.chunks(size));
        dealt
            .map(|(slot, nodes)| problem.weight(slot) * nodes.iter().sum::<f64>())
            .sum::<f64>()
    };
    problem.runs().into_iter().map(of_run).sum::<f64>() + fixed(problem, &mut Bound::new(problem.channels))
}

/// Upper bound of the weighted bandwidth of fixed clusters.
pub(super) fn fixed(problem: &Problem<'_>, bound: &mut Bound<'_>) -> f64 {
    bound.of(fixed_flows(problem))
}

/// The flows of fixed clusters, with their weights.
pub(super) fn fixed_flows(problem: &Problem<'_>) -> impl Iterator<Item = (Flow, f64)> {
    let clusters = problem.fixed.iter().zip(&problem.fixed_flows);
    clusters.flat_map(|(c, flows)| flows.iter().map(|f| (*f, problem.clusters[*c].weight)))
}

/// `[k]`: half of what a node can exchange with any k others, at most.
fn node(problem: &Problem<'_>, i: usize, widest: usize) -> Vec<f64> {
    let everyone: Set = if problem.nodes.len() == Set::BITS as usize {
        !0
    } else {
        (1 << problem.nodes.len()) - 1
    };
    let me = problem.nodes[i];
    let others = || members(everyone & !(1 << i)).map(|o| problem.nodes[o]);
    let reads: Vec<Flow> = others().map(|memory| Flow { reader: me, memory }).collect();
    let sends: Vec<Flow> = others().map(|reader| Flow { reader, memory: me }).collect();
    let (reads, sends) = (
        best_sums(problem.channels, &reads, widest),
        best_sums(problem.channels, &sends, widest),
    );
    reads.iter().zip(sends).map(|(a, b)| (a + b) / 2.0).collect()
}

/// `[k]`: upper bound of the sum of the best k of these flows. Each flow is attributed to the channel on its route that
/// most of them share. Of one channel's flows the fastest come first; once the channel is full, further flows add
/// nothing.
fn best_sums(channels: &Channels, flows: &[Flow], most: usize) -> Vec<f64> {
    let way = |f: &Flow| channels.way(f.reader, f.memory);
    let mut shared = vec![0u32; channels.capacity.len()];
    flows.iter().flat_map(way).for_each(|c| shared[*c as usize] += 1);
    let group = |f: &Flow| way(f).iter().copied().max_by_key(|c| shared[*c as usize]);
    let mut rates: Vec<(Option<u32>, f64)> = flows.iter().map(|f| (group(f), alone(channels, f))).collect();
    rates.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut left = channels.capacity.clone();
    for (group, rate) in &mut rates {
        if let Some(c) = group {
            *rate = rate.min(left[*c as usize]);
            left[*c as usize] -= *rate;
        }
    }
    rates.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut sum = 0.0;
    let sums = rates.iter().take(most).map(|(_, rate)| {
        sum += rate;
        sum
    });
    std::iter::once(0.0).chain(sums).collect()
}

//! Chooses the next group of flows to measure together, and keeps what is known of each pair.

use super::Estimate;
use crate::{Flow, NodeId};

/// A loss below this share of a flow's bandwidth alone cannot be told from noise.
const MIN_LOSS: f64 = 0.05;
/// Intervals contain the true value with 95 % probability; a loss must exceed them by half to count.
const NOISE_HALF_WIDTHS: f64 = 1.5;
/// No statement is made about a flow that could lose more than this share without it being visible.
const MAX_NOISE: f64 = 0.15;
/// A pair is measured by itself after this many groups that gave no information on it.
const MAX_INCONCLUSIVE_GROUPS: u8 = 2;
/// Value of a pair that was measured by itself without a clear result.
const UNCLEAR: f32 = f32::NEG_INFINITY;

/// What is known about two flows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// The flows were never measured together, or the measurement was too noisy.
    Unknown,
    /// Each flow has as much beside the other as alone, except for losses up to [`Survey::unseen`].
    Independent,
    /// Together the flows get no more than this, MB/s: the capacity of the narrowest bottleneck that both cross.
    Sharing(f64),
}

/// Measures pairs of flows in groups: if no flow of a group loses bandwidth, all of its pairs are known at once. The
/// flows of a group have distinct readers and memories, so that CPUs and controllers do not limit them; pairs with a
/// common reader or memory are measured by themselves.
#[derive(Clone, Debug)]
pub struct Survey {
    flows: Vec<Flow>,
    alone: Vec<Estimate>,
    /// MB/s of each pair together: NaN if unknown, infinite if they do not share anything, or [`UNCLEAR`].
    together: Vec<f32>,
    inconclusive_groups: Vec<u8>,
    /// All pairs below `next_group` are known, suspect, or not permitted in a group; all below `next_pair` are known,
    /// unclear, or cannot be measured.
    next_group: usize,
    next_pair: usize,
    unseen: f64,
    /// Bottlenecks that only three or more flows can fill.
    pub(super) wide: Vec<Bottleneck>,
}

/// Something of limited bandwidth that several flows cross.
#[derive(Clone, Debug, PartialEq)]
pub struct Bottleneck {
    /// Capacity of the bottleneck, MB/s.
    pub capacity: f64,
    /// The flows that cross it, as ascending indices of the survey's flows.
    pub flows: Vec<usize>,
}

impl Survey {
    /// A survey of these flows, each with its bandwidth alone, MB/s.
    pub(super) fn new(flows: &[(Flow, Estimate)]) -> Self {
        let pairs = flows.len() * flows.len().saturating_sub(1) / 2;
        Self {
            flows: flows.iter().map(|f| f.0).collect(),
            alone: flows.iter().map(|f| f.1).collect(),
            together: vec![f32::NAN; pairs],
            inconclusive_groups: vec![0; pairs],
            next_group: 0,
            next_pair: 0,
            unseen: MIN_LOSS,
            wide: Vec::new(),
        }
    }

    /// The flows with these indices.
    pub(super) fn flows_at(&self, group: &[usize]) -> Vec<Flow> {
        group.iter().map(|i| self.flows[*i]).collect()
    }

    /// All flows that were measured.
    #[must_use]
    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// The bandwidth of each flow alone, MB/s.
    #[must_use]
    pub fn alone(&self) -> &[Estimate] {
        &self.alone
    }

    /// The number of pairs, and the number of pairs that are not known.
    #[must_use]
    pub fn pairs(&self) -> (usize, usize) {
        let unknown = self.together.iter().filter(|c| c.is_nan() || **c == UNCLEAR);
        (self.together.len(), unknown.count())
    }

    /// The number of pairs that were measured, but with too much noise; [`Survey::pairs`] counts them as not known.
    #[must_use]
    pub fn unclear(&self) -> usize {
        self.together.iter().filter(|c| **c == UNCLEAR).count()
    }

    /// The largest share of its bandwidth alone that a flow may lose beside another and still count as sharing nothing:
    /// the measured intervals are no narrower.
    #[must_use]
    pub fn unseen(&self) -> f64 {
        self.unseen
    }

    /// What is known about flows i and j.
    #[must_use]
    pub fn verdict(&self, i: usize, j: usize) -> Verdict {
        match self.together[self.pair(i, j)] {
            c if c.is_nan() || c == UNCLEAR => Verdict::Unknown,
            c if c.is_infinite() => Verdict::Independent,
            c => Verdict::Sharing(f64::from(c)),
        }
    }

    /// The flows to run together next, by index. `None` when every pair is known, except pairs of flows to one reader
    /// whose CPUs `divisible` says cannot be divided between them.
    pub(super) fn next(&mut self, divisible: impl Fn(NodeId) -> bool) -> Option<Vec<usize>> {
        if let Some(seed) = self.seed() {
            return Some(self.grow_group(seed));
        }
        let count = self.together.len();
        while self.next_pair < count {
            let [i, j] = self.flows_of_pair(self.next_pair);
            let one_reader = self.flows[i].reader == self.flows[j].reader;
            let possible = !one_reader || divisible(self.flows[i].reader);
            if self.together[self.next_pair].is_nan() && possible {
                return Some(vec![i, j]);
            }
            self.next_pair += 1;
        }
        None
    }

    /// Records the rates that the flows of [`Survey::next`] got together, MB/s.
    pub(super) fn record(&mut self, group: &[usize], rates: &[Estimate]) {
        if let ([i, j], [a, b]) = (group, rates) {
            let pair = self.pair(*i, *j);
            self.together[pair] = self.pair_bandwidth([*i, *j], [*a, *b]);
            return;
        }
        let unseen: Vec<Option<f64>> = group
            .iter()
            .zip(rates)
            .map(|(i, r)| self.noise_without_loss(*i, r))
            .collect();
        for (a, i) in group.iter().enumerate() {
            for (b, j) in group.iter().enumerate().skip(a + 1) {
                let pair = self.pair(*i, *j);
                if let (Some(a), Some(b)) = (unseen[a], unseen[b]) {
                    self.together[pair] = f32::INFINITY;
                    self.unseen = self.unseen.max(a).max(b);
                } else if self.together[pair].is_nan() {
                    self.inconclusive_groups[pair] = self.inconclusive_groups[pair].saturating_add(1);
                }
            }
        }
    }

    fn pair_bandwidth(&mut self, group: [usize; 2], rates: [Estimate; 2]) -> f32 {
        if self.all_lose(&group, &rates) {
            return (rates[0].median + rates[1].median) as f32;
        }
        match [0, 1].map(|at| self.noise(group[at], &rates[at])) {
            [Some(a), Some(b)] => {
                self.unseen = self.unseen.max(a).max(b);
                f32::INFINITY
            }
            _ => UNCLEAR,
        }
    }

    /// The loss that this rate could hide, as a share of the flow's bandwidth alone; `None` if that is too much for any
    /// statement, or if the flow got nothing.
    fn noise(&self, flow: usize, rate: &Estimate) -> Option<f64> {
        let alone = self.alone[flow];
        let noise = NOISE_HALF_WIDTHS * alone.half_width().hypot(rate.half_width()) / alone.median;
        (rate.median > 0.0 && noise <= MAX_NOISE).then_some(noise)
    }

    /// [`Survey::noise`] of a flow without a visible loss; `None` if it has one.
    fn noise_without_loss(&self, flow: usize, rate: &Estimate) -> Option<f64> {
        self.noise(flow, rate).filter(|_| !self.loses(flow, rate))
    }

    /// Whether a flow gets visibly less than alone. `false` for a flow that gets nothing, which is no measurement.
    fn loses(&self, flow: usize, rate: &Estimate) -> bool {
        self.loses_against(flow, rate, self.alone[flow].median)
    }

    /// Whether a flow gets visibly less than the expected rate, MB/s.
    pub(super) fn loses_against(&self, flow: usize, rate: &Estimate, expected: f64) -> bool {
        let alone = self.alone[flow];
        let noise = NOISE_HALF_WIDTHS * alone.half_width().hypot(rate.half_width());
        rate.median > 0.0 && expected - rate.median > noise.max(MIN_LOSS * alone.median)
    }

    /// Whether two flows can be in one group: they have different readers and memories, and are not known to share a
    /// bottleneck.
    fn can_combine(&self, i: usize, j: usize) -> bool {
        let (a, b) = (self.flows[i], self.flows[j]);
        a.reader != b.reader && a.memory != b.memory && !matches!(self.verdict(i, j), Verdict::Sharing(_))
    }

    /// Whether flows together get visibly less than each alone, compared with the narrowest flow's bandwidth. `false`
    /// if a flow gets nothing.
    fn all_lose(&self, group: &[usize], rates: &[Estimate]) -> bool {
        let sum = group.iter().map(|i| self.alone[*i].median).sum();
        self.all_lose_against(group, rates, sum)
    }

    /// Whether flows together get visibly less than the expected sum of rates, MB/s.
    pub(super) fn all_lose_against(&self, group: &[usize], rates: &[Estimate], sum: f64) -> bool {
        let alone = || group.iter().map(|i| &self.alone[*i]);
        let together: f64 = rates.iter().map(|r| r.median).sum();
        let width: f64 = alone().chain(rates).map(|e| e.half_width().powi(2)).sum();
        let narrowest = alone().map(|a| a.median).fold(f64::INFINITY, f64::min);
        let moving = rates.iter().all(|r| r.median > 0.0);
        moving && sum - together > (NOISE_HALF_WIDTHS * width.sqrt()).max(MIN_LOSS * narrowest)
    }

    /// Whether two flows can be in one crowd: they are known to share nothing, and have different readers and memories.
    pub(super) fn are_independent(&self, i: usize, j: usize) -> bool {
        i != j && self.can_combine(i, j) && self.verdict(i, j) == Verdict::Independent
    }

    /// The next pair to begin a group with.
    fn seed(&mut self) -> Option<[usize; 2]> {
        while self.next_group < self.together.len() {
            let [i, j] = self.flows_of_pair(self.next_group);
            if self.is_open(i, j) {
                return Some([i, j]);
            }
            self.next_group += 1;
        }
        None
    }

    /// Whether a pair is unknown and can be measured in a group.
    fn is_open(&self, i: usize, j: usize) -> bool {
        let pair = self.pair(i, j);
        self.together[pair].is_nan()
            && self.inconclusive_groups[pair] < MAX_INCONCLUSIVE_GROUPS
            && self.can_combine(i, j)
    }

    /// Extends a pair with all flows that can join, first those that give information on most pairs.
    fn grow_group(&self, seed: [usize; 2]) -> Vec<usize> {
        let mut group = seed.to_vec();
        loop {
            let gain = |k: usize| {
                let fits = |&i: &usize| {
                    i != k
                        && self.can_combine(i, k)
                        && self.inconclusive_groups[self.pair(i, k)] < MAX_INCONCLUSIVE_GROUPS
                };
                let new_pairs = || group.iter().filter(|i| self.is_open(**i, k)).count();
                group.iter().all(fits).then(new_pairs).filter(|n| *n > 0)
            };
            let best = (0..self.flows.len())
                .filter_map(|k| Some((gain(k)?, std::cmp::Reverse(k))))
                .max();
            match best {
                Some((_, std::cmp::Reverse(k))) => group.push(k),
                None => return group,
            }
        }
    }

    /// Pairs are numbered (0,1), (0,2), (1,2), (0,3), …
    fn pair(&self, i: usize, j: usize) -> usize {
        let (low, high) = (i.min(j), i.max(j));
        high * (high - 1) / 2 + low
    }

    fn flows_of_pair(&self, pair: usize) -> [usize; 2] {
        let mut high = ((2.0 * pair as f64 + 0.25).sqrt() + 0.5) as usize;
        while high * (high - 1) / 2 > pair {
            high -= 1;
        }
        while (high + 1) * high / 2 <= pair {
            high += 1;
        }
        [pair - high * (high - 1) / 2, high]
    }
}

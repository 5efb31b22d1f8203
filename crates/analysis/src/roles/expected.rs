//! The local fractions that another run is expected to have under a mapping.

use super::by_data::{SeenData, seen_data};
use super::{Assignment, PartShare, Roles, ThreadData, assign_threads};
use crate::{Affinity, Histogram, PageView, contended_pages, first_touches, thread_numbers};
use nodewise_machine::NodeId;
use nodewise_profile::{ObjectId, Profile, ThreadId};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Local fractions that another run is expected to have under a mapping.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// With threads bound by their numbers.
    pub by_number: f64,
    /// With each thread on the node that `run` finds by the data that the thread writes: that of its part, where these data
    /// lie there. As `by_number` unless threads take their parts in order of arrival, since `run` binds no others by data.
    pub by_data: f64,
}

impl Roles {
    /// The expected local fractions of another run, over accesses to pages that `counts` selects. Pages are on the
    /// nodes in `homes`. What a thread of the recorded run accessed is accessed in another run by the threads that have
    /// its part there. Pages that are `left` to first touch are on the nodes of the threads that have the part of the
    /// thread that touched them.
    #[must_use]
    pub fn expected(
        &self,
        profile: &Profile,
        histogram: &Histogram,
        affinity: &Affinity,
        (homes, left): (&[NodeId], &[bool]),
        counts: impl Fn(&PageView<'_>) -> bool,
    ) -> Expected {
        let touches = first_touches(profile, histogram);
        let own = own_shares(profile, histogram);
        let by = |seen: Option<&[SeenData]>| {
            let mut places = PartNodes::new(self, profile, affinity, (&own, seen));
            let (mut sum, mut local) = (0.0, 0.0);
            for page in histogram.iter().filter(|page| counts(page)) {
                let touch = touches[page.index].filter(|_| left[page.index]);
                for entry in page.entries {
                    let accesses = entry.accesses() as f64;
                    sum += accesses;
                    local += accesses
                        * match touch {
                            Some(touch) => places.same_node_probability(entry.thread, touch.thread),
                            None => places.on(entry.thread, homes[page.index]),
                        };
                }
            }
            if sum > 0.0 { local / sum } else { 1.0 }
        };
        let by_number = by(None);
        let by_data = match self.assignment {
            Assignment::Arrival => by(Some(&seen_data(profile, histogram, affinity, (homes, left)))),
            Assignment::Fixed | Assignment::Dynamic => by_number,
        };
        Expected { by_number, by_data }
    }
}

/// For each page, whether a map's rules would leave it to first touch: it is on its first-touch node, and so are nearly
/// all accesses to its object.
#[must_use]
pub fn left_to_first_touch(
    profile: &Profile,
    histogram: &Histogram,
    affinity: &Affinity,
    homes: &[NodeId],
) -> Vec<bool> {
    const MIN_FIRST_TOUCH_SHARE: f64 = 0.95;
    let touches = first_touches(profile, histogram);
    let there: Vec<bool> = touches
        .iter()
        .zip(homes)
        .map(|(touch, home)| touch.is_some_and(|touch| affinity.node(touch.thread) == *home))
        .collect();
    let mut sums: BTreeMap<ObjectId, (u64, u64)> = BTreeMap::new();
    for page in histogram.iter() {
        let (all, at_home) = sums.entry(page.object).or_default();
        *all += page.accesses();
        *at_home += page.accesses() * u64::from(there[page.index]);
    }
    let is_left = |object: ObjectId| {
        let (all, at_home) = sums[&object];
        at_home as f64 >= MIN_FIRST_TOUCH_SHARE * all as f64
    };
    histogram
        .iter()
        .map(|page| there[page.index] && is_left(page.object))
        .collect()
}

/// Share of a part's accesses by node.
type Shares = BTreeMap<NodeId, f64>;

/// The nodes on which the parts of the recorded threads are done in each run.
struct PartNodes {
    /// The number of each thread of the recorded run, and the node of each number.
    numbers: Vec<u32>,
    nodes: Vec<NodeId>,
    /// For each run, the parts for which threads are known.
    runs: Vec<HashMap<u32, Shares>>,
    /// Without compared runs: the nodes of each part of the team.
    of_team: HashMap<u32, Shares>,
    /// Cache of [`PartNodes::same_node_probability`], by pair of threads.
    same_node_probability: HashMap<(ThreadId, ThreadId), f64>,
}

impl PartNodes {
    /// `own`: for each part, its thread's share of the accesses to it in the recorded run. Threads of other runs are on the
    /// nodes of their numbers, or where `run` sends them by what it has `seen` of the data of each part. Without compared
    /// runs and data, a part of the team is done by any of its threads.
    fn new(
        roles: &Roles,
        profile: &Profile,
        affinity: &Affinity,
        (own, seen): (&[f64], Option<&[SeenData]>),
    ) -> Self {
        let nodes = affinity.by_number(profile);
        let mut runs: BTreeMap<u32, HashMap<u32, Shares>> = BTreeMap::new();
        let workloads = workloads(roles);
        let sent = seen.map_or_else(BTreeMap::new, |seen| sent(roles, &nodes, seen));
        for (&(run, part), threads) in &roles.part_threads {
            let shares = runs.entry(run).or_default().entry(part).or_default();
            let done = match roles.assignment {
                Assignment::Dynamic => dealt(threads, &workloads[&run]),
                Assignment::Fixed | Assignment::Arrival => {
                    done_by(part, threads, own.get(part as usize).copied().unwrap_or(1.0))
                }
            };
            for (thread, share) in done {
                match sent.get(&run).unwrap_or(&nodes).get(thread as usize) {
                    Some(node) => *shares.entry(*node).or_default() += share,
                    // The recorded run had fewer threads: this one may be on any node.
                    None => {
                        for node in &nodes {
                            *shares.entry(*node).or_default() += share / nodes.len() as f64;
                        }
                    }
                }
            }
        }
        let mut anywhere = Shares::new();
        for node in roles.team.iter().filter_map(|n| nodes.get(*n as usize)) {
            *anywhere.entry(*node).or_default() += 1.0 / roles.team.len() as f64;
        }
        let of_team = seen.map_or_else(Vec::new, |seen| {
            assign_threads(&threads(&nodes, seen), &places(&nodes))
        });
        let of_part = |part: &u32| {
            let is_seen = seen.is_some_and(|seen| seen.get(*part as usize).is_some_and(Option::is_some));
            let node = of_team.get(*part as usize).filter(|_| is_seen);
            (
                *part,
                node.map_or_else(|| anywhere.clone(), |node| Shares::from([(*node, 1.0)])),
            )
        };
        let mut runs: Vec<_> = runs.into_values().collect();
        if runs.is_empty() {
            runs.push(HashMap::new());
        }
        Self {
            numbers: thread_numbers(profile),
            nodes,
            runs,
            of_team: roles.team.iter().map(of_part).collect(),
            same_node_probability: HashMap::new(),
        }
    }

    /// The share of a thread's part that is done on `node` in one run.
    fn share(&self, run: &HashMap<u32, Shares>, thread: ThreadId, node: NodeId) -> f64 {
        let part = self.numbers[thread.index()];
        match run.get(&part).or_else(|| self.of_team.get(&part)) {
            Some(shares) => shares.get(&node).copied().unwrap_or(0.0),
            None => f64::from(u8::from(self.nodes[part as usize] == node)),
        }
    }

    /// The share of a thread's part that is done on `node`, mean over the runs.
    fn on(&self, thread: ThreadId, node: NodeId) -> f64 {
        let shares = self.runs.iter().map(|run| self.share(run, thread, node));
        shares.sum::<f64>() / self.runs.len() as f64
    }

    /// The probability that the parts of two threads are done on the same node, mean over the runs.
    fn same_node_probability(&mut self, one: ThreadId, other: ThreadId) -> f64 {
        if one == other {
            return 1.0;
        }
        let pair = (one.min(other), one.max(other));
        if let Some(known) = self.same_node_probability.get(&pair) {
            return *known;
        }
        let all: BTreeSet<NodeId> = self.nodes.iter().copied().collect();
        let in_run = |run: &HashMap<u32, Shares>| {
            let both = |node: &NodeId| self.share(run, one, *node) * self.share(run, other, *node);
            all.iter().map(both).sum::<f64>()
        };
        let share = self.runs.iter().map(in_run).sum::<f64>() / self.runs.len() as f64;
        self.same_node_probability.insert(pair, share);
        share
    }
}

/// For each recorded thread's number, its share of the accesses to its part: to the pages of which it makes more than half of
/// the accesses. 1 if it has none.
fn own_shares(profile: &Profile, histogram: &Histogram) -> Vec<f64> {
    let numbers = thread_numbers(profile);
    let count = numbers.iter().max().map_or(0, |most| *most as usize + 1);
    let contended: BTreeSet<usize> = contended_pages(histogram).iter().map(|c| c.page).collect();
    let mut sums = vec![(0, 0); count];
    for page in histogram.iter().filter(|page| !contended.contains(&page.index)) {
        if let Some(most) = page.entries.iter().max_by_key(|e| e.accesses())
            && 2 * most.accesses() > page.accesses()
        {
            let (own, all) = &mut sums[numbers[most.thread.index()] as usize];
            *own += most.accesses();
            *all += page.accesses();
        }
    }
    let share = |(own, all): (u64, u64)| if all > 0 { own as f64 / all as f64 } else { 1.0 };
    sums.into_iter().map(share).collect()
}

/// The share of a part's work that each thread of another run did there. A thread that makes as large a share of the accesses to
/// the part as its recorded thread did, `own`, does all of its work: the remaining accesses are those of other parts, as in the
/// recorded run.
fn done_by(part: u32, threads: &[PartShare], own: f64) -> Vec<(u32, f64)> {
    let is_matched = move |thread: &PartShare| thread.matched == Some(part);
    let matched: f64 = threads.iter().filter(|t| is_matched(t)).map(|t| t.share).sum();
    let done = (matched / own).min(1.0);
    let rest = (1.0 - done) / (1.0 - matched).max(f64::MIN_POSITIVE);
    let share = |thread: &PartShare| match is_matched(thread) {
        true => (thread.by, done),
        false => (thread.by, thread.share * rest),
    };
    threads.iter().map(share).collect()
}

/// By run, each thread's share of the accesses to all parts.
fn workloads(roles: &Roles) -> BTreeMap<u32, BTreeMap<u32, f64>> {
    let mut sums: BTreeMap<u32, BTreeMap<u32, f64>> = BTreeMap::new();
    for ((run, _), threads) in &roles.part_threads {
        let of_run = sums.entry(*run).or_default();
        for thread in threads {
            *of_run.entry(thread.by).or_default() += thread.accesses;
        }
    }
    for of_run in sums.values_mut() {
        let all: f64 = of_run.values().sum();
        of_run.values_mut().for_each(|share| *share /= all);
    }
    sums
}

/// The share of a part's work that each thread does where work is taken as it comes and each thread gets equally much: how much
/// more or less than its `workload` a thread did of the part in another run is kept. Which threads got most of the work there
/// depends on the CPUs that they had.
fn dealt(threads: &[PartShare], workload: &BTreeMap<u32, f64>) -> Vec<(u32, f64)> {
    let of_part = |by: u32| threads.iter().find(|t| t.by == by).map_or(0.0, |t| t.share);
    let equal = 1.0 / workload.len() as f64;
    let share = |(by, all): (&u32, &f64)| (*by, (equal + of_part(*by) - all).max(0.0));
    let mut shares: Vec<(u32, f64)> = workload.iter().map(share).collect();
    let sum: f64 = shares.iter().map(|(_, share)| share).sum();
    shares.iter_mut().for_each(|(_, share)| *share /= sum);
    shares
}

/// The number of places for threads on each node.
fn places(nodes: &[NodeId]) -> Vec<u32> {
    let mut places = vec![0; nodes.iter().max().map_or(0, |node| node.index() + 1)];
    nodes.iter().for_each(|node| places[node.index()] += 1);
    places
}

/// Threads on the nodes of their numbers, with what was seen of the data of each. Further threads take places from the first on.
fn threads(nodes: &[NodeId], seen: &[SeenData]) -> Vec<ThreadData> {
    let thread = |(number, now): (usize, &NodeId)| ThreadData {
        belongs: seen.get(number).copied().flatten(),
        now: *now,
    };
    let count = nodes.len().max(seen.len());
    nodes.iter().cycle().take(count).enumerate().map(thread).collect()
}

/// By run, the node to which each thread is sent: that of the part that it is matched with, or else that it has the largest
/// share of.
fn sent(roles: &Roles, nodes: &[NodeId], seen: &[SeenData]) -> BTreeMap<u32, Vec<NodeId>> {
    let mut parts: BTreeMap<(u32, u32), (f64, u32)> = BTreeMap::new();
    for ((run, part), part_threads) in &roles.part_threads {
        for thread in part_threads {
            let share = match thread.matched {
                Some(matched) if matched == *part => 1.0 + thread.share,
                _ => thread.share,
            };
            let of_thread = parts.entry((*run, thread.by)).or_insert((share, *part));
            if share > of_thread.0 {
                *of_thread = (share, *part);
            }
        }
    }
    let mut data: BTreeMap<u32, Vec<SeenData>> = BTreeMap::new();
    for ((run, by), (_, part)) in parts {
        let of_run = data.entry(run).or_default();
        of_run.resize(of_run.len().max(by as usize + 1), None);
        of_run[by as usize] = seen.get(part as usize).copied().flatten();
    }
    let places = places(nodes);
    let assigned = |(run, seen): (u32, Vec<SeenData>)| (run, assign_threads(&threads(nodes, &seen), &places));
    data.into_iter().map(assigned).collect()
}

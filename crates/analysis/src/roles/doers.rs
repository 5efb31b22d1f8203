//! Who does the parts of the recorded threads in other runs, and on which nodes.

use super::by_data::SeenData;
use super::taken::{contended, identified, majority_thread};
use super::{Assignment, PartShare, Roles, ThreadData, assign_threads};
use crate::{Affinity, Histogram, thread_numbers};
use nodewise_machine::NodeId;
use nodewise_profile::{Profile, ThreadId};
use std::collections::{BTreeMap, HashMap};

/// A thread with less than this part of an equal share of the work counts as having none: a main thread that initialises data,
/// and waits.
const LEAST_WORK: f64 = 0.1;

/// A thread that does some of a part.
#[derive(Clone, Copy, Debug)]
struct Doer {
    /// The node on which it begins: that of its number.
    begins: NodeId,
    /// The node on which it works.
    works: NodeId,
    /// Its share of the part.
    share: f64,
}

/// The threads that do the parts of the recorded threads, in each run.
pub(super) struct Doers {
    /// The number of each thread of the recorded run, and the node of each number.
    numbers: Vec<u32>,
    nodes: Vec<NodeId>,
    /// By run, the threads that do each part. A part that is not in here is done by the thread of its number.
    runs: Vec<HashMap<u32, Vec<Doer>>>,
    /// Caches of [`Doers::works_on`], and of [`Doers::begins_where_it_works`] by pair of threads: pages ask for them by the
    /// million.
    on_node: HashMap<(ThreadId, NodeId), f64>,
    same_node: HashMap<(ThreadId, ThreadId), f64>,
}

impl Doers {
    /// `own`: for each part, its thread's share of the accesses to it in the recorded run ([`own_shares`]); unused where work is
    /// taken as it comes. Threads of other runs work on the nodes of their numbers, or where `run` sends them by what it has
    /// `seen` of the data of each part. Without compared runs, a part of the team is done by any of its threads.
    pub fn new(
        roles: &Roles,
        profile: &Profile,
        affinity: &Affinity,
        (own, seen): (&[f64], Option<&[SeenData]>),
    ) -> Self {
        let nodes = affinity.by_number(profile);
        let mut runs: BTreeMap<u32, HashMap<u32, Vec<Doer>>> = BTreeMap::new();
        let workloads = workloads(roles);
        let sent = seen.map_or_else(BTreeMap::new, |seen| sent(roles, &workloads, &nodes, seen));
        for (&(run, part), threads) in &roles.part_threads {
            let done = match roles.assignment {
                Assignment::Dynamic => dealt(threads, &workloads[&run]),
                Assignment::Fixed | Assignment::Arrival => {
                    done_by(part, threads, own.get(part as usize).copied().unwrap_or(1.0))
                }
            };
            let doer = |(thread, share): (u32, f64)| {
                let begins = nodes[thread as usize % nodes.len()];
                let works = sent
                    .get(&run)
                    .and_then(|nodes| nodes.get(thread as usize).copied());
                Doer {
                    begins,
                    works: works.unwrap_or(begins),
                    share,
                }
            };
            let doers = done.into_iter().map(doer).collect();
            runs.entry(run).or_default().insert(part, doers);
        }
        let mut runs: Vec<_> = runs.into_values().collect();
        if runs.is_empty() {
            runs.push(of_team(roles, &nodes, seen));
        }
        Self {
            numbers: thread_numbers(profile),
            nodes,
            runs,
            on_node: HashMap::new(),
            same_node: HashMap::new(),
        }
    }

    fn of<'a>(
        &self,
        run: &'a HashMap<u32, Vec<Doer>>,
        thread: ThreadId,
        own: &'a mut Option<Doer>,
    ) -> &'a [Doer] {
        let number = self.numbers[thread.index()];
        if let Some(doers) = run.get(&number) {
            return doers;
        }
        let node = self.nodes[number as usize];
        std::slice::from_ref(own.insert(Doer {
            begins: node,
            works: node,
            share: 1.0,
        }))
    }

    /// The mean over the runs of a figure of the threads that do the part of `one`, and those that do that of `other`.
    fn mean(&self, one: ThreadId, other: ThreadId, figure: impl Fn(&[Doer], &[Doer]) -> f64) -> f64 {
        let of_run = |run| {
            let (mut first, mut second) = (None, None);
            figure(self.of(run, one, &mut first), self.of(run, other, &mut second))
        };
        self.runs.iter().map(of_run).sum::<f64>() / self.runs.len() as f64
    }

    /// The share of a thread's part that is done on `node`.
    pub fn works_on(&mut self, thread: ThreadId, node: NodeId) -> f64 {
        if let Some(known) = self.on_node.get(&(thread, node)) {
            return *known;
        }
        let share = self.mean(thread, thread, |doers, _| {
            shares(doers, |doer| doer.works == node)
        });
        self.on_node.insert((thread, node), share);
        share
    }

    /// The share of the part of `other` that is done on the node on which whoever has the part of `one` begins: where pages are
    /// that it touches first.
    pub fn begins_where_it_works(&mut self, one: ThreadId, other: ThreadId) -> f64 {
        if let Some(known) = self.same_node.get(&(one, other)) {
            return *known;
        }
        let share = match one == other {
            true => self.mean(one, one, |doers, _| {
                shares(doers, |doer| doer.begins == doer.works)
            }),
            false => self.mean(one, other, |first, second| {
                let at_node = |at: &Doer| at.share * shares(second, |doer| doer.works == at.begins);
                first.iter().map(at_node).sum()
            }),
        };
        self.same_node.insert((one, other), share);
        share
    }
}

fn shares(doers: &[Doer], which: impl Fn(&Doer) -> bool) -> f64 {
    doers
        .iter()
        .filter(|doer| which(doer))
        .map(|doer| doer.share)
        .sum()
}

/// The threads that do each part of a team of which no other run is known: any of them. Where `run` has `seen` the data of a part
/// and has a place on their node, it sends whoever has the part there.
fn of_team(roles: &Roles, nodes: &[NodeId], seen: Option<&[SeenData]>) -> HashMap<u32, Vec<Doer>> {
    let share = 1.0 / roles.team.len().max(1) as f64;
    let assigned = seen.map(|seen| assign_threads(&threads(nodes, seen), &places(nodes)));
    let found = |part: u32| {
        let (node, _) = (*seen?.get(part as usize)?)?;
        (assigned.as_ref()?[part as usize] == node).then_some(node)
    };
    let doers = |part: u32| {
        let begins = roles.team.iter().filter_map(|n| nodes.get(*n as usize));
        let doer = |begins: &NodeId| Doer {
            begins: *begins,
            works: found(part).unwrap_or(*begins),
            share,
        };
        begins.map(doer).collect()
    };
    roles.team.iter().map(|part| (*part, doers(*part))).collect()
}

/// For each recorded thread's number, its share of the accesses to its part, the pages of which it makes more than half of the
/// accesses, in objects that other runs are compared by. 1 if it has none, and for huge pages, which say less than the base
/// pages that runs are compared by.
pub(super) fn own_shares(profile: &Profile, histogram: &Histogram) -> Vec<f64> {
    let numbers = thread_numbers(profile);
    let mut sums = vec![(0, 0); numbers.iter().max().map_or(0, |most| *most as usize + 1)];
    let identified = identified(profile);
    let contended = contended(histogram);
    let counts = |page: &crate::PageView<'_>| {
        histogram.shift == 0 && identified[page.object.index()] && !contended.contains(&page.index)
    };
    for page in histogram.iter().filter(counts) {
        if let Some(thread) = majority_thread(&page) {
            let accesses = page
                .entries
                .iter()
                .filter(|e| e.thread.index() == thread)
                .map(|e| e.accesses());
            let (own, all) = &mut sums[numbers[thread] as usize];
            *own += accesses.sum::<u64>();
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
    let is_matched = |thread: &PartShare| thread.matched == Some(part);
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

/// Whether a thread does some of the work of its run.
fn works(workload: &BTreeMap<u32, f64>, thread: u32) -> bool {
    let share = workload.get(&thread).copied().unwrap_or(0.0);
    share * workload.len() as f64 >= LEAST_WORK
}

/// The share of a part's work that each thread does where work is taken as it comes and each thread gets equally much: how many
/// times as much of the part as of all work a thread did in another run is kept. Which threads got most of the work there
/// depends on the CPUs that they had.
fn dealt(threads: &[PartShare], workload: &BTreeMap<u32, f64>) -> Vec<(u32, f64)> {
    let doing = || threads.iter().filter(|thread| works(workload, thread.by));
    let weight = |thread: &PartShare| thread.share / workload[&thread.by];
    let all: f64 = doing().map(weight).sum();
    match all > 0.0 {
        true => doing().map(|thread| (thread.by, weight(thread) / all)).collect(),
        // Only threads that do next to nothing are seen there.
        false => threads.iter().map(|thread| (thread.by, thread.share)).collect(),
    }
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
fn sent(
    roles: &Roles,
    workloads: &BTreeMap<u32, BTreeMap<u32, f64>>,
    nodes: &[NodeId],
    seen: &[SeenData],
) -> BTreeMap<u32, Vec<NodeId>> {
    let mut parts: BTreeMap<(u32, u32), (f64, u32)> = BTreeMap::new();
    for ((run, part), part_threads) in &roles.part_threads {
        for thread in part_threads
            .iter()
            .filter(|thread| works(&workloads[run], thread.by))
        {
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

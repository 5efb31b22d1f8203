//! Chooses nodes for groups of threads that share memory, on machines where link bandwidth does not decide. This is the
//! thread side of the live loop.
//!
//! Samples tell which thread accesses memory of which node, and which threads use the same pages one after the other
//! (as Cruz, Diener and others detect communication by page faults). From both, a search finds nodes for all threads
//! such that few accesses stay remote once memory has followed, and little memory has to follow. Decisions are carried
//! out elsewhere.

// Why: docs/decisions/live-loop.md

mod assignment;
mod joint;
mod judge;
mod sharing;

#[cfg(test)]
mod properties;

pub use assignment::{Room, Thread};
pub use sharing::Sharing;

use assignment::{Cost, assign, overfull};
use joint::JointDecisions;
use judge::{ENOUGH, Judge, Verdict};
use nodewise_machine::NodeId;
use std::collections::{BTreeMap, BTreeSet};

/// Smallest gain for which threads are bound to nodes, as a share of all accesses. A program that would gain less
/// counts as well placed.
const LEAST_GAIN: f64 = 0.05;
/// For how many consecutive steps that gain must be predicted: the kernel's own balancing may be about to do the same.
const CONFIRMED: u32 = 2;
/// The same for threads that would move to where their memory is: the kernel may be moving the memory to them, and if
/// both happened at once, thread and memory would swap nodes.
const CONFIRMED_TOWARDS_MEMORY: u32 = 6;

/// An order about the threads of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Bind each of these threads to its node.
    Bind(BTreeMap<u32, NodeId>),
    /// Give all threads back their original CPUs.
    Release(Why),
}

/// Why a decision is undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// More accesses were remote afterwards than before.
    MoreRemote,
    /// Its threads wait for CPUs of their nodes while other nodes have free CPUs, as more of its threads are active
    /// now.
    Overfull,
    /// It was bound only to make room for threads of a process that is no longer bound.
    RoomNotNeeded,
}

/// What a step decides about threads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThreadDecision {
    /// The order for each process that gets one.
    pub orders: BTreeMap<u32, Order>,
    /// The share of all threads' accesses that is remote now, and once memory has followed, 0 to 1.
    pub remote: (f64, f64),
}

/// Decides once an interval which threads are bound to which nodes.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    processes: BTreeMap<u32, Process>,
    joint: JointDecisions,
}

/// The state of a process between steps.
#[derive(Clone, Debug, Default)]
struct Process {
    judge: Judge,
    /// Number of consecutive steps in which it would gain.
    gaining: u32,
    /// Number of consecutive steps in which it had bound threads on an overfull node.
    waiting: u32,
}

impl Groups {
    /// Decides at time `now_ns`. `rooms`: the free CPUs of each node. `threads` has only threads that may be moved.
    pub fn step(
        &mut self,
        now_ns: u64,
        threads: &[Thread],
        sharing: &Sharing,
        rooms: &[Room],
    ) -> ThreadDecision {
        let processes: BTreeSet<u32> = threads.iter().map(|t| t.process).collect();
        self.processes.retain(|process, _| processes.contains(process));
        let cost = Cost::new(threads, sharing);
        let current = cost.current();
        let overfull = overfull(threads, rooms, &current);
        let mut decision = ThreadDecision::default();
        for process in &processes {
            let own = || threads.iter().filter(|t| t.process == *process);
            let known = self.processes.entry(*process).or_default();
            let waits = own().any(|t| t.bound.is_some_and(|node| overfull.contains(&node)));
            known.waiting = if waits { known.waiting + 1 } else { 0 };
            if known.judge.look(now_ns, own()) == Verdict::Worse {
                decision.orders.insert(*process, Order::Release(Why::MoreRemote));
            } else if known.waiting >= CONFIRMED {
                known.waiting = 0;
                known.judge.released(now_ns);
                decision.orders.insert(*process, Order::Release(Why::Overfull));
            }
        }
        self.release_joint(now_ns, threads, &mut decision);
        let Some(best) = assign(&cost, rooms) else {
            return decision;
        };
        // Adding 0 turns the sum of nothing, -0, into 0.
        decision.remote = (cost.remote_now(&current), cost.remote_later(&best) + 0.0);
        let search = Found {
            cost: &cost,
            rooms,
            current: &current,
            best: &best,
        };
        let gaining = processes.iter().copied();
        let gaining: BTreeSet<u32> = gaining
            .filter(|process| !decision.orders.contains_key(process))
            .filter(|process| self.confirm_gain(now_ns, *process, &search))
            .collect();
        let free = |process: &u32| {
            !decision.orders.contains_key(process) && !self.processes[process].judge.backs_off(now_ns)
        };
        let bound = search.together(gaining.clone(), free);
        self.joint.acted(now_ns, &bound, &gaining, threads);
        for process in bound {
            let known = self.processes.entry(process).or_default();
            known.gaining = 0;
            let own = || threads.iter().zip(&best).filter(|(t, _)| t.process == process);
            // One that only makes room need not gain by it.
            match gaining.contains(&process) {
                true => known.judge.acted(now_ns, own().map(|(t, _)| t)),
                false => known.judge.superseded(),
            }
            let nodes = own().map(|(t, to)| (t.number, *to)).collect();
            decision.orders.insert(process, Order::Bind(nodes));
        }
        decision
    }

    /// Forgets a process that has ended.
    pub fn forget(&mut self, process: u32) {
        self.processes.remove(&process);
        self.joint.released(&BTreeSet::from([process]));
    }

    /// Releases the processes of joint decisions that are worse than what was before, or have lost their purpose.
    fn release_joint(&mut self, now_ns: u64, threads: &[Thread], decision: &mut ThreadDecision) {
        self.joint.released(&decision.orders.keys().copied().collect());
        let undone = self.joint.look(now_ns, threads);
        for process in &undone.worse {
            self.processes.entry(*process).or_default().judge.undone(now_ns);
            decision.orders.insert(*process, Order::Release(Why::MoreRemote));
        }
        for process in &undone.room_not_needed {
            decision
                .orders
                .insert(*process, Order::Release(Why::RoomNotNeeded));
        }
    }

    /// Whether a process has gained by the assignment found for long enough.
    fn confirm_gain(&mut self, now_ns: u64, process: u32, search: &Found<'_>) -> bool {
        let of = |t: &Thread| t.process == process;
        let Found {
            cost, current, best, ..
        } = *search;
        let own = || cost.threads.iter().zip(best).filter(|(t, _)| of(t));
        let known = self.processes.entry(process).or_default();
        let samples: f64 = own().map(|(t, _)| t.accesses.iter().sum::<f64>()).sum();
        let settled = own().all(|(t, to)| t.bound == Some(*to));
        if settled || samples < ENOUGH || known.judge.backs_off(now_ns) {
            known.gaining = 0;
            return false;
        }
        let (now, then) = (cost.of(current, of), cost.of(best, of));
        let gains = now.remote_now - then.remote_later >= LEAST_GAIN;
        known.gaining = if gains { known.gaining + 1 } else { 0 };
        let parted = now.remote_later - then.remote_later >= LEAST_GAIN;
        let stays = own().all(|(t, to)| t.node == *to);
        let confirmed = match parted || stays {
            true => CONFIRMED,
            false => CONFIRMED_TOWARDS_MEMORY,
        };
        known.gaining >= confirmed
    }
}

/// The result of a search.
struct Found<'a> {
    cost: &'a Cost<'a>,
    rooms: &'a [Room],
    /// The node of each thread now.
    current: &'a [NodeId],
    /// Its node in the best assignment.
    best: &'a [NodeId],
}

impl Found<'_> {
    /// The processes to bind so that those that gain are, and no node becomes overfull: the assignment is one of all
    /// processes, so threads of others may have to make room. Those that are `free` do; processes that need more room
    /// wait.
    fn together(&self, mut gaining: BTreeSet<u32>, free: impl Fn(&u32) -> bool) -> BTreeSet<u32> {
        loop {
            let bound = self.making_room(&gaining, &free);
            let crowded = self.made_overfull(&bound);
            if crowded.is_empty() {
                return bound;
            }
            let comes = |(thread, from, to): (&Thread, NodeId, NodeId)| {
                (from != to && crowded.contains(&to)).then_some(thread.process)
            };
            let coming: BTreeSet<u32> = self.each().filter_map(comes).collect();
            let before = gaining.len();
            gaining.retain(|process| !coming.contains(process));
            if gaining.len() == before {
                gaining.pop_last(); // others cannot make room without crowding a node themselves
            }
        }
    }

    /// These processes, and the free ones whose threads have to leave nodes that would be overfull otherwise.
    fn making_room(&self, gaining: &BTreeSet<u32>, free: impl Fn(&u32) -> bool) -> BTreeSet<u32> {
        let mut bound = gaining.clone();
        loop {
            let crowded = self.made_overfull(&bound);
            let leaves = |(thread, from, to): (&Thread, NodeId, NodeId)| {
                (from != to && crowded.contains(&from)).then_some(thread.process)
            };
            let before = bound.len();
            let leaving: Vec<u32> = self.each().filter_map(leaves).filter(&free).collect();
            bound.extend(leaving);
            if bound.len() == before {
                return bound;
            }
        }
    }

    /// The nodes that get more threads and are overfull then, if only the threads of these processes go where they are best.
    fn made_overfull(&self, bound: &BTreeSet<u32>) -> BTreeSet<NodeId> {
        let place = |(thread, from, to): (&Thread, NodeId, NodeId)| match bound.contains(&thread.process) {
            true => to,
            false => from,
        };
        let after: Vec<NodeId> = self.each().map(place).collect();
        let on = |nodes: &[NodeId], node: &NodeId| nodes.iter().filter(|n| *n == node).count();
        let mut crowded = overfull(self.cost.threads, self.rooms, &after);
        crowded.retain(|node| on(&after, node) > on(self.current, node));
        crowded
    }

    /// Each thread, its node now, and the best one.
    fn each(&self) -> impl Iterator<Item = (&Thread, NodeId, NodeId)> {
        let ends = self.current.iter().zip(self.best);
        let threads = self.cost.threads.iter().zip(ends);
        threads.map(|(thread, (from, to))| (thread, *from, *to))
    }
}

//! Decisions that bind several processes at once, some of them only to make room for others, judged as one.

use super::assignment::Thread;
use super::judge::{Local, Pending, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// A decision about several processes.
#[derive(Clone, Debug)]
struct Joint {
    /// The processes that were expected to gain.
    gaining: BTreeSet<u32>,
    /// The processes that only made room for those.
    made_room: BTreeSet<u32>,
    /// The judgement to come, if it is still to come: when it was decided, and the members as they were before.
    pending: Option<(u64, BTreeMap<u32, Member>)>,
}

/// A process before a decision.
#[derive(Clone, Copy, Debug)]
struct Member {
    /// The CPUs that its threads would use if they never had to wait: what its local share weighs.
    demand: f64,
    local: Local,
}

impl Joint {
    fn members(&self) -> BTreeSet<u32> {
        &self.gaining | &self.made_room
    }

    fn leave(&mut self, process: u32) {
        self.gaining.remove(&process);
        self.made_room.remove(&process);
    }
}

/// What happens to the processes of joint decisions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Undone {
    /// The members of decisions after which more accesses of all members were remote.
    pub worse: BTreeSet<u32>,
    /// The processes that made room for others that are no longer bound.
    pub room_not_needed: BTreeSet<u32>,
}

/// The joint decisions that are in force.
#[derive(Clone, Debug, Default)]
pub(super) struct JointDecisions(Vec<Joint>);

impl JointDecisions {
    /// Records that these processes were bound at one time, the `gaining` ones for their own sake. `threads`: all
    /// threads as they were before.
    pub fn acted(&mut self, now_ns: u64, bound: &BTreeSet<u32>, gaining: &BTreeSet<u32>, threads: &[Thread]) {
        for joint in &mut self.0 {
            // A process that is bound again for its own sake still needs the room that was made for it.
            let again = &joint.gaining & gaining;
            if !again.is_disjoint(bound) {
                joint.pending = None;
            }
            bound.difference(&again).for_each(|process| joint.leave(*process));
        }
        self.prune();
        let made_room: BTreeSet<u32> = bound - gaining;
        // Who is bound for its own sake alone is judged by itself.
        if made_room.is_empty() {
            return;
        }
        self.0.push(Joint {
            gaining: bound & gaining,
            made_room,
            pending: Some((now_ns, members(threads, bound))),
        });
    }

    /// Records that these processes are no longer bound as they were, or have ended.
    pub fn released(&mut self, processes: &BTreeSet<u32>) {
        for joint in &mut self.0 {
            processes.iter().for_each(|process| joint.leave(*process));
        }
        self.prune();
    }

    fn prune(&mut self) {
        self.0.retain(|joint| !joint.made_room.is_empty());
    }

    /// Judges the decisions for which there was time, and finds those that are without purpose. `threads`: the active
    /// threads; a process without any may be idle, keeps its room, and is released when it works again.
    pub fn look(&mut self, now_ns: u64, threads: &[Thread]) -> Undone {
        let active: BTreeSet<u32> = threads.iter().map(|t| t.process).collect();
        let mut undone = Undone::default();
        for joint in &mut self.0 {
            if joint.gaining.is_empty() {
                undone.room_not_needed.extend(&joint.made_room & &active);
                continue;
            }
            let Some((at_ns, before)) = &joint.pending else {
                continue;
            };
            // Without the samples of all members it cannot be compared with what was before.
            if !joint.members().is_subset(&active) {
                continue;
            }
            match verdict(now_ns, *at_ns, before, &members(threads, &joint.members())) {
                Verdict::Open => {}
                Verdict::Good => joint.pending = None,
                Verdict::Worse => undone.worse.extend(joint.members()),
            }
        }
        self.released(&(&undone.worse | &undone.room_not_needed));
        undone
    }
}

fn members(threads: &[Thread], processes: &BTreeSet<u32>) -> BTreeMap<u32, Member> {
    let member = |process: &u32| {
        let own = || threads.iter().filter(|t| t.process == *process);
        let demand = own().map(|t| t.load).sum();
        (
            *process,
            Member {
                demand,
                local: Local::of(own()),
            },
        )
    };
    processes.iter().map(member).collect()
}

/// The judgement by the members that were sampled before and after.
fn verdict(
    now_ns: u64,
    at_ns: u64,
    before: &BTreeMap<u32, Member>,
    after: &BTreeMap<u32, Member>,
) -> Verdict {
    let sampled = |m: &Member| m.local.samples > 0.0;
    let both = before
        .iter()
        .filter_map(|(process, b)| Some((b, after.get(process)?)));
    let both: Vec<(&Member, &Member)> = both.filter(|(b, a)| sampled(b) && sampled(a)).collect();
    let of = |local: fn(&(&Member, &Member)) -> Local| {
        together(both.iter().map(|pair| (pair.0.demand, local(pair))))
    };
    let pending = Pending {
        at_ns,
        before: of(|pair| pair.0.local),
    };
    pending.verdict(now_ns, of(|pair| pair.1.local))
}

/// The local share of all of them, each with its weight, and the number of samples that an unweighted share as certain
/// as this one would have (Kish's effective sample size).
fn together(all: impl Iterator<Item = (f64, Local)>) -> Local {
    let (mut weights, mut share, mut variance) = (0.0, 0.0, 0.0);
    for (weight, local) in all {
        weights += weight;
        share += weight * local.share;
        variance += weight * weight / local.samples;
    }
    match variance > 0.0 {
        true => Local {
            share: share / weights,
            samples: weights * weights / variance,
        },
        false => Local::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::NodeId;

    const SECOND: u64 = 1_000_000_000;

    /// A thread of each process, on node 0, with its demand and its local and remote samples.
    fn threads(samples: &[(u32, f64, f64, f64)]) -> Vec<Thread> {
        let thread = |(process, load, local, remote): &(u32, f64, f64, f64)| Thread {
            process: *process,
            number: *process,
            node: NodeId(0),
            bound: None,
            load: *load,
            accesses: vec![*local, *remote],
        };
        samples.iter().map(thread).collect()
    }

    /// Process 2 makes room for process 1.
    fn decided(before: &[Thread]) -> JointDecisions {
        let mut joint = JointDecisions::default();
        joint.acted(0, &BTreeSet::from([1, 2]), &BTreeSet::from([1]), before);
        joint
    }

    fn before() -> Vec<Thread> {
        threads(&[(1, 1.0, 100.0, 900.0), (2, 1.0, 99.0, 1.0)])
    }

    #[test]
    fn all_members_are_released_if_together_they_lost() {
        let after = threads(&[(1, 1.0, 300.0, 700.0), (2, 1.0, 10.0, 990.0)]);
        let mut joint = decided(&before());
        assert_eq!(joint.look(7 * SECOND, &after), Undone::default(), "too early");
        assert_eq!(joint.look(8 * SECOND, &after).worse, BTreeSet::from([1, 2]));
        assert_eq!(joint.look(9 * SECOND, &after), Undone::default(), "judged once");
    }

    #[test]
    fn a_process_that_made_room_may_lose_less_than_the_others_gain() {
        let after = threads(&[(1, 1.0, 100.0, 0.0), (2, 1.0, 500.0, 500.0)]);
        assert_eq!(decided(&before()).look(8 * SECOND, &after), Undone::default());
    }

    #[test]
    fn a_few_samples_of_a_process_that_weighs_much_are_no_proof() {
        let before = threads(&[(1, 1.0, 200.0, 800.0), (2, 8.0, 3.0, 0.0)]);
        let after = threads(&[(1, 1.0, 1000.0, 0.0), (2, 8.0, 1.0, 2.0)]);
        assert_eq!(decided(&before).look(40 * SECOND, &after), Undone::default());
        let many = threads(&[(1, 1.0, 1000.0, 0.0), (2, 8.0, 1000.0, 2000.0)]);
        let before = threads(&[(1, 1.0, 200.0, 800.0), (2, 8.0, 3000.0, 0.0)]);
        assert_eq!(
            decided(&before).look(40 * SECOND, &many).worse,
            BTreeSet::from([1, 2])
        );
    }

    #[test]
    fn room_is_given_back_once_the_process_that_needed_it_is_released_or_has_ended() {
        let both = threads(&[(1, 1.0, 100.0, 0.0), (2, 1.0, 100.0, 0.0)]);
        let back = BTreeSet::from([2]);
        let mut joint = decided(&before());
        assert_eq!(
            joint.look(SECOND, &both[1..]),
            Undone::default(),
            "it may be idle"
        );
        joint.released(&BTreeSet::from([1]));
        assert_eq!(
            joint.look(SECOND, &both[..1]),
            Undone::default(),
            "nothing to release while it is idle"
        );
        assert_eq!(joint.look(2 * SECOND, &both).room_not_needed, back);
        assert_eq!(joint.look(3 * SECOND, &both), Undone::default());
        // Who has been bound for its own sake since then stays.
        let mut joint = decided(&before());
        joint.acted(SECOND, &back, &back, &both);
        joint.released(&BTreeSet::from([1]));
        assert_eq!(joint.look(SECOND, &both), Undone::default());
    }

    #[test]
    fn a_process_that_is_bound_again_keeps_its_room() {
        let both = threads(&[(1, 1.0, 100.0, 0.0), (2, 1.0, 0.0, 100.0)]);
        let again = BTreeSet::from([1]);
        let mut joint = decided(&before());
        joint.acted(SECOND, &again, &again, &both);
        assert_eq!(joint.look(20 * SECOND, &both), Undone::default());
        joint.released(&again);
        assert_eq!(
            joint.look(21 * SECOND, &both).room_not_needed,
            BTreeSet::from([2])
        );
    }
}

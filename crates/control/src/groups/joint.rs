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
    /// The judgement to come, if it is still to come.
    pending: Option<Pending>,
}

impl Joint {
    fn members(&self) -> impl Iterator<Item = u32> + '_ {
        self.gaining.union(&self.made_room).copied()
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
        self.released(bound);
        let made_room: BTreeSet<u32> = bound - gaining;
        // Who is bound for its own sake alone is judged by itself.
        if made_room.is_empty() {
            return;
        }
        let gaining = bound & gaining;
        let before = local(threads, bound);
        self.0.push(Joint {
            gaining,
            made_room,
            pending: Some(Pending {
                at_ns: now_ns,
                before,
            }),
        });
    }

    /// Records that these processes are no longer bound as they were.
    pub fn released(&mut self, processes: &BTreeSet<u32>) {
        for joint in &mut self.0 {
            processes.iter().for_each(|process| joint.leave(*process));
        }
        self.0.retain(|joint| !joint.made_room.is_empty());
    }

    /// Judges the decisions for which there was time, and finds those that are without purpose. `threads`: the active
    /// threads; a process without any may be idle and keeps its room.
    pub fn look(&mut self, now_ns: u64, threads: &[Thread]) -> Undone {
        let active: BTreeSet<u32> = threads.iter().map(|t| t.process).collect();
        for joint in &mut self.0 {
            // Without the samples of all members it cannot be compared with what was before.
            if !joint.members().all(|process| active.contains(&process)) {
                joint.pending = None;
            }
            joint.made_room.retain(|process| active.contains(process));
        }
        self.0.retain(|joint| !joint.made_room.is_empty());
        let mut undone = Undone::default();
        for joint in &mut self.0 {
            if joint.gaining.is_empty() {
                undone.room_not_needed.extend(&joint.made_room);
                continue;
            }
            let Some(pending) = &joint.pending else {
                continue;
            };
            match pending.verdict(now_ns, local(threads, &joint.members().collect())) {
                Verdict::Open => {}
                Verdict::Good => joint.pending = None,
                Verdict::Worse => undone.worse.extend(joint.members()),
            }
        }
        self.released(&(&undone.worse | &undone.room_not_needed));
        undone
    }
}

/// The local share of all members' accesses. Each process counts as much as it uses CPUs: the kernel samples processes
/// more often where more is remote.
fn local(threads: &[Thread], members: &BTreeSet<u32>) -> Local {
    let mut own: BTreeMap<u32, Vec<&Thread>> = BTreeMap::new();
    for thread in threads.iter().filter(|t| members.contains(&t.process)) {
        own.entry(thread.process).or_default().push(thread);
    }
    let (mut share, mut load, mut samples) = (0.0, 0.0, 0.0);
    for threads in own.values() {
        let process = Local::of(threads.iter().copied());
        samples += process.samples;
        // Of a process without samples nothing is known.
        if process.samples > 0.0 {
            let used: f64 = threads.iter().map(|t| t.load).sum();
            share += used * process.share;
            load += used;
        }
    }
    Local {
        share: if load > 0.0 { share / load } else { 0.0 },
        samples,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::NodeId;

    const SECOND: u64 = 1_000_000_000;

    /// A thread of each process, on node 0, with local and remote samples.
    fn threads(samples: &[(u32, f64, f64)]) -> Vec<Thread> {
        let thread = |(process, local, remote): &(u32, f64, f64)| Thread {
            process: *process,
            number: *process,
            node: NodeId(0),
            bound: None,
            load: 1.0,
            accesses: vec![*local, *remote],
        };
        samples.iter().map(thread).collect()
    }

    fn decided() -> JointDecisions {
        let mut joint = JointDecisions::default();
        let before = threads(&[(1, 100.0, 900.0), (2, 99.0, 1.0), (3, 0.0, 0.0)]);
        joint.acted(0, &BTreeSet::from([1, 2]), &BTreeSet::from([1]), &before);
        joint
    }

    #[test]
    fn all_members_are_released_if_together_they_lost() {
        let after = threads(&[(1, 300.0, 700.0), (2, 10.0, 990.0)]);
        let mut joint = decided();
        assert_eq!(joint.look(7 * SECOND, &after), Undone::default(), "too early");
        assert_eq!(joint.look(8 * SECOND, &after).worse, BTreeSet::from([1, 2]));
        assert_eq!(joint.look(9 * SECOND, &after), Undone::default(), "judged once");
    }

    #[test]
    fn a_process_that_made_room_may_lose_less_than_the_others_gain() {
        let after = threads(&[(1, 100.0, 0.0), (2, 500.0, 500.0)]);
        assert_eq!(decided().look(8 * SECOND, &after), Undone::default());
    }

    #[test]
    fn room_is_given_back_once_the_process_that_needed_it_is_released() {
        let both = threads(&[(1, 100.0, 0.0), (2, 100.0, 0.0)]);
        let back = BTreeSet::from([2]);
        let mut joint = decided();
        assert_eq!(
            joint.look(SECOND, &both[1..]),
            Undone::default(),
            "it may be idle"
        );
        joint.released(&BTreeSet::from([1]));
        assert_eq!(joint.look(SECOND, &both).room_not_needed, back);
        // Who has been bound for its own sake since then stays.
        let mut joint = decided();
        joint.acted(SECOND, &back, &back, &both);
        joint.released(&BTreeSet::from([1]));
        assert_eq!(joint.look(SECOND, &both), Undone::default());
    }
}

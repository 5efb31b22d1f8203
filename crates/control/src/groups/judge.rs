//! Judges a decision about a process by the samples after it.

use super::assignment::Thread;

/// Fewest recent samples of a process that suffice for a decision.
pub(super) const ENOUGH: f64 = 64.0;
/// Time between a decision and its judgement, nanoseconds, in which memory follows.
const SETTLES_NS: u64 = 8_000_000_000;
/// Smallest decrease of the local share for which a decision is undone.
const LOSS: f64 = 0.03;
/// The decrease must also exceed this many standard deviations.
const DEVIATIONS: f64 = 3.0;
/// First back-off after a decision (it lasts until the judgement), and after one that was undone, nanoseconds; each
/// further one doubles it.
const BACKS_OFF_NS: u64 = SETTLES_NS;
const UNDONE_BACKS_OFF_NS: u64 = 30_000_000_000;
/// Largest number of doublings.
const DOUBLINGS: u32 = 6;

/// The judgement of the last decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// There is no decision to judge, or it is too early.
    Open,
    /// The remote share has not grown.
    Good,
    /// The remote share has grown.
    Worse,
}

/// The share of local samples, and the number of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Local {
    pub share: f64,
    pub samples: f64,
}

/// A decision that is to be judged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub at_ns: u64,
    /// What was local before it.
    pub before: Local,
}

impl Pending {
    /// The judgement by what is local now, once there was time for memory to follow and there are enough samples.
    pub fn verdict(&self, now_ns: u64, after: Local) -> Verdict {
        let few = after.samples < ENOUGH && now_ns < self.at_ns + 4 * SETTLES_NS;
        match now_ns < self.at_ns + SETTLES_NS || few {
            true => Verdict::Open,
            false if after.is_less_than(self.before) => Verdict::Worse,
            false => Verdict::Good,
        }
    }
}

/// The history of decisions about one process.
#[derive(Clone, Debug, Default)]
pub(super) struct Judge {
    pending: Option<Pending>,
    decisions: u32,
    undone: u32,
    until_ns: u64,
}

impl Judge {
    /// Whether the process is in back-off, so that nothing is decided about it.
    #[must_use]
    pub fn backs_off(&self, now_ns: u64) -> bool {
        now_ns < self.until_ns
    }

    /// Records a decision. `threads`: the process's threads as they were before it.
    pub fn acted<'a>(&mut self, now_ns: u64, threads: impl Iterator<Item = &'a Thread>) {
        self.pending = Some(Pending {
            at_ns: now_ns,
            before: Local::of(threads),
        });
        self.until_ns = now_ns + (BACKS_OFF_NS << self.decisions.min(DOUBLINGS));
        self.decisions += 1;
    }

    /// Records a decision for other processes' sake, which is not judged by this process alone: what was decided before
    /// is no longer in force.
    pub fn superseded(&mut self) {
        self.pending = None;
    }

    /// Records that a decision was undone because its nodes became overfull.
    pub fn released(&mut self, now_ns: u64) {
        self.pending = None;
        self.until_ns = now_ns + (BACKS_OFF_NS << self.decisions.min(DOUBLINGS));
        self.decisions += 1;
    }

    /// Judges the last decision, once there was time for memory to follow.
    pub fn look<'a>(&mut self, now_ns: u64, threads: impl Iterator<Item = &'a Thread>) -> Verdict {
        let verdict = self.pending.map_or(Verdict::Open, |pending| {
            pending.verdict(now_ns, Local::of(threads))
        });
        match verdict {
            Verdict::Open => {}
            Verdict::Good => self.pending = None,
            Verdict::Worse => self.undone(now_ns),
        }
        verdict
    }

    /// Records that the last decision was undone because more was remote after it.
    pub fn undone(&mut self, now_ns: u64) {
        self.pending = None;
        self.until_ns = now_ns + (UNDONE_BACKS_OFF_NS << self.undone.min(DOUBLINGS));
        self.undone += 1;
    }
}

impl Local {
    pub fn of<'a>(threads: impl Iterator<Item = &'a Thread>) -> Self {
        let (mut local, mut all) = (0.0, 0.0);
        for thread in threads {
            local += thread.accesses.get(thread.node.index()).unwrap_or(&0.0);
            all += thread.accesses.iter().sum::<f64>();
        }
        Self {
            share: if all > 0.0 { local / all } else { 0.0 },
            samples: all,
        }
    }

    fn is_less_than(self, before: Self) -> bool {
        let both = self.samples + before.samples;
        if self.samples <= 0.0 || before.samples <= 0.0 {
            return false;
        }
        let mean = (self.share * self.samples + before.share * before.samples) / both;
        let deviation = (mean * (1.0 - mean) * (1.0 / self.samples + 1.0 / before.samples)).sqrt();
        before.share - self.share > LOSS.max(DEVIATIONS * deviation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::NodeId;

    const SECOND: u64 = 1_000_000_000;

    fn thread(local: f64, remote: f64) -> [Thread; 1] {
        [Thread {
            process: 1,
            number: 1,
            node: NodeId(0),
            bound: None,
            load: 1.0,
            accesses: vec![local, remote],
        }]
    }

    #[test]
    fn a_decision_that_makes_more_remote_is_undone_and_not_soon_repeated() {
        let mut judge = Judge::default();
        judge.acted(0, thread(900.0, 100.0).iter());
        assert!(judge.backs_off(7 * SECOND) && !judge.backs_off(8 * SECOND));
        assert_eq!(judge.look(7 * SECOND, thread(0.0, 900.0).iter()), Verdict::Open);
        assert_eq!(
            judge.look(8 * SECOND, thread(700.0, 300.0).iter()),
            Verdict::Worse
        );
        assert!(judge.backs_off(37 * SECOND) && !judge.backs_off(38 * SECOND));
        assert_eq!(
            judge.look(50 * SECOND, thread(0.0, 900.0).iter()),
            Verdict::Open,
            "judged once"
        );
    }

    #[test]
    fn what_may_be_chance_is_kept() {
        for after in [(880.0, 120.0), (70.0, 10.0), (1000.0, 0.0)] {
            let mut judge = Judge::default();
            judge.acted(0, thread(900.0, 100.0).iter());
            assert_eq!(
                judge.look(8 * SECOND, thread(after.0, after.1).iter()),
                Verdict::Good,
                "{after:?}"
            );
        }
    }

    #[test]
    fn who_is_moved_again_and_again_is_moved_ever_more_rarely() {
        let mut judge = Judge::default();
        let mut pauses = Vec::new();
        let mut now = 0;
        for _ in 0..9 {
            judge.acted(now, thread(1.0, 1.0).iter());
            let free = (now / SECOND..).find(|s| !judge.backs_off(s * SECOND)).unwrap() * SECOND;
            pauses.push((free - now) / SECOND);
            now = free;
        }
        assert_eq!(pauses, [8, 16, 32, 64, 128, 256, 512, 512, 512]);
    }
}

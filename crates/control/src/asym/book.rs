//! What is remembered of an application.

use super::{Application, Refused, Settings};
use crate::budget::Budget;
use nodewise_machine::NodeId;

/// How often the time that an application is left alone for doubles: 64 steps at most, of four.
const DOUBLINGS: u32 = 4;

/// One application's account.
#[derive(Clone, Debug)]
pub(super) struct Book {
    pub budget: Budget,
    /// Bytes that are still to be moved for what was decided.
    pending: u64,
    /// How often it was moved.
    moves: u32,
    /// Step before which it is left alone.
    rests_until: u64,
    pub under_way: Option<UnderWay>,
}

/// A move whose memory may still be following.
#[derive(Clone, Debug)]
pub(super) struct UnderWay {
    /// On the scheduler's own clock.
    pub since_ns: u64,
    /// Each node left by all of its threads, and where they went, by share.
    pub from: Vec<(NodeId, Vec<(NodeId, f64)>)>,
}

impl Book {
    pub fn new(settings: &Settings) -> Self {
        Self {
            budget: Budget::new(
                settings.budget,
                settings.seconds_per_gb,
                settings.seconds_per_batch,
            ),
            pending: 0,
            moves: 0,
            rests_until: 0,
            under_way: None,
        }
    }

    /// It has run so long by now; what goes backwards adds nothing.
    pub fn ran(&mut self, run_ns: u64) {
        self.budget.ran(run_ns.saturating_sub(self.budget.run_ns()));
    }

    /// Whether it is left alone in this step.
    pub fn rests(&self, step: u64) -> bool {
        self.under_way.is_some() || step < self.rests_until
    }

    /// Why so many bytes may not be moved, if they may not (AsymSched 4.2, step 4).
    pub fn refuses(&self, application: u32, bytes: u64) -> Option<Refused> {
        let allowed_ns = self.budget.allowed_ns()?;
        let predicted_ns = self.budget.predicted_ns(bytes);
        let spent_ns = self.budget.spent_ns as f64 + self.budget.predicted_ns(self.pending);
        (bytes > 0 && spent_ns + predicted_ns > allowed_ns).then_some(Refused {
            application,
            bytes,
            predicted_ns,
            spent_ns,
            allowed_ns,
        })
    }

    /// Threads have been told to move. Each further time it is left alone for twice as long, a minute or so in the
    /// end, so that what keeps changing back and forth is followed ever less.
    pub fn moved(&mut self, step: u64, rest: u32, bytes: u64, under_way: UnderWay) {
        self.pending = self.pending.saturating_add(bytes);
        self.rests_until = step
            .saturating_add(u64::from(rest) << self.moves.min(DOUBLINGS))
            .saturating_add(1);
        self.moves = self.moves.saturating_add(1);
        self.under_way = Some(under_way);
    }

    /// So many bytes were moved in this time.
    pub fn spent(&mut self, took_ns: u64, bytes: u64) {
        self.pending = self.pending.saturating_sub(bytes);
        self.budget.spend(took_ns, bytes);
    }

    /// All memory that was to follow has, or never will.
    pub fn settled(&mut self) {
        self.pending = 0;
    }
}

impl UnderWay {
    /// A_oldA: the share of accesses that go to nodes it has left; `None` without accesses.
    pub fn old_share(&self, application: &Application) -> Option<f64> {
        let on_old = |(node, _): &(usize, &f64)| self.from.iter().any(|(old, _)| old.index() == *node);
        let all: f64 = application.accesses.iter().sum();
        let old: f64 = application
            .accesses
            .iter()
            .enumerate()
            .filter(on_old)
            .map(|(_, n)| n)
            .sum();
        (all > 0.0).then(|| old / all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GB: u64 = 1_000_000_000;

    fn under_way() -> UnderWay {
        UnderWay {
            since_ns: 0,
            from: Vec::new(),
        }
    }

    #[test]
    fn what_is_still_to_be_moved_is_set_aside_until_it_was_or_never_will_be() {
        let mut book = Book::new(&Settings::default());
        book.ran(100 * GB);
        assert_eq!(book.refuses(0, 10 * GB), None);
        book.moved(1, 4, 10 * GB, under_way());
        let refused = book.refuses(0, 10 * GB).expect("3 s of 5 are set aside");
        assert!((refused.spent_ns - 3e9).abs() < 2e6, "{refused:?}");
        let mut settled = book.clone();
        settled.settled();
        assert_eq!(settled.refuses(0, 10 * GB), None);
        book.spent(3 * GB, 10 * GB);
        let refused = book.refuses(0, 10 * GB).expect("3 s of 5 are spent");
        assert_eq!(refused.spent_ns, 3e9);
    }

    #[test]
    fn rests_double_and_end() {
        let mut book = Book::new(&Settings::default());
        let mut rests = Vec::new();
        let mut step = 0;
        for _ in 0..40 {
            book.moved(step, 4, 0, under_way());
            book.under_way = None;
            let next = (step + 1..).find(|s| !book.rests(*s)).expect("some day");
            rests.push(next - step - 1);
            step = next;
        }
        assert_eq!(rests[..6], [4, 8, 16, 32, 64, 64]);
        assert_eq!(rests[39], 64);
    }
}

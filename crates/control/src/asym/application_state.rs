//! Per-application state of the scheduler: budget, back-off and the move in progress.

use super::{Application, Refused, Settings};
use crate::budget::Budget;
use nodewise_machine::NodeId;

/// Largest number of doublings of the cooldown: 16 times [`Settings::cooldown`].
const DOUBLINGS: u32 = 4;

/// State of one application.
#[derive(Clone, Debug)]
pub(super) struct ApplicationState {
    pub budget: Budget,
    /// Bytes still to be moved by decided migrations.
    pending: u64,
    /// Number of migrations so far.
    moves: u32,
    /// First step after its cooldown.
    backs_off_until: u64,
    pub pending_move: Option<PendingMove>,
}

/// A thread migration whose memory is being migrated dynamically.
#[derive(Clone, Debug)]
pub(super) struct PendingMove {
    /// Time of the migration on the scheduler's clock, nanoseconds.
    pub since_ns: u64,
    /// Each node that all threads have left, with their target nodes and the share of threads of each.
    pub from: Vec<(NodeId, Vec<(NodeId, f64)>)>,
}

impl ApplicationState {
    pub fn new(settings: &Settings) -> Self {
        Self {
            budget: Budget::new(
                settings.budget,
                settings.seconds_per_gb,
                settings.seconds_per_batch,
            ),
            pending: 0,
            moves: 0,
            backs_off_until: 0,
            pending_move: None,
        }
    }

    /// Sets the run time so far; ignored if it is less than before.
    pub fn set_run_time(&mut self, run_ns: u64) {
        self.budget
            .add_run_time(run_ns.saturating_sub(self.budget.run_ns()));
    }

    /// Whether the application may not move in this step: its last move is in progress, or it is in cooldown.
    pub fn backs_off(&self, step: u64) -> bool {
        self.pending_move.is_some() || step < self.backs_off_until
    }

    /// The refusal of a move of `bytes`, if it exceeds the budget (AsymSched 4.2, step 4).
    pub fn refusal(&self, application: u32, bytes: u64) -> Option<Refused> {
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

    /// Records a migration and starts its cooldown, which doubles each time (exponential back-off against oscillation).
    pub fn record_move(&mut self, step: u64, cooldown: u32, bytes: u64, pending_move: PendingMove) {
        self.pending = self.pending.saturating_add(bytes);
        self.backs_off_until = step
            .saturating_add(u64::from(cooldown) << self.moves.min(DOUBLINGS))
            .saturating_add(1);
        self.moves = self.moves.saturating_add(1);
        self.pending_move = Some(pending_move);
    }

    /// Records memory that was moved.
    pub fn record_cost(&mut self, took_ns: u64, bytes: u64) {
        self.pending = self.pending.saturating_sub(bytes);
        self.budget.spend(took_ns, bytes);
    }

    /// Ends dynamic migration: no more bytes are pending.
    pub fn end_migration(&mut self) {
        self.pending = 0;
    }
}

impl PendingMove {
    /// A_oldA: the share of accesses that go to nodes the application has left, 0 to 1; `None` without accesses.
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

    fn pending_move() -> PendingMove {
        PendingMove {
            since_ns: 0,
            from: Vec::new(),
        }
    }

    #[test]
    fn what_is_still_to_be_moved_is_set_aside_until_it_was_or_never_will_be() {
        let mut state = ApplicationState::new(&Settings::default());
        state.set_run_time(100 * GB);
        assert_eq!(state.refusal(0, 10 * GB), None);
        state.record_move(1, 4, 10 * GB, pending_move());
        let refused = state.refusal(0, 10 * GB).expect("3 s of 5 are set aside");
        assert!((refused.spent_ns - 3e9).abs() < 2e6, "{refused:?}");
        let mut settled = state.clone();
        settled.end_migration();
        assert_eq!(settled.refusal(0, 10 * GB), None);
        state.record_cost(3 * GB, 10 * GB);
        let refused = state.refusal(0, 10 * GB).expect("3 s of 5 are spent");
        assert_eq!(refused.spent_ns, 3e9);
    }

    #[test]
    fn rests_double_and_end() {
        let mut state = ApplicationState::new(&Settings::default());
        let mut backs_off = Vec::new();
        let mut step = 0;
        for _ in 0..40 {
            state.record_move(step, 4, 0, pending_move());
            state.pending_move = None;
            let next = (step + 1..).find(|s| !state.backs_off(*s)).expect("some day");
            backs_off.push(next - step - 1);
            step = next;
        }
        assert_eq!(backs_off[..6], [4, 8, 16, 32, 64, 64]);
        assert_eq!(backs_off[39], 64);
    }
}

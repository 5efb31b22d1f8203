//! Measures the CPU time of moving pages, to account for it separately from that of observing.

use nodewise_control::{Actuator, BatchResult};
use nodewise_linux::clock;
use nodewise_placement::Move;
use std::time::Duration;

/// An actuator that measures the CPU time of this process while moves are made.
pub struct TimedActuator<'a> {
    actuator: &'a mut dyn Actuator,
    pub cpu: Duration,
}

impl<'a> TimedActuator<'a> {
    pub fn new(actuator: &'a mut dyn Actuator) -> Self {
        let cpu = Duration::ZERO;
        Self { actuator, cpu }
    }
}

impl Actuator for TimedActuator<'_> {
    fn apply(&mut self, moves: &[Move]) -> BatchResult {
        let began = cpu_time();
        let outcome = self.actuator.apply(moves);
        self.cpu += cpu_time().saturating_sub(began);
        outcome
    }

    fn free(&self) -> Option<Vec<u64>> {
        self.actuator.free()
    }
}

/// CPU time of all threads of this process, ended ones included.
pub fn cpu_time() -> Duration {
    clock::cpu_time(std::process::id()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORK: Duration = Duration::from_millis(20);

    /// Uses CPU time in another thread, and more wall time than CPU time.
    struct Busy;

    impl Actuator for Busy {
        fn apply(&mut self, _: &[Move]) -> BatchResult {
            let work = || {
                let began = clock::own_cpu_time();
                while clock::own_cpu_time() - began < WORK {}
            };
            std::thread::spawn(work).join().unwrap();
            BatchResult {
                results: vec![],
                took_ns: 0,
            }
        }
    }

    #[test]
    fn what_the_actuators_threads_take_is_its_own() {
        let mut busy = Busy;
        let mut timed = TimedActuator::new(&mut busy);
        let began = cpu_time();
        timed.apply(&[]);
        timed.apply(&[]);
        let all = cpu_time() - began;
        assert!(timed.cpu >= 2 * WORK && timed.cpu <= all);
    }
}

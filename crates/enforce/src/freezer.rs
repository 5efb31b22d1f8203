//! Stops a process around each batch of its moves, so that the kernel need not interrupt its threads for every page.

use nodewise_linux::Host;
use nodewise_linux::freeze::Frozen;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// How long and how often processes were stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stalls {
    /// How many times a process was stopped.
    pub count: u64,
    /// Sum of their durations.
    pub total: Duration,
    /// Duration of the longest stop.
    pub longest: Duration,
    /// Batches whose process could not be stopped; it ran while they were moved.
    pub refused: u64,
}

/// Stops processes, except this one. Between two stops, lets a process run for as long as the last stop lasted.
#[derive(Debug, Default)]
pub struct Freezer {
    stalls: Stalls,
    /// The last stop of each process that has not yet run for as long since: its end and its duration. The map stays
    /// small, as each stop in it is longer than all later ones.
    last: HashMap<u32, (Instant, Duration)>,
    waited: Duration,
}

impl Freezer {
    /// The stops so far.
    pub fn stalls(&self) -> Stalls {
        self.stalls
    }

    /// Stops a process, does `work` and continues the process. A process that was stopped already stays stopped, and is
    /// not counted.
    pub fn around<T>(&mut self, pid: u32, work: impl FnOnce() -> T) -> T {
        if pid == std::process::id() {
            return work();
        }
        self.let_run(pid);
        let frozen = Frozen::stop(pid);
        let refused = frozen.is_err() && Host::default().has_process(pid); // one that has ended does not count
        let result = work();
        self.stalls.refused += u64::from(refused);
        if let Some(stood) = frozen.ok().and_then(Frozen::resume) {
            self.note(pid, stood);
        }
        result
    }

    fn note(&mut self, pid: u32, stood: Duration) {
        self.stalls.count += 1;
        self.stalls.total += stood;
        self.stalls.longest = self.stalls.longest.max(stood);
        self.last.retain(|_, (end, stood)| end.elapsed() < *stood);
        self.last.insert(pid, (Instant::now(), stood));
    }

    fn let_run(&mut self, pid: u32) {
        let Some((end, stood)) = self.last.remove(&pid) else {
            return;
        };
        let pause = stood.saturating_sub(end.elapsed());
        std::thread::sleep(pause);
        self.waited += pause;
    }

    /// Time spent waiting between batches for processes to run, since the last call. The wait costs no program
    /// anything.
    pub fn take_waited(&mut self) -> Duration {
        std::mem::take(&mut self.waited)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn state(pid: u32) -> char {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit_once(") ").unwrap().1.chars().next().unwrap()
    }

    #[test]
    fn it_stands_still_meanwhile_and_runs_as_long_in_between() {
        let mut child = Command::new("/bin/sleep").arg("600").spawn().unwrap();
        let mut freezer = Freezer::default();
        let stood = Duration::from_millis(200);
        for _ in 0..2 {
            let during = freezer.around(child.id(), || {
                std::thread::sleep(stood);
                state(child.id())
            });
            assert_eq!(during, 'T');
        }
        let stalls = freezer.stalls();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!((stalls.count, stalls.refused), (2, 0));
        assert!(stalls.longest >= stood && stalls.total >= 2 * stood && stalls.total >= stalls.longest);
        assert!(freezer.take_waited() > Duration::ZERO);
    }

    #[test]
    fn whoever_stood_in_between_each_runs_for_as_long_as_it_stood() {
        let mut children = [(), ()].map(|()| Command::new("/bin/sleep").arg("600").spawn().unwrap());
        let [first, other] = [children[0].id(), children[1].id()];
        let mut freezer = Freezer::default();
        freezer.around(first, || std::thread::sleep(Duration::from_secs(1)));
        freezer.around(other, || ());
        assert_eq!(freezer.take_waited(), Duration::ZERO);
        freezer.around(first, || ());
        assert!(freezer.take_waited() > Duration::ZERO);
        assert!(freezer.last.len() <= 2);
        for child in &mut children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    #[test]
    fn we_are_never_stopped_and_who_has_ended_refuses_nothing() {
        let mut freezer = Freezer::default();
        assert_eq!(freezer.around(std::process::id(), || 7), 7);
        assert_eq!(freezer.around(u32::MAX >> 2, || 8), 8);
        assert_eq!(freezer.stalls(), Stalls::default());
    }
}

//! Assigns the numbers that stand for processes in page numbers, one for each program that a process runs.

use std::collections::{HashMap, HashSet, VecDeque};

/// Largest number of programs with a number at once: `u16::MAX` marks the end of the last one's pages.
const MAX_PROGRAMS: usize = u16::MAX as usize;

/// Every program that a process runs gets its own number, because process identifiers are reused, and a process that
/// executes another program has other memory. When all numbers have been used, those of programs that ended are
/// assigned again, the longest unused first.
#[derive(Default)]
pub struct Processes {
    alive: HashMap<u32, u16>,
    all: Vec<u32>,
    free: VecDeque<u16>,
    /// Numbers that were assigned more than once.
    reused: HashSet<u16>,
    /// Whether some process got no number.
    full: bool,
}

impl Processes {
    /// The number of a process, assigned if it has none; `None` if all are in use.
    pub fn number(&mut self, pid: u32) -> Option<u16> {
        if let Some(known) = self.known(pid) {
            return Some(known);
        }
        let fresh = self.fresh(pid);
        match fresh {
            Some(number) => drop(self.alive.insert(pid, number)),
            None => self.full = true,
        }
        fresh
    }

    fn fresh(&mut self, pid: u32) -> Option<u16> {
        if self.all.len() < MAX_PROGRAMS {
            self.all.push(pid);
            return u16::try_from(self.all.len() - 1).ok();
        }
        let number = self.free.pop_front()?;
        self.all[usize::from(number)] = pid;
        self.reused.insert(number);
        Some(number)
    }

    /// The number of a process, if it has one.
    pub fn known(&self, pid: u32) -> Option<u16> {
        self.alive.get(&pid).copied()
    }

    /// The process with this number, running or not.
    pub fn pid(&self, number: u16) -> Option<u32> {
        self.all.get(usize::from(number)).copied()
    }

    /// Whether the number stands for one program throughout.
    pub fn is_unique(&self, number: u16) -> bool {
        !self.reused.contains(&number)
    }

    /// Marks a process's program as ended; returns its number.
    pub fn end(&mut self, pid: u32) -> Option<u16> {
        let number = self.alive.remove(&pid)?;
        self.free.push_back(number);
        Some(number)
    }

    /// Whether any process got no number.
    pub fn has_run_out(&self) -> bool {
        self.full
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_comes_again_is_another_process() {
        let mut processes = Processes::default();
        assert_eq!(processes.number(7), Some(0));
        assert_eq!(processes.number(7), Some(0));
        assert_eq!((processes.known(7), processes.known(8)), (Some(0), None));
        assert_eq!(processes.end(7), Some(0));
        assert_eq!(processes.number(7), Some(1));
        assert_eq!(
            (processes.pid(0), processes.pid(1), processes.pid(2)),
            (Some(7), Some(7), None)
        );
    }

    #[test]
    fn however_many_come_and_go_the_next_is_followed() {
        let mut processes = Processes::default();
        for pid in 0..200_000 {
            let number = processes.number(pid).unwrap();
            assert_eq!(processes.pid(number), Some(pid));
            assert_eq!(processes.is_unique(number), pid < MAX_PROGRAMS as u32);
            assert_eq!(processes.end(pid), Some(number));
        }
        assert!(!processes.has_run_out());
    }

    #[test]
    fn one_too_many_waits_for_an_end() {
        let mut processes = Processes::default();
        let most = u32::try_from(MAX_PROGRAMS).unwrap();
        (0..most).for_each(|pid| assert!(processes.number(pid).is_some()));
        assert_eq!(processes.number(most), None);
        assert!(processes.has_run_out());
        assert_eq!(processes.end(9), Some(9));
        assert_eq!(processes.number(most), Some(9));
        assert_eq!(processes.pid(9), Some(most));
    }
}

//! The numbers that page numbers carry for processes, and the programs they stand for.

use std::collections::{HashMap, HashSet, VecDeque};

/// Programs that have a number at once: `u16::MAX` ends the pages of the last.
const MOST: usize = u16::MAX as usize;

/// Each program that a process runs has a number of its own: process identifiers of the kernel's come again, and a
/// process that executes another program has other memory. Numbers of programs that are no more are given again once
/// there are no others, the longest unused first.
#[derive(Default)]
pub struct Processes {
    alive: HashMap<u32, u16>,
    all: Vec<u32>,
    free: VecDeque<u16>,
    /// Numbers that were given more than once.
    reused: HashSet<u16>,
    /// A process got none.
    full: bool,
}

impl Processes {
    /// The number of a process; `None` when so many live that none is left.
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
        if self.all.len() < MOST {
            self.all.push(pid);
            return u16::try_from(self.all.len() - 1).ok();
        }
        let number = self.free.pop_front()?;
        self.all[usize::from(number)] = pid;
        self.reused.insert(number);
        Some(number)
    }

    /// The number of a process that has one.
    pub fn known(&self, pid: u32) -> Option<u16> {
        self.alive.get(&pid).copied()
    }

    /// The process with this number, alive or not.
    pub fn pid(&self, number: u16) -> Option<u32> {
        self.all.get(usize::from(number)).copied()
    }

    /// Whether the number stands for one program only, from the first to the last.
    pub fn is_unique(&self, number: u16) -> bool {
        !self.reused.contains(&number)
    }

    /// Its program is no more: the number it had.
    pub fn end(&mut self, pid: u32) -> Option<u16> {
        let number = self.alive.remove(&pid)?;
        self.free.push_back(number);
        Some(number)
    }

    /// Whether processes got no number, ever.
    pub fn is_short(&self) -> bool {
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
            assert_eq!(processes.is_unique(number), pid < MOST as u32);
            assert_eq!(processes.end(pid), Some(number));
        }
        assert!(!processes.is_short());
    }

    #[test]
    fn one_too_many_waits_for_an_end() {
        let mut processes = Processes::default();
        let most = u32::try_from(MOST).unwrap();
        (0..most).for_each(|pid| assert!(processes.number(pid).is_some()));
        assert_eq!(processes.number(most), None);
        assert!(processes.is_short());
        assert_eq!(processes.end(9), Some(9));
        assert_eq!(processes.number(most), Some(9));
        assert_eq!(processes.pid(9), Some(most));
    }
}

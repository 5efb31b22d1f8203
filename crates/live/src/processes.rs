//! The ordinals that pages carry, and the processes they stand for.

use std::collections::{HashMap, VecDeque};

/// Processes that are followed at once: `u16::MAX` ends the pages of the last.
const MOST: usize = u16::MAX as usize;

/// Every process gets an ordinal of its own: numbers of the kernel's come again. Those of processes that
/// have ended come again too, once there are no others, the longest unused first.
#[derive(Default)]
pub struct Processes {
    alive: HashMap<u32, u16>,
    all: Vec<u32>,
    free: VecDeque<u16>,
    /// A process got none.
    full: bool,
    /// That was said.
    said: bool,
}

impl Processes {
    /// The ordinal of a process, and whether it is new; `None` when so many live that none is left.
    pub fn ordinal(&mut self, pid: u32) -> Option<(u16, bool)> {
        if let Some(known) = self.alive.get(&pid) {
            return Some((*known, false));
        }
        let Some(ordinal) = self.fresh(pid) else {
            self.full = true;
            return None;
        };
        self.alive.insert(pid, ordinal);
        Some((ordinal, true))
    }

    fn fresh(&mut self, pid: u32) -> Option<u16> {
        if self.all.len() < MOST {
            self.all.push(pid);
            return u16::try_from(self.all.len() - 1).ok();
        }
        let ordinal = self.free.pop_front()?;
        self.all[usize::from(ordinal)] = pid;
        Some(ordinal)
    }

    /// That processes are left out, for the user to know, once.
    pub(crate) fn take_notice(&mut self) -> Option<String> {
        let news = self.full && !std::mem::replace(&mut self.said, self.full);
        news.then(|| format!("{MOST} processes are balanced; more are not, until some of them end"))
    }

    /// The ordinal of a process that has one.
    #[must_use]
    pub fn known(&self, pid: u32) -> Option<u16> {
        self.alive.get(&pid).copied()
    }

    /// The process with this ordinal, alive or not.
    #[must_use]
    pub fn pid(&self, ordinal: u16) -> Option<u32> {
        self.all.get(usize::from(ordinal)).copied()
    }

    /// It has ended: the ordinal it had.
    pub fn end(&mut self, pid: u32) -> Option<u16> {
        let ordinal = self.alive.remove(&pid)?;
        self.free.push_back(ordinal);
        Some(ordinal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_comes_again_is_another_process() {
        let mut processes = Processes::default();
        assert_eq!(processes.ordinal(7), Some((0, true)));
        assert_eq!(processes.ordinal(7), Some((0, false)));
        assert_eq!((processes.known(7), processes.known(8)), (Some(0), None));
        assert_eq!(processes.end(7), Some(0));
        assert_eq!(processes.ordinal(7), Some((1, true)));
        assert_eq!(
            (processes.pid(0), processes.pid(1), processes.pid(2)),
            (Some(7), Some(7), None)
        );
    }

    #[test]
    fn however_many_come_and_go_the_next_is_followed() {
        let mut processes = Processes::default();
        for pid in 0..200_000 {
            let (ordinal, fresh) = processes.ordinal(pid).unwrap();
            assert!(fresh && processes.pid(ordinal) == Some(pid));
            assert_eq!(processes.end(pid), Some(ordinal));
        }
    }

    #[test]
    fn one_too_many_waits_for_an_end() {
        let mut processes = Processes::default();
        let most = u32::try_from(MOST).unwrap();
        (0..most).for_each(|pid| assert!(processes.ordinal(pid).is_some()));
        assert_eq!(processes.ordinal(most), None);
        assert_eq!(processes.end(9), Some(9));
        assert_eq!(processes.ordinal(most), Some((9, true)));
        assert_eq!(processes.pid(9), Some(most));
    }
}

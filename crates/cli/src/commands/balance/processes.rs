//! The ordinals that pages carry, and the processes they stand for.

use std::collections::HashMap;

/// Every process gets an ordinal of its own, for good: numbers of the kernel's come again.
#[derive(Default)]
pub struct Processes {
    alive: HashMap<u32, u16>,
    all: Vec<u32>,
}

impl Processes {
    /// The ordinal of a process, and whether it is new; `None` when there are none left.
    pub fn ordinal(&mut self, pid: u32) -> Option<(u16, bool)> {
        if let Some(known) = self.alive.get(&pid) {
            return Some((*known, false));
        }
        let ordinal = u16::try_from(self.all.len()).ok().filter(|n| *n < u16::MAX)?;
        self.all.push(pid);
        self.alive.insert(pid, ordinal);
        Some((ordinal, true))
    }

    /// The process with this ordinal, alive or not.
    pub fn pid(&self, ordinal: u16) -> Option<u32> {
        self.all.get(usize::from(ordinal)).copied()
    }

    /// It has ended: the ordinal it had.
    pub fn end(&mut self, pid: u32) -> Option<u16> {
        self.alive.remove(&pid)
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
        assert_eq!(processes.end(7), Some(0));
        assert_eq!(processes.ordinal(7), Some((1, true)));
        assert_eq!((processes.pid(0), processes.pid(1), processes.pid(2)), (Some(7), Some(7), None));
    }
}

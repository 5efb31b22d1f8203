//! Moves that a controller decided, made on running processes.

use crate::Holder;
use crate::mover::{Mover, Stayed, Target};
use nodewise_control::{Actuator, Fate, Outcome};
use nodewise_linux::pages;
use nodewise_placement::Move;
use nodewise_profile::BASE_PAGE_SHIFT;
use std::ops::Range;
use std::time::Instant;

/// The kernel moves the pages.
#[derive(Debug)]
pub struct Linux {
    mover: Mover,
    /// The kernel's number of each logical node.
    nodes: Vec<u32>,
    /// Base pages of a page of decisions, log2.
    page_shift: u32,
    /// The kernel's number of each process, by ordinal.
    processes: Vec<u32>,
    /// Holds pages where they have come.
    holder: Option<Holder>,
}

/// Moves of one process, in order.
struct Group<'a> {
    pid: u32,
    moves: &'a [Move],
}

impl Linux {
    /// For a machine with these nodes; pages of `1 << page_shift` base pages.
    #[must_use]
    pub fn new(nodes: Vec<u32>, page_shift: u32, holder: Option<Holder>) -> Self {
        Self {
            mover: Mover::new(0),
            nodes,
            page_shift,
            processes: Vec::new(),
            holder,
        }
    }

    /// Says which process an ordinal means; ordinals ascend from 0.
    pub fn add_process(&mut self, pid: u32) {
        self.processes.push(pid);
    }

    /// Pages are held by it, if there is one.
    pub fn holder(&mut self) -> Option<&mut Holder> {
        self.holder.as_mut()
    }

    fn target(&self, each: &Move) -> Target {
        Target {
            address: each.page.virtual_number() << BASE_PAGE_SHIFT,
            pages: 1 << self.page_shift,
            node: self.nodes[each.to.index()],
        }
    }

    fn move_group(&mut self, group: &Group<'_>) -> Vec<Fate> {
        let targets: Vec<Target> = group.moves.iter().map(|m| self.target(m)).collect();
        let Ok(moved) = self.mover.move_pages(group.pid, &targets) else {
            return vec![Fate::Denied; targets.len()];
        };
        let came = |(target, home): (&Target, &Option<u32>)| *home == Some(target.node);
        let mut there: Vec<bool> = targets.iter().zip(&moved.homes).map(came).collect();
        self.bring(group.pid, &targets, &mut there);
        self.hold(group.pid, &targets, &there);
        fates(&there, &moved.stayed, self.page_shift)
    }

    /// Pages that `move_pages` does not see because a hint fault is due, before Linux 6.6: the process's
    /// companion reaches them.
    fn bring(&mut self, pid: u32, targets: &[Target], there: &mut [bool]) {
        let missing: Vec<usize> = (0..targets.len()).filter(|i| !there[*i]).collect();
        let Some(holder) = self.holder.as_mut().filter(|_| !missing.is_empty()) else {
            return;
        };
        let wanted: Vec<Target> = missing.iter().map(|i| targets[*i]).collect();
        if !holder.bring(pid, &runs(&wanted)) {
            return;
        }
        let addresses: Vec<u64> = wanted.iter().map(|t| t.address).collect();
        let Ok(homes) = pages::query(pid, &addresses) else {
            return;
        };
        for (i, home) in missing.into_iter().zip(homes) {
            // A page that is still due a fault cannot be asked about either; the fault will tell.
            there[i] = home.node().is_none_or(|n| n == targets[i].node);
        }
    }

    fn hold(&mut self, pid: u32, targets: &[Target], there: &[bool]) {
        let came = targets.iter().zip(there).filter(|(_, there)| **there);
        let came: Vec<Target> = came.map(|(target, _)| *target).collect();
        if let Some(holder) = self.holder.as_mut().filter(|_| !came.is_empty()) {
            holder.moved(pid, &runs(&came));
        }
    }
}

impl Actuator for Linux {
    fn apply(&mut self, moves: &[Move]) -> Outcome {
        let begin = Instant::now();
        let mut fates = Vec::with_capacity(moves.len());
        for moves in moves.chunk_by(|a, b| a.page.process() == b.page.process()) {
            let pid = self.processes.get(usize::from(moves[0].page.process())).copied();
            fates.extend(pid.map_or_else(
                || vec![Fate::Gone; moves.len()],
                |pid| self.move_group(&Group { pid, moves }),
            ));
        }
        Outcome {
            fates,
            took_ns: u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX),
        }
    }
}

/// Consecutive pages to one node, in base pages.
fn runs(targets: &[Target]) -> Vec<(Range<u64>, u32)> {
    let mut runs: Vec<(Range<u64>, u32)> = Vec::new();
    for target in targets {
        let first = target.address >> BASE_PAGE_SHIFT;
        match runs.last_mut() {
            Some((pages, node)) if pages.end == first && *node == target.node => pages.end += target.pages,
            _ => runs.push((first..first + target.pages, target.node)),
        }
    }
    runs
}

/// The kernel says why pages stayed, but the mover adds up: causes are dealt out in their order.
fn fates(there: &[bool], stayed: &Stayed, page_shift: u32) -> Vec<Fate> {
    let causes = [
        (Fate::Full, stayed.no_room),
        (Fate::Shared, stayed.shared),
        (Fate::Busy, stayed.busy),
        (Fate::Gone, stayed.gone + stayed.swapped),
    ];
    let mut left = causes
        .iter()
        .flat_map(|(fate, pages)| std::iter::repeat_n(*fate, pages.div_ceil(1 << page_shift) as usize));
    let of = |there: &bool| match there {
        true => Fate::Moved,
        false => left.next().unwrap_or(Fate::Left),
    };
    there.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::NodeId;
    use nodewise_placement::Reason;
    use nodewise_profile::PageNumber;

    #[test]
    fn neighbours_with_one_goal_are_one_run() {
        let target = |page: u64, node| Target {
            address: page << 12,
            pages: 1,
            node,
        };
        let runs = runs(&[target(4, 1), target(5, 1), target(6, 0), target(8, 0)]);
        assert_eq!(runs, [(4..6, 1), (6..7, 0), (8..9, 0)]);
    }

    #[test]
    fn a_fate_for_every_move_and_the_causes_add_up() {
        let stayed = Stayed {
            no_room: 1,
            busy: 1,
            ..Stayed::default()
        };
        let fates = fates(&[true, false, false, true, false], &stayed, 0);
        assert_eq!(
            fates,
            [Fate::Moved, Fate::Full, Fate::Busy, Fate::Moved, Fate::Left]
        );
    }

    #[test]
    fn a_process_that_is_gone_is_no_error() {
        let mut linux = Linux::new(vec![0, 1], 0, None);
        linux.add_process(u32::MAX >> 2);
        let each = |process| Move {
            index: 0,
            page: PageNumber::of_address(process, 0x1000),
            from: NodeId(1),
            to: NodeId(0),
            reason: Reason::default(),
        };
        let outcome = linux.apply(&[each(0), each(1)]);
        assert_eq!(outcome.count(Fate::Moved), 0);
        assert_eq!(outcome.fates.len(), 2);
    }
}

//! Traffic of the CPUs of one region in one slice; only CPUs that ran are stored.

use nodewise_profile::RegionId;

/// Lines fetched, and lines written back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    pub lines: u64,
    pub dirty: u64,
}

impl Cell {
    /// Adds the lines of each of `pages` pages.
    #[inline]
    pub fn add(&mut self, each: Self, pages: u64) {
        self.lines += each.lines * pages;
        self.dirty += each.dirty * pages;
    }
}

/// One region of one slice.
#[derive(Clone, Debug)]
pub(crate) struct Phase {
    pub region: RegionId,
    /// Lines of all CPUs.
    pub lines: u64,
    /// CPU slots that ran, ascending, each with the index of its counts.
    slots: Vec<(u32, u32)>,
    /// Accesses of each CPU, by its index in `slots`.
    accesses: Vec<u64>,
    /// `[index][policy][node]`: lines of each CPU to each node under each policy.
    cells: Vec<Cell>,
    /// Number of cells of an index.
    width: usize,
}

impl Phase {
    /// An empty phase; each CPU gets `width` cells, `[policy][node]`.
    pub fn new(region: RegionId, width: usize) -> Self {
        Self {
            region,
            lines: 0,
            slots: Vec::new(),
            accesses: Vec::new(),
            cells: Vec::new(),
            width,
        }
    }

    /// Adds accesses of a CPU slot; returns its cells.
    #[inline]
    pub fn add(&mut self, slot: u32, accesses: u64) -> &mut [Cell] {
        let place = match self.slots.get(slot as usize) {
            // Usually all slots up to this one ran, as in a parallel region, and the slot is its own index.
            Some(&(here, place)) if here == slot => place as usize,
            _ => self.place(slot),
        };
        self.accesses[place] += accesses;
        &mut self.cells[place * self.width..][..self.width]
    }

    fn place(&mut self, slot: u32) -> usize {
        match self.slots.binary_search_by_key(&slot, |s| s.0) {
            Ok(at) => self.slots[at].1 as usize,
            Err(at) => {
                let place = self.accesses.len();
                self.slots.insert(at, (slot, place as u32));
                self.accesses.push(0);
                self.cells.resize((place + 1) * self.width, Cell::default());
                place
            }
        }
    }

    /// Adds another phase of the same region.
    pub fn absorb(&mut self, other: &Self) {
        self.lines += other.lines;
        for (slot, accesses, cells) in other.cpus() {
            let into = self.add(slot as u32, accesses).iter_mut();
            into.zip(cells).for_each(|(a, b)| {
                a.lines += b.lines;
                a.dirty += b.dirty;
            });
        }
    }

    /// The CPU slots that ran, ascending: their accesses, and their cells `[policy][node]`.
    pub fn cpus(&self) -> impl Iterator<Item = (usize, u64, &[Cell])> {
        self.slots.iter().map(|&(slot, place)| {
            let place = place as usize;
            let cells = &self.cells[place * self.width..][..self.width];
            (slot as usize, self.accesses[place], cells)
        })
    }

    /// Accesses of all CPUs.
    pub fn accesses(&self) -> u64 {
        self.accesses.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_slots_that_ran_take_room() {
        let mut phase = Phase::new(RegionId(3), 2);
        for slot in [70_000, 0, 9, 70_000, 1, 9] {
            phase.add(slot, 1)[1].lines += u64::from(slot);
        }
        let cpus: Vec<_> = phase
            .cpus()
            .map(|(slot, n, cells)| (slot, n, cells[1].lines))
            .collect();
        assert_eq!(cpus, [(0, 1, 0), (1, 1, 1), (9, 2, 18), (70_000, 2, 140_000)]);
        assert_eq!((phase.cells.len(), phase.accesses()), (8, 6));
    }

    #[test]
    fn phases_add_up_slot_by_slot() {
        let of = |slots: &[u32]| {
            let mut phase = Phase::new(RegionId(0), 1);
            slots.iter().for_each(|&slot| phase.add(slot, 2)[0].dirty += 5);
            phase
        };
        let mut sum = of(&[4, 2]);
        sum.absorb(&of(&[2, 0, 2]));
        let cpus: Vec<_> = sum
            .cpus()
            .map(|(slot, n, cells)| (slot, n, cells[0].dirty))
            .collect();
        assert_eq!(cpus, [(0, 2, 5), (2, 6, 15), (4, 2, 5)]);
    }
}

//! Max-min fair rates by progressive filling (Bertsekas and Gallager, *Data Networks*, 6.5.2).

use crate::{Channels, Flow};

/// Max-min fair rates again and again: what one filling needs is kept for the next.
///
/// Channels in use have slots, flows the slots they cross, slots the flows that cross them, so that each level
/// costs a look at all slots and at the flows that stop there.
#[derive(Clone, Debug)]
pub struct Filling<'a> {
    channels: &'a Channels,
    /// MB/s, by flow of the last filling.
    pub rates: Vec<f64>,
    used: Vec<u32>,
    /// Index of each channel's entry, by channel.
    slot: Vec<u32>,
    slots: Vec<Slot>,
    /// By slot: the rate at which it is full; padded to whole blocks by what never is.
    level: Vec<f64>,
    /// By flow: where its slots end in `crossed`.
    crossed_ends: Vec<u32>,
    crossed: Vec<u32>,
    /// The flows of the first slot, of the second, and so on.
    members: Vec<u32>,
    full: Vec<u32>,
    touched: Vec<u32>,
}

/// A channel that some flow crosses.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// Capacity left by the flows whose rates are fixed, MB/s.
    left: f64,
    /// Flows that rise on, and those that have just stopped.
    rising: u32,
    stopped: u32,
    /// Where its flows begin and end in `members`.
    begin: u32,
    end: u32,
}

const UNUSED: u32 = u32::MAX;
/// Levels looked at together.
const BLOCK: usize = 8;

impl<'a> Filling<'a> {
    /// Working state for this set of channels, without flows.
    #[must_use]
    pub fn new(channels: &'a Channels) -> Self {
        Self {
            channels,
            rates: Vec::new(),
            used: Vec::new(),
            slot: vec![UNUSED; channels.capacity.len()],
            slots: Vec::new(),
            level: Vec::new(),
            crossed_ends: Vec::new(),
            crossed: Vec::new(),
            members: Vec::new(),
            full: Vec::new(),
            touched: Vec::new(),
        }
    }

    /// The rates of `flows`, as [`Channels::max_min`] says.
    pub fn fill(&mut self, flows: &[Flow]) -> &[f64] {
        self.begin(flows);
        self.list();
        loop {
            let lowest = self.find_full();
            if lowest == f64::INFINITY {
                return &self.rates;
            }
            for at in 0..self.full.len() {
                self.stop(self.full[at], lowest);
            }
            self.rise(lowest);
        }
    }

    /// How many channels the flows of the last filling cross, all together: what it took.
    #[must_use]
    pub fn crossings(&self) -> usize {
        self.crossed.len()
    }

    fn begin(&mut self, flows: &[Flow]) {
        self.rates.clear();
        self.rates.resize(flows.len(), f64::INFINITY);
        self.used.drain(..).for_each(|c| self.slot[c as usize] = UNUSED);
        self.slots.clear();
        self.crossed.clear();
        self.crossed_ends.clear();
        for flow in flows {
            for c in self.channels.way(flow.reader, flow.memory) {
                let slot = &mut self.slot[*c as usize];
                if *slot == UNUSED {
                    *slot = self.used.len() as u32;
                    self.used.push(*c);
                    self.slots.push(Slot {
                        left: self.channels.capacity[*c as usize],
                        ..Slot::default()
                    });
                }
                self.slots[*slot as usize].rising += 1;
                self.crossed.push(*slot);
            }
            self.crossed_ends.push(self.crossed.len() as u32);
        }
    }

    fn list(&mut self) {
        let mut all = 0;
        self.level.clear();
        for slot in &mut self.slots {
            (slot.begin, slot.end) = (all, all);
            all += slot.rising;
            self.level.push(slot.left / f64::from(slot.rising));
        }
        self.level
            .resize(self.slots.len().next_multiple_of(BLOCK), f64::INFINITY);
        self.members.clear();
        self.members.resize(all as usize, 0);
        let mut begin = 0;
        for (flow, &end) in self.crossed_ends.iter().enumerate() {
            for slot in &self.crossed[begin as usize..end as usize] {
                let slot = &mut self.slots[*slot as usize];
                self.members[slot.end as usize] = flow as u32;
                slot.end += 1;
            }
            begin = end;
        }
    }

    /// The lowest level and, in `full`, all slots at it.
    fn find_full(&mut self) -> f64 {
        let mut least = [f64::INFINITY; BLOCK];
        for block in self.level.chunks_exact(BLOCK) {
            for (least, level) in least.iter_mut().zip(block) {
                *least = if level < least { *level } else { *least };
            }
        }
        let lowest = least.into_iter().fold(f64::INFINITY, f64::min);
        let most = lowest * (1.0 + 1e-9);
        self.full.clear();
        for (nth, block) in self.level.chunks_exact(BLOCK).enumerate() {
            if block.iter().fold(false, |any, level| any | (*level <= most)) {
                let at = (0..BLOCK).filter(|i| block[*i] <= most);
                self.full.extend(at.map(|i| (nth * BLOCK + i) as u32));
            }
        }
        lowest
    }

    /// The flows of a full slot stay where they are.
    fn stop(&mut self, slot: u32, rate: f64) {
        let Slot { begin, end, .. } = self.slots[slot as usize];
        for flow in &self.members[begin as usize..end as usize] {
            let flow = *flow as usize;
            if self.rates[flow].is_finite() {
                continue;
            }
            self.rates[flow] = rate;
            let begin = flow.checked_sub(1).map_or(0, |f| self.crossed_ends[f]);
            for slot in &self.crossed[begin as usize..self.crossed_ends[flow] as usize] {
                let stopped = &mut self.slots[*slot as usize].stopped;
                if *stopped == 0 {
                    self.touched.push(*slot);
                }
                *stopped += 1;
            }
        }
    }

    /// What those that stopped at this rate leave lets the others rise.
    fn rise(&mut self, rate: f64) {
        for at in self.touched.drain(..) {
            let slot = &mut self.slots[at as usize];
            let stopped = std::mem::take(&mut slot.stopped);
            slot.left = (slot.left - rate * f64::from(stopped)).max(0.0);
            slot.rising -= stopped;
            self.level[at as usize] = match slot.rising {
                0 => f64::INFINITY,
                rising => slot.left / f64::from(rising),
            };
        }
    }
}

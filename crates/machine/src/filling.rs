//! Progressive filling.

use crate::{Channels, Flow};

/// Max-min fair rates again and again: what one filling needs is kept for the next.
#[derive(Clone, Debug)]
pub struct Filling<'a> {
    channels: &'a Channels,
    /// MB/s, by flow of the last filling.
    pub rates: Vec<f64>,
    /// The channels in use, and where each of all channels is in these tables.
    used: Vec<u32>,
    slot: Vec<u32>,
    /// By channel in use: what is left, among so many that still rise, and so how high they get.
    left: Vec<f64>,
    rising: Vec<u32>,
    level: Vec<f64>,
    /// The flows of each channel in use: those of the first, then of the second, and so on; where each ends.
    members: Vec<u32>,
    ends: Vec<u32>,
}

const UNUSED: u32 = u32::MAX;

impl<'a> Filling<'a> {
    /// Ready to fill.
    #[must_use]
    pub fn new(channels: &'a Channels) -> Self {
        Self {
            channels,
            rates: Vec::new(),
            used: Vec::new(),
            slot: vec![UNUSED; channels.capacity.len()],
            left: Vec::new(),
            rising: Vec::new(),
            level: Vec::new(),
            members: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// The rates of `flows`, as [`Channels::max_min`] says.
    pub fn fill(&mut self, flows: &[Flow]) -> &[f64] {
        self.begin(flows);
        loop {
            let lowest = self
                .level
                .iter()
                .fold(f64::INFINITY, |a, b| if *b < a { *b } else { a });
            if lowest == f64::INFINITY {
                return &self.rates;
            }
            let full = lowest * (1.0 + 1e-9);
            for slot in 0..self.level.len() {
                // Others only rise while flows below their level are taken out.
                if self.level[slot] <= full {
                    self.freeze(slot, lowest, flows);
                }
            }
        }
    }

    /// The flows of a full channel stay where they are.
    fn freeze(&mut self, slot: usize, rate: f64, flows: &[Flow]) {
        let begin = slot.checked_sub(1).map_or(0, |s| self.ends[s]);
        for member in begin..self.ends[slot] {
            let flow = self.members[member as usize] as usize;
            if self.rates[flow].is_finite() {
                continue;
            }
            self.rates[flow] = rate;
            for c in self.channels.way(flows[flow].reader, flows[flow].memory) {
                let s = self.slot[*c as usize] as usize;
                self.left[s] = (self.left[s] - rate).max(0.0);
                self.rising[s] -= 1;
                self.level[s] = match self.rising[s] {
                    0 => f64::INFINITY,
                    rising => self.left[s] / f64::from(rising),
                };
            }
        }
    }

    fn begin(&mut self, flows: &[Flow]) {
        self.rates.clear();
        self.rates.resize(flows.len(), f64::INFINITY);
        for c in self.used.drain(..) {
            self.slot[c as usize] = UNUSED;
        }
        self.left.clear();
        self.rising.clear();
        for c in flows.iter().flat_map(|f| self.channels.way(f.reader, f.memory)) {
            let slot = &mut self.slot[*c as usize];
            if *slot == UNUSED {
                *slot = self.used.len() as u32;
                self.used.push(*c);
                self.left.push(self.channels.capacity[*c as usize]);
                self.rising.push(0);
            }
            self.rising[*slot as usize] += 1;
        }
        let levels = self.left.iter().zip(&self.rising);
        self.level.clear();
        self.level.extend(levels.map(|(left, n)| left / f64::from(*n)));
        self.list(flows);
    }

    fn list(&mut self, flows: &[Flow]) {
        self.ends.clear();
        let mut all = 0;
        for n in &self.rising {
            self.ends.push(all);
            all += n;
        }
        self.members.clear();
        self.members.resize(all as usize, 0);
        for (index, flow) in flows.iter().enumerate() {
            for c in self.channels.way(flow.reader, flow.memory) {
                let end = &mut self.ends[self.slot[*c as usize] as usize];
                self.members[*end as usize] = index as u32;
                *end += 1;
            }
        }
    }
}

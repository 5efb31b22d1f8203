//! Detects placements with equal bandwidth without computing it (AsymSched 4.3).
//!
//! Rates depend only on which flows share which channels, and on capacities. Channels that cannot limit any flow are left
//! out. Flows, channels and clusters are then coloured by colour refinement (1-dimensional Weisfeiler-Leman). Progressive
//! filling treats flows of one colour alike: at each level, channels of one colour have equally many unsaturated flows of
//! each colour. So placements with the same colours have the same rates.

use super::problem::{Problem, Set};
use crate::formulas::mix;
use nodewise_machine::{Filling, Flow};
use std::collections::HashMap;

/// Computes the bandwidth of sets of nodes, once for each equivalence class.
#[derive(Debug)]
pub(super) struct Classes<'a> {
    problem: &'a Problem<'a>,
    filling: Filling<'a>,
    known: HashMap<u64, Vec<(u64, f64)>>,
    flows: Vec<Flow>,
    /// By cluster: the end of its flows. Slots first, then fixed clusters.
    ends: Vec<usize>,
    /// By channel: the number of its flows, the sum of their contention-free rates, and its colour.
    channels: Vec<Channel>,
    used: Vec<u32>,
    flow_colours: Vec<u64>,
    distinct: Vec<u64>,
    cluster_colours: Vec<u64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Channel {
    flows: u32,
    alone: f64,
    /// Whether it may limit any flow.
    binds: bool,
    colour: u64,
}

impl<'a> Classes<'a> {
    pub fn new(problem: &'a Problem<'a>) -> Self {
        Self {
            problem,
            filling: Filling::new(problem.channels),
            known: HashMap::new(),
            flows: Vec::new(),
            ends: Vec::new(),
            channels: vec![Channel::default(); problem.channels.capacity.len()],
            used: Vec::new(),
            flow_colours: Vec::new(),
            distinct: Vec::new(),
            cluster_colours: Vec::new(),
        }
    }

    /// Number of classes whose bandwidth was computed.
    pub fn computed(&self) -> usize {
        self.known.len()
    }

    /// C_bw by slot, then by fixed cluster, with these sets in the slots.
    pub fn bandwidth(&mut self, sets: &[Set], bandwidth: &mut Vec<f64>) {
        self.enter(sets);
        self.start_colours();
        while self.refine() {}
        self.colour_clusters();
        let key = self
            .cluster_colours
            .iter()
            .fold(0u64, |key, c| key.wrapping_add(mix(*c)));
        if !self.known.contains_key(&key) {
            self.filling.fill(&self.flows);
            let class = self.by_colour();
            self.known.insert(key, class);
        }
        let class = &self.known[&key];
        let of = |colour: &u64| class.iter().find(|(c, _)| c == colour).map_or(0.0, |(_, b)| *b);
        bandwidth.clear();
        bandwidth.extend(self.cluster_colours.iter().map(of));
    }

    fn enter(&mut self, sets: &[Set]) {
        self.flows.clear();
        self.ends.clear();
        self.cluster_colours.clear();
        for set in sets {
            self.flows.extend(self.problem.flows_of(*set));
            self.ends.push(self.flows.len());
            self.cluster_colours.push(u64::from(set.count_ones()));
        }
        for (index, flows) in self.problem.fixed_flows.iter().enumerate() {
            self.flows.extend(flows);
            self.ends.push(self.flows.len());
            self.cluster_colours.push(1 << 32 | index as u64);
        }
    }

    /// The initial colour of a flow is its contention-free rate; that of a cluster is its size or, if it is fixed, its
    /// identity.
    fn start_colours(&mut self) {
        let channels = self.problem.channels;
        self.used
            .drain(..)
            .for_each(|c| self.channels[c as usize] = Channel::default());
        self.flow_colours.clear();
        for flow in &self.flows {
            let alone = super::bound::alone(channels, flow);
            self.flow_colours.push(mix(alone.to_bits()));
            for c in channels.way(flow.reader, flow.memory) {
                let channel = &mut self.channels[*c as usize];
                if channel.flows == 0 {
                    self.used.push(*c);
                }
                channel.flows += 1;
                channel.alone += alone;
            }
        }
        let (entries, capacity) = (&mut self.channels, &channels.capacity);
        self.used.retain(|c| {
            let (channel, capacity) = (&mut entries[*c as usize], capacity[*c as usize]);
            channel.binds = channel.flows > 1 && channel.alone > capacity;
            if !channel.binds {
                *channel = Channel::default();
            }
            channel.binds
        });
    }

    /// One round of refinement; whether any colour was split, so that another round may split more.
    fn refine(&mut self) -> bool {
        self.colour_clusters();
        if self.used.is_empty() {
            return false;
        }
        let before = self.colours();
        let assignment_count = self.problem.channels;
        for c in &self.used {
            self.channels[*c as usize].colour = assignment_count.capacity[*c as usize].to_bits();
        }
        let mut begin = 0;
        for (end, cluster) in self.ends.iter().zip(&self.cluster_colours) {
            for (flow, colour) in self.flows[begin..*end]
                .iter()
                .zip(&mut self.flow_colours[begin..*end])
            {
                *colour = mix(*colour ^ cluster.rotate_left(17));
                for c in assignment_count.way(flow.reader, flow.memory) {
                    let channel = &mut self.channels[*c as usize];
                    channel.colour = channel.colour.wrapping_add(mix(*colour));
                }
            }
            begin = *end;
        }
        for (flow, colour) in self.flows.iter().zip(&mut self.flow_colours) {
            let way = assignment_count
                .way(flow.reader, flow.memory)
                .iter()
                .map(|c| &self.channels[*c as usize]);
            let all = way
                .filter(|c| c.binds)
                .fold(0u64, |all, c| all.wrapping_add(mix(c.colour)));
            *colour = mix(*colour ^ all);
        }
        self.colours() > before
    }

    /// A cluster's new colour combines its old one with those of its flows.
    fn colour_clusters(&mut self) {
        let mut begin = 0;
        for (end, cluster) in self.ends.iter().zip(&mut self.cluster_colours) {
            let flows = &self.flow_colours[begin..*end];
            let all = flows.iter().fold(0u64, |all, c| all.wrapping_add(mix(*c)));
            *cluster = mix(*cluster ^ mix(all));
            begin = *end;
        }
    }

    fn colours(&mut self) -> usize {
        self.distinct.clone_from(&self.flow_colours);
        self.distinct.sort_unstable();
        self.distinct.dedup();
        self.distinct.len()
    }

    /// The bandwidth of clusters of each colour.
    fn by_colour(&self) -> Vec<(u64, f64)> {
        let mut begin = 0;
        let mut class: Vec<(u64, f64)> = Vec::with_capacity(self.ends.len());
        for (end, colour) in self.ends.iter().zip(&self.cluster_colours) {
            let sum = self.filling.rates[begin..*end].iter().sum();
            begin = *end;
            if class.iter().all(|(c, _)| c != colour) {
                class.push((*colour, sum));
            }
        }
        class
    }
}

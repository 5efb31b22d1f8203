//! The state of one program in a run: the nodes of its threads and pages, and the traffic of its phases there.

use super::timeline::{Timeline, TimelinePhase};
use crate::phase::Load;
use crate::resources::Resources;
use crate::traffic::{Cell, Phase};
use nodewise_machine::NodeId;

/// The number of runs of a program's phases.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rounds {
    /// Number of runs of the body that make up one pass, to fill a period.
    pub at_once: f64,
    /// Number of passes over the body.
    pub passes: usize,
}

/// A program in a run.
pub(super) struct State<'a> {
    pub timeline: &'a Timeline,
    rounds: Rounds,
    /// Node of each CPU slot.
    pub nodes: Vec<usize>,
    /// Node of each page.
    pub homes: Vec<u16>,
    /// Pages on each node.
    pub pages_at: Vec<u64>,
    /// Traffic of each phase between the nodes of threads and pages; `None` if it must be recomputed.
    cells: Vec<Option<Phase>>,
    /// Number of changes of the places of threads or pages.
    pub version: u64,
    /// The current phase, and the number of completed passes of the body.
    at: usize,
    passes: usize,
    /// Share of the phase that is left, 0 to 1.
    left: f64,
    /// Remaining time during which pages are moved and the program waits, nanoseconds.
    pub pause_ns: f64,
    /// How often each phase ran since the last decision.
    pub passed: Vec<f64>,
    /// Time since it began, nanoseconds.
    pub ns: f64,
    /// When its required work was done.
    pub ended_ns: Option<f64>,
    /// Latency summed over lines, and lines, of its work.
    waited: f64,
    lines: f64,
}

impl<'a> State<'a> {
    /// The initial state, with virtual node i on node `on[i]`. `cells` has the traffic between virtual nodes.
    pub fn new(
        timeline: &'a Timeline,
        cells: &[Phase],
        rounds: Rounds,
        on: &[NodeId],
        machine_nodes: usize,
    ) -> Self {
        let homes: Vec<u16> = timeline
            .homes
            .iter()
            .map(|v| on[usize::from(*v)].0 as u16)
            .collect();
        let mut pages_at = vec![0; machine_nodes];
        homes.iter().for_each(|home| pages_at[usize::from(*home)] += 1);
        let real = |phase: &Phase| Some(renamed(phase, on, machine_nodes));
        Self {
            timeline,
            rounds,
            nodes: timeline.slot_nodes.iter().map(|v| on[*v].index()).collect(),
            homes,
            pages_at,
            cells: cells.iter().map(real).collect(),
            version: 0,
            at: 0,
            passes: 0,
            left: 1.0,
            pause_ns: 0.0,
            passed: vec![0.0; timeline.phases.len()],
            ns: 0.0,
            ended_ns: None,
            waited: 0.0,
            lines: 0.0,
        }
    }

    pub fn phase(&self) -> usize {
        self.at
    }

    /// Number of consecutive runs of the current phase.
    fn times(&self) -> f64 {
        if self.timeline.body.contains(&self.at) {
            self.rounds.at_once
        } else {
            1.0
        }
    }

    /// Recomputes the traffic of a phase if necessary.
    pub fn refresh(&mut self, phase: usize) {
        if self.cells[phase].is_none() {
            let timeline = self.timeline;
            let homes = &self.homes;
            let width = self.pages_at.len();
            let home = |page: usize| usize::from(homes[page]);
            self.cells[phase] = Some(traffic(&timeline.phases[phase], width, home));
        }
    }

    /// The traffic of a phase, which must be up to date.
    pub fn cells(&self, phase: usize) -> &Phase {
        self.cells[phase].as_ref().expect("refreshed")
    }

    /// The current phase's load.
    pub fn load<'l>(&'l self, resources: &'l Resources) -> Load<'l> {
        self.load_of(self.at, resources)
    }

    /// The load of a phase, whose traffic must be up to date.
    pub fn load_of<'l>(&'l self, at: usize, resources: &'l Resources) -> Load<'l> {
        let timeline = self.timeline;
        let (phase, at_a_time) = (self.cells(at), timeline.phases[at].at_a_time);
        Load::new(
            phase,
            0,
            &self.nodes,
            resources,
            at_a_time,
            timeline.parameters.traffic.bytes(),
        )
    }

    /// Records that threads or pages have moved.
    pub fn changed(&mut self) {
        self.version += 1;
        self.cells.iter_mut().for_each(|c| *c = None);
    }

    /// Gives a page a new home.
    pub fn rehome(&mut self, page: usize, to: usize) {
        let from = std::mem::replace(&mut self.homes[page], to as u16);
        self.pages_at[usize::from(from)] -= 1;
        self.pages_at[to] += 1;
    }

    /// Time until the current phase or pause ends, if the phase takes `phase_ns` each time.
    pub fn until_next(&self, phase_ns: f64) -> f64 {
        match self.pause_ns {
            ns if ns > 0.0 => ns,
            _ => self.left * phase_ns * self.times(),
        }
    }

    /// Advances by `ns`. The phase takes `phase_ns` each time, and its lines wait for `waited` in total.
    pub fn pass(&mut self, ns: f64, phase_ns: f64, (waited, lines): (f64, f64)) {
        self.ns += ns;
        if self.pause_ns > 0.0 {
            self.pause_ns -= ns;
            if self.pause_ns < 1.0 {
                self.pause_ns = 0.0;
            }
            return;
        }
        let all = phase_ns * self.times();
        let share = if all > 0.0 {
            (ns / all).min(self.left)
        } else {
            self.left
        };
        self.left -= share;
        self.passed[self.at] += share * self.times();
        if self.ended_ns.is_none() {
            self.waited += share * self.times() * waited;
            self.lines += share * self.times() * lines;
        }
        if self.left <= 1e-9 {
            self.next();
        }
    }

    fn next(&mut self) {
        let body = &self.timeline.body;
        (self.at, self.left) = (self.at + 1, 1.0);
        if self.at == body.end {
            self.passes += 1;
            if self.passes != self.rounds.passes {
                self.at = body.start;
            }
        }
        if self.at == self.timeline.phases.len() {
            self.ended_ns.get_or_insert(self.ns);
            self.at = body.start;
        }
    }

    /// Mean latency of a line in its work, nanoseconds.
    pub fn latency_ns(&self) -> f64 {
        if self.lines > 0.0 {
            self.waited / self.lines
        } else {
            0.0
        }
    }

    /// The nodes that its threads are on, ascending.
    pub fn own_nodes(&self) -> Vec<usize> {
        let mut own = self.nodes.clone();
        own.sort_unstable();
        own.dedup();
        own
    }
}

/// The traffic of a phase to `width` nodes, where `home` gives the node of each page.
pub(super) fn traffic(phase: &TimelinePhase, width: usize, home: impl Fn(usize) -> usize) -> Phase {
    let slots = phase.accesses.iter().map(|a| a.0 as usize + 1).max().unwrap_or(0);
    let mut cells = vec![Cell::default(); slots * width];
    for row in &phase.rows {
        let cell = &mut cells[row.slot as usize * width + home(row.page as usize)];
        cell.lines += row.lines;
        cell.dirty += row.dirty;
    }
    phase.with_cells(width, &cells)
}

/// The same traffic with virtual node i on node `on[i]`.
fn renamed(phase: &Phase, on: &[NodeId], width: usize) -> Phase {
    let mut real = Phase::new(phase.region, width);
    real.lines = phase.lines;
    for (slot, accesses, cells) in phase.cpus() {
        let into = real.add(slot as u32, accesses);
        for (cell, node) in cells.iter().zip(on) {
            into[node.index()] = *cell;
        }
    }
    real
}

impl TimelinePhase {
    fn with_cells(&self, width: usize, cells: &[Cell]) -> Phase {
        let mut phase = Phase::new(self.region, width);
        for &(slot, accesses) in &self.accesses {
            let row = &cells[slot as usize * width..][..width];
            phase.add(slot, accesses).copy_from_slice(row);
            phase.lines += row.iter().map(|c| c.lines).sum::<u64>();
        }
        phase
    }
}

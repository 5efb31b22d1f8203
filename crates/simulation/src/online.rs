//! Programs whose threads and pages are moved while they run, by the code that `nodewise balance --move-threads` runs.
//!
//! A recording is repeated until a run is long enough, starting on random nodes. In every period the scheduler of
//! threads ([`nodewise_control::asym`]) gets the accesses from each node to each node in that period, and threads move
//! as it decides. Their pages are moved by a page policy ("dynamic migration"), and all pages on nodes that threads
//! have left are moved if that was not enough. AsymSched's Figures 4 to 7 are such runs.

mod decide;
mod outcome;
mod pages;
mod state;
mod timeline;
mod together;

pub use outcome::{Limits, Moves, ProgramOutcome, RunOutcome};
pub use timeline::Timeline;

use crate::Places;
use crate::resources::Resources;
use crate::traffic::Phase;
use decide::PeriodDecisions;
use nodewise_machine::{Machine, NodeId};
use rayon::prelude::*;
use state::{Rounds, State, traffic};
use together::SolutionCache;

/// Programs on a machine, prepared for runs.
pub struct Online<'a> {
    machine: &'a Machine,
    timelines: &'a [Timeline],
    /// Traffic of each program's phases between its virtual nodes.
    cells: Vec<Vec<Phase>>,
    rounds: Vec<Rounds>,
    resources: Resources,
}

impl<'a> Online<'a> {
    /// Prepares programs. Each is repeated until its mean time over `places` reaches the required length.
    #[must_use]
    pub fn new(
        machine: &'a Machine,
        timelines: &'a [Timeline],
        places: &[Places],
        limits: &Limits<'_>,
    ) -> Self {
        let cells = timelines.iter().map(|t| {
            let width = t.slot_nodes.iter().max().map_or(1, |v| v + 1);
            let phase = |p| traffic(p, width, |page| usize::from(t.homes[page]));
            t.phases.iter().map(phase).collect()
        });
        let once = Rounds {
            at_once: 1.0,
            passes: 1,
        };
        let mut online = Self {
            machine,
            timelines,
            cells: cells.collect(),
            rounds: vec![once; timelines.len()],
            resources: Resources::new(machine),
        };
        online.rounds = (0..timelines.len())
            .map(|p| online.enough(p, places, limits))
            .collect();
        online
    }

    /// The number of repetitions of a program's body, from its time when it runs alone.
    fn enough(&self, program: usize, places: &[Places], limits: &Limits<'_>) -> Rounds {
        let body = &self.timelines[program].body;
        let time = |on: &Places| {
            let mut state = self.state(program, &on[program]);
            let mut sums = [0.0; 2];
            for phase in 0..state.timeline.phases.len() {
                sums[usize::from(body.contains(&phase))] += self.alone_ns(&mut state, phase);
            }
            sums
        };
        let times: Vec<[f64; 2]> = places.par_iter().map(time).collect();
        let mean = |i: usize| times.iter().map(|t| t[i]).sum::<f64>() * 1e-9 / times.len().max(1) as f64;
        let (once, body) = (mean(0), mean(1).max(1e-9));
        let runs = ((limits.least_s - once) / body).ceil().max(1.0);
        let at_once = (limits.period_s / body).floor().clamp(1.0, runs);
        Rounds {
            at_once,
            passes: (runs / at_once).ceil() as usize,
        }
    }

    fn alone_ns(&self, state: &mut State<'_>, phase: usize) -> f64 {
        state.refresh(phase);
        let t = state.timeline;
        let load = state.load_of(phase, &self.resources);
        load.solve(&t.typical, &t.fit, &t.parameters).ns
    }

    fn state(&self, program: usize, on: &[NodeId]) -> State<'a> {
        let nodes = self.machine.node_count();
        let cells = &self.cells[program];
        State::new(&self.timelines[program], cells, self.rounds[program], on, nodes)
    }

    /// How many times each program's body is run.
    #[must_use]
    pub fn repeated(&self) -> Vec<f64> {
        self.rounds.iter().map(|r| r.at_once * r.passes as f64).collect()
    }

    /// One run from each of these placements.
    #[must_use]
    pub fn runs(&self, places: &[Places], moves: Moves, limits: &Limits<'_>) -> Vec<RunOutcome> {
        places.par_iter().map(|on| self.run(on, moves, limits)).collect()
    }

    fn run(&self, on: &Places, moves: Moves, limits: &Limits<'_>) -> RunOutcome {
        let mut programs: Vec<State<'a>> = (0..on.len()).map(|p| self.state(p, &on[p])).collect();
        let mut decisions = PeriodDecisions::new(self.machine, &programs, moves, limits);
        let mut cache = SolutionCache::default();
        let (mut now_ns, mut due_ns) = (0.0, limits.period_s * 1e9);
        while programs.iter().any(|p| p.ended_ns.is_none()) {
            let times = cache.times(&mut programs, &self.resources);
            let ends = programs.iter().zip(&times).map(|(p, t)| p.until_next(t.ns));
            let mut step = ends.fold(f64::INFINITY, f64::min).max(0.0);
            if moves != Moves::Nothing {
                step = step.min(due_ns - now_ns);
            }
            for (program, t) in programs.iter_mut().zip(&times) {
                program.pass(step, t.ns, (t.waited, t.lines));
            }
            now_ns += step;
            if moves != Moves::Nothing && now_ns >= due_ns - 1.0 {
                decisions.step(now_ns, &mut programs);
                due_ns += limits.period_s * 1e9;
            }
        }
        decisions.outcome(&programs)
    }
}

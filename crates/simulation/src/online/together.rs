//! Advances programs in simulated time: the times of their current phases under mutual contention, and which phase ends
//! next.

use super::state::State;
use crate::Demand;
use crate::phase::{Cost, Load};
use crate::resources::Resources;
use std::collections::HashMap;

/// Relative change of times below which the fixed-point iteration has converged.
const CONVERGENCE_TOLERANCE: f64 = 1e-3;
/// Largest number of iterations.
const MAX_ITERATIONS: usize = 40;
/// From this iteration on, steps are damped (geometric mean) to prevent oscillation.
const DAMPED_FROM: usize = 6;
/// Largest number of remembered solutions.
const MAX_CACHED_SOLUTIONS: usize = 200_000;

/// Time of a phase, its latency summed over lines, and its lines.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Times {
    pub ns: f64,
    pub waited: f64,
    pub lines: f64,
}

/// The phase of each program and the version of its state; `None`: the program pauses.
type Key = Vec<Option<(usize, u64)>>;

/// Cache of solutions, by what was solved.
#[derive(Default)]
pub(super) struct SolutionCache(HashMap<Key, Vec<Times>>);

impl SolutionCache {
    /// The time of each program's phase while the others are in their current phases.
    pub fn times(&mut self, programs: &mut [State<'_>], resources: &Resources) -> Vec<Times> {
        let running = |p: &State<'_>| (p.pause_ns <= 0.0).then(|| (p.phase(), p.version));
        let key: Key = programs.iter().map(running).collect();
        if let Some(known) = self.0.get(&key) {
            return known.clone();
        }
        for program in programs.iter_mut() {
            program.refresh(program.phase());
        }
        let solved = solve(programs, &key, resources);
        if self.0.len() >= MAX_CACHED_SOLUTIONS {
            self.0.clear();
        }
        self.0.insert(key, solved.clone());
        solved
    }
}

/// A program's phase during the fixed-point iteration.
struct IteratedPhase<'a> {
    state: &'a State<'a>,
    load: Load<'a>,
    alone: Cost,
    now: Times,
}

impl IteratedPhase<'_> {
    /// The traffic of each of its nodes, with its rate limit in bytes per nanosecond.
    fn moves(&self) -> impl Iterator<Item = (&Demand, f64)> {
        let rate = self.state.timeline.fit.miss / self.now.ns;
        let busy = self.load.demands.iter().filter(|d| d.bytes > 0.0);
        busy.map(move |d| (d, d.bytes * rate))
            .filter(|d| d.1 > 0.0 && d.1.is_finite())
    }
}

fn solve(programs: &[State<'_>], key: &Key, resources: &Resources) -> Vec<Times> {
    let initial = |state| -> IteratedPhase<'_> {
        let load = State::load(state, resources);
        let timeline = state.timeline;
        let alone = load.solve(&timeline.typical, &timeline.fit, &timeline.parameters);
        let now = Times {
            ns: alone.ns,
            waited: load.waited(&alone),
            lines: load.lines.iter().sum(),
        };
        IteratedPhase {
            state,
            load,
            alone,
            now,
        }
    };
    let under_way = programs.iter().zip(key).filter(|(_, k)| k.is_some());
    let mut iterated: Vec<IteratedPhase<'_>> = under_way.map(|(state, _)| initial(state)).collect();
    for round in 0..MAX_ITERATIONS {
        if iterated.len() < 2 {
            break;
        }
        let mut change = 0.0f64;
        for at in 0..iterated.len() {
            let now = beside(&iterated, at, round);
            let before = std::mem::replace(&mut iterated[at].now, now).ns;
            if before > 0.0 {
                change = change.max((now.ns / before - 1.0).abs());
            }
        }
        if change < CONVERGENCE_TOLERANCE {
            break;
        }
    }
    let mut found = iterated.into_iter();
    let of = |k: &Option<(usize, u64)>| match k {
        Some(_) => found.next().map(|s| s.now).unwrap_or_default(),
        None => Times::default(),
    };
    key.iter().map(of).collect()
}

/// The time of one program's phase under the others' present traffic.
fn beside(iterated: &[IteratedPhase<'_>], at: usize, round: usize) -> Times {
    let one = &iterated[at];
    let meets = |demand: &Demand| demand.over.iter().any(|o| one.load.bytes[o.0 as usize] > 0.0);
    let others = iterated.iter().enumerate().filter(|(i, _)| *i != at);
    let others: Vec<(&Demand, f64)> = others
        .flat_map(|(_, s)| s.moves())
        .filter(|o| meets(o.0))
        .collect();
    let timeline = one.state.timeline;
    let solved = match others.as_slice() {
        [] => one.alone.clone(),
        others => one
            .load
            .solve_beside(others, &timeline.typical, &timeline.fit, &timeline.parameters),
    };
    let ns = if round < DAMPED_FROM {
        solved.ns
    } else {
        (solved.ns * one.now.ns).sqrt()
    };
    Times {
        ns,
        waited: one.load.waited(&solved),
        lines: one.now.lines,
    }
}

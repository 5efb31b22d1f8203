//! The decisions at the end of a period: first threads, by the scheduler, then pages.

use super::outcome::{Limits, Moves, ProgramOutcome, RunOutcome};
use super::pages::DynamicMigration;
use super::state::State;
use nodewise_control::asym::{
    Application, Decision, FullMigration, Process, Scheduler, Thread, applications, dealt,
};
use nodewise_machine::{Machine, NodeId};
use nodewise_placement::asym::Place;

/// Decisions of a run.
pub(super) struct PeriodDecisions<'a> {
    limits: &'a Limits<'a>,
    places: Vec<Place>,
    scheduler: Option<Scheduler>,
    pages: Vec<DynamicMigration>,
    last_ns: f64,
    outcome: RunOutcome,
}

impl<'a> PeriodDecisions<'a> {
    pub fn new(machine: &Machine, programs: &[State<'_>], moves: Moves, limits: &'a Limits<'a>) -> Self {
        let place = |node: NodeId| Place {
            node,
            threads: machine.nodes[node.index()].cpus.len(),
        };
        let threads =
            (moves == Moves::ThreadsAndPages).then(|| Scheduler::new(machine, limits.threads.clone()));
        let policy = |program: &State<'_>| {
            let pages = program.homes.len();
            DynamicMigration::new(
                (limits.policy)(),
                limits.pages.clone(),
                pages,
                machine.node_count(),
            )
        };
        let dynamic = programs.iter().filter(|_| moves != Moves::Nothing).map(policy);
        Self {
            limits,
            places: machine.cpu_nodes().map(place).collect(),
            scheduler: threads,
            pages: dynamic.collect(),
            last_ns: 0.0,
            outcome: RunOutcome {
                programs: vec![ProgramOutcome::default(); programs.len()],
                ..RunOutcome::default()
            },
        }
    }

    /// Decides at the end of a period and carries it out.
    pub fn step(&mut self, now_ns: f64, programs: &mut [State<'_>]) {
        let period_ns = now_ns - std::mem::replace(&mut self.last_ns, now_ns);
        let counted: Vec<Process> = programs
            .iter_mut()
            .enumerate()
            .map(|(id, p)| counted(id as u32, p, period_ns))
            .collect();
        let lines: f64 = counted
            .iter()
            .flat_map(|p| &p.threads)
            .flat_map(|t| &t.accesses)
            .sum();
        let turned = self.threads(now_ns, &counted, programs);
        // 1 line per second is 1e-6 lines per microsecond.
        let busy = lines * 1e-6 >= self.limits.least_rate;
        for at in 0..programs.len() {
            match turned[at] {
                // The counts were made on other nodes.
                true => self.pages[at].forget(),
                false => {
                    self.pages[at].count(&programs[at]);
                    if busy {
                        self.dynamic(at, &mut programs[at]);
                    }
                }
            }
            programs[at].passed.fill(0.0);
        }
    }

    /// Moves threads. Returns for each program whether any of its threads moved.
    fn threads(&mut self, now_ns: f64, counted: &[Process], programs: &mut [State<'_>]) -> Vec<bool> {
        let mut turned = vec![false; programs.len()];
        let Some(scheduler) = &mut self.scheduler else {
            return turned;
        };
        let applications_now: Result<Vec<Application>, _> = applications(counted, &self.places);
        let decision = applications_now.map_or_else(
            |_| Decision::default(),
            |a| scheduler.step(now_ns as u64, &self.places, &a),
        );
        self.outcome.decisions += 1;
        self.outcome.refused += u64::from(!decision.refused.is_empty());
        self.outcome.placements += decision.searched.possible;
        self.outcome.evaluated += decision.searched.evaluated;
        for each in &decision.moves {
            let at = each.application as usize;
            for slot in &each.threads {
                programs[at].nodes[*slot as usize] = each.to.index();
            }
            self.outcome.programs[at].threads_moved += each.threads.len() as u64;
            turned[at] = true;
        }
        for (program, _) in programs.iter_mut().zip(&turned).filter(|p| *p.1) {
            program.changed();
        }
        for full in &decision.full {
            self.full(full, programs);
        }
        turned
    }

    /// Moves all pages of nodes that a program has left.
    fn full(&mut self, full: &FullMigration, programs: &mut [State<'_>]) {
        let at = full.application as usize;
        let program = &mut programs[at];
        let mut moved = 0u64;
        for (from, goals) in full.from.iter().filter(|f| !f.1.is_empty()) {
            let homes = program.homes.iter().enumerate();
            let pages: Vec<usize> = homes
                .filter(|h| usize::from(*h.1) == from.index())
                .map(|h| h.0)
                .collect();
            for (page, to) in pages.iter().zip(dealt(pages.len(), goals)) {
                program.rehome(*page, to.index());
                moved += u64::from(to != *from);
            }
        }
        self.outcome.programs[at].full_bytes += moved as f64 * program.timeline.page_bytes();
        self.pay(at, moved, program);
    }

    fn dynamic(&mut self, at: usize, program: &mut State<'_>) {
        let page_ns = self.page_ns(program);
        let moved = self.pages[at].step(program, page_ns);
        self.outcome.programs[at].dynamic_bytes += moved as f64 * program.timeline.page_bytes();
        self.pay(at, moved, program);
    }

    /// Makes a program wait for the time that its pages are moved.
    fn pay(&mut self, at: usize, pages: u64, program: &mut State<'_>) {
        if pages == 0 {
            return;
        }
        let ns = pages as f64 * self.page_ns(program);
        program.pause_ns += ns;
        program.changed();
        if program.ended_ns.is_none() {
            self.outcome.programs[at].moving_s += ns * 1e-9;
        }
        if let Some(scheduler) = &mut self.scheduler {
            let bytes = pages * program.timeline.page_bytes() as u64;
            scheduler.record_cost(at as u32, ns as u64, bytes);
        }
    }

    fn page_ns(&self, program: &State<'_>) -> f64 {
        // 1 s per GB is 1 ns per byte.
        program.timeline.page_bytes() * self.limits.seconds_per_gb
    }

    pub fn outcome(mut self, programs: &[State<'_>]) -> RunOutcome {
        for (outcome, program) in self.outcome.programs.iter_mut().zip(programs) {
            outcome.seconds = program.ended_ns.unwrap_or(program.ns) * 1e-9;
            outcome.latency_ns = program.latency_ns();
            outcome.nodes = program.own_nodes().iter().map(|n| *n as u32).collect();
        }
        self.outcome
    }
}

/// The counters of a program's last period: lines per second that its CPUs fetched from each node's memory.
fn counted(id: u32, program: &mut State<'_>, period_ns: f64) -> Process {
    let nodes = program.pages_at.len();
    let mut accesses = vec![vec![0.0; nodes]; program.nodes.len()];
    let scale = program.timeline.fit.miss / (period_ns * 1e-9);
    let passed = std::mem::take(&mut program.passed);
    for (phase, times) in passed.iter().enumerate().filter(|p| *p.1 > 0.0) {
        program.refresh(phase);
        for (slot, _, cells) in program.cells(phase).cpus() {
            let row = accesses[slot].iter_mut().zip(cells);
            row.for_each(|(sum, cell)| *sum += cell.lines as f64 * times * scale);
        }
    }
    program.passed = passed;
    let thread = |(slot, accesses): (usize, Vec<f64>)| Thread {
        number: slot as u32,
        node: NodeId(program.nodes[slot] as u32),
        accesses,
    };
    let bytes = program.timeline.page_bytes() as u64;
    Process {
        id,
        run_ns: program.ns as u64,
        threads: accesses.into_iter().enumerate().map(thread).collect(),
        resident: program.pages_at.iter().map(|pages| pages * bytes).collect(),
        fixed: false,
    }
}

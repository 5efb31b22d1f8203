//! Dynamic migration of one program: a page policy within the limits of the live controller, asked once a period.

use super::state::State;
use crate::moving::drawn;
use nodewise_control::{BatchResult, Controller, PageResult, Settings};
use nodewise_machine::NodeId;
use nodewise_placement::formulas::mix;
use nodewise_placement::{MigrationPolicy, Move, Observed};
use nodewise_profile::PageNumber;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The page policy of one program, with its counts.
pub(super) struct DynamicMigration {
    controller: Controller,
    /// The number of nodes with threads of the program; they come first among the nodes that the policy sees.
    own: Arc<AtomicUsize>,
    counted: DecayedCounts,
}

/// Accesses to pages by node, older ones discounted.
struct DecayedCounts {
    nodes: usize,
    /// `[page * nodes + node]`.
    counts: Vec<u64>,
}

/// Shows its policy the nodes with threads of the program first, then other nodes that still have pages of it; pages
/// are spread over the former only.
struct OntoOwnNodes {
    policy: Box<dyn MigrationPolicy>,
    own: Arc<AtomicUsize>,
}

impl MigrationPolicy for OntoOwnNodes {
    fn name(&self) -> String {
        self.policy.name()
    }

    fn decide(&mut self, observed: &dyn Observed) -> Vec<Move> {
        let own = self.own.load(Ordering::Relaxed) as u64;
        let mut moves = self.policy.decide(observed);
        for each in &mut moves {
            if u64::from(each.to.0) >= own {
                let number = each.page.virtual_number() >> observed.page_shift();
                each.to = NodeId((number % own) as u32);
            }
        }
        moves.retain(|m| m.to != m.from);
        moves
    }

    fn messages(&self, nodes: usize, moves: usize) -> u64 {
        self.policy.messages(nodes, moves)
    }
}

impl DynamicMigration {
    pub fn new(policy: Box<dyn MigrationPolicy>, settings: Settings, pages: usize, nodes: usize) -> Self {
        let own = Arc::new(AtomicUsize::new(nodes));
        let policy = Box::new(OntoOwnNodes {
            policy,
            own: Arc::clone(&own),
        });
        let mut controller = Controller::new(policy, settings);
        // The clock starts with the run, not with the first decision.
        controller.record(0, &BatchResult::default());
        Self {
            controller,
            own,
            counted: DecayedCounts {
                nodes,
                counts: vec![0; pages * nodes],
            },
        }
    }

    /// Adds the program's accesses since the last decision.
    pub fn count(&mut self, state: &State<'_>) {
        let DecayedCounts { nodes, counts } = &mut self.counted;
        for (phase, times) in state
            .timeline
            .phases
            .iter()
            .zip(&state.passed)
            .filter(|p| *p.1 > 0.0)
        {
            for row in &phase.rows {
                let cell = row.page as usize * *nodes + state.nodes[row.slot as usize];
                // To the nearest; `round` is a call of the C library on CPUs without SSE 4.1, which we are built for.
                counts[cell] += (row.accesses as f64 * times + 0.5) as u64;
            }
        }
    }

    /// Drops all counts, which were made on other nodes.
    pub fn forget(&mut self) {
        self.counted.counts.fill(0);
    }

    /// Moves pages, each at a cost of `page_ns`. Returns the number of pages.
    pub fn step(&mut self, state: &mut State<'_>, page_ns: f64) -> u64 {
        let pages = self.counted.pages();
        let mut frame = state.own_nodes();
        self.own.store(frame.len(), Ordering::Relaxed);
        for page in &pages {
            let home = usize::from(state.homes[*page]);
            if !frame.contains(&home) {
                frame.push(home);
            }
        }
        let view = View {
            counted: &self.counted,
            state,
            pages: &pages,
            frame: &frame,
        };
        let now_ns = state.ns as u64;
        let decision = self.controller.step(now_ns, &view);
        for each in &decision.moves {
            let page = pages[each.index];
            state.rehome(page, frame[each.to.index()]);
            self.counted.of_page(page).fill(0);
        }
        let moved = decision.moves.len();
        let outcome = BatchResult {
            results: vec![PageResult::Moved; moved],
            took_ns: (moved as f64 * page_ns) as u64,
        };
        self.controller.record(now_ns, &outcome);
        if decision.halve {
            self.counted.counts.iter_mut().for_each(|c| *c /= 2);
        }
        moved as u64
    }
}

impl DecayedCounts {
    /// Pages with counts, ascending.
    fn pages(&self) -> Vec<usize> {
        let rows = self.counts.chunks_exact(self.nodes).enumerate();
        let counted = rows.filter(|(_, row)| row.iter().any(|c| *c > 0));
        counted.map(|(page, _)| page).collect()
    }

    fn of_page(&mut self, page: usize) -> &mut [u64] {
        &mut self.counts[page * self.nodes..][..self.nodes]
    }
}

/// The accesses that the policy sees, with nodes numbered as in `frame`.
struct View<'a> {
    counted: &'a DecayedCounts,
    state: &'a State<'a>,
    pages: &'a [usize],
    frame: &'a [usize],
}

impl Observed for View<'_> {
    fn nodes(&self) -> usize {
        self.frame.len()
    }

    fn len(&self) -> usize {
        self.pages.len()
    }

    fn page(&self, index: usize) -> PageNumber {
        self.state.timeline.pages[self.pages[index]]
    }

    fn home(&self, index: usize) -> NodeId {
        let home = usize::from(self.state.homes[self.pages[index]]);
        let at = self.frame.iter().position(|n| *n == home);
        NodeId(at.expect("every home is listed") as u32)
    }

    fn counts(&self, index: usize, counts: &mut [u64]) {
        let all = &self.counted.counts[self.pages[index] * self.counted.nodes..];
        counts
            .iter_mut()
            .zip(self.frame)
            .for_each(|(c, node)| *c = all[*node]);
    }

    /// The order of accesses in a period is unknown: any access may have been the first; it is drawn by the page's
    /// number.
    fn first(&self, index: usize) -> Option<NodeId> {
        let mut counts = vec![0; self.frame.len()];
        self.counts(index, &mut counts);
        drawn(&counts, mix(self.page(index).0))
    }

    fn page_shift(&self) -> u32 {
        self.state.timeline.shift
    }

    fn exact(&self) -> bool {
        true
    }
}

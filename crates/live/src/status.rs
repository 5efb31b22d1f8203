//! Figures of a session while it runs, and its summary at the end.

use crate::options::Options;
use crate::threads::ThreadSummary;
use crate::topology::Topology;
use nodewise_analysis::figures::{bytes, exact, percent, seconds};
use nodewise_analysis::{Interval, sampled_share};
use nodewise_control::{Controller, HeldBack, Interval as Turn, Ledger, PageResult};
use nodewise_enforce::{Held, Stalls};
use nodewise_linux::{Host, PageMoves, clock};
use nodewise_machine::format_list;
use nodewise_observe::faults::{Figures, Watch};
use nodewise_profile::{BASE_PAGE_SIZE, PageNumber};
use serde::Serialize;
use std::collections::HashSet;
use std::time::Duration;

/// Sample counts of an interval: those from the page's home node, and all.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Locality {
    local: u64,
    all: u64,
    /// Share of the observed pages without a sample in the interval.
    unconfirmed: f64,
}

impl Locality {
    /// Confidence interval of the share of local accesses.
    #[must_use]
    pub fn accesses(self) -> Option<Interval> {
        Some(sampled_share(self.fraction()?, self.all, self.unconfirmed))
    }

    /// The share of local samples, 0 to 1; `None` without samples.
    #[must_use]
    pub fn fraction(self) -> Option<f64> {
        (self.all > 0).then(|| self.local as f64 / self.all as f64)
    }
}

/// How much of the programs' memory is fast.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FastMemory {
    /// The nodes that the policy fills with the pages that are accessed most.
    pub nodes: Vec<u32>,
    /// Bytes of private memory there.
    pub bytes: u64,
    /// Bytes that are known, there and elsewhere.
    pub of_bytes: u64,
}

/// Figures of a session. Pages are in units of the decision's page size.
pub struct Status {
    /// The migration policy, as written.
    pub policy: String,
    /// Base-2 logarithm of the decision's page size in base pages.
    pub page_shift: u32,
    /// Memory nodes of the machine.
    pub nodes: usize,
    /// Whether it is a dry run: nothing is moved.
    pub dry: bool,
    /// Largest share of run time that migration may take.
    pub budget: f64,
    /// Share of the programs' CPU time that observing may take.
    pub observe: f64,
    /// Time since the session began.
    pub seconds: f64,
    /// Number of decisions made.
    pub intervals: u64,
    /// In a dry run: the moves that would have been made.
    pub would_move: u64,
    /// Counts of moves and their results.
    pub ledger: Ledger,
    /// Proposals that the controller filtered out, by reason.
    pub held_back: HeldBack,
    /// Pages evicted from the tracker.
    pub evicted: u64,
    /// Measured cost of moving a GB, seconds.
    pub seconds_per_gb: f64,
    /// Run time that the budget is a share of, nanoseconds.
    pub run_ns: u64,
    /// Totals of observation: samples and their cost.
    pub figures: Figures,
    /// Regions whose accesses DAMON reported, if it is the sensor.
    pub regions: Option<u64>,
    /// Pages protected from the kernel's own balancing.
    pub held: Held,
    /// Total time that processes were stopped, if they are stopped for moves.
    pub stalls: Option<Stalls>,
    /// Duration of the longest call that moved pages; a thread that accesses a page during its move waits no longer
    /// than that.
    pub longest_call: Duration,
    /// Processes that are balanced.
    pub processes: usize,
    /// Whether decisions are paused.
    pub paused: bool,
    current: Locality,
    /// Pages sampled in this interval.
    seen: HashSet<PageNumber>,
    /// Pages that are observed.
    pub tracked: usize,
    pub(crate) first: Option<Locality>,
    /// Locality of the last interval that had samples.
    pub last: Option<Locality>,
    /// Exit status of the command, if one was started.
    pub status: Option<u8>,
    /// Totals of thread migration, if it is on.
    pub threads: Option<ThreadSummary>,
    /// What is in fast memory, with a policy that fills it with the pages that are accessed most.
    pub fast: Option<FastMemory>,
    /// The host's page moves when the session began.
    moves_before: Option<PageMoves>,
    /// The host's page moves during the session, once it has ended; `None` if the kernel does not count them.
    pub host_moves: Option<PageMoves>,
    /// Whether DAMON moves pages, too, at the end.
    pub damon_migrates: bool,
}

/// A share that the user gave, as given: `5 %`, `0.5 %`.
fn share(given: f64) -> String {
    percent(given).replace(".0 %", " %")
}

/// `, at most 3.2 ms a call`
fn longest_call(longest: Duration) -> String {
    match longest {
        Duration::ZERO => String::new(),
        longest => format!(", at most {} a call", seconds(longest.as_secs_f64())),
    }
}

impl Status {
    pub(crate) fn new(
        options: &Options,
        topology: &Topology,
        policy: String,
        page_shift: u32,
        dry: bool,
    ) -> Self {
        Self {
            policy,
            page_shift,
            nodes: topology.machine.node_count(),
            dry,
            budget: options.budget,
            observe: options.observe,
            seconds: 0.0,
            intervals: 0,
            would_move: 0,
            ledger: Ledger::default(),
            held_back: HeldBack::default(),
            evicted: 0,
            seconds_per_gb: 0.0,
            run_ns: 0,
            figures: Figures::default(),
            regions: None,
            held: Held::default(),
            stalls: None,
            longest_call: Duration::ZERO,
            processes: 0,
            paused: false,
            current: Locality::default(),
            seen: HashSet::new(),
            tracked: 0,
            first: None,
            last: None,
            status: None,
            threads: None,
            fast: None,
            moves_before: Host::default().page_moves(),
            host_moves: None,
            damon_migrates: false,
        }
    }

    /// Samples of accesses; beside DAMON's counts of all pages single faults are none.
    pub(crate) fn samples(&self) -> u64 {
        match self.regions {
            Some(_) => 0,
            None => self.figures.hints + self.figures.unknown,
        }
    }

    /// How locality is known: `from 12 samples`.
    fn known_from(&self) -> String {
        match self.regions {
            Some(regions) => format!(
                "DAMON counted accesses to {}, not whose",
                exact(regions, "region")
            ),
            None => format!("from {}", exact(self.samples(), "sample")),
        }
    }

    /// The figures of a command that ran without a session, because there is one memory node only.
    #[must_use]
    pub fn unbalanced(options: &Options, topology: &Topology, time: Duration, exit_status: u8) -> Self {
        Self {
            seconds: time.as_secs_f64(),
            status: Some(exit_status),
            ..Self::new(
                options,
                topology,
                options.policy.clone(),
                options.page_shift(),
                options.dry_run,
            )
        }
    }

    /// Counts a sample. `local`: it came from the page's home node.
    pub(crate) fn sampled(&mut self, page: PageNumber, local: bool) {
        self.current.local += u64::from(local);
        self.current.all += 1;
        self.seen.insert(page);
    }

    /// Records the end of an interval and its decision.
    pub(crate) fn decided(&mut self, turn: &Turn, controller: &Controller, watch: &Watch, began: Duration) {
        self.intervals += 1;
        self.held_back.add(&turn.decision.held_back);
        let mut current = std::mem::take(&mut self.current);
        let known = self.tracked.max(self.seen.len()).max(1);
        current.unconfirmed = 1.0 - std::mem::take(&mut self.seen).len() as f64 / known as f64;
        if current.all > 0 {
            self.first.get_or_insert(current);
            self.last = Some(current);
        }
        self.update(controller, watch, began);
    }

    fn update(&mut self, controller: &Controller, watch: &Watch, began: Duration) {
        self.seconds = clock::monotonic().saturating_sub(began).as_secs_f64();
        self.ledger = controller.ledger().clone();
        if self.dry {
            self.would_move = self.ledger.migrations;
            (self.ledger.migrations, self.ledger.bytes) = (0, 0);
        }
        self.seconds_per_gb = controller.seconds_per_gb();
        self.run_ns = controller.run_ns();
        self.paused = controller.paused();
        self.figures = watch.figures();
        self.processes = watch.processes().len();
    }

    pub(crate) fn ended(
        &mut self,
        controller: &Controller,
        watch: &Watch,
        began: Duration,
        status: Option<u8>,
    ) {
        self.update(controller, watch, began);
        self.status = status;
        let host = Host::default();
        let moves = host.page_moves().zip(self.moves_before);
        self.host_moves = moves.map(|(now, before)| now.since(&before));
        self.damon_migrates = host.damon_migrates();
    }

    /// Pages of 4 KiB that were moved here, with those of whole processes.
    pub(crate) fn moved_here(&self) -> u64 {
        let whole = self.threads.as_ref().map_or(0, |t| t.full_bytes);
        match self.dry {
            true => 0,
            false => self.base_pages() + whole / BASE_PAGE_SIZE,
        }
    }

    /// What else moved pages on the host, where fast memory is filled: the kernel's tiering may work against it.
    fn moved_elsewhere(&self) -> Option<String> {
        let moves = self.host_moves.filter(|_| self.fast.is_some())?;
        Some(format!(
            "meanwhile on this host the kernel promoted {}, demoted {} and balanced {}; others (compaction,{} other programs) moved {}\n",
            pages(moves.promoted),
            moves.demoted,
            moves.balanced(),
            if self.damon_migrates { " DAMON," } else { "" },
            moves.others(self.moved_here()),
        ))
    }

    /// Pages of 4 KiB that were moved.
    #[must_use]
    pub fn base_pages(&self) -> u64 {
        self.ledger.migrations << self.page_shift
    }

    /// Pages of 4 KiB whose last move failed, by result.
    pub fn failures(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let failed = PageResult::ALL
            .into_iter()
            .filter(move |f| !f.arrived() && !self.dry);
        failed.map(|f| (f.name(), self.ledger.stayed(f) << self.page_shift))
    }

    /// Share of run time that migration took.
    #[must_use]
    pub fn budget_used(&self) -> f64 {
        self.ledger.spent_ns as f64 / (self.run_ns.max(1)) as f64
    }

    /// The summary in a few lines of text.
    #[must_use]
    pub fn text(&self) -> String {
        let local = |seen: Option<Locality>| {
            let known = seen.and_then(Locality::accesses);
            let known = known.and_then(|accesses| accesses.bounds_in_words(0.0));
            known.unwrap_or_else(|| "unknown".to_owned())
        };
        let moved = match self.dry {
            true => format!("would have moved {}", pages(self.would_move << self.page_shift)),
            false => format!(
                "moved {} ({})",
                pages(self.base_pages()),
                bytes(self.ledger.bytes)
            ),
        };
        let kernel = match self.figures.kernel_moved {
            Some(moved) => format!("the kernel moved {} by itself", pages(moved)),
            None => "what the kernel moved by itself, it does not say".to_owned(),
        };
        let mut out = format!(
            "local accesses: {} in the first interval, {} in the last ({}); cost: observing {} of the CPU time ({} allowed beyond the start), {} {} of the run time ({} allowed){}\n",
            local(self.first),
            local(self.last),
            self.known_from(),
            percent(self.figures.cost),
            share(self.observe),
            if self.dry {
                "migrating would have taken"
            } else {
                "migrating"
            },
            percent(self.budget_used()),
            share(self.budget),
            longest_call(self.longest_call),
        );
        out += &format!(
            "{} in {} under {}; {}, {}; {kernel}\n",
            moved,
            seconds(self.seconds),
            self.policy,
            exact(self.ledger.ping_pongs, "ping-pong"),
            exact(self.ledger.multiple, "repeated move"),
        );
        if let Some(fast) = &self.fast {
            out += &format!(
                "fast memory: {} of {} {} on node {}{}\n",
                bytes(fast.bytes),
                bytes(fast.of_bytes),
                if self.dry { "would be" } else { "are" },
                format_list(&fast.nodes),
                match self.samples().max(self.regions.unwrap_or(0)) {
                    0 =>
                        "; no access was sampled, so nothing is known of its pages: start the program under `nodewise balance … --`",
                    _ => "",
                },
            );
        }
        out += &self.moved_elsewhere().unwrap_or_default();
        if let Some(stalls) = self.stalls {
            out += &format!(
                "stopped {} while moving, {} altogether, {} at most",
                exact(stalls.count, "time"),
                seconds(stalls.total.as_secs_f64()),
                seconds(stalls.longest.as_secs_f64()),
            );
            let refused = stalls.refused;
            out += &if refused > 0 {
                format!("; {} it could not be\n", exact(refused, "time"))
            } else {
                "\n".to_owned()
            };
        }
        let stayed: Vec<String> = self
            .failures()
            .filter(|f| f.1 > 0)
            .map(|(n, p)| format!("{p} {n}"))
            .collect();
        if !stayed.is_empty() {
            out += &format!("pages that stayed: {}\n", stayed.join(", "));
        }
        if let Some(threads) = &self.threads {
            out += &threads.text();
        }
        out
    }
}

fn pages(count: u64) -> String {
    exact(count, "page")
}

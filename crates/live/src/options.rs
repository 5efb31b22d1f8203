//! Options of a session.

use nodewise_control::Settings;
use nodewise_enforce::HugePages;
use nodewise_linux::clock;
use nodewise_observe::faults::Sensor;
use nodewise_profile::BASE_PAGE_SIZE;
use std::time::Duration;

/// Largest number of pages tracked, 16 bytes each.
pub const MOST_PAGES: usize = 1 << 20;
/// The same for policies that rank pages, which must know those without accesses as well: 64 GiB in base pages.
pub const MOST_RANKED_PAGES: usize = 1 << 24;

/// The name of the thread policy that moves threads while programs run (AsymSched).
pub const ASYM: &str = "asym";

/// What decides which nodes threads run on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThreadMoves {
    /// Nothing: threads run where the kernel puts them.
    Off,
    /// Groups of threads that share memory get nodes, if that makes accesses local ([`nodewise_control::groups`]).
    #[default]
    Groups,
    /// Each process gets the nodes with the widest links ([`nodewise_control::asym`]).
    Asym,
}

impl ThreadMoves {
    /// The name, as on the command line and in documents.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Groups => "groups",
            Self::Asym => ASYM,
        }
    }
}

/// What a session is asked to do.
#[derive(Clone, Debug)]
pub struct Options {
    /// The migration policy, with parameters: `out-w:threshold=3`.
    pub policy: String,
    /// Time between two decisions.
    pub interval: Duration,
    /// Largest share of run time that migration may take, 0 to 1.
    pub budget: f64,
    /// Largest share of the programs' CPU time that observing may take, 0 to 1.
    pub observe: f64,
    /// Rate limit of moves, MB (10⁶ bytes) per second.
    pub rate_limit: Option<f64>,
    /// A page is judged only if it has at least this many samples.
    pub minimum_samples: u32,
    /// Base-2 logarithm of the decision's page size in base pages; `None`: huge pages where the kernel makes them by
    /// itself.
    pub page_shift: Option<u32>,
    /// The mechanism that makes accesses fault, so that they are sampled.
    pub sensor: Sensor,
    /// The kernel's NUMA scan period during the session, for all processes.
    pub scan_period: Option<Duration>,
    /// Whether pages that several processes map are moved, for all of them; needs `CAP_SYS_NICE`.
    pub shared: bool,
    /// Whether a process is stopped during each batch of its moves.
    pub freeze: bool,
    /// Dry run: decide and move nothing.
    pub dry_run: bool,
    /// Whether and how threads are bound to nodes.
    pub move_threads: ThreadMoves,
    /// Whether the command's threads were bound when it was started; if so, bound threads are not taken for the
    /// program's own choice.
    pub bound: bool,
    /// Whether threads get their original affinity masks back at the end.
    pub restore: bool,
    /// The niceness to take while running threads are held on their nodes, if it is not to stay as it is.
    pub niceness_while_held: Option<i32>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            policy: "dominant".into(),
            interval: Duration::from_secs(1),
            budget: 0.05,
            observe: 0.02,
            rate_limit: None,
            minimum_samples: 2,
            page_shift: None,
            sensor: Sensor::Auto,
            scan_period: None,
            shared: false,
            freeze: false,
            dry_run: false,
            move_threads: ThreadMoves::Groups,
            bound: false,
            restore: false,
            niceness_while_held: None,
        }
    }
}

impl Options {
    /// The default page size of decisions: huge pages where the kernel makes them by itself, else base pages.
    pub(crate) fn page_shift(&self) -> u32 {
        let always = || nodewise_enforce::Host::this(&[]).is_ok_and(|h| h.huge == HugePages::Always);
        self.page_shift.unwrap_or_else(|| if always() { 9 } else { 0 })
    }

    pub(crate) fn settings(&self, page_shift: u32) -> Settings {
        let page_bytes = BASE_PAGE_SIZE << page_shift;
        Settings {
            interval_ns: clock::nanoseconds(self.interval),
            budget: self.budget,
            pages_per_second: self.rate_limit.map(|mb| mb * 1e6 / page_bytes as f64),
            minimum_samples: self.minimum_samples,
            half_life: 0,
            remembered_pages: MOST_PAGES,
            page_bytes,
            ..Settings::default()
        }
    }
}

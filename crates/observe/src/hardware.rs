//! What the machine gives: latency and bandwidth between its nodes, measured as any user can.
//!
//! **Latency**: a chain of loads, each of which says where the next one goes, over more memory than the
//! caches hold, in an order that no prefetcher guesses. **Bandwidth**: every CPU of the reading (writing)
//! node goes through memory of its own, in four streams, for a while; bytes over time. **Together**:
//! several such flows at once, chosen by [`nodewise_machine::inference::survey`].
//!
//! Each figure is repeated until the interval of its median is narrow, or time is up.

mod caches;
mod chase;
mod described;
mod flows;
mod hypervisor;
mod pace;
mod room;
mod site;
mod stream;

pub use hypervisor::virtual_machine;

use crate::Error;
use flows::Runs;
use nodewise_linux::{Host, clock};
use nodewise_machine::inference::{Estimate, Survey, survey};
use nodewise_machine::{Flow, Machine, NodeId};
use pace::Pace;
use site::Site;
use std::time::Duration;

/// How to measure.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Stop repeating when half the interval's width is this share of the median.
    pub precision: f64,
    /// Samples of a figure, at least and at most.
    pub samples: std::ops::RangeInclusive<usize>,
    /// How long a sample of a bandwidth takes.
    pub window: Duration,
    /// Begin nothing after this time.
    pub limit: Duration,
    /// Memory to measure on each node, bytes; without it four times the caches that reach it.
    pub memory: Option<u64>,
}

impl Settings {
    /// Within one percent, if ten minutes are enough.
    #[must_use]
    pub fn thorough() -> Self {
        Self {
            precision: 0.01,
            samples: 12..=60,
            window: Duration::from_millis(20),
            limit: Duration::from_secs(600),
            memory: None,
        }
    }

    /// Within a twentieth, in a minute at most.
    #[must_use]
    pub fn quick() -> Self {
        Self {
            precision: 0.05,
            samples: 6..=18,
            window: Duration::from_millis(5),
            limit: Duration::from_secs(60),
            memory: None,
        }
    }
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What is being measured.
    pub what: &'static str,
    /// Figures of it that are known.
    pub done: usize,
    /// How many there are, at most.
    pub of: usize,
}

/// One figure for each pair `[reader][memory]`; none where it was not measured.
pub type Matrix = Vec<Vec<Option<Estimate>>>;

/// What was measured.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Nanoseconds of a load.
    pub latency_ns: Matrix,
    /// MB/s that a node's CPUs read from a memory, with nothing else running.
    pub read: Matrix,
    /// MB/s that they write to it.
    pub write: Matrix,
    /// What remote reads get beside each other; none where there is only one.
    pub survey: Option<Survey>,
    /// Nodes whose CPUs can be divided: half of them read as fast as all.
    pub divisible: Vec<NodeId>,
    /// Memory used on each node, bytes; 0 where none was.
    pub memory: Vec<u64>,
    /// The part of it that lies on huge pages.
    pub huge: f64,
    /// What was left out, refused or limited, a line each.
    pub notes: Vec<String>,
    /// How long it took.
    pub took: Duration,
    /// Whether time was up before everything was measured.
    pub cut_short: bool,
}

/// Measures this host, which `machine` describes.
///
/// # Errors
/// There is no CPU or no memory to measure with, or threads cannot be bound.
pub fn measure(
    host: &Host,
    machine: &Machine,
    settings: &Settings,
    progress: &mut dyn FnMut(Progress),
) -> Result<Measured, Error> {
    let start = clock::monotonic();
    let mut site = Site::look(host, machine, settings)?;
    let pace = Pace::new(settings, start);
    let mut runs = Runs::new(&mut site, &pace, progress);
    let latency_ns = runs.latencies();
    let read = runs.reads();
    let write = runs.writes();
    let divisible = runs.divisible(&read);
    let survey = together(&mut runs, &read, &divisible);
    Ok(Measured {
        latency_ns,
        read,
        write,
        survey,
        divisible,
        memory: site.memory(),
        huge: site.huge(host),
        notes: site.notes,
        took: clock::monotonic().saturating_sub(start),
        cut_short: pace.was_cut(),
    })
}

fn together(runs: &mut Runs<'_, '_>, read: &Matrix, divisible: &[NodeId]) -> Option<Survey> {
    let mut alone: Vec<(Flow, Estimate)> = Vec::new();
    for (reader, row) in read.iter().enumerate() {
        for (memory, figure) in row.iter().enumerate().filter(|(m, _)| *m != reader) {
            let [reader, memory] = [reader, memory].map(|n| NodeId(n as u32));
            alone.extend(figure.map(|f| (Flow { reader, memory }, f)));
        }
    }
    let pairs = alone.len() * alone.len().saturating_sub(1) / 2;
    let mut done = 0;
    (pairs > 0).then(|| {
        survey(
            &alone,
            |reader| divisible.contains(&reader),
            |flows| {
                done += 1;
                runs.together(flows, done, pairs)
            },
        )
    })
}

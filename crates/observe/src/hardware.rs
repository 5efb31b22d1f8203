//! Measures latency and bandwidth between the machine's nodes, without special privileges.
//!
//! **Latency**: a chain of dependent loads over more memory than the caches hold, in an order that no prefetcher can
//! predict. **Bandwidth**: every CPU of the reading (writing) node goes through its own memory, in four streams, for a
//! while; bytes over time. **Together**: several such flows at once, chosen by [`nodewise_machine::inference::survey`].
//!
//! Each measurement is repeated until the confidence interval of its median is narrow, or time is up.

mod caches;
mod chase;
mod described;
mod flows;
mod hypervisor;
mod pace;
mod settings;
mod site;
mod stream;

pub use caches::last_level;
pub use hypervisor::virtual_machine;
pub use settings::{Matrix, Progress, Settings};

use crate::{Error, ErrorKind};
use flows::Runs;
use nodewise_linux::{Host, clock};
use nodewise_machine::inference::{Estimate, Survey, survey};
use nodewise_machine::{Flow, Machine, NodeId};
use pace::Pace;
use site::Site;
use std::time::Duration;

/// Results of all measurements.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Latency of a load, nanoseconds.
    pub latency_ns: Matrix,
    /// Bandwidth of a node's CPUs reading a memory while nothing else runs, MB/s.
    pub read: Matrix,
    /// Bandwidth of a node's CPUs writing to a memory, MB/s.
    pub write: Matrix,
    /// Bandwidths of remote reads that run at the same time; `None` on a machine without remote memory.
    pub survey: Option<Survey>,
    /// Nodes either half of whose CPUs reads as fast as all of them.
    pub divisible: Vec<NodeId>,
    /// Bytes of memory used on each node; 0 if none.
    pub memory: Vec<u64>,
    /// The share of this memory on huge pages, 0 to 1.
    pub huge: f64,
    /// What was left out, refused or limited, one line each.
    pub notes: Vec<String>,
    /// Duration of all measurements.
    pub took: Duration,
    /// Whether time was up before everything was measured.
    pub cut_short: bool,
}

/// Measures this host, of which `machine` is the description.
///
/// # Errors
/// There is no CPU or memory to measure with, or threads cannot be bound.
pub fn measure(
    host: &Host,
    machine: &Machine,
    settings: &Settings,
    progress: &mut dyn FnMut(Progress),
) -> Result<Measured, Error> {
    let start = clock::monotonic();
    let mut site = Site::prepare(host, machine, settings)?;
    let pace = Pace::new(settings, start);
    let mut runs = Runs::new(&mut site, &pace, progress);
    let mut found = Measured {
        latency_ns: runs.latencies(),
        read: runs.reads(),
        write: runs.writes(),
        ..Measured::default()
    };
    found.forget_stalled();
    found.forget(&runs.drop_moved());
    found.divisible = runs.divisible(&found.read);
    found.survey = together(&mut runs, &found);
    let moved = runs.drop_moved();
    if !moved.is_empty() {
        found.forget(&moved);
        found.survey = survey_of(&found.read, |_| false, |_| None);
    }
    if let Some(why) = pace.refused() {
        return Err(no_threads(why));
    }
    found.memory = site.memory();
    found.huge = site.huge(host);
    found.notes.splice(0..0, site.notes);
    found.took = clock::monotonic().saturating_sub(start);
    found.cut_short = pace.was_cut();
    Ok(found)
}

fn no_threads(why: &std::io::Error) -> Error {
    let text = format!(
        "cannot start a thread for each CPU: {why}; allow more of them (ulimit -u, or pids.max of the control group)"
    );
    Error::new(ErrorKind::Unavailable, text)
}

fn together(runs: &mut Runs<'_, '_>, found: &Measured) -> Option<Survey> {
    let flows = remote(&found.read).count();
    let pairs = flows * flows.saturating_sub(1) / 2;
    let mut done = 0;
    survey_of(
        &found.read,
        |reader| found.divisible.contains(&reader),
        |flows| {
            done += 1;
            runs.together(flows, done, pairs)
        },
    )
}

/// Surveys all remote reads; `None` if there are none.
fn survey_of(
    read: &Matrix,
    divisible: impl Fn(NodeId) -> bool,
    measure: impl FnMut(&[Flow]) -> Option<Vec<Estimate>>,
) -> Option<Survey> {
    let alone: Vec<(Flow, Estimate)> = remote(read).collect();
    (!alone.is_empty()).then(|| survey(&alone, divisible, measure))
}

fn remote(read: &Matrix) -> impl Iterator<Item = (Flow, Estimate)> {
    let cells = |(reader, row): (usize, &'_ Vec<Option<Estimate>>)| {
        let flow = move |(memory, figure): (usize, &Option<Estimate>)| {
            let [reader, memory] = [reader, memory].map(|n| NodeId(n as u32));
            figure
                .filter(|_| reader != memory)
                .map(|f| (Flow { reader, memory }, f))
        };
        row.iter().enumerate().filter_map(flow).collect::<Vec<_>>()
    };
    read.iter().enumerate().flat_map(cells)
}

impl Measured {
    /// Removes the figures of these memories.
    fn forget(&mut self, memories: &[usize]) {
        for matrix in [&mut self.latency_ns, &mut self.read, &mut self.write] {
            for row in matrix {
                memories.iter().for_each(|m| row[*m] = None);
            }
        }
    }

    /// Removes bandwidths of CPUs that made no progress, and adds a note.
    fn forget_stalled(&mut self) {
        for (matrix, did) in [(&mut self.read, "read"), (&mut self.write, "wrote")] {
            for (reader, row) in matrix.iter_mut().enumerate() {
                let still: Vec<usize> = (0..row.len())
                    .filter(|m| row[*m].is_some_and(|f| f.median < 1.0))
                    .collect();
                for memory in still {
                    row[memory] = None;
                    self.notes.push(format!(
                        "node {reader} {did} nothing most of the time, others had its CPUs; what it does with node \
                         {memory} is left out"
                    ));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(read: [[f64; 2]; 2]) -> Measured {
        let matrix: Matrix = read
            .map(|row| row.map(|f| Some(Estimate::exact(f))).to_vec())
            .to_vec();
        Measured {
            latency_ns: matrix.clone(),
            read: matrix.clone(),
            write: matrix,
            ..Measured::default()
        }
    }

    #[test]
    fn a_node_that_stood_still_is_left_out_and_that_is_said() {
        let mut found = figures([[900.0, 0.0], [500.0, 900.0]]);
        found.forget_stalled();
        assert_eq!((found.read[0][1], found.write[0][1]), (None, None));
        assert!(found.read[1][0].is_some());
        assert_eq!(found.notes.len(), 2);
        assert!(
            found.notes[0].starts_with("node 0 read nothing"),
            "{:?}",
            found.notes
        );
    }

    #[test]
    fn memory_that_has_gone_takes_its_figures_along() {
        let mut found = figures([[900.0, 400.0], [500.0, 900.0]]);
        found.forget(&[1]);
        for matrix in [&found.latency_ns, &found.read, &found.write] {
            assert!(matrix[0][1].is_none() && matrix[1][1].is_none() && matrix[0][0].is_some());
        }
        let survey = survey_of(&found.read, |_| false, |_| None).unwrap();
        assert_eq!((survey.flows().len(), survey.pairs()), (1, (0, 0)));
    }
}

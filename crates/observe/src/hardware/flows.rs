//! Measures each figure with the CPUs and memory that it needs.

use super::chase;
use super::pace::Pace;
use super::settings::{Matrix, Progress};
use super::site::{Place, Site};
use super::stream::{self, Lane, Part};
use nodewise_linux::{affinity, clock};
use nodewise_machine::inference::Estimate;
use nodewise_machine::{Flow, NodeId};

/// Loads of a sample: some milliseconds, so that the resolution of the clock does not matter.
const LOADS_PER_SAMPLE: usize = 1 << 14;
/// If half of a node's CPUs read less than this share of what all of them read, they cannot stand for the node.
const MIN_HALF_BANDWIDTH: f64 = 0.95;

/// Measurements on the nodes of a site.
pub(super) struct Runs<'a, 'b> {
    site: &'a mut Site,
    pace: &'a Pace,
    progress: &'b mut dyn FnMut(Progress),
}

impl<'a, 'b> Runs<'a, 'b> {
    pub(super) fn new(site: &'a mut Site, pace: &'a Pace, progress: &'b mut dyn FnMut(Progress)) -> Self {
        Self { site, pace, progress }
    }

    /// Nanoseconds of a load, by one CPU of each node from each memory.
    pub(super) fn latencies(&mut self) -> Matrix {
        self.each("latency", |runs, reader, memory| {
            let cpus = runs.site.nodes[reader].cpus.clone();
            let pace = runs.pace;
            let place = &mut runs.site.nodes[memory];
            std::thread::scope(|scope| {
                let walker = std::thread::Builder::new().spawn_scoped(scope, || latency(place, &cpus, pace));
                walker.map_err(|why| pace.refuse(why)).ok()?.join().ok()?
            })
        })
    }

    /// Bandwidth with which each node reads each memory, MB/s.
    pub(super) fn reads(&mut self) -> Matrix {
        self.each("read bandwidth", |runs, reader, memory| {
            let flow = flow(reader, memory);
            Some(runs.read(&[flow])?[0])
        })
    }

    /// Bandwidth with which each node writes to each memory, MB/s.
    pub(super) fn writes(&mut self) -> Matrix {
        self.each("write bandwidth", |runs, writer, memory| {
            let cpus = runs.site.nodes[writer].cpus.clone();
            let words = runs.site.nodes[memory].memory.as_mut()?.words_mut();
            let parts = words.chunks_mut(words_each(words.len(), cpus.len()));
            let lane = |(cpu, part)| Lane {
                cpu,
                flow: 0,
                part: Part::Write(part),
            };
            let mut lanes: Vec<Lane> = cpus.into_iter().zip(parts).map(lane).collect();
            Some(stream::rates(&mut lanes, 1, runs.pace)?[0])
        })
    }

    /// Nodes that read several other memories, and either half of whose CPUs reads the best of these as fast as all:
    /// [`Runs::together`] uses such halves for two flows of one reader.
    pub(super) fn divisible(&mut self, read: &Matrix) -> Vec<NodeId> {
        let mut found = Vec::new();
        for (reader, row) in read.iter().enumerate() {
            let remote = row.iter().enumerate().filter(|(m, _)| *m != reader);
            let known: Vec<(usize, f64)> = remote.filter_map(|(m, f)| Some((m, (*f)?.median))).collect();
            let best = known.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1));
            let Some((memory, all)) = best.filter(|_| known.len() > 1) else {
                continue;
            };
            let cpus = self.site.nodes[reader].cpus.clone();
            let mut as_good = |turn| {
                let flow = flow(reader, memory);
                let half = self.read_by(&[flow], |_| dealt(&cpus, (turn, 2)));
                half.is_some_and(|h| h[0].median >= MIN_HALF_BANDWIDTH * all)
            };
            if cpus.len() > 1 && as_good(0) && as_good(1) {
                found.push(NodeId(reader as u32));
            }
        }
        found
    }

    /// Gives up the memories whose pages are no longer on their node, and returns them.
    pub(super) fn drop_moved(&mut self) -> Vec<usize> {
        self.site.drop_moved()
    }

    /// Bandwidths of reads that run at the same time, MB/s; this is group `done` of at most `of`.
    pub(super) fn together(&mut self, flows: &[Flow], done: usize, of: usize) -> Option<Vec<Estimate>> {
        let what = "flows together";
        (self.progress)(Progress {
            what,
            done,
            of: of.max(done),
        });
        self.read(flows)
    }

    /// Reads with all CPUs of the readers, which are divided among the flows of each.
    fn read(&mut self, flows: &[Flow]) -> Option<Vec<Estimate>> {
        let hands: Vec<Vec<u32>> = (0..flows.len())
            .map(|index| {
                let cpus = &self.site.nodes[flows[index].reader.index()].cpus;
                dealt(cpus, place_among(flows, index, |f| f.reader))
            })
            .collect();
        self.read_by(flows, |index| hands[index].clone())
    }

    /// Reads with these CPUs for each flow; memories are divided among the flows.
    fn read_by(&mut self, flows: &[Flow], cpus: impl Fn(usize) -> Vec<u32>) -> Option<Vec<Estimate>> {
        let mut lanes = Vec::new();
        for (index, flow) in flows.iter().enumerate() {
            let cpus = cpus(index);
            let words = self.site.nodes[flow.memory.index()].memory.as_ref()?.words();
            let (turn, turns) = place_among(flows, index, |f| f.memory);
            let words = words.chunks(words.len() / turns).nth(turn)?;
            let parts = words.chunks(words_each(words.len(), cpus.len()));
            let lane = |(cpu, part)| Lane {
                cpu,
                flow: index,
                part: Part::Read(part),
            };
            lanes.extend(cpus.into_iter().zip(parts).map(lane));
        }
        stream::rates(&mut lanes, flows.len(), self.pace)
    }

    /// Measures a figure for every pair that has CPUs and memory.
    fn each(
        &mut self,
        what: &'static str,
        mut figure: impl FnMut(&mut Self, usize, usize) -> Option<Estimate>,
    ) -> Matrix {
        let count = self.site.nodes.len();
        let readers = self.site.nodes.iter().filter(|n| !n.cpus.is_empty()).count();
        let memories = self.site.nodes.iter().filter(|n| n.memory.is_some()).count();
        let (mut done, of) = (0, readers * memories);
        let mut matrix = vec![vec![None; count]; count];
        for (reader, row) in matrix.iter_mut().enumerate() {
            for (memory, cell) in row.iter_mut().enumerate() {
                let nodes = &self.site.nodes;
                if !nodes[reader].cpus.is_empty() && nodes[memory].memory.is_some() {
                    (self.progress)(Progress { what, done, of });
                    *cell = figure(self, reader, memory);
                    done += 1;
                }
            }
        }
        matrix
    }
}

/// Continues along the chain of a node's memory, by one of the CPUs after the other.
fn latency(place: &mut Place, cpus: &[u32], pace: &Pace) -> Option<Estimate> {
    let words = place.memory.as_ref()?.words();
    let (chain, rest) = words.split_at(chase::within(words.len()));
    let _ = affinity::bind_this_thread(&cpus[..1]);
    stream::pass(rest);
    let mut turn = 0;
    let at = &mut place.at;
    let found = pace.repeat(1, |samples| {
        let _ = affinity::bind_this_thread(&cpus[turn % cpus.len()..][..1]);
        turn += 1;
        *at = chase::walk(chain, *at, 64);
        let start = clock::monotonic();
        *at = chase::walk(chain, *at, LOADS_PER_SAMPLE);
        samples[0].push((clock::monotonic() - start).as_secs_f64() * 1e9 / LOADS_PER_SAMPLE as f64);
        Ok(())
    })?;
    Some(found[0])
}

fn flow(reader: usize, memory: usize) -> Flow {
    let [reader, memory] = [reader, memory].map(|n| NodeId(n as u32));
    Flow { reader, memory }
}

/// The position of a flow among those that have the same node at this end, and their number.
fn place_among(flows: &[Flow], index: usize, end: impl Fn(&Flow) -> NodeId) -> (usize, usize) {
    let same = |f: &&Flow| end(f) == end(&flows[index]);
    (
        flows[..index].iter().filter(same).count(),
        flows.iter().filter(same).count(),
    )
}

/// Every `turns`-th of a node's CPUs, starting at `turn`. Whether the siblings of a core are in the same group depends
/// only on `turns`, so all measurements with the same `turns` agree, however the kernel numbers siblings.
fn dealt(cpus: &[u32], (turn, turns): (usize, usize)) -> Vec<u32> {
    cpus.iter().copied().skip(turn).step_by(turns).collect()
}

/// Words for each of these CPUs, rounded to whole pages.
fn words_each(words: usize, cpus: usize) -> usize {
    ((words / cpus.max(1)) & !511).max(512)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_of_one_node_take_turns() {
        let flows = [flow(0, 1), flow(2, 1), flow(0, 3)];
        assert_eq!(place_among(&flows, 2, |f| f.reader), (1, 2));
        assert_eq!(place_among(&flows, 1, |f| f.memory), (1, 2));
        assert_eq!(place_among(&flows, 1, |f| f.reader), (0, 1));
        assert_eq!(dealt(&[0, 1, 32, 33, 34], (0, 2)), [0, 32, 34]);
        assert_eq!(dealt(&[0, 1, 32, 33, 34], (1, 2)), [1, 33]);
        assert_eq!((words_each(8192, 3), words_each(100, 1)), (2560, 512));
    }
}

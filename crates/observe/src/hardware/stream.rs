//! Measures bandwidth: CPUs read or write memory as fast as they can, in several flows at once.

use super::pace::Pace;
use nodewise_linux::{affinity, clock};
use nodewise_machine::inference::Estimate;
use std::hint::black_box;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// Streams of a CPU: with one alone the prefetcher would be the limit.
const STREAMS_PER_CPU: usize = 4;
/// Words of a stream between two checks of whether to stop.
const WORDS_PER_CHECK: usize = 2048;
/// Samples taken after threads are started; they are started anew for the next ones, in case they were placed badly.
const WINDOWS_PER_START: usize = 3;
/// Time between two checks of whether all threads run on their CPUs; the first ones read meanwhile.
const ARRIVAL_CHECK: Duration = Duration::from_micros(100);

/// A CPU and the memory that it reads or writes.
pub(super) struct Lane<'a> {
    pub cpu: u32,
    /// Index of the flow that its bytes count for.
    pub flow: usize,
    pub part: Part<'a>,
}

pub(super) enum Part<'a> {
    Read(&'a [u64]),
    Write(&'a mut [u64]),
}

/// Bytes processed, alone on its cache lines (pairs of which are fetched together).
#[derive(Default)]
#[repr(align(128))]
struct Done(AtomicU64);

/// Bandwidth of each flow, MB/s; `None` if time was up or a thread could not be started, which `pace` records.
pub(super) fn rates(lanes: &mut [Lane], flows: usize, pace: &Pace) -> Option<Vec<Estimate>> {
    pace.repeat(flows, |samples| once(lanes, pace.window(), samples))
}

fn once(lanes: &mut [Lane], window: Duration, samples: &mut [Vec<f64>]) -> io::Result<()> {
    let flow_of: Vec<usize> = lanes.iter().map(|l| l.flow).collect();
    let done: Vec<Done> = lanes.iter().map(|_| Done::default()).collect();
    let (stop, there) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let begun = lanes.iter_mut().zip(&done).try_for_each(|(lane, done)| {
            let (stop, there) = (&stop, &there);
            let run = move || {
                // Binding works for every CPU here: the site has checked that.
                let _ = affinity::bind_this_thread(&[lane.cpu]);
                there.fetch_add(1, Relaxed);
                lane.go(stop, &done.0);
            };
            std::thread::Builder::new().spawn_scoped(scope, run).map(drop)
        });
        if begun.is_ok() {
            while there.load(Relaxed) < flow_of.len() {
                std::thread::sleep(ARRIVAL_CHECK);
            }
            std::thread::sleep(window / 2);
            watch(&done, &flow_of, window, samples);
        }
        stop.store(true, Relaxed);
        begun
    })
}

/// Appends the bandwidth of each flow in some time windows, MB/s.
fn watch(done: &[Done], flow_of: &[usize], window: Duration, samples: &mut [Vec<f64>]) {
    let mut before = look(done);
    for _ in 0..WINDOWS_PER_START {
        std::thread::sleep(window);
        let after = look(done);
        let micros = (after.0 - before.0).as_secs_f64() * 1e6;
        for (flow, samples) in samples.iter_mut().enumerate() {
            samples.push(of_flow(flow, flow_of, &before.1, &after.1) as f64 / micros);
        }
        before = after;
    }
}

/// Bytes that the lanes of a flow have processed between two readings.
fn of_flow(flow: usize, flow_of: &[usize], before: &[u64], after: &[u64]) -> u64 {
    let lanes = flow_of.iter().zip(before.iter().zip(after));
    let own = lanes.filter(|(f, _)| **f == flow);
    own.map(|(_, (before, after))| after - before).sum()
}

fn look(done: &[Done]) -> (Duration, Vec<u64>) {
    (
        clock::monotonic(),
        done.iter().map(|d| d.0.load(Relaxed)).collect(),
    )
}

impl Lane<'_> {
    /// Reads or writes repeatedly until told to stop.
    fn go(&mut self, stop: &AtomicBool, done: &AtomicU64) {
        let words = match &self.part {
            Part::Read(part) => part.len(),
            Part::Write(part) => part.len(),
        };
        let stream = words / STREAMS_PER_CPU;
        let step = WORDS_PER_CHECK.min(stream);
        if step == 0 {
            return;
        }
        loop {
            for at in (0..=stream - step).step_by(step) {
                match &mut self.part {
                    Part::Read(part) => drop(black_box(sums(part, stream, at, step))),
                    Part::Write(part) => zeros(part, stream, at, step),
                }
                done.fetch_add((STREAMS_PER_CPU * step * 8) as u64, Relaxed);
                if stop.load(Relaxed) {
                    return;
                }
            }
        }
    }
}

/// Reads one step of every stream.
fn sums(part: &[u64], stream: usize, at: usize, step: usize) -> [u64; STREAMS_PER_CPU] {
    let streams: [&[u64]; STREAMS_PER_CPU] = std::array::from_fn(|s| &part[s * stream + at..][..step]);
    let mut sums = [0u64; STREAMS_PER_CPU];
    for word in 0..step {
        for (sum, stream) in sums.iter_mut().zip(streams) {
            *sum = sum.wrapping_add(stream[word]);
        }
    }
    sums
}

/// Writes one step of every stream. Zeros are written by `memset`, which on most CPUs does not read the lines first.
fn zeros(part: &mut [u64], stream: usize, at: usize, step: usize) {
    for s in 0..STREAMS_PER_CPU {
        part[s * stream + at..][..step].fill(0);
    }
}

/// Reads the memory once, so that caches contain nothing else.
pub(super) fn pass(words: &[u64]) {
    black_box(words.iter().fold(0u64, |sum, word| sum.wrapping_add(*word)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_told_to_stop_has_done_a_step_of_every_stream() {
        let (stop, done) = (AtomicBool::new(true), AtomicU64::new(0));
        let (read, mut written) = (vec![1u64; 1 << 16], vec![1u64; 1 << 12]);
        let go = |part| {
            let mut lane = Lane {
                cpu: 0,
                flow: 0,
                part,
            };
            lane.go(&stop, &done);
            done.swap(0, Relaxed)
        };
        assert_eq!(
            go(Part::Read(&read)),
            (STREAMS_PER_CPU * WORDS_PER_CHECK * 8) as u64
        );
        assert_eq!(go(Part::Write(&mut written)), 8 << 12, "all of it, being less");
    }

    #[test]
    fn a_window_counts_what_is_done_in_it() {
        let done: Vec<Done> = (0..3).map(|_| Done::default()).collect();
        let mut samples = vec![Vec::new(); 2];
        done[1].0.store(9, Relaxed);
        watch(&done, &[0, 0, 1], Duration::from_millis(1), &mut samples);
        assert_eq!(
            samples, [[0.0; WINDOWS_PER_START]; 2],
            "what was done before does not count"
        );
        let bytes = |flow| of_flow(flow, &[0, 2, 0], &[1, 1, 1], &[5, 21, 7]);
        assert_eq!([0, 1, 2].map(bytes), [10, 0, 20]);
    }

    #[test]
    fn each_stream_is_read_in_its_own_part() {
        let part: Vec<u64> = (0..64).collect();
        assert_eq!(sums(&part, 16, 2, 3), [9, 57, 105, 153]);
        let mut part = part;
        zeros(&mut part, 16, 2, 3);
        let zeroed: Vec<usize> = (0..64).filter(|w| part[*w] == 0).collect();
        assert_eq!(zeroed, [0, 2, 3, 4, 18, 19, 20, 34, 35, 36, 50, 51, 52]);
    }
}

//! CPUs that go through memory as fast as they can, several flows of them at once.

use super::pace::Pace;
use nodewise_linux::{affinity, clock};
use nodewise_machine::inference::Estimate;
use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Streams of a CPU: one alone is limited by what a prefetcher follows.
const STREAMS: usize = 4;
/// Words of a stream between two looks at whether to stop.
const STEP: usize = 2048;
/// Samples of a start; threads are started anew for the next, in case they came to lie badly.
const WINDOWS: usize = 3;

/// A CPU and its memory.
pub(super) struct Lane<'a> {
    pub cpu: u32,
    /// Whose bytes they are: an index of the figures.
    pub flow: usize,
    pub part: Part<'a>,
}

pub(super) enum Part<'a> {
    Read(&'a [u64]),
    Write(&'a mut [u64]),
}

/// Bytes done, alone on its cache lines (pairs of which are fetched together).
#[derive(Default)]
#[repr(align(128))]
struct Done(AtomicU64);

/// MB/s of each flow; `None` when time was up.
pub(super) fn rates(lanes: &mut [Lane], flows: usize, pace: &Pace) -> Option<Vec<Estimate>> {
    pace.repeat(flows, |samples| once(lanes, pace.window(), samples))
}

fn once(lanes: &mut [Lane], window: Duration, samples: &mut [Vec<f64>]) {
    let flow_of: Vec<usize> = lanes.iter().map(|l| l.flow).collect();
    let done: Vec<Done> = lanes.iter().map(|_| Done::default()).collect();
    let (stop, ready) = (AtomicBool::new(false), Barrier::new(lanes.len() + 1));
    std::thread::scope(|scope| {
        for (lane, done) in lanes.iter_mut().zip(&done) {
            let (stop, ready) = (&stop, &ready);
            scope.spawn(move || {
                // The site has made sure that this works for every CPU.
                let _ = affinity::bind_this_thread(&[lane.cpu]);
                ready.wait();
                lane.go(stop, &done.0);
            });
        }
        ready.wait();
        std::thread::sleep(window / 2);
        let mut before = look(&done);
        for _ in 0..WINDOWS {
            std::thread::sleep(window);
            let after = look(&done);
            let micros = (after.0 - before.0).as_secs_f64() * 1e6;
            for (flow, samples) in samples.iter_mut().enumerate() {
                let own = flow_of
                    .iter()
                    .zip(after.1.iter().zip(&before.1))
                    .filter(|(f, _)| **f == flow);
                let bytes: u64 = own.map(|(_, (after, before))| after - before).sum();
                samples.push(bytes as f64 / micros);
            }
            before = after;
        }
        stop.store(true, Relaxed);
    });
}

fn look(done: &[Done]) -> (Duration, Vec<u64>) {
    (
        clock::monotonic(),
        done.iter().map(|d| d.0.load(Relaxed)).collect(),
    )
}

impl Lane<'_> {
    /// Round after round, until it is told to stop.
    fn go(&mut self, stop: &AtomicBool, done: &AtomicU64) {
        let words = match &self.part {
            Part::Read(part) => part.len(),
            Part::Write(part) => part.len(),
        };
        let stream = words / STREAMS;
        let step = STEP.min(stream);
        if step == 0 {
            return;
        }
        loop {
            for at in (0..=stream - step).step_by(step) {
                match &mut self.part {
                    Part::Read(part) => drop(black_box(sums(part, stream, at, step))),
                    Part::Write(part) => zeros(part, stream, at, step),
                }
                done.fetch_add((STREAMS * step * 8) as u64, Relaxed);
                if stop.load(Relaxed) {
                    return;
                }
            }
        }
    }
}

/// Reads a step of every stream.
fn sums(part: &[u64], stream: usize, at: usize, step: usize) -> [u64; STREAMS] {
    let streams: [&[u64]; STREAMS] = std::array::from_fn(|s| &part[s * stream + at..][..step]);
    let mut sums = [0u64; STREAMS];
    for word in 0..step {
        for (sum, stream) in sums.iter_mut().zip(streams) {
            *sum = sum.wrapping_add(stream[word]);
        }
    }
    sums
}

/// Writes a step of every stream. Zeros become `memset`, which on most CPUs does not read first.
fn zeros(part: &mut [u64], stream: usize, at: usize, step: usize) {
    for s in 0..STREAMS {
        part[s * stream + at..][..step].fill(0);
    }
}

/// Goes through memory once, so that caches hold this and nothing else.
pub(super) fn pass(words: &[u64]) {
    black_box(words.iter().fold(0u64, |sum, word| sum.wrapping_add(*word)));
}

#[cfg(test)]
mod tests {
    use super::super::Settings;
    use super::*;

    #[test]
    fn bytes_are_counted_for_their_flow() {
        let settings = Settings {
            samples: 3..=3,
            window: Duration::from_millis(50), // on a busy host too
            ..Settings::quick()
        };
        let pace = Pace::new(&settings, clock::monotonic());
        let (read, mut written) = (vec![1u64; 1 << 16], vec![1u64; 1 << 14]);
        let cpu = affinity::allowed_cpus().unwrap()[0];
        let mut lanes = [
            Lane {
                cpu,
                flow: 0,
                part: Part::Read(&read),
            },
            Lane {
                cpu,
                flow: 2,
                part: Part::Write(&mut written),
            },
        ];
        let rates = rates(&mut lanes, 3, &pace).unwrap();
        assert!(rates[0].median + rates[2].median > 0.0 && rates[1].median == 0.0);
        assert_eq!(rates[0].samples, 3);
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

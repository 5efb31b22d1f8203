//! Splits recorded CPU time into compute and memory time.

use crate::{Parameters, Range, Scenario, Traffic};
use nodewise_analysis::Histogram;
use nodewise_profile::{Observer, Profile};

/// The source of the recorded CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The threads' CPU time, without waiting in the threading runtime.
    CpuTime,
    /// Wall time multiplied by the smaller number of threads and CPUs, as no CPU times were recorded.
    WallTime,
    /// No time was recorded: a nominal cost per access.
    Assumed,
    /// Accesses are samples. The number of accesses that each stands for is unknown, so no times can be predicted.
    Samples,
}

impl Basis {
    /// A description in one phrase.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::CpuTime => "CPU time of the recorded threads",
            Self::WallTime => "wall time of the recorded run",
            Self::Assumed => "assumption of 0.05 to 20 ns an access, as no time was recorded",
            Self::Samples => "samples, each as one access",
        }
    }
}

/// Least time per access of any core, nanoseconds: four accesses per cycle at 5 GHz.
const MIN_NS_PER_ACCESS: f64 = 0.05;
/// Least time per line of any core, nanoseconds: 64 bytes at 32 GB/s. Published single-core bandwidths are 10 to 20
/// GB/s.
const MIN_NS_PER_LINE: f64 = 2.0;
/// Typical ratio of CPU times of recorded and plain runs: the geometric mean over 29 third-party programs.
const TYPICAL_RECORDING_COST: f64 = 2.1;
/// Samples of CPU time per nanosecond, by [`nodewise_profile::Coverage`]'s sampler.
const SAMPLES_PER_NS: f64 = 997e-9;
/// Largest share of its CPU time that a program spends waiting for memory.
const MAX_MEMORY_SHARE: f64 = 0.95;

/// The recorded run's CPU time and traffic, and how the time is divided into compute and memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// The source of the time.
    pub basis: Basis,
    /// CPU time of the program's own work while recording, summed over threads, nanoseconds.
    pub busy_ns: f64,
    /// CPU time of the recorded run over that of the plain one.
    pub recording_cost: Range,
    /// Whether a plain run was measured, so that the cost of recording is not assumed.
    pub measured_cost: bool,
    /// Whether a plain run took longer than the recorded one, beyond what chance explains, and is not used.
    pub plain_is_slower: bool,
    /// Accesses of the recorded run.
    pub accesses: u64,
    /// Lines of traffic of the recorded run.
    pub lines: u64,
    host_latency_ns: f64,
    /// Of an emulated run, the emulator's CPU time per access, nanoseconds, if it was recorded.
    emulated_ns: Option<f64>,
}

/// The result of calibration under one scenario.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Fit {
    /// Compute per access, nanoseconds.
    pub ns_per_access: f64,
    /// Share of lines that reach memory, lowered until memory time fits into the recorded time.
    pub miss: f64,
}

impl Fit {
    /// The same for the simulated machine: its cores compute at their own speed, and all traffic that is not cached
    /// reaches memory.
    pub fn on(self, scenario: &Scenario, parameters: &Parameters) -> Self {
        Self {
            ns_per_access: self.ns_per_access * scenario.core_factor,
            miss: match parameters.traffic {
                Traffic::Lines => self.miss,
                Traffic::Accesses => 1.0,
            },
        }
    }
}

impl Calibration {
    /// A calibration from the recorded times of a profile.
    #[must_use]
    pub fn new(profile: &Profile, histogram: &Histogram, parameters: &Parameters) -> Self {
        let meta = &profile.meta;
        let waiting = if meta.coverage.samples > 0 {
            meta.coverage.waiting
        } else {
            0.0
        };
        let cpu: u64 = profile.threads.iter().map(|t| t.cpu_ns).sum();
        let side_by_side = meta.host_cpus.clamp(1, (histogram.threads as u32).max(1));
        let (basis, busy_ns) = match (cpu, meta.wall_ns) {
            _ if meta.observer.is_sampled() => (Basis::Samples, 0.0),
            (0, 0) => (Basis::Assumed, 0.0),
            // The emulator's time says nothing about the program's.
            _ if meta.observer == Observer::Emulate && meta.plain_wall_ns.is_none() => (Basis::Assumed, 0.0),
            (0, wall) => (Basis::WallTime, wall as f64 * f64::from(side_by_side)),
            (cpu, _) => (Basis::CpuTime, cpu as f64),
        };
        let busy_ns = busy_ns * (1.0 - waiting);
        let accesses = histogram
            .entries
            .iter()
            .map(nodewise_analysis::Entry::accesses)
            .sum();
        let lines = histogram.entries.iter().map(|e| u64::from(e.lines)).sum();
        let by_wall = meta.plain_wall_ns.filter(|&plain| plain > 0 && meta.wall_ns > 0);
        let by_wall = by_wall.map(|plain| meta.wall_ns as f64 / plain as f64);
        let plain_cpu_ns = parameters
            .plain_cpu_ns
            .or(meta.plain_cpu_ns.map(|ns| ns as f64))
            .filter(|plain| *plain > 0.0);
        // Of an emulated program, only the plain run's time is known.
        let (basis, busy_ns) = match plain_cpu_ns {
            Some(plain) if basis == Basis::Assumed => (Basis::CpuTime, plain),
            _ => (basis, busy_ns),
        };
        // The comparison needs CPU time; wall time does not do.
        let is_cpu = basis == Basis::CpuTime && busy_ns > 0.0;
        let by_cpu = plain_cpu_ns
            .filter(|_| is_cpu)
            .map(|plain| measured_cost(busy_ns, plain));
        let emulated_ns = meta
            .cpu_ns
            .filter(|_| meta.observer == Observer::Emulate && accesses > 0)
            .map(|ns| ns as f64 / accesses as f64);
        let plain_is_slower = by_cpu == Some(None);
        let measured = by_cpu.flatten().or(by_wall.map(Range::exactly));
        let bounds = || cost_bounds(busy_ns, accesses, lines, parameters);
        Self {
            basis,
            busy_ns,
            recording_cost: parameters.recording_cost.or(measured).unwrap_or_else(bounds),
            measured_cost: measured.is_some(),
            plain_is_slower,
            accesses,
            lines,
            host_latency_ns: parameters.host_latency_ns,
            emulated_ns,
        }
    }

    /// Where the cost of recording was not measured, the reason, without a full stop.
    #[must_use]
    pub fn why_unmeasured(&self) -> &'static str {
        match self.plain_is_slower {
            true => "the plain build took longer than the recorded run, so that one of the two was disturbed",
            false => "the plain build was not timed",
        }
    }

    /// CPU time that any core needs for the recorded accesses, nanoseconds: a plain run cannot have taken less.
    #[must_use]
    pub fn least_plain_ns(&self, parameters: &Parameters) -> f64 {
        least_ns(self.accesses, self.lines, parameters)
    }

    /// Whether the division is based on a recorded time.
    pub(crate) fn is_timed(&self) -> bool {
        self.busy_ns > 0.0 && self.accesses > 0
    }

    /// CPU time that accesses and lines took while recording, by the typical split, nanoseconds. An emulator's time is by
    /// accesses.
    pub(crate) fn work_ns(&self, accesses: u64, lines: u64, typical: &Scenario) -> f64 {
        if let Some(per_access) = self.emulated_ns {
            return accesses as f64 * per_access;
        }
        let fit = self.fit(typical);
        let line_ns = fit.miss * self.host_latency_ns / typical.parallelism;
        (accesses as f64 * fit.ns_per_access + lines as f64 * line_ns) * typical.recording_cost
    }

    /// Splits the recorded time under one scenario.
    pub(crate) fn fit(&self, scenario: &Scenario) -> Fit {
        if !self.is_timed() {
            return Fit {
                ns_per_access: scenario.assumed_ns,
                miss: scenario.miss,
            };
        }
        let plain = self.busy_ns / scenario.recording_cost;
        let memory = self.lines as f64 * scenario.miss * self.host_latency_ns / scenario.parallelism;
        let fits = (MAX_MEMORY_SHARE * plain / memory.max(1e-9)).min(1.0);
        Fit {
            ns_per_access: (plain - memory * fits) / self.accesses as f64,
            miss: scenario.miss * fits,
        }
    }
}

/// CPU time that any core needs for these accesses and lines, nanoseconds.
fn least_ns(accesses: u64, lines: u64, parameters: &Parameters) -> f64 {
    let by_accesses = accesses as f64 * MIN_NS_PER_ACCESS;
    by_accesses.max(lines as f64 * parameters.miss.min * MIN_NS_PER_LINE)
}

/// Bounds of the recording's cost without a plain run. No core needs less than the least time for the accesses and
/// lines. Samples in counting code give no other bound: counting may run while the program's own loads are waited for,
/// and then costs nothing; or it may keep those loads from overlapping, and then costs more than its own time. The
/// typical value is the geometric mean over 29 third-party programs, limited to the bounds.
fn cost_bounds(busy_ns: f64, accesses: u64, lines: u64, parameters: &Parameters) -> Range {
    let most = (busy_ns / least_ns(accesses, lines, parameters).max(1.0)).max(1.0);
    Range::new(1.0, TYPICAL_RECORDING_COST.clamp(1.0, most), most)
}

/// The ratio of the CPU times of a recorded and a plain run, in nanoseconds, with the 95 % interval of the ratio of two
/// counts of samples; `None` if it lies below 1: recording speeds no program up, so that one of the two runs was disturbed, and it
/// is not known by how much.
#[must_use]
pub fn measured_cost(busy_ns: f64, plain_ns: f64) -> Option<Range> {
    let samples = |ns: f64| (ns * SAMPLES_PER_NS).max(1.0);
    let off = 1.0 + 2.0 * (1.0 / samples(busy_ns) + 1.0 / samples(plain_ns)).sqrt();
    let cost = busy_ns / plain_ns;
    (cost * off >= 1.0).then(|| Range::new(cost / off, cost, cost * off))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Varied;
    use nodewise_analysis::Entry;
    use nodewise_profile::{Meta, Thread};

    fn calibrated(lines: u32, cpu_ns: u64) -> (Calibration, Scenario) {
        let entry = Entry {
            reads: 1000,
            writes: 0,
            lines,
            thread: Default::default(),
        };
        let histogram = Histogram {
            entries: vec![entry],
            threads: 1,
            ..Histogram::default()
        };
        let threads = vec![Thread {
            cpu_ns,
            ..Thread::default()
        }];
        let meta = Meta {
            wall_ns: 40_000,
            plain_wall_ns: Some(20_000),
            ..Meta::default()
        };
        let profile = Profile {
            meta,
            threads,
            ..Profile::default()
        };
        let parameters = Parameters::default();
        let calibration = Calibration::new(&profile, &histogram, &parameters);
        let scenario = Scenario {
            varied: Varied::Nothing,
            parallelism: 5.0,
            miss: 1.0,
            bandwidth: 1.0,
            latency: 1.0,
            cache_conflicts: 0.5,
            concurrency: 1.0,
            core_factor: 1.0,
            queue_ns: 25.0,
            recording_cost: calibration.recording_cost.typical,
            assumed_ns: 0.5,
        };
        (calibration, scenario)
    }

    #[test]
    fn compute_is_what_memory_leaves_of_the_plain_time() {
        let (calibration, scenario) = calibrated(100, 40_000);
        let fit = calibration.fit(&scenario);
        let memory = 100.0 * 95.0 / 5.0;
        assert_eq!(fit.miss, 1.0);
        assert!((fit.ns_per_access * 1000.0 + memory - 20_000.0).abs() < 1e-6);
    }

    #[test]
    fn a_plain_run_s_cpu_time_says_what_recording_cost() {
        let (calibration, _) = calibrated(100, 40_000);
        assert_eq!(calibration.recording_cost, Range::exactly(2.0));
        let profile = Profile {
            threads: vec![Thread {
                cpu_ns: 40_000,
                ..Thread::default()
            }],
            ..Profile::default()
        };
        let parameters = Parameters {
            plain_cpu_ns: Some(5_000.0),
            ..Parameters::default()
        };
        let calibration = Calibration::new(&profile, &Histogram::default(), &parameters);
        assert_eq!(calibration.recording_cost.typical, 8.0);
    }

    #[test]
    fn a_plain_run_that_took_longer_than_the_recorded_one_is_not_used() {
        let histogram = Histogram {
            entries: vec![Entry {
                reads: 1_000_000,
                writes: 0,
                lines: 100,
                thread: Default::default(),
            }],
            threads: 1,
            ..Histogram::default()
        };
        // Of 2 s and 3 s of samples the ratio is known to 6 %; of 2 s and 2.05 s it may be 1.
        for (plain_s, measured) in [(1.0, true), (2.05, true), (3.0, false)] {
            let profile = Profile {
                threads: vec![Thread {
                    cpu_ns: 2_000_000_000,
                    ..Thread::default()
                }],
                meta: Meta {
                    plain_cpu_ns: Some((plain_s * 1e9) as u64),
                    ..Meta::default()
                },
                ..Profile::default()
            };
            let calibration = Calibration::new(&profile, &histogram, &Parameters::default());
            assert_eq!(calibration.measured_cost, measured, "{plain_s} s");
            assert_eq!(calibration.plain_is_slower, !measured);
            // Without it the bounds hold, from which 1 is not left out.
            assert!(
                measured || calibration.recording_cost.min == 1.0 && calibration.recording_cost.max > 100.0
            );
        }
    }

    #[test]
    fn memory_time_never_exceeds_the_recorded_time() {
        let (calibration, scenario) = calibrated(1_000_000, 40_000);
        let fit = calibration.fit(&scenario);
        assert!(fit.ns_per_access > 0.0);
        assert!(1e6 * fit.miss * 95.0 / 5.0 <= 0.951 * 20_000.0);
    }
}

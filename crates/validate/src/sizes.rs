//! The rule by which the sizes and run times of programs are chosen. It depends only on what is known before any
//! program runs, so that results cannot influence the choice.

use crate::{PROGRAMS, Program, Site};
use serde::Serialize;
use std::time::Duration;

/// Size of arrays, as a multiple of the size of all last-level caches together.
const CACHES_MULTIPLE: u64 = 4;
/// Smallest size of arrays, and their size if the kernel reports no caches, bytes.
const MIN_ARRAY_BYTES: u64 = 64 << 20;
const ARRAY_BYTES_WITHOUT_CACHES: u64 = 256 << 20;
/// Approximate memory throughput of one CPU, bytes per second, from which the number of iterations is computed.
const CPU_RATE: f64 = 2e9;
/// Longest intended duration of a run, seconds.
const MAX_RUN_SECONDS: f64 = 2.0;
/// The share of the time limit for recording and running; the rest is for measuring the machine, and a reserve.
const RUNNING_SHARE: f64 = 0.7;
/// Estimated time of a recording, in units of a run, and factor for runs under slow placements.
const RECORDING_RUNS: f64 = 10.0;
const SLOW_PLACEMENT_FACTOR: f64 = 2.0;
const MAX_ITERATIONS: f64 = 1000.0;

/// The rule by which the sizes of all programs are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rule {
    /// Smallest size of the arrays of a program, bytes, if its range of sizes permits.
    pub array_bytes: u64,
    /// Largest size of the arrays, bytes: half the memory of the smallest node with CPUs, at most a quarter of all
    /// memory.
    pub most_bytes: u64,
    /// Intended duration of a run at `bytes_per_second`, seconds; computation and remote accesses add to it.
    pub run_seconds: f64,
    /// Assumed memory throughput of all CPUs together, bytes per second.
    pub bytes_per_second: f64,
    /// Whether `--array-memory` or `--iterations` replaced a part of the rule. Such a document is only a trial of the
    /// procedure.
    pub overridden: bool,
}

/// A program with its size.
#[derive(Clone, Debug)]
pub struct Job {
    /// The program of the set.
    pub program: &'static Program,
    /// Value of the program's option `--size`, in its own unit.
    pub size: u64,
    /// Value of the program's option `--iterations`, by the rule or as requested.
    pub iterations: u64,
    /// Bytes of the program's arrays.
    pub bytes: u64,
}

impl Rule {
    /// The rule for a machine, if `programs` programs are run `runs` times under each of `placements` placements within
    /// the time limit.
    #[must_use]
    pub fn of(site: &Site, programs: usize, placements: usize, runs: u32, limit: Duration) -> Self {
        let most = (site.smallest_memory / 2).min(site.memory_bytes / 4);
        let wanted = site
            .last_level_bytes
            .map_or(ARRAY_BYTES_WITHOUT_CACHES, |c| CACHES_MULTIPLE * c)
            .max(MIN_ARRAY_BYTES);
        let runs_of_one =
            placements as f64 * SLOW_PLACEMENT_FACTOR * (f64::from(runs) + 1.0) + RECORDING_RUNS;
        let affordable = RUNNING_SHARE * limit.as_secs_f64() / (programs.max(1) as f64 * runs_of_one);
        Self {
            array_bytes: wanted.min(most),
            most_bytes: most,
            run_seconds: affordable.min(MAX_RUN_SECONDS),
            bytes_per_second: CPU_RATE * site.cpus as f64,
            overridden: false,
        }
    }

    /// The size of one program; `iterations` replaces the number of iterations by the rule.
    #[must_use]
    pub fn job(&self, program: &'static Program, threads: u64, iterations: Option<u64>) -> Job {
        let size = program.size(self.array_bytes, self.most_bytes, threads);
        let bytes = (program.bytes)(size, threads);
        let pass = bytes as f64 * program.passes;
        let fitting = (self.run_seconds * self.bytes_per_second / pass).clamp(1.0, MAX_ITERATIONS);
        Job {
            program,
            size,
            iterations: iterations.unwrap_or(fitting as u64),
            bytes,
        }
    }
}

impl Job {
    /// The program's command-line arguments.
    #[must_use]
    pub fn arguments(&self) -> Vec<String> {
        let (size, iterations) = (self.size.to_string(), self.iterations.to_string());
        let words = [
            "--init",
            self.program.init,
            "--size",
            &size,
            "--iterations",
            &iterations,
        ];
        words.map(str::to_owned).to_vec()
    }
}

/// The programs with the given names, in the order of the set; all programs if the list is empty.
///
/// # Errors
/// A message on the first name that is unknown or repeated.
pub fn chosen(names: &[String]) -> Result<Vec<&'static Program>, String> {
    for (at, name) in names.iter().enumerate() {
        if Program::named(name).is_none() {
            let known: Vec<&str> = PROGRAMS.iter().map(|p| p.name).collect();
            return Err(format!("no program `{name}`; there are {}", known.join(", ")));
        }
        if names[..at].contains(name) {
            return Err(format!("the program `{name}` is named twice"));
        }
    }
    let wanted = |p: &&Program| names.is_empty() || names.iter().any(|n| n == p.name);
    Ok(PROGRAMS.iter().filter(wanted).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(last_level: u64, memory: u64, cpus: usize) -> Site {
        Site {
            last_level_bytes: Some(last_level),
            memory_bytes: 2 * memory,
            smallest_memory: memory,
            cpus,
            nodes: 2,
            ..Site::default()
        }
    }

    fn rule(site: &Site) -> Rule {
        Rule::of(site, 5, 4, 5, Duration::from_secs(900))
    }

    #[test]
    fn arrays_exceed_all_caches_and_fit_one_node() {
        let server = site(64 << 20, 64 << 30, 64);
        let small = site(64 << 20, 256 << 20, 64);
        assert_eq!(rule(&server).array_bytes, 256 << 20);
        assert_eq!(rule(&small).array_bytes, 128 << 20);
        assert_eq!(rule(&site(1 << 20, 64 << 30, 4)).array_bytes, MIN_ARRAY_BYTES);
        for program in &PROGRAMS {
            let job = rule(&server).job(program, 64, None);
            assert!(
                job.bytes >= 256 << 20 && job.bytes <= 32 << 30,
                "{}",
                program.name
            );
            assert!(
                rule(&small).job(program, 64, None).bytes <= 160 << 20,
                "{}",
                program.name
            );
        }
    }

    #[test]
    fn iterations_follow_the_time_limit_and_the_cpus() {
        let server = site(64 << 20, 64 << 30, 64);
        let sor = Program::named("sor").unwrap();
        let iterations = |limit| {
            let rule = Rule::of(&server, 5, 4, 5, Duration::from_secs(limit));
            rule.job(sor, 64, None).iterations
        };
        assert!(iterations(60) < iterations(900) && iterations(900) == iterations(9000));
        assert_eq!(iterations(1), 1);
        assert_eq!(rule(&server).job(sor, 64, Some(7)).iterations, 7);
    }

    #[test]
    fn programs_are_chosen_by_name() {
        let names = |list: &[&str]| {
            let list: Vec<String> = list.iter().map(ToString::to_string).collect();
            chosen(&list).map(|all| all.iter().map(|p| p.name).collect::<Vec<_>>())
        };
        assert_eq!(names(&["cg", "sor"]), Ok(vec!["sor", "cg"]));
        assert_eq!(names(&[]).unwrap().len(), PROGRAMS.len());
        assert!(names(&["lu"]).unwrap_err().contains("there are sor, cg, mg"));
        assert!(names(&["cg", "cg"]).unwrap_err().contains("twice"));
    }
}

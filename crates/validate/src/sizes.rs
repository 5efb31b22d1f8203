//! How large the programs are and how long they run: a rule of what is known before anything runs.

use crate::{PROGRAMS, Program, Site};
use serde::Serialize;
use std::time::Duration;

/// How many times as large arrays are as all last-level caches together.
const TIMES_CACHES: u64 = 4;
/// What they take at least, and where the kernel reports no caches.
const LEAST: u64 = 64 << 20;
const NO_CACHES: u64 = 256 << 20;
/// Bytes a second that one CPU goes through, about: what the iterations of a run are computed from.
const CPU_RATE: f64 = 2e9;
/// Seconds that a run should take, at most.
const LONGEST: f64 = 2.0;
/// The share of the time limit for recording and running; the rest is for measuring the machine, and in reserve.
const SHARE: f64 = 0.7;
/// What a recording, the warm-up of each placement and a slow placement cost, in runs.
const RECORDING: f64 = 10.0;
const SLOWER: f64 = 2.0;
const MOST_ITERATIONS: f64 = 1000.0;

/// What the sizes of all programs follow from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rule {
    /// Bytes that the arrays of a program take at least, where its sizes allow.
    pub array_bytes: u64,
    /// Bytes that they may take: half of the smallest memory with CPUs, a quarter of all.
    pub most_bytes: u64,
    /// Seconds that a run should take by the rates below; compute and remote memory come on top.
    pub run_seconds: f64,
    /// Bytes a second that all CPUs together are taken to go through.
    pub bytes_per_second: f64,
    /// Whether `--array-memory` or `--iterations` replaced a part of the rule: such a file tries the procedure out.
    pub overridden: bool,
}

/// A program with its size.
#[derive(Clone, Debug)]
pub struct Job {
    /// The program of the set.
    pub program: &'static Program,
    /// Its `--size`, in its own unit.
    pub size: u64,
    /// Its `--iterations`, by the rule or as asked for.
    pub iterations: u64,
    /// Bytes of its arrays.
    pub bytes: u64,
}

impl Rule {
    /// The rule on a machine, for `programs` programs of `placements` placements, run `runs` times each.
    #[must_use]
    pub fn of(site: &Site, programs: usize, placements: usize, runs: u32, limit: Duration) -> Self {
        let most = (site.smallest_memory / 2).min(site.memory_bytes / 4);
        let wanted = site
            .last_level_bytes
            .map_or(NO_CACHES, |c| TIMES_CACHES * c)
            .max(LEAST);
        let runs_of_one = placements as f64 * SLOWER * (f64::from(runs) + 1.0) + RECORDING;
        let affordable = SHARE * limit.as_secs_f64() / (programs.max(1) as f64 * runs_of_one);
        Self {
            array_bytes: wanted.min(most),
            most_bytes: most,
            run_seconds: affordable.min(LONGEST),
            bytes_per_second: CPU_RATE * site.cpus as f64,
            overridden: false,
        }
    }

    /// The size of one program; `iterations` where they were asked for.
    #[must_use]
    pub fn job(&self, program: &'static Program, threads: u64, iterations: Option<u64>) -> Job {
        let size = program.size(self.array_bytes, self.most_bytes, threads);
        let bytes = (program.bytes)(size, threads);
        let pass = bytes as f64 * program.passes;
        let fitting = (self.run_seconds * self.bytes_per_second / pass).clamp(1.0, MOST_ITERATIONS);
        Job {
            program,
            size,
            iterations: iterations.unwrap_or(fitting as u64),
            bytes,
        }
    }
}

impl Job {
    /// The arguments that the program is run with.
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

/// The programs of a list of names, in the order of the set; all of them if the list is empty.
///
/// # Errors
/// The first name that is none, or comes twice.
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
        assert_eq!(rule(&site(1 << 20, 64 << 30, 4)).array_bytes, LEAST);
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

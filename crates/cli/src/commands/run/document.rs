//! The JSON of `run`; its keys are documented in `docs/run.md`.

use crate::launch::failure;
use crate::output;
use nodewise_enforce::{Achieved, Plan, RuleAchieved};
use nodewise_files::request::FilePlaced;
use nodewise_live::FollowedThreads;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// The plan and what was achieved.
#[derive(Serialize)]
pub struct Document<'a> {
    #[serde(flatten)]
    plan: Planned<'a>,
    files: Vec<File<'a>>,
    achieved: Option<Placed<'a>>,
    followed: Option<Followed>,
    loops_dealt: Option<u64>,
}

/// A file that a rule names.
#[derive(Serialize)]
struct File<'a> {
    /// Index of the rule.
    rule: usize,
    #[serde(flatten)]
    placed: Option<&'a FilePlaced>,
    failed: Option<&'a str>,
}

/// Results of role detection.
#[derive(Serialize)]
struct Followed {
    looks: u32,
    threads_known: usize,
    moves: u32,
    found_after_seconds: Option<f64>,
    cost_seconds: f64,
    cpu_seconds: f64,
    refused: Option<String>,
}

/// The document of `run --dry-run`: the resolved rules, and the environment variables that pass them to the program.
#[derive(Serialize)]
pub struct Planned<'a> {
    program: Option<String>,
    nodes: &'a [u32],
    threads: Threads<'a>,
    policy: Option<String>,
    kernel_weights: BTreeMap<u32, u32>,
    rules_found: usize,
    rules: Vec<Rule<'a>>,
    environment: BTreeMap<&'a str, &'a str>,
    schedule: Option<String>,
    preload: bool,
    notes: &'a [String],
    unplaced: &'a [String],
}

#[derive(Serialize)]
struct Threads<'a> {
    binding: &'a str,
    cpus: Vec<u32>,
    nodes: Vec<u32>,
}

#[derive(Serialize)]
struct Rule<'a> {
    object: &'a str,
    distribution: &'a str,
    places: &'a [String],
    by_order: bool,
    unmatched: Option<&'a str>,
}

#[derive(Serialize)]
struct Placed<'a> {
    processes: usize,
    total: Pages<'a>,
    rules: Vec<Pages<'a>>,
    default: Pages<'a>,
    threads_bound: u32,
    refused: u32,
    refusal: Option<&'a str>,
    coarsened: u32,
    untracked: u32,
    populated: u64,
    by_name: u64,
    killed: usize,
    unreached: u64,
    unreported: usize,
    switched_off: Option<&'a str>,
}

/// Objects and pages that one rule, or several, placed.
#[derive(Serialize)]
struct Pages<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<&'a str>,
    #[serde(flatten)]
    placed: RuleAchieved,
}

impl<'a> Document<'a> {
    pub fn of(ran: super::Ran<'a>) -> Self {
        let file = |(rule, one): &'a (usize, Result<FilePlaced, String>)| File {
            rule: *rule,
            placed: one.as_ref().ok(),
            failed: one.as_ref().err().map(String::as_str),
        };
        Self {
            plan: Planned::of(ran.plan),
            files: ran.files.iter().map(file).collect(),
            achieved: ran.achieved.map(|a| Placed::of(ran.plan, a)),
            followed: ran.followed.map(Followed::of),
            loops_dealt: ran.dealt_loops,
        }
    }

    /// Writes the summary to a file or to standard output.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        output::replace_file(path, &text).map_err(|e| failure(125, format!("{e:#}")))
    }
}

impl Followed {
    fn of(found: &super::Followed) -> Self {
        let (found, refused) = match found {
            Ok(found) => (found.clone(), found.refused.clone()),
            Err(why) => (FollowedThreads::default(), Some(why.clone())),
        };
        Self {
            looks: found.looks,
            threads_known: found.known,
            moves: found.moves,
            found_after_seconds: found.found_after.map(|t| t.as_secs_f64()),
            cost_seconds: found.cost.as_secs_f64(),
            cpu_seconds: found.cpu.as_secs_f64(),
            refused,
        }
    }
}

impl<'a> Planned<'a> {
    pub fn of(plan: &'a Plan) -> Self {
        let rule = |r: &'a nodewise_enforce::RuleFound| Rule {
            object: &r.object,
            distribution: &r.distribution,
            places: &r.places,
            by_order: r.by_order,
            unmatched: r.missing.as_deref(),
        };
        Self {
            program: plan.target.as_ref().map(|t| t.path.display().to_string()),
            nodes: &plan.nodes,
            threads: Threads {
                binding: &plan.threads.name,
                cpus: plan.threads.cpus.iter().map(|c| c.0).collect(),
                nodes: plan.threads.nodes.iter().map(|n| n.0).collect(),
            },
            policy: plan.policy.map(|policy| policy.to_string()),
            kernel_weights: plan.weights.iter().copied().collect(),
            rules_found: plan.found(),
            rules: plan.rules.iter().map(rule).collect(),
            schedule: plan.schedule.map(|schedule| schedule.to_string()),
            environment: plan
                .environment
                .iter()
                .map(|(k, v)| (k.as_str(), v.as_str()))
                .collect(),
            preload: plan.table.is_some(),
            notes: &plan.notes,
            unplaced: &plan.unplaced,
        }
    }
}

impl<'a> Placed<'a> {
    fn of(plan: &'a Plan, achieved: &'a Achieved) -> Self {
        let rules = plan.rules.iter().zip(&achieved.rules);
        Self {
            processes: achieved.processes,
            total: Pages::of(None, achieved.total()),
            rules: rules
                .map(|(rule, r)| Pages::of(Some(&rule.object), r.clone()))
                .collect(),
            default: Pages::of(None, achieved.rest.clone()),
            threads_bound: achieved.threads_bound,
            refused: achieved.refused,
            refusal: achieved.refusal.as_deref(),
            coarsened: achieved.coarsened,
            untracked: achieved.untracked,
            populated: achieved.populated,
            by_name: achieved.by_name,
            killed: achieved.killed,
            unreached: achieved.unreached,
            unreported: achieved.unreported,
            switched_off: achieved.switched_off.as_deref(),
        }
    }
}

impl<'a> Pages<'a> {
    fn of(object: Option<&'a str>, placed: RuleAchieved) -> Self {
        Self { object, placed }
    }
}

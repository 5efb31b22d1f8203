//! Results of a migration, as text and as JSON; the keys are documented in `docs/migrate.md`.

use nodewise_analysis::figures::whole_percent;
use nodewise_enforce::mover::{Batch, Cause, Moved, PairMoved, Plan, Stayed};
use nodewise_report::{bytes, plural, seconds};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// Time per GB that AsymSched assumes for its own system call (section 4.1, step 4), seconds.
const SECONDS_PER_GB: f64 = 0.3;
const GB: f64 = (1u64 << 30) as f64;

/// Results of a migration or its dry run.
pub struct Findings {
    pub name: String,
    pub plan: Plan,
    /// The moves; `None` in a dry run.
    pub moved: Option<Moved>,
    /// Time taken to find the pages.
    pub planned: Duration,
    /// Time for which nodewise stopped the process, if it did.
    pub frozen: Option<Duration>,
    /// Bytes on each node afterwards by the kernel's count, if pages were dealt.
    pub nodes: BTreeMap<u32, u64>,
    /// Pages in a chunk; `None` if the kernel moved the pages with `migrate_pages(2)`.
    pub chunk: Option<u32>,
}

#[derive(Serialize)]
struct Document<'a> {
    pid: u32,
    name: &'a str,
    dry_run: bool,
    method: &'static str,
    planned_pages: u64,
    planned_bytes: u64,
    estimated_seconds: f64,
    pages: u64,
    bytes: u64,
    huge_pages: u64,
    pairs: Vec<PairMoved>,
    nodes: &'a BTreeMap<u32, u64>,
    stayed: BTreeMap<&'static str, u64>,
    ended: bool,
    chunk: Option<u32>,
    workers: usize,
    plan_seconds: f64,
    move_seconds: f64,
    frozen_seconds: Option<f64>,
    batches: Vec<Batch>,
}

impl Findings {
    /// The moves; in a dry run, none.
    fn outcome(&self) -> Moved {
        self.moved
            .clone()
            .unwrap_or_else(|| Moved::nothing_of(&self.plan))
    }

    fn estimate(&self) -> f64 {
        (self.plan.pages() << 12) as f64 / GB * SECONDS_PER_GB
    }

    pub fn json(&self) -> anyhow::Result<String> {
        let moved = self.outcome();
        let document = Document {
            pid: self.plan.pid,
            name: &self.name,
            dry_run: self.moved.is_none(),
            method: if self.chunk.is_some() {
                "move_pages"
            } else {
                "migrate_pages"
            },
            planned_pages: self.plan.pages(),
            planned_bytes: self.plan.pages() << 12,
            estimated_seconds: self.estimate(),
            pages: moved.pages,
            bytes: moved.bytes(),
            huge_pages: moved.huge,
            pairs: moved.pairs.clone(),
            nodes: &self.nodes,
            stayed: Cause::ALL
                .into_iter()
                .map(|c| (c.name(), moved.stayed.count(c)))
                .collect(),
            ended: moved.gone,
            chunk: self.chunk,
            workers: moved.workers,
            plan_seconds: self.planned.as_secs_f64(),
            move_seconds: moved.ns as f64 / 1e9,
            frozen_seconds: self.frozen.map(|f| f.as_secs_f64()),
            batches: moved.batches.clone(),
        };
        Ok(serde_json::to_string_pretty(&document)? + "\n")
    }

    pub fn text(&self) -> String {
        let moved = self.outcome();
        let mut lines = vec![self.headline(&moved)];
        lines.extend(moved.pairs.iter().map(|p| self.pair(p)));
        lines.extend(stayed(&moved.stayed, self.moved.is_none()));
        lines.extend(self.dealt());
        if moved.gone {
            lines.push("the process ended meanwhile".to_owned());
        }
        lines.join("\n") + "\n"
    }

    /// Where all pages are now.
    fn dealt(&self) -> Option<String> {
        let all: u64 = self.nodes.values().sum();
        let share = |bytes: &u64| whole_percent(*bytes as f64 / all as f64);
        let nodes = self
            .nodes
            .iter()
            .map(|(node, bytes)| format!("{} on node {node}", share(bytes)));
        let nodes: Vec<String> = nodes.collect();
        (all > 0).then(|| format!("  all of its pages now: {}", nodes.join(", ")))
    }

    fn headline(&self, moved: &Moved) -> String {
        let who = format!("process {} ({})", self.plan.pid, self.name);
        let planned = self.plan.pages() << 12;
        if self.moved.is_none() {
            return format!(
                "{who}: {} to move, about {} at the {SECONDS_PER_GB} s/GB of AsymSched's own system call",
                bytes(planned),
                seconds(self.estimate())
            );
        }
        let took = self.planned.as_secs_f64() + moved.ns as f64 / 1e9;
        let rate = match moved.bytes() {
            0 => String::new(),
            moved => format!(", {:.2} s/GB", took * GB / moved as f64),
        };
        let how = match (self.chunk, moved.workers) {
            (None, _) => "by migrate_pages".to_owned(),
            (Some(chunk), 1) => format!("by 1 worker in chunks of {}", plural(chunk as usize, "page")),
            (Some(chunk), workers) => format!(
                "by {workers} workers in chunks of {}",
                plural(chunk as usize, "page")
            ),
        };
        let frozen = self.frozen.map_or(String::new(), |f| {
            format!(", the process stood still for {}", seconds(f.as_secs_f64()))
        });
        format!(
            "{who}: {} of {} moved in {}{rate} {how}{frozen}",
            bytes(moved.bytes()),
            bytes(planned),
            seconds(took)
        )
    }

    fn pair(&self, pair: &PairMoved) -> String {
        let moved = if self.moved.is_none() {
            pair.planned
        } else {
            pair.pages
        };
        format!(
            "  node {} to {}: {}, {}",
            pair.from,
            pair.to,
            plural(moved as usize, "page"),
            bytes(moved << 12)
        )
    }
}

/// The reasons why pages stay, if any do.
fn stayed(stayed: &Stayed, dry_run: bool) -> Option<String> {
    let words = |cause| match cause {
        Cause::Shared => "shared with other processes",
        Cause::Swapped => "swapped out",
        Cause::Busy => "in use, or of a file system that cannot move them",
        Cause::NoRoom => "without room on their node",
        Cause::Gone => "gone meanwhile",
        Cause::Unmovable => "of an unmovable kind",
    };
    let counts = Cause::ALL.into_iter().map(|c| (stayed.count(c), words(c)));
    let causes = counts.filter(|(n, _)| *n > 0);
    let causes: Vec<String> = causes.map(|(n, word)| format!("{n} {word}")).collect();
    let verb = if dry_run { "will stay" } else { "stayed" };
    (!causes.is_empty()).then(|| format!("  pages that {verb}: {}", causes.join(", ")))
}

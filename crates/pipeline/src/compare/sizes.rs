//! How long the program takes by the size of its fast memory: what may lie elsewhere at a loss that can be borne.

use super::Question;
use super::table::significant;
use crate::Selected;
use anyhow::bail;
use nodewise_analysis::object_names;
use nodewise_machine::NodeId;
use nodewise_placement::{Mapping, Tier};
use nodewise_profile::ObjectId;
use nodewise_report::{SizePoint, bytes, percent, sizes_svg, table};
use nodewise_simulation::{Parameters, Prediction, Range, Simulation, simulate};
use serde::Serialize;
use std::collections::BTreeMap;

/// The policies whose tier may be sized.
const SIZED: [&str; 2] = ["hot", "hot-objects"];
/// As a kernel fills fast memory, which the sizes are compared with.
const FILL: &str = "fill";
/// Sizes of the first pass, and of each step between two of them in the second.
const STEPS: u64 = 10;
/// Objects that the table lists.
const LISTED: usize = 12;

/// Whether a policy's tier can be sized: `hot:NODES` or `hot-objects:NODES`.
#[must_use]
pub fn is_sized(policy: &str) -> bool {
    SIZED.contains(&name(policy))
}

fn name(policy: &str) -> &str {
    policy.split(':').next().unwrap_or_default()
}

/// One size of the fast memory.
#[derive(Clone, Copy, Debug, Serialize)]
struct Point {
    /// Bytes of the fast memory that the program uses.
    fast_bytes: u64,
    /// Bytes elsewhere.
    elsewhere_bytes: u64,
    /// Share of the bytes that reach memory which the fast nodes serve.
    fast_share: f64,
    /// Predicted time: least, typical, most.
    seconds: [f64; 3],
    /// Additional time over that with all in fast memory: least, typical, most.
    loss: [f64; 3],
    /// The same, typical, if the memory is filled in the order of first touches.
    filled_loss: Option<f64>,
}

/// An object, and where its pages are at the size that the answer names.
#[derive(Clone, Debug, Serialize)]
struct Divided {
    object: String,
    bytes: u64,
    elsewhere_bytes: u64,
    lines: u64,
}

/// The prediction for each size, and what may lie elsewhere.
#[derive(Debug, Serialize)]
pub struct Sizes {
    machine: String,
    estimate: bool,
    /// `hot:0`.
    policy: String,
    /// `0`, as the user wrote the nodes.
    nodes: String,
    /// All that the program accesses.
    used_bytes: u64,
    /// The largest size that was tried: what is used, or the memory of the nodes.
    whole_bytes: u64,
    may_lose: f64,
    /// The most that may lie elsewhere at that loss, typical.
    may_leave_bytes: u64,
    /// The most that may at the largest loss of the range.
    surely_may_leave_bytes: u64,
    /// Ascending by size.
    points: Vec<Point>,
    /// Those with the most bytes elsewhere at `may_leave_bytes`.
    objects: Vec<Divided>,
    /// Remarks of the policy on its mapping.
    #[serde(skip)]
    pub notes: Vec<String>,
}

impl Question {
    /// Predicts the program's time by the size of its fast memory, and finds the least size with at most `may_lose` of
    /// additional time (0.05 is 5 %).
    ///
    /// # Errors
    /// Those of [`Question::compare`]; if `policy` is no policy whose tier can be sized, or has a size already.
    pub fn sizes(&self, policy: &str, machine: &str, may_lose: f64) -> anyhow::Result<Sizes> {
        let selected = self.open(machine)?;
        let parameters = self.parameters(machine, &selected);
        let (kind, nodes) = policy.split_once(':').unwrap_or((policy, ""));
        let tier = Tier::parse(Some(nodes), policy, &selected.machine)?;
        if tier.is_limited() {
            bail!(
                "{policy}: its size is what is varied; write {kind}:{}",
                tier_nodes(nodes)
            );
        }
        Sizing {
            selected: &selected,
            parameters: &parameters,
            kind,
            nodes,
            tier: &tier,
        }
        .answer(may_lose)
    }
}

fn tier_nodes(text: &str) -> &str {
    text.split('@').next().unwrap_or_default()
}

struct Sizing<'a> {
    selected: &'a Selected,
    parameters: &'a Parameters,
    kind: &'a str,
    nodes: &'a str,
    tier: &'a Tier,
}

impl Sizing<'_> {
    fn answer(&self, may_lose: f64) -> anyhow::Result<Sizes> {
        let page = self.selected.histogram.page_size();
        let pages = self.selected.histogram.len() as u64;
        let whole = pages.min(self.tier.size(&self.selected.machine) / page);
        let mut sizes: Vec<u64> = (0..=STEPS).map(|step| whole * step / STEPS).collect();
        sizes.dedup();
        let mut points = self.predict(&sizes, whole, true)?;
        let holds = |end: usize| move |p: &Point| p.loss[end] <= may_lose;
        // Between the least of these sizes that suffices and the next smaller one, for the typical and the largest loss.
        let mut finer: Vec<u64> = [1, 2]
            .iter()
            .flat_map(|end| between(&points, holds(*end), page))
            .collect();
        finer.sort_unstable();
        finer.dedup();
        if !finer.is_empty() {
            points.extend(self.predict(&finer, whole, false)?);
            points.sort_by_key(|p| p.fast_bytes);
            points.dedup_by_key(|p| p.fast_bytes);
        }
        let least = |end| {
            points
                .iter()
                .find(|p| holds(end)(p))
                .map_or(whole * page, |p| p.fast_bytes)
        };
        let used = pages * page;
        let chosen = format!("{}:{}@{}", self.kind, self.nodes, least(1));
        let (mappings, notes) = self.selected.mappings(&chosen)?;
        Ok(Sizes {
            machine: self.selected.machine.name.clone(),
            estimate: true,
            policy: format!("{}:{}", self.kind, self.nodes),
            nodes: self.nodes.to_owned(),
            used_bytes: used,
            whole_bytes: whole * page,
            may_lose,
            may_leave_bytes: used - least(1),
            surely_may_leave_bytes: used - least(2),
            points,
            objects: self.divided(&mappings[0]),
            notes,
        })
    }

    /// Predicts sizes in pages, in one pass; `whole` is the baseline.
    fn predict(&self, sizes: &[u64], whole: u64, filled: bool) -> anyhow::Result<Vec<Point>> {
        let page = self.selected.histogram.page_size();
        let of = |kind: &str, size: u64| format!("{kind}:{}@{}", self.nodes, size * page);
        let mut names = vec![of(self.kind, whole)];
        names.extend(sizes.iter().map(|size| of(self.kind, *size)));
        if filled {
            names.extend(sizes.iter().map(|size| of(FILL, *size)));
        }
        let mappings: Vec<Mapping> = names
            .iter()
            .map(|name| Ok(self.selected.mappings(name)?.0.remove(0)))
            .collect::<anyhow::Result<_>>()?;
        let simulation = simulate(
            &self.selected.context(),
            &mappings,
            &self.selected.reader,
            self.parameters,
        )?;
        let fast = |mapping: &Mapping| {
            let in_tier = mapping.nodes.iter().filter(|n| self.tier.nodes().contains(n));
            in_tier.count() as u64 * page
        };
        let point = |at: usize| {
            let prediction = &simulation.predictions[1 + at];
            let fast_bytes = fast(&mappings[1 + at]);
            Point {
                fast_bytes,
                elsewhere_bytes: mappings[0].nodes.len() as u64 * page - fast_bytes,
                fast_share: self.fast_share(prediction),
                seconds: three(prediction.seconds),
                loss: loss(prediction.speedup),
                filled_loss: filled.then(|| filled_loss(&simulation, 1 + sizes.len() + at)),
            }
        };
        Ok((0..sizes.len()).map(point).collect())
    }

    fn fast_share(&self, prediction: &Prediction) -> f64 {
        let bytes = |of: &dyn Fn(NodeId) -> bool| -> f64 {
            let counted = prediction.controllers.iter().filter(|c| of(c.node));
            counted.map(|c| c.bytes).sum()
        };
        let all = bytes(&|_| true);
        if all == 0.0 {
            1.0
        } else {
            bytes(&|n| self.tier.nodes().contains(&n)) / all
        }
    }

    fn divided(&self, mapping: &Mapping) -> Vec<Divided> {
        let page = self.selected.histogram.page_size();
        let mut sums: BTreeMap<ObjectId, [u64; 3]> = BTreeMap::new();
        for (view, node) in self.selected.histogram.iter().zip(&mapping.nodes) {
            let sum = sums.entry(view.object).or_default();
            let elsewhere = !self.tier.nodes().contains(node);
            *sum = [
                sum[0] + page,
                sum[1] + page * u64::from(elsewhere),
                sum[2] + view.lines(),
            ];
        }
        let ids: Vec<ObjectId> = sums.keys().copied().collect();
        let named = object_names(self.selected.profile(), &ids)
            .into_iter()
            .zip(sums.into_values());
        let mut objects: Vec<Divided> = named
            .map(|(object, [bytes, elsewhere_bytes, lines])| Divided {
                object,
                bytes,
                elsewhere_bytes,
                lines,
            })
            .collect();
        objects.sort_by(|a, b| {
            b.elsewhere_bytes
                .cmp(&a.elsewhere_bytes)
                .then(b.bytes.cmp(&a.bytes))
        });
        objects
    }
}

/// Sizes in pages between the least point that holds and the one before it.
fn between(points: &[Point], holds: impl Fn(&Point) -> bool, page: u64) -> Vec<u64> {
    match points.iter().position(holds) {
        None | Some(0) => Vec::new(),
        Some(at) => {
            let [below, least] = [at - 1, at].map(|i| points[i].fast_bytes / page);
            (1..STEPS)
                .map(|step| below + (least - below) * step / STEPS)
                .filter(|s| *s > below && *s < least)
                .collect()
        }
    }
}

/// Additional time, from the speed-up over the baseline.
fn loss(speedup: Range) -> [f64; 3] {
    [speedup.max, speedup.typical, speedup.min].map(|s| 1.0 / s - 1.0)
}

fn filled_loss(simulation: &Simulation, at: usize) -> f64 {
    loss(simulation.predictions[at].speedup)[1]
}

fn three(range: Range) -> [f64; 3] {
    [range.min, range.typical, range.max]
}

/// `+5.0 %`, `-1.2 %`.
fn signed(fraction: f64) -> String {
    let sign = if fraction >= 0.0005 { "+" } else { "" };
    format!("{sign}{}", percent(fraction))
}

impl Sizes {
    fn headline(&self) -> String {
        let share = |part: u64| percent(part as f64 / self.used_bytes.max(1) as f64);
        let sure = match self.surely_may_leave_bytes {
            0 => "nothing can be said to".to_owned(),
            part => format!("{} ({})", bytes(part), share(part)),
        };
        format!(
            "{} of {} ({}) may lie elsewhere than on {} at a loss of at most {}; {sure} if every uncertain quantity is at its worst",
            bytes(self.may_leave_bytes),
            bytes(self.used_bytes),
            share(self.may_leave_bytes),
            self.nodes,
            percent(self.may_lose)
        )
    }

    /// Formats the sizes for the terminal.
    #[must_use]
    pub fn text(&self) -> String {
        let header = [
            "fast memory",
            "elsewhere",
            "served by it",
            "seconds",
            "loss",
            "(range)",
            "filled by first touch",
        ];
        let row = |p: &Point| {
            vec![
                bytes(p.fast_bytes),
                bytes(p.elsewhere_bytes),
                percent(p.fast_share),
                significant(p.seconds[1]),
                signed(p.loss[1]),
                format!("{} to {}", signed(p.loss[0]), signed(p.loss[2])),
                p.filled_loss.map_or(String::new(), signed),
            ]
        };
        let rows = self.points.iter().map(row);
        let sizes = table(
            "rrrrrrr",
            std::iter::once(header.map(str::to_owned).into()).chain(rows),
        );
        let header = ["elsewhere then", "of", "object", "lines a KiB"];
        let left = self.objects.iter().filter(|o| o.elsewhere_bytes > 0);
        let rows = left.clone().take(LISTED).map(|o| {
            vec![
                bytes(o.elsewhere_bytes),
                bytes(o.bytes),
                o.object.clone(),
                significant(o.lines as f64 / (o.bytes as f64 / 1024.0)),
            ]
        });
        let objects = table(
            "rrlr",
            std::iter::once(header.map(str::to_owned).into()).chain(rows),
        );
        let more = nodewise_report::and_more(left.count().saturating_sub(LISTED), "object", "--json");
        format!(
            "{} on {}: {}.\n\n{sizes}\n{objects}{more}\nEstimates. Losses are over all of it on {}, {} of it.\n",
            self.policy,
            self.machine,
            self.headline(),
            self.nodes,
            bytes(self.whole_bytes)
        )
    }

    /// The document of `simulate --sweep hot:NODES --json` (its keys: `docs/model.md`).
    ///
    /// # Errors
    /// None are expected.
    pub fn json(&self) -> anyhow::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// The sizes as SVG.
    #[must_use]
    pub fn svg(&self) -> String {
        let point = |p: &Point| SizePoint {
            fast_bytes: p.fast_bytes,
            loss: p.loss,
            filled_loss: p.filled_loss,
            fast_share: p.fast_share,
        };
        let points: Vec<SizePoint> = self.points.iter().map(point).collect();
        sizes_svg(
            &format!("{} on {}", self.policy, self.machine),
            &self.headline(),
            self.may_lose,
            &points,
        )
    }
}

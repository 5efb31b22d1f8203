//! How long the program takes by the size of its fast memory: what may lie elsewhere at a loss that can be borne.

use super::Question;
use super::json::three;
use super::table::significant;
use crate::Selected;
use anyhow::bail;
use nodewise_analysis::object_names;
use nodewise_machine::{NodeId, format_list};
use nodewise_placement::policies::{Filling, Order, Tiered};
use nodewise_placement::{Mapping, PagePolicy, Tier};
use nodewise_profile::ObjectId;
use nodewise_report::{SizePoint, bytes, percent, sizes_svg, table};
use nodewise_simulation::{MEMORY_BOUND, Parameters, Prediction, Range, simulate};
use serde::Serialize;
use std::collections::BTreeMap;

/// Sizes of the first pass, and of each step between two of them in the second.
const STEPS: u64 = 10;
/// Sizes that are predicted in one pass over the accesses: as many mappings are in memory at a time.
const AT_A_TIME: usize = 6;
/// Objects that the table lists.
const LISTED: usize = 12;

/// Whether a policy's tier can be sized: `hot:NODES` or `hot-objects:NODES`.
#[must_use]
pub fn is_sized(policy: &str) -> bool {
    Filling::of_policy(policy).is_some_and(|filling| filling != Filling::FirstTouch)
}

/// One size of the fast memory.
#[derive(Clone, Debug, Serialize)]
struct Point {
    /// Bytes of the fast memory that may be used.
    #[serde(skip)]
    limit: u64,
    /// Bytes of the fast memory that the program uses.
    fast_bytes: u64,
    /// Bytes that the program uses on other nodes.
    elsewhere_bytes: u64,
    /// Share of the bytes that reach memory which the fast nodes serve, write-backs included.
    fast_share: f64,
    /// Predicted time: least, typical, most.
    seconds: [f64; 3],
    /// Additional time over that with all in fast memory: least, typical, most.
    loss: [f64; 3],
    /// The same, typical, if the memory is filled in the order of first touches, where these were recorded.
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
    /// The policy without a size: `hot:0`.
    policy: String,
    /// `0`, as the user wrote the nodes.
    nodes: String,
    /// All that the program accesses.
    used_bytes: u64,
    /// The largest size that was tried: what is used, or the memory of the nodes if that is less.
    whole_bytes: u64,
    may_lose: f64,
    /// The most that may lie elsewhere at that loss, typical.
    may_leave_bytes: u64,
    /// The most that may where any one uncertain quantity is at the end of its range that loses most.
    may_leave_at_worst_bytes: u64,
    /// The nodes that have what is elsewhere, at `may_leave_bytes`.
    elsewhere_nodes: Vec<u32>,
    /// Whether memory takes a tenth of the time or more with all in fast memory.
    memory_bound: bool,
    /// The sizes that were predicted, ascending.
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
    /// Those of [`Question::compare`]; if `policy` is none whose tier can be sized, or has a size already.
    pub fn sizes(&self, policy: &str, machine: &str, may_lose: f64) -> anyhow::Result<Sizes> {
        let Some(filling) = Filling::of_policy(policy).filter(|f| *f != Filling::FirstTouch) else {
            bail!("{policy}: hot:NODES and hot-objects:NODES can be sized");
        };
        if self.selection.affinity == crate::ASYM {
            bail!("--affinity asym chooses the nodes, so that a policy cannot name them");
        }
        let selected = self.open(machine)?;
        let nodes = policy.split_once(':').map(|(_, nodes)| nodes);
        let tier = Tier::parse(nodes, policy, &selected.machine)?;
        if tier.is_limited() {
            let nodes = tier.text().split('@').next().unwrap_or_default();
            bail!(
                "{policy}: its size is what is varied; write {}:{nodes}",
                filling.name()
            );
        }
        let context = selected.context();
        let sizing = Sizing {
            selected: &selected,
            parameters: &self.parameters(machine, &selected),
            order: Order::of(filling, &context),
            filled: (!context.profile.first_touches.is_empty())
                .then(|| Order::of(Filling::FirstTouch, &context)),
            tier: &tier,
            filling,
        };
        sizing.answer(may_lose)
    }
}

struct Sizing<'a> {
    selected: &'a Selected,
    parameters: &'a Parameters,
    order: Order<'a>,
    /// As a kernel fills fast memory, which the sizes are compared with.
    filled: Option<Order<'a>>,
    tier: &'a Tier,
    filling: Filling,
}

impl Sizing<'_> {
    fn answer(&self, may_lose: f64) -> anyhow::Result<Sizes> {
        let page = self.page();
        let pages = self.selected.histogram.len() as u64;
        let whole = pages.min(self.tier.size(&self.selected.machine) / page);
        let mut sizes: Vec<u64> = (0..=STEPS).map(|step| whole * step / STEPS).collect();
        sizes.dedup();
        let (mut points, bound) = self.predict(&sizes, whole, self.filled.as_ref())?;
        let holds = |end: usize| move |p: &Point| p.loss[end] <= may_lose;
        // Between the least of these sizes that suffices and the next smaller one, for the typical and the largest loss.
        let ends = [1, 2].iter();
        let mut finer: Vec<u64> = ends.flat_map(|end| between(&points, holds(*end), page)).collect();
        finer.sort_unstable();
        finer.dedup();
        if !finer.is_empty() {
            points.extend(self.predict(&finer, whole, None)?.0);
            points.sort_by_key(|p| p.limit);
        }
        let least = |end| points.iter().find(|p| holds(end)(p)).or(points.last());
        let left = |end| least(end).map_or(0, |p| p.elsewhere_bytes);
        let (at, worst) = (left(1), left(2));
        let limit = least(1).map_or(whole * page, |p| p.limit);
        let mapping = self.order.place(self.tier, limit);
        let policy = Tiered::new(self.filling, self.tier.limited(limit.max(page)));
        Ok(Sizes {
            machine: self.selected.machine.name.clone(),
            estimate: true,
            policy: format!("{}:{}", self.filling.name(), self.tier.text()),
            nodes: self.tier.text().to_owned(),
            used_bytes: pages * page,
            whole_bytes: whole * page,
            may_lose,
            may_leave_bytes: at,
            may_leave_at_worst_bytes: worst,
            elsewhere_nodes: self.elsewhere(&mapping),
            memory_bound: bound,
            points,
            objects: self.divided(&mapping),
            notes: policy.notes(&self.selected.context()),
        })
    }

    fn page(&self) -> u64 {
        self.selected.histogram.page_size()
    }

    fn in_tier(&self, node: NodeId) -> bool {
        self.tier.nodes().contains(&node)
    }

    /// Predicts sizes in pages; `whole` is the baseline. Also says whether the program is memory bound then.
    fn predict(
        &self,
        sizes: &[u64],
        whole: u64,
        filled: Option<&Order<'_>>,
    ) -> anyhow::Result<(Vec<Point>, bool)> {
        let page = self.page();
        let place = |order: &Order<'_>, size: u64| Mapping {
            policy: format!("{}@{}", self.filling.name(), size * page),
            nodes: order.place(self.tier, size * page),
        };
        let baseline = place(&self.order, whole);
        let (mut points, mut bound) = (Vec::new(), false);
        for sizes in sizes.chunks(AT_A_TIME) {
            let mut mappings = vec![baseline.clone()];
            mappings.extend(sizes.iter().map(|size| place(&self.order, *size)));
            mappings.extend(
                filled
                    .iter()
                    .flat_map(|order| sizes.iter().map(|size| place(order, *size))),
            );
            let context = self.selected.context();
            let simulation = simulate(&context, &mappings, &self.selected.reader, self.parameters)?;
            bound = simulation.baseline().memory_share.typical >= MEMORY_BOUND;
            let loss_of = |at: usize| loss(simulation.predictions[at].speedup);
            points.extend(sizes.iter().enumerate().map(|(at, size)| {
                let prediction = &simulation.predictions[1 + at];
                let nodes = &mappings[1 + at].nodes;
                let fast_bytes = nodes.iter().filter(|n| self.in_tier(**n)).count() as u64 * page;
                Point {
                    limit: size * page,
                    fast_bytes,
                    elsewhere_bytes: nodes.len() as u64 * page - fast_bytes,
                    fast_share: self.fast_share(prediction),
                    seconds: three(prediction.seconds),
                    loss: loss_of(1 + at),
                    filled_loss: filled.map(|_| loss_of(1 + sizes.len() + at)[1]),
                }
            }));
        }
        Ok((points, bound))
    }

    fn fast_share(&self, prediction: &Prediction) -> f64 {
        let bytes = |of: &dyn Fn(NodeId) -> bool| -> f64 {
            let counted = prediction.controllers.iter().filter(|c| of(c.node));
            counted.map(|c| c.bytes).sum()
        };
        match bytes(&|_| true) {
            0.0 => 1.0,
            all => bytes(&|n| self.in_tier(n)) / all,
        }
    }

    fn elsewhere(&self, mapping: &[NodeId]) -> Vec<u32> {
        let mut nodes: Vec<u32> = mapping
            .iter()
            .filter(|n| !self.in_tier(**n))
            .map(|n| n.0)
            .collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    fn divided(&self, mapping: &[NodeId]) -> Vec<Divided> {
        let page = self.page();
        let mut sums: BTreeMap<ObjectId, [u64; 3]> = BTreeMap::new();
        for (view, node) in self.selected.histogram.iter().zip(mapping) {
            let sum = sums.entry(view.object).or_default();
            let elsewhere = u64::from(!self.in_tier(*node));
            *sum = [sum[0] + page, sum[1] + page * elsewhere, sum[2] + view.lines()];
        }
        let ids: Vec<ObjectId> = sums.keys().copied().collect();
        let named = object_names(self.selected.profile(), &ids)
            .into_iter()
            .zip(sums.into_values());
        let divided = |(object, [bytes, elsewhere_bytes, lines]): (String, [u64; 3])| Divided {
            object,
            bytes,
            elsewhere_bytes,
            lines,
        };
        let mut objects: Vec<Divided> = named.map(divided).collect();
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
            let [below, least] = [at - 1, at].map(|i| points[i].limit / page);
            let steps = (1..STEPS).map(|step| below + (least - below) * step / STEPS);
            steps.filter(|s| *s > below && *s < least).collect()
        }
    }
}

/// Additional time, from the speed-up over the baseline.
fn loss(speedup: Range) -> [f64; 3] {
    [speedup.max, speedup.typical, speedup.min].map(|s| 1.0 / s - 1.0)
}

/// `+5.0 %`, `-1.2 %`; `0.0 %` for less than a twentieth of a per cent.
fn signed(fraction: f64) -> String {
    match fraction {
        f if f.abs() < 0.0005 => percent(0.0),
        f if f > 0.0 => format!("+{}", percent(f)),
        f => percent(f),
    }
}

impl Sizes {
    /// Two sentences: what may lie elsewhere typically, and at worst.
    fn headline(&self) -> [String; 2] {
        let of_it = |part: u64| {
            let share = percent(part as f64 / self.used_bytes.max(1) as f64);
            format!("{} ({share})", bytes(part))
        };
        let must = self.used_bytes - self.whole_bytes;
        let must = match must {
            0 => String::new(),
            _ => format!(
                "; {} must, as {} has {}, and losses are over that",
                bytes(must),
                self.nodes,
                bytes(self.whole_bytes)
            ),
        };
        [
            format!(
                "{} of {} may lie elsewhere than on {} at a loss of at most {}{must}",
                of_it(self.may_leave_bytes),
                bytes(self.used_bytes),
                self.nodes,
                percent(self.may_lose)
            ),
            format!(
                "{} may where any one quantity that the model does not know is at its worst",
                of_it(self.may_leave_at_worst_bytes)
            ),
        ]
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
        let header = std::iter::once(header.map(str::to_owned).into());
        let sizes = table("rrrrrrr", header.chain(rows));
        let [typical, worst] = self.headline();
        let bound = match self.memory_bound {
            true => "",
            false => "\nNot memory bound: memory is less than a tenth of the time, wherever it lies.\n",
        };
        format!(
            "{} on {}: {typical}.\n{worst}.\n\n{sizes}\n{}{bound}\nEstimates. Losses are over the time with {} on {}.\n",
            self.policy,
            self.machine,
            self.elsewhere(),
            bytes(self.whole_bytes),
            self.nodes,
        )
    }

    /// The objects that lie elsewhere at the size that may be left; empty if nothing does.
    fn elsewhere(&self) -> String {
        let left = self.objects.iter().filter(|o| o.elsewhere_bytes > 0);
        let count = left.clone().count();
        if count == 0 {
            return String::new();
        }
        let nodes = format_list(&self.elsewhere_nodes);
        let header = [
            format!("on {nodes} then"),
            "of".into(),
            "object".into(),
            "lines a KiB".into(),
        ];
        let rows = left.take(LISTED).map(|o| {
            vec![
                bytes(o.elsewhere_bytes),
                bytes(o.bytes),
                o.object.clone(),
                significant(o.lines as f64 / (o.bytes as f64 / 1024.0)),
            ]
        });
        let more = nodewise_report::and_more(count.saturating_sub(LISTED), "object", "--json");
        let objects = table("rrlr", std::iter::once(header.into()).chain(rows));
        match more.is_empty() {
            true => objects,
            false => format!("{objects}{}\n", more.trim_start()),
        }
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
        let title = format!("{} on {}", self.policy, self.machine);
        sizes_svg(&title, &self.headline(), self.may_lose, &points)
    }
}

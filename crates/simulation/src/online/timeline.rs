//! A recorded program in memory, divided into steps of about a decision period: accesses by CPU and page.

use crate::calibration::Fit;
use crate::concurrency;
use crate::tally::{SliceTally, Stretch, Tally, find, slots};
use crate::{Calibration, Parameters, Scenario, Traffic};
use nodewise_placement::{Context, Mapping};
use nodewise_profile::{Access, AccessSource, PageNumber, Profile, RegionId};
use std::collections::BTreeMap;
use std::ops::Range;

/// A slice in which at least this share of all pages is touched for the first time does not belong to the program's
/// body.
const MIN_NEW_PAGE_SHARE: f64 = 0.01;

/// A program's traffic by step, region, CPU and page.
pub struct Timeline {
    pub(super) phases: Vec<TimelinePhase>,
    /// The phases of the body, which are repeated; those before and after it run once.
    pub(super) body: Range<usize>,
    /// Virtual node of each CPU slot.
    pub(super) slot_nodes: Vec<usize>,
    /// First base page of each page, ascending.
    pub(super) pages: Vec<PageNumber>,
    pub(super) shift: u32,
    /// Virtual node that each page starts on.
    pub(super) homes: Vec<u16>,
    pub(super) fit: Fit,
    pub(super) typical: Scenario,
    pub(super) parameters: Parameters,
}

/// One region of one step.
pub(super) struct TimelinePhase {
    step: usize,
    pub region: RegionId,
    /// Accesses of each CPU slot that ran.
    pub accesses: Vec<(u32, u64)>,
    /// Largest number of CPUs busy at a time.
    pub at_a_time: f64,
    pub rows: Vec<Row>,
}

/// The accesses of one CPU to one page.
#[derive(Clone, Copy)]
pub(super) struct Row {
    pub page: u32,
    pub slot: u32,
    pub accesses: u64,
    pub lines: u64,
    pub dirty: u64,
}

impl Timeline {
    /// Reads a program whose run is predicted to take `seconds`, in steps of about `period_s`. `start`: the initial
    /// mapping.
    ///
    /// # Errors
    /// When the accesses cannot be read to their end.
    pub fn read<S: AccessSource>(
        context: &Context<'_>,
        start: &Mapping,
        (seconds, period_s): (f64, f64),
        accesses: &S,
        parameters: &Parameters,
    ) -> Result<Self, S::Error> {
        let calibration = Calibration::new(context.profile, context.histogram, parameters);
        let typical = parameters.typical(calibration.recording_cost);
        let mut reading = Reading::new(context, seconds / period_s, parameters.traffic);
        let mut tally = Tally::new(context, &[start], &[], false, parameters);
        let mut limits = Limits::default();
        let mut emit = |slice: &SliceTally<'_>| {
            limits.add(slice, context.profile, &calibration, &typical);
            Vec::new()
        };
        accesses.visit(&mut |rows| {
            reading.rows(rows);
            tally.add(rows, &mut emit);
        })?;
        tally.finish(&mut emit);
        let (mut phases, body) = reading.finish();
        let step_of = Steps::of(context.profile, seconds / period_s);
        let limits = limits.by_step(&step_of);
        for phase in &mut phases {
            phase.at_a_time = limits
                .get(&(phase.step, phase.region))
                .copied()
                .unwrap_or(f64::INFINITY);
        }
        Ok(Self {
            phases,
            body,
            slot_nodes: slots(context).1,
            pages: context.histogram.pages.clone(),
            shift: context.histogram.shift,
            homes: start.nodes.iter().map(|n| n.0 as u16).collect(),
            fit: calibration.fit(&typical).on(&typical, parameters),
            typical,
            parameters: parameters.clone(),
        })
    }

    /// Bytes of a page.
    pub(super) fn page_bytes(&self) -> f64 {
        (nodewise_profile::BASE_PAGE_SIZE << self.shift) as f64
    }
}

/// How slices are grouped into steps.
struct Steps {
    /// Slices of the body.
    body: Range<usize>,
    /// Number of slices in a step.
    together: usize,
}

impl Steps {
    fn of(profile: &Profile, steps: f64) -> Self {
        let slices = profile.slices.len().max(1);
        Self {
            body: body(profile, slices),
            together: (slices as f64 / steps.max(1.0)).ceil() as usize,
        }
    }

    /// The step of a slice. A step begins at the start of the body, and another at its end.
    fn step(&self, slice: usize) -> usize {
        if slice < self.body.start {
            slice / self.together
        } else if slice < self.body.end {
            self.of_body().start + (slice - self.body.start) / self.together
        } else {
            self.of_body().end + (slice - self.body.end) / self.together
        }
    }

    /// Steps of the body.
    fn of_body(&self) -> Range<usize> {
        let first = self.body.start.div_ceil(self.together);
        first..first + self.body.len().div_ceil(self.together)
    }
}

/// The longest sequence of slices without many new pages. Initialisation touches pages for the first time, and so may
/// the program's end. All slices if each has many new pages.
fn body(profile: &Profile, slices: usize) -> Range<usize> {
    let mut new = vec![0u64; slices];
    for touch in &profile.first_touches {
        if let Some(count) = new.get_mut(touch.slice.index()) {
            *count += u64::from(touch.len);
        }
    }
    let many = MIN_NEW_PAGE_SHARE * new.iter().sum::<u64>() as f64;
    let (mut longest, mut first) = (0..0, 0);
    for end in 1..=slices {
        if many > 0.0 && new[end - 1] as f64 >= many {
            first = end;
        } else if end - first > longest.len() {
            longest = first..end;
        }
    }
    if longest.is_empty() { 0..slices } else { longest }
}

/// Collects rows, step by step.
struct Reading<'a> {
    context: &'a Context<'a>,
    steps: Steps,
    slots: Vec<u32>,
    traffic: Traffic,
    step: usize,
    slice: Option<usize>,
    cursor: usize,
    now: BTreeMap<RegionId, (BTreeMap<u32, u64>, Vec<Row>)>,
    phases: Vec<TimelinePhase>,
}

impl<'a> Reading<'a> {
    fn new(context: &'a Context<'a>, steps: f64, traffic: Traffic) -> Self {
        Self {
            context,
            steps: Steps::of(context.profile, steps),
            slots: slots(context).0,
            traffic,
            step: 0,
            slice: None,
            cursor: 0,
            now: BTreeMap::new(),
            phases: Vec::new(),
        }
    }

    fn rows(&mut self, rows: &[Access]) {
        for row in rows {
            let slice = row.slice.index();
            if self.slice != Some(slice) {
                (self.slice, self.cursor) = (Some(slice), 0);
                self.now.values_mut().for_each(|(_, rows)| merge(rows));
                let step = self.steps.step(slice);
                if step != self.step {
                    self.end_step();
                    self.step = step;
                }
            }
            self.row(row);
        }
    }

    fn row(&mut self, row: &Access) {
        let Some(&slot) = self.slots.get(row.thread.index()) else {
            return;
        };
        let histogram = self.context.histogram;
        let (by_slot, rows) = self.now.entry(row.region).or_default();
        *by_slot.entry(slot).or_default() += row.total();
        let first = row.page.align_down(histogram.shift);
        let Some(index) = find(&histogram.pages, self.cursor, first) else {
            return;
        };
        self.cursor = index;
        let lines = match self.traffic {
            Traffic::Lines => row.lines,
            Traffic::Accesses => row.accesses_per_page(),
        };
        let dirty = match self.traffic {
            Traffic::Lines => lines.min(row.writes),
            Traffic::Accesses => 0,
        };
        Stretch::of(row, index, histogram.shift, histogram.pages.len()).parts(|pages, weight| {
            rows.extend(pages.map(|page| Row {
                page: page as u32,
                slot,
                accesses: row.accesses_per_page() * weight,
                lines: lines * weight,
                dirty: dirty * weight,
            }));
        });
    }

    fn end_step(&mut self) {
        let step = self.step;
        let phases = std::mem::take(&mut self.now).into_iter();
        self.phases.extend(phases.map(|(region, (by_slot, mut rows))| {
            merge(&mut rows);
            TimelinePhase {
                step,
                region,
                accesses: by_slot.into_iter().collect(),
                at_a_time: f64::INFINITY,
                rows,
            }
        }));
    }

    /// The phases, and the range that is the body; all phases if the body has none.
    fn finish(mut self) -> (Vec<TimelinePhase>, Range<usize>) {
        self.end_step();
        let steps = self.steps.of_body();
        let before = |step| self.phases.partition_point(|p| p.step < step);
        let body = before(steps.start)..before(steps.end);
        let body = if body.is_empty() {
            0..self.phases.len()
        } else {
            body
        };
        (self.phases, body)
    }
}

/// Merges rows of the same CPU and page.
fn merge(rows: &mut Vec<Row>) {
    rows.sort_unstable_by_key(|r| (r.page, r.slot));
    rows.dedup_by(|next, row| {
        let same = (row.page, row.slot) == (next.page, next.slot);
        if same {
            row.accesses += next.accesses;
            row.lines += next.lines;
            row.dirty += next.dirty;
        }
        same
    });
}

/// By slice and region: the amount of work, and its time on as many CPUs as could be busy.
#[derive(Default)]
struct Limits(Vec<(usize, RegionId, f64, f64)>);

impl Limits {
    fn add(
        &mut self,
        slice: &SliceTally<'_>,
        profile: &Profile,
        calibration: &Calibration,
        typical: &Scenario,
    ) {
        let limit = concurrency::limit(profile, calibration, typical, slice);
        for phase in slice.phases {
            let work = phase.accesses() as f64;
            let team = concurrency::is_team(profile, phase.region);
            let alone = if team { 0.0 } else { work / limit };
            self.0.push((slice.slice.index(), phase.region, work, alone));
        }
    }

    /// Number of CPUs busy at a time, as a mean over the work of a step.
    fn by_step(self, steps: &Steps) -> BTreeMap<(usize, RegionId), f64> {
        let mut sums: BTreeMap<(usize, RegionId), (f64, f64)> = BTreeMap::new();
        for (slice, region, work, alone) in self.0 {
            let sum = sums.entry((steps.step(slice), region)).or_default();
            *sum = (sum.0 + work, sum.1 + alone);
        }
        let mean = |(work, alone): (f64, f64)| {
            if alone > 0.0 {
                (work / alone).max(1.0)
            } else {
                f64::INFINITY
            }
        };
        sums.into_iter().map(|(key, sum)| (key, mean(sum))).collect()
    }
}

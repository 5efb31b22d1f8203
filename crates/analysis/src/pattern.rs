//! Recognises how a region's threads divide an object's pages (Majo & Gross 3.1).
//!
//! Pages with a concentrated thread direction (see `page_use`) are visited in address order. Blocks in thread order go
//! around the circle once (x-wise), repeated blocks once per part (y-wise, z-wise, strided); irregular assignments go back
//! and forth.

use crate::page_use::{PageMap, PageUse};
use std::collections::{BTreeMap, BTreeSet};

/// How threads divide an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// One thread uses it.
    OneThread,
    /// Contiguous blocks, one a thread, in order: the first dimension is dealt.
    XWise,
    /// Contiguous blocks, one a thread, in another order than the threads': shifted, by arrival, or counting
    /// down with too few threads to tell it from those.
    Blocks,
    /// The same blocks again in each row of a matrix: the second dimension is dealt.
    YWise,
    /// Blocks inside y-wise blocks, or inside every page: the innermost dimension is dealt.
    ZWise,
    /// Chunks to each thread in turn, as a cyclic schedule deals them, or columns of what nothing shows to be a matrix.
    Strided,
    /// Blocks that begin again like y-wise ones, but with other owners further on: what the schedule
    /// block-exclusive makes.
    BlockExclusive,
    /// Pages have owners, in no order that a schedule would give.
    Irregular,
    /// All threads sweep all pages, and hardly write: the read-only form of [`Pattern::Uniform`].
    ReadShared,
    /// All threads pick words all over it, and hardly write: the read-only form of
    /// [`Pattern::Random`].
    Gather,
    /// All threads sweep all pages.
    Uniform,
    /// All threads pick words all over it.
    Random,
}

impl Pattern {
    /// The stable name used in reports and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OneThread => "one-thread",
            Self::XWise => "x-wise",
            Self::Blocks => "blocks",
            Self::YWise => "y-wise",
            Self::ZWise => "z-wise",
            Self::Strided => "strided",
            Self::BlockExclusive => "block-exclusive",
            Self::Irregular => "irregular",
            Self::ReadShared => "read-shared",
            Self::Gather => "gather",
            Self::Uniform => "uniform",
            Self::Random => "random",
        }
    }

    /// The dimension that is dealt, counted from 0; `None` where that is not what the pattern says.
    #[must_use]
    pub fn dimension(self) -> Option<usize> {
        match self {
            Self::XWise => Some(0),
            Self::YWise => Some(1),
            Self::ZWise => Some(2),
            _ => None,
        }
    }
}

/// Pages whose accesses agree this much have a place; so do those of half a team side by side, and
/// those of which one of many threads makes 70 %.
const AGREED: f64 = 0.55;
/// The same for two threads: one of them makes 70 %.
const AGREED_OF_TWO: f64 = 0.4;
/// An object is divided page by page when this share of its accesses is to pages with a place.
const MOSTLY: f64 = 0.75;
/// Moves of less than half a thread are borders, not steps.
const STEP: f64 = 0.5;
/// Steps are in order when those forwards outweigh those backwards nine to one.
const ORDERED: f64 = 0.8;
/// Pages that agree this much have one owner.
const ALONE: f64 = 0.97;
/// Accesses a line below this: words are picked, not swept.
const PICKED: f64 = 3.0;
/// Written less than this share, an object counts as read-only in the region.
pub(crate) const HARDLY_WRITTEN: f64 = 0.1;
/// Blocks that begin again have the same owners in all parts when arrows at the same place in them
/// agree this much. A Latin square of N nodes reaches sin(π / N) · N / π at most: 0.64, 0.83, 0.90.
const SAME_OWNERS: f64 = 0.93;
/// Places in a part that are told apart, at most; fewer where that would leave less than eight pages each.
const PLACES: usize = 512;
/// A loop of its own makes this share of a region's accesses, beyond what chance gives it.
const OWN_LOOP: f64 = 0.15;
/// Threads whose lines add up to less than a page and a half cannot all have swept it.
const LINES_OF_A_PAGE: f64 = 96.0;
/// Threads whose lines add up to less than half a page divide nothing: they meet on a few lines.
const LINES_OF_A_SPOT: f64 = 32.0;
/// An order that chance would give more often than once in this many cases proves no cause. Of four blocks
/// it gives each order once in 24.
const TELLING: f64 = 20.0;
/// Blocks descend where pages have one owner; what several share may seem to.
const OWNED: f64 = 0.9;
/// A sequence of owners that goes on forwards this many times does not do so by chance: (2/3)⁸ < 1/20.
const STEPS_TELL: f64 = 9.0;
/// Owners of a Latin square of four and more go on alike in three steps of four; by chance in one of three.
const SAME_STEP: f64 = 2.0 / 3.0;
/// The first block of a row has so much of the others' length; of rows there and back it is half.
const BEGINS: f64 = 0.75;
/// A loop of its own beneath another comes to this share of the pages; neighbours come to the borders.
const EVERYWHERE: f64 = 0.6;

/// What the pages of one map show.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shape {
    pub pattern: Pattern,
    /// Parts in which blocks begin again; 1 where they do not.
    pub repeat: u32,
    /// Blocks descend as threads ascend.
    pub inverse: bool,
    /// Share of the accesses that the pattern accounts for.
    pub explained: f64,
    /// Something else than what its name says would look the same.
    pub doubtful: bool,
}

/// Whether a page has a place among `threads`.
pub(crate) fn is_placed(page: &PageUse, threads: usize) -> bool {
    let agreed = if threads == 2 { AGREED_OF_TWO } else { AGREED };
    page.accesses > 0.0 && page.agreement() >= agreed
}

/// Of [`PageUse::peeled`]: what blocks in order account for, and all else.
const BLOCKS: usize = 0;
const REST: usize = 1;

/// What the loops of a region make of an object: one shape, or x-wise and another beneath it; each with
/// its share of the accesses and its pages. `is_loop` says whether the region is one construct: of
/// other code the number of loops is unknown, and no schedule follows from what its threads do. Takes the map's pages:
/// of large objects there is no room for two.
pub(crate) fn recognise(map: &mut PageMap, is_loop: bool) -> Vec<(Shape, f64, Vec<PageUse>)> {
    let threads = map.team.threads.len();
    let pages = std::mem::take(&mut map.pages);
    let whole = shape_of(&pages, threads, (map.shift, is_loop));
    let accesses = |part: usize| pages.iter().map(move |p| p.peeled()[part].accesses);
    let all: f64 = pages.iter().map(|p| f64::from(p.accesses)).sum();
    let in_blocks = accesses(BLOCKS).map(f64::from).sum::<f64>() / all.max(1.0);
    let by_chance = 1.3 / threads as f64;
    // What the other loops do in the same blocks counts with them.
    let beneath = (1.0 - in_blocks) / (1.0 - by_chance).max(0.1);
    // What two or three threads do beyond their blocks is the other's, or one of both others': no pattern.
    // Two loops meet on the pages: of blocks in another order some are a thread's own by position, too.
    let touched = |accesses: &mut dyn Iterator<Item = f32>| accesses.filter(|a| *a > 0.0).count() as f64;
    let everywhere = EVERYWHERE * touched(&mut pages.iter().map(|p| p.accesses));
    let both = [BLOCKS, REST]
        .into_iter()
        .all(|part| touched(&mut accesses(part)) >= everywhere);
    let can_differ = is_loop && is_telling(threads as f64, 1.0) && both;
    if can_differ && (OWN_LOOP..=1.0 - OWN_LOOP).contains(&beneath) {
        let part = |part: usize| pages.iter().map(|p| p.peeled()[part]).collect::<Vec<_>>();
        let rest = part(REST);
        let other = shape_of(&rest, threads, (map.shift, is_loop));
        let differs =
            matches!(other.pattern, Pattern::YWise) || (other.pattern == Pattern::XWise && other.inverse);
        if differs {
            return vec![
                (shape(Pattern::XWise, 1.0), 1.0 - beneath, part(BLOCKS)),
                (other, beneath, rest),
            ];
        }
    }
    vec![(whole, 1.0, pages)]
}

/// Whether blocks in one order, `times` times, are more than chance: an order of b blocks is one of b!.
fn is_telling(blocks: f64, times: f64) -> bool {
    let orders: f64 = (1..=blocks.round() as u32).map(f64::from).product();
    orders.powf(times) >= TELLING
}

fn shape_of(pages: &[PageUse], threads: usize, (shift, is_loop): (u32, bool)) -> Shape {
    let touched: Vec<&PageUse> = pages.iter().filter(|p| p.accesses > 0.0).collect();
    let placed: Vec<(usize, &PageUse)> = pages
        .iter()
        .enumerate()
        .filter(|p| is_placed(p.1, threads))
        .collect();
    let owners: Vec<&PageUse> = placed.iter().map(|p| p.1).collect();
    let owned = sum(&owners, |p| p.accesses) / sum(&touched, |p| p.accesses).max(1.0);
    if threads < 2 {
        return shape(Pattern::OneThread, 1.0);
    }
    if owned < MOSTLY {
        return shared(&touched, shift);
    }
    let trace = Trace::of(&owners, threads);
    let agreed = sum_agreeing(&owners) / sum(&owners, |p| p.accesses);
    if trace.travelled == 0.0 {
        return shape(
            Pattern::OneThread,
            sum_agreeing(&owners) / sum(&touched, |p| p.accesses),
        );
    }
    let forwards = trace.forwards();
    let rounds = trace.rounds(threads);
    let repeat = rounds.round().max(1.0) as u32;
    let ordered = forwards >= ORDERED;
    let pattern = match repeat {
        1 if ordered && trace.is_in_order(1) => Pattern::XWise,
        _ if trace.each_once => Pattern::Blocks,
        _ if !ordered => Pattern::Irregular,
        1 => Pattern::Blocks,
        _ => again(&trace, &placed, (agreed, rounds)),
    };
    let inverse = trace.gone < 0.0;
    let counts_down = is_loop && agreed >= OWNED && is_telling(trace.blocks / f64::from(repeat), 1.0);
    let pattern = match pattern {
        Pattern::XWise | Pattern::YWise if inverse && !counts_down => Pattern::Blocks,
        pattern => pattern,
    };
    let named = matches!(pattern, Pattern::XWise | Pattern::YWise | Pattern::BlockExclusive);
    Shape {
        pattern,
        repeat: if named { repeat } else { 1 },
        inverse: named && inverse,
        explained: if named {
            owned * (1.0 + forwards) / 2.0
        } else {
            owned
        },
        doubtful: pattern == Pattern::Blocks,
    }
}

/// Blocks whose owners come again: the same row of them each time, or another.
fn again(trace: &Trace, placed: &[(usize, &PageUse)], (agreed, rounds): (f64, f64)) -> Pattern {
    let repeat = rounds.round().max(1.0);
    let a_round = trace.blocks / repeat;
    if trace.skips(agreed) || same_owners(placed, rounds) < SAME_OWNERS {
        // A row that differs each time is a Latin square only where chance would not go on forwards so long.
        // Rows that are no whole number of pages differ, too: only blocks of several whole pages are cuts.
        let cut = agreed >= OWNED && placed.len() as f64 / trace.blocks >= 2.0;
        let square = is_telling(trace.around, 1.0) && trace.blocks >= STEPS_TELL;
        return match cut && square && same_step(placed, trace.around) >= SAME_STEP {
            true => Pattern::BlockExclusive,
            false => Pattern::Irregular,
        };
    }
    match trace.is_in_order(repeat as u32) && is_telling(a_round, repeat - 1.0) {
        true => Pattern::YWise,
        false => Pattern::Irregular,
    }
}

/// Of the steps from one owner to the next, the share of those that go on by the same number of threads.
fn same_step(placed: &[(usize, &PageUse)], around: f64) -> f64 {
    let alone = placed.iter().filter(|p| p.1.agreement() >= ALONE);
    let mut owners: Vec<u64> = alone.map(|p| (p.1.place() * around) as u64).collect();
    owners.dedup();
    let mut steps: BTreeMap<u64, usize> = BTreeMap::new();
    for pair in owners.windows(2) {
        let step = (pair[1] + around as u64 - pair[0]) % around as u64;
        *steps.entry(step).or_default() += 1;
    }
    let most = steps.values().max().copied().unwrap_or(0);
    most as f64 / owners.len().saturating_sub(1).max(1) as f64
}

/// How much pages at the same place in each part agree on an owner, from 0 to 1: of the lengths of a
/// part near the one that the walk suggests, the best.
fn same_owners(placed: &[(usize, &PageUse)], rounds: f64) -> f64 {
    let (first, last) = (placed[0].0, placed[placed.len() - 1].0);
    let span = (last - first + 1) as f64;
    let accesses: f64 = placed.iter().map(|p| p.1.arrow()[0].hypot(p.1.arrow()[1])).sum();
    let with = |rounds: f64| {
        let part = span / rounds;
        let mut places = vec![[0.0; 2]; (placed.len() / 8).max(part.ceil() as usize).min(PLACES)];
        for (index, page) in placed {
            let within = ((index - first) as f64 / part).fract();
            let bin = (within * places.len() as f64) as usize;
            let sum = &mut places[bin];
            let arrow = page.arrow();
            *sum = [sum[0] + arrow[0], sum[1] + arrow[1]];
        }
        places.iter().map(|[x, y]| x.hypot(*y)).sum::<f64>() / accesses
    };
    (-4..=4)
        .map(|step| with((rounds + f64::from(step) / 8.0).max(1.0)))
        .fold(0.0, f64::max)
}

fn shape(pattern: Pattern, explained: f64) -> Shape {
    Shape {
        pattern,
        repeat: 1,
        inverse: false,
        explained,
        doubtful: false,
    }
}

fn sum(pages: &[&PageUse], of: impl Fn(&PageUse) -> f32) -> f64 {
    pages.iter().map(|p| f64::from(of(p))).sum()
}

fn sum_agreeing(pages: &[&PageUse]) -> f64 {
    pages.iter().map(|p| f64::from(p.accesses) * p.agreement()).sum()
}

/// Pages without a place: blocks inside pages, sweeps by all, or picked words.
///
/// Threads divide a page when their lines add up to hardly more than a page has. When they sweep it
/// again and again and write it, they may divide it (programs without data races write no item from
/// two threads), or have it in turn, as a dynamic schedule deals it. What is only read again and again
/// cannot be told from a sweep by all, and a few lines that all use are a counter, a lock or a flag.
fn shared(touched: &[&PageUse], shift: u32) -> Shape {
    let (accesses, writes, lines) = (
        sum(touched, |p| p.accesses),
        sum(touched, |p| p.writes),
        sum(touched, |p| p.lines),
    );
    let agreed = sum_agreeing(touched) / accesses.max(1.0);
    let pages = touched.len() as f64 * f64::from(1u32 << shift);
    let few_lines = lines <= LINES_OF_A_PAGE * pages;
    let pattern = if accesses < PICKED * lines {
        Pattern::Random
    } else if lines < LINES_OF_A_SPOT * pages {
        Pattern::Uniform
    } else if few_lines || writes >= HARDLY_WRITTEN * accesses {
        Pattern::ZWise
    } else {
        Pattern::Uniform
    };
    Shape {
        doubtful: pattern == Pattern::ZWise && !few_lines,
        ..shape(pattern, 1.0 - agreed)
    }
}

/// The path that pages' positions take around the circle in address order, in units of threads.
#[derive(Debug)]
struct Trace {
    gone: f64,
    travelled: f64,
    /// Number of blocks met.
    blocks: f64,
    /// Number of threads: the circumference of the circle.
    around: f64,
    /// Length of the first block, pages.
    first_block: u64,
    /// Whether each owner has one block.
    each_once: bool,
    /// Pages by the round that they are in, from wherever the first thread's block would begin.
    rounds: BTreeMap<i64, u64>,
}

impl Trace {
    fn of(placed: &[&PageUse], threads: usize) -> Self {
        let around = threads as f64;
        let place = |page: &&PageUse| page.place() * around;
        let mut trace = Self {
            gone: 0.0,
            travelled: 0.0,
            blocks: 1.0,
            around,
            first_block: 0,
            each_once: true,
            rounds: BTreeMap::new(),
        };
        let first = place(&placed[0]);
        let mut stop = first;
        let mut owners = BTreeSet::from([first as u64]);
        for next in placed.iter().map(place) {
            let step = step(next - stop, around);
            if step.abs() >= STEP {
                trace.gone += step;
                trace.travelled += step.abs();
                trace.blocks += 1.0;
                trace.each_once &= owners.insert(next as u64);
                stop = next;
            }
            trace.first_block += u64::from(trace.blocks < 2.0);
            let beyond = if step.abs() >= STEP { 0.0 } else { step };
            let round = ((first + trace.gone + beyond) / around).floor();
            *trace.rounds.entry(round as i64).or_default() += 1;
        }
        trace
    }

    /// 1 when all steps go one way, 0 when as many go back.
    fn forwards(&self) -> f64 {
        self.gone.abs() / self.travelled
    }

    /// Whether each of `repeat` rounds begins with the first thread, or ends with it where they descend:
    /// a row that begins elsewhere is in one round more. Half a block, a page and what shows at the very
    /// ends of an array are forgiven.
    fn is_in_order(&self, repeat: u32) -> bool {
        let pages: u64 = self.rounds.values().sum();
        let round = pages as f64 / f64::from(repeat);
        let block = round / self.around;
        let whole: Vec<f64> = self
            .rounds
            .values()
            .map(|n| *n as f64)
            .filter(|n| *n > block / 2.0)
            .collect();
        // Two threads always go forwards: there and back again has rounds of another length at its ends.
        let any_order = self.around <= 2.0 && repeat > 1;
        let even = |n: &f64| !any_order || (n - round).abs() <= block / 2.0 + 1.0;
        let begins = !any_order || self.first_block as f64 >= BEGINS * pages as f64 / self.blocks;
        whole.len() == repeat as usize && whole.iter().all(even) && begins
    }

    /// Whether it goes on by several threads where pages have one owner: those in between have no part
    /// in the row.
    fn skips(&self, agreed: f64) -> bool {
        let neighbours = (std::f64::consts::PI / self.around).cos();
        agreed > (1.0 + neighbours) / 2.0 && self.gone.abs() / (self.blocks - 1.0) > 1.5
    }

    /// How often it came round, the last block's own width included.
    fn rounds(&self, threads: usize) -> f64 {
        self.gone.abs() / threads as f64 * self.blocks / (self.blocks - 1.0)
    }
}

/// The shorter way round; half a turn, give or take a little, is taken forwards.
fn step(difference: f64, around: f64) -> f64 {
    let forwards = difference.rem_euclid(around);
    if forwards <= around * 0.5625 {
        forwards
    } else {
        forwards - around
    }
}

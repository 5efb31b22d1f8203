//! Recognises how a region's threads divide an object's pages (Majo & Gross 3.1).
//!
//! Pages whose accesses have a clear mean direction among the threads (see `page_use`) are visited in address order.
//! Blocks in thread order go around the circle once (x-wise), repeated blocks once per repetition (y-wise, z-wise,
//! strided); irregular assignments go back and forth.

use crate::page_use::{PageMap, PageUse};
use std::collections::{BTreeMap, BTreeSet};

/// How threads divide an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// One thread uses it.
    OneThread,
    /// Contiguous blocks, one per thread, in thread order: the first dimension is distributed.
    XWise,
    /// Contiguous blocks, one per thread, not in thread order: rotated, by arrival, or descending with too few threads
    /// to exclude the other two.
    Blocks,
    /// The same sequence of blocks in each row of a matrix: the second dimension is distributed.
    YWise,
    /// Blocks inside y-wise blocks, or inside every page: the innermost dimension is distributed.
    ZWise,
    /// Chunks assigned to the threads in turn, as by a cyclic schedule, or columns of an object that is not known to be
    /// a matrix.
    Strided,
    /// Blocks that repeat like y-wise ones, but with other owners in later rows: the result of the block-exclusive
    /// schedule.
    BlockExclusive,
    /// Pages have owners, but in an order that no schedule produces.
    Irregular,
    /// All threads sweep all pages, and hardly write: the read-only form of [`Pattern::Uniform`].
    ReadShared,
    /// All threads access scattered words of all pages, and hardly write: the read-only form of [`Pattern::Random`].
    Gather,
    /// All threads sweep all pages.
    Uniform,
    /// All threads access scattered words of all pages.
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

    /// The dimension that is distributed over the threads, counted from 0; `None` for patterns that imply none.
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

/// Smallest agreement of a page that has a place among the threads. A page used evenly by half of the threads, side by
/// side, reaches it, and so does one of which one of many threads makes 70 % of the accesses.
const MIN_AGREEMENT: f64 = 0.55;
/// [`MIN_AGREEMENT`] for two threads: one of them makes 70 % of the accesses.
const MIN_AGREEMENT_OF_TWO: f64 = 0.4;
/// Smallest share of accesses to pages with a place from which an object counts as divided page by page.
const MIN_PLACED_SHARE: f64 = 0.75;
/// Changes of position by less than this, in threads, are pages at block borders, not steps to another block.
const MIN_STEP: f64 = 0.5;
/// Smallest net progress, as a share of all steps, of an ordered sequence. At 0.8 forward steps outweigh backward ones
/// nine to one.
const MIN_NET_PROGRESS: f64 = 0.8;
/// Smallest agreement of a page that has one owner.
const SINGLE_OWNER_AGREEMENT: f64 = 0.97;
/// Below this number of accesses per cache line, threads access scattered words rather than sweep the pages.
const MIN_SWEEP_ACCESSES_PER_LINE: f64 = 3.0;
/// If less than this share of a region's accesses to an object are writes, the object counts as read-only there.
pub(crate) const HARDLY_WRITTEN: f64 = 0.1;
/// Smallest agreement, at equal positions within all repetitions, from which repeated blocks have the same owners in
/// each repetition. A Latin square of N nodes reaches at most sin(π / N) · N / π: 0.64, 0.83, 0.90 for N = 2, 3, 4.
const MIN_REPETITION_AGREEMENT: f64 = 0.93;
/// Largest number of positions within a repetition that are compared. By default there is one for eight pages with a
/// place, but at least one for each page of a repetition.
const MAX_POSITIONS: usize = 512;
/// Smallest share of a region's accesses that each of two loops must make, corrected for chance.
const MIN_LOOP_SHARE: f64 = 0.15;
/// If the lines of all threads add up to no more than this per page (a page and a half), they cannot all have swept it.
const MAX_DIVIDED_LINES_PER_PAGE: f64 = 96.0;
/// If the lines of all threads add up to less than this per page (half a page), the threads share a few lines instead
/// of dividing the page.
const MIN_DIVIDED_LINES_PER_PAGE: f64 = 32.0;
/// An order proves its cause only if chance produces it at most once in this many cases. Four blocks have 24 orders.
const MIN_ODDS_AGAINST_CHANCE: f64 = 20.0;
/// Smallest agreement from which the order of blocks is reliable: positions of pages that several threads share may
/// only seem to descend.
const MIN_ORDER_AGREEMENT: f64 = 0.9;
/// Number of blocks from which owners that always advance do not do so by chance: (2/3)⁸ < 1/20.
const MIN_ADVANCING_BLOCKS: f64 = 9.0;
/// Smallest share of equally long steps between owners in a block-exclusive distribution. A Latin square of four or
/// more nodes reaches three quarters; chance gives a third.
const MIN_SAME_STEP_SHARE: f64 = 2.0 / 3.0;
/// Smallest length of a row's first block, relative to the mean block. If rows are traversed back and forth, the first
/// block has half of the mean length.
const MIN_FIRST_BLOCK_LENGTH: f64 = 0.75;
/// Smallest share of the pages that each of two loops must touch. Accesses to neighbouring blocks only touch the pages
/// at block borders.
const MIN_TOUCHED_SHARE: f64 = 0.6;

/// The pattern recognised in the pages of one map.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shape {
    pub pattern: Pattern,
    /// Number of repetitions of the block sequence; 1 if it does not repeat.
    pub repeat: u32,
    /// Whether blocks descend as threads ascend.
    pub inverse: bool,
    /// Share of the accesses that the pattern accounts for.
    pub explained: f64,
    /// Whether something other than what the pattern's name says would produce the same pages.
    pub doubtful: bool,
}

/// Whether a page has a place among `threads` threads: its accesses are concentrated on neighbouring ones.
pub(crate) fn is_placed(page: &PageUse, threads: usize) -> bool {
    let agreed = if threads == 2 {
        MIN_AGREEMENT_OF_TWO
    } else {
        MIN_AGREEMENT
    };
    page.accesses > 0.0 && page.agreement() >= agreed
}

/// Indices into the result of [`PageUse::split_by_block`]: accesses that blocks in thread order explain, and all other
/// accesses.
const IN_BLOCK: usize = 0;
const OUTSIDE_BLOCK: usize = 1;

/// The patterns that the loops of a region make in an object: a single one, or x-wise and a second one, each with its
/// share of the accesses and its pages. `is_loop` says whether the region is one parallel construct: for other code the
/// number of loops is unknown, and no schedule follows from what its threads do. Takes the map's pages, because a copy
/// of a large object's pages would need too much memory.
pub(crate) fn recognise(map: &mut PageMap, is_loop: bool) -> Vec<(Shape, f64, Vec<PageUse>)> {
    let threads = map.team.threads.len();
    let pages = std::mem::take(&mut map.pages);
    let single_shape = shape_of(&pages, threads, (map.shift, is_loop));
    let accesses = |part: usize| pages.iter().map(move |p| p.split_by_block()[part].accesses);
    let all: f64 = pages.iter().map(|p| f64::from(p.accesses)).sum();
    let in_blocks = accesses(IN_BLOCK).map(f64::from).sum::<f64>() / all.max(1.0);
    let by_chance = 1.3 / threads as f64;
    // A second loop also accesses some of the same thread's blocks by chance: that part is added to its share.
    let second_loop_share = (1.0 - in_blocks) / (1.0 - by_chance).max(0.1);
    // With two or three threads, accesses outside a thread's block prove no pattern: only one or two other threads can
    // make them. Two loops touch the same pages. A single loop with blocks in another order also has some blocks at the
    // position of their thread, but on pages of their own.
    let touched = |accesses: &mut dyn Iterator<Item = f32>| accesses.filter(|a| *a > 0.0).count() as f64;
    let min_touched = MIN_TOUCHED_SHARE * touched(&mut pages.iter().map(|p| p.accesses));
    let both = [IN_BLOCK, OUTSIDE_BLOCK]
        .into_iter()
        .all(|part| touched(&mut accesses(part)) >= min_touched);
    let can_differ = is_loop && is_unlikely_by_chance(threads as f64, 1.0) && both;
    if can_differ && (MIN_LOOP_SHARE..=1.0 - MIN_LOOP_SHARE).contains(&second_loop_share) {
        let part = |part: usize| pages.iter().map(|p| p.split_by_block()[part]).collect::<Vec<_>>();
        let rest = part(OUTSIDE_BLOCK);
        let other = shape_of(&rest, threads, (map.shift, is_loop));
        let differs =
            matches!(other.pattern, Pattern::YWise) || (other.pattern == Pattern::XWise && other.inverse);
        if differs {
            return vec![
                (
                    shape(Pattern::XWise, 1.0),
                    1.0 - second_loop_share,
                    part(IN_BLOCK),
                ),
                (other, second_loop_share, rest),
            ];
        }
    }
    vec![(single_shape, 1.0, pages)]
}

/// Whether chance is an unlikely explanation of blocks that are in the same order `times` times: b blocks have b!
/// orders.
fn is_unlikely_by_chance(blocks: f64, times: f64) -> bool {
    let orders: f64 = (1..=blocks.round() as u32).map(f64::from).product();
    orders.powf(times) >= MIN_ODDS_AGAINST_CHANCE
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
    if owned < MIN_PLACED_SHARE {
        return shared(&touched, shift);
    }
    let trace = Trace::of(&owners, threads);
    let agreed = sum_agreeing(&owners) / sum(&owners, |p| p.accesses);
    if trace.total == 0.0 {
        return shape(
            Pattern::OneThread,
            sum_agreeing(&owners) / sum(&touched, |p| p.accesses),
        );
    }
    let forwards = trace.forwards();
    let rounds = trace.rounds(threads);
    let repeat = rounds.round().max(1.0) as u32;
    let ordered = forwards >= MIN_NET_PROGRESS;
    let pattern = match repeat {
        1 if ordered && trace.is_in_order(1) => Pattern::XWise,
        _ if trace.each_once => Pattern::Blocks,
        _ if !ordered => Pattern::Irregular,
        1 => Pattern::Blocks,
        _ => repeated_pattern(&trace, &placed, (agreed, rounds)),
    };
    let inverse = trace.net < 0.0;
    let counts_down = is_loop
        && agreed >= MIN_ORDER_AGREEMENT
        && is_unlikely_by_chance(trace.blocks / f64::from(repeat), 1.0);
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

/// The pattern of blocks whose owners repeat, either in the same order in each row or in different orders.
fn repeated_pattern(trace: &Trace, placed: &[(usize, &PageUse)], (agreed, rounds): (f64, f64)) -> Pattern {
    let repeat = rounds.round().max(1.0);
    let a_round = trace.blocks / repeat;
    if trace.skips(agreed) || same_owners(placed, rounds) < MIN_REPETITION_AGREEMENT {
        // Rows with different orders are a Latin square only if chance would not produce so long a sequence that
        // advances. Rows that are not a whole number of pages differ, too, so blocks must have several whole pages.
        let cut = agreed >= MIN_ORDER_AGREEMENT && placed.len() as f64 / trace.blocks >= 2.0;
        let square = is_unlikely_by_chance(trace.circumference, 1.0) && trace.blocks >= MIN_ADVANCING_BLOCKS;
        return match cut && square && same_step(placed, trace.circumference) >= MIN_SAME_STEP_SHARE {
            true => Pattern::BlockExclusive,
            false => Pattern::Irregular,
        };
    }
    match trace.is_in_order(repeat as u32) && is_unlikely_by_chance(a_round, repeat - 1.0) {
        true => Pattern::YWise,
        false => Pattern::Irregular,
    }
}

/// The share of the most frequent step, in threads, among all steps from one owner to the next.
fn same_step(placed: &[(usize, &PageUse)], circumference: f64) -> f64 {
    let single_owner_pages = placed
        .iter()
        .filter(|p| p.1.agreement() >= SINGLE_OWNER_AGREEMENT);
    let mut owners: Vec<u64> = single_owner_pages
        .map(|p| (p.1.place() * circumference) as u64)
        .collect();
    owners.dedup();
    let mut steps: BTreeMap<u64, usize> = BTreeMap::new();
    for pair in owners.windows(2) {
        let step = (pair[1] + circumference as u64 - pair[0]) % circumference as u64;
        *steps.entry(step).or_default() += 1;
    }
    let most = steps.values().max().copied().unwrap_or(0);
    most as f64 / owners.len().saturating_sub(1).max(1) as f64
}

/// How much pages at the same position in each repetition agree on an owner, from 0 to 1: the best result over several
/// lengths of a repetition, near the one that the path suggests.
fn same_owners(placed: &[(usize, &PageUse)], rounds: f64) -> f64 {
    let (first, last) = (placed[0].0, placed[placed.len() - 1].0);
    let span = (last - first + 1) as f64;
    let accesses: f64 = placed
        .iter()
        .map(|p| p.1.resultant()[0].hypot(p.1.resultant()[1]))
        .sum();
    let with = |rounds: f64| {
        let part = span / rounds;
        let mut places = vec![[0.0; 2]; (placed.len() / 8).max(part.ceil() as usize).min(MAX_POSITIONS)];
        for (index, page) in placed {
            let within = ((index - first) as f64 / part).fract();
            let bin = (within * places.len() as f64) as usize;
            let sum = &mut places[bin];
            let resultant = page.resultant();
            *sum = [sum[0] + resultant[0], sum[1] + resultant[1]];
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

/// Pages without a place: blocks inside pages, sweeps by all threads, or accesses to scattered words.
///
/// Threads divide a page if their lines together are hardly more than a page has. If they sweep it repeatedly and write
/// it, they may divide it (in programs without data races no two threads write one item), or use it in turn, as under a
/// dynamic schedule. Pages that are only read repeatedly cannot be told from a sweep by all threads. A few lines that
/// all threads use are a counter, a lock or a flag.
fn shared(touched: &[&PageUse], shift: u32) -> Shape {
    let (accesses, writes, lines) = (
        sum(touched, |p| p.accesses),
        sum(touched, |p| p.writes),
        sum(touched, |p| p.lines),
    );
    let agreed = sum_agreeing(touched) / accesses.max(1.0);
    let pages = touched.len() as f64 * f64::from(1u32 << shift);
    let few_lines = lines <= MAX_DIVIDED_LINES_PER_PAGE * pages;
    let pattern = if accesses < MIN_SWEEP_ACCESSES_PER_LINE * lines {
        Pattern::Random
    } else if lines < MIN_DIVIDED_LINES_PER_PAGE * pages {
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

/// The path of the pages' positions around the circle, in address order. Lengths are in threads.
#[derive(Debug)]
struct Trace {
    net: f64,
    total: f64,
    /// Number of blocks found.
    blocks: f64,
    /// Number of threads: the circumference of the circle.
    circumference: f64,
    /// Length of the first block in pages.
    first_block: u64,
    /// Whether each owner has exactly one block.
    each_once: bool,
    /// Number of pages in each round; a round begins where the first thread's block would begin.
    rounds: BTreeMap<i64, u64>,
}

impl Trace {
    fn of(placed: &[&PageUse], threads: usize) -> Self {
        let circumference = threads as f64;
        let place = |page: &&PageUse| page.place() * circumference;
        let mut trace = Self {
            net: 0.0,
            total: 0.0,
            blocks: 1.0,
            circumference,
            first_block: 0,
            each_once: true,
            rounds: BTreeMap::new(),
        };
        let first = place(&placed[0]);
        let mut stop = first;
        let mut owners = BTreeSet::from([first as u64]);
        for next in placed.iter().map(place) {
            let step = step(next - stop, circumference);
            if step.abs() >= MIN_STEP {
                trace.net += step;
                trace.total += step.abs();
                trace.blocks += 1.0;
                trace.each_once &= owners.insert(next as u64);
                stop = next;
            }
            trace.first_block += u64::from(trace.blocks < 2.0);
            let beyond = if step.abs() >= MIN_STEP { 0.0 } else { step };
            let round = ((first + trace.net + beyond) / circumference).floor();
            *trace.rounds.entry(round as i64).or_default() += 1;
        }
        trace
    }

    /// Net over total progress: 1 if all steps go one way, 0 if as many go back.
    fn forwards(&self) -> f64 {
        self.net.abs() / self.total
    }

    /// Whether each of `repeat` rounds begins with the first thread (if blocks descend: ends with it). A sequence that
    /// begins with another thread spans one more round. Half a block, a page, and deviations at the ends of the array
    /// are tolerated.
    fn is_in_order(&self, repeat: u32) -> bool {
        let pages: u64 = self.rounds.values().sum();
        let round = pages as f64 / f64::from(repeat);
        let block = round / self.circumference;
        let full_rounds: Vec<f64> = self
            .rounds
            .values()
            .map(|n| *n as f64)
            .filter(|n| *n > block / 2.0)
            .collect();
        // With two threads every step counts as forwards. In rows that are traversed back and forth, the rounds at the
        // ends have another length.
        let any_order = self.circumference <= 2.0 && repeat > 1;
        let even = |n: &f64| !any_order || (n - round).abs() <= block / 2.0 + 1.0;
        let begins =
            !any_order || self.first_block as f64 >= MIN_FIRST_BLOCK_LENGTH * pages as f64 / self.blocks;
        full_rounds.len() == repeat as usize && full_rounds.iter().all(even) && begins
    }

    /// Whether owners advance by several threads at a time although pages have one owner each: the threads in between
    /// have no part in the row.
    fn skips(&self, agreed: f64) -> bool {
        let neighbours = (std::f64::consts::PI / self.circumference).cos();
        agreed > (1.0 + neighbours) / 2.0 && self.net.abs() / (self.blocks - 1.0) > 1.5
    }

    /// Number of rounds, including the width of the last block.
    fn rounds(&self, threads: usize) -> f64 {
        self.net.abs() / threads as f64 * self.blocks / (self.blocks - 1.0)
    }
}

/// The shorter way around the circle; up to 9/16 of the circle counts as forwards.
fn step(difference: f64, circumference: f64) -> f64 {
    let forwards = difference.rem_euclid(circumference);
    if forwards <= circumference * 0.5625 {
        forwards
    } else {
        forwards - circumference
    }
}

//! The pattern recogniser: how a region's threads divide an object's pages (Majo & Gross 3.1).
//!
//! Pages that agree on a place among the threads (see `page_use`) are followed in address order: blocks
//! in order go once round the circle (x-wise), blocks that begin again go round once a part (y-wise,
//! z-wise, strided), and disorder goes back and forth.

use crate::page_use::{PageMap, PageUse};

/// How threads divide an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// One thread uses it.
    OneThread,
    /// Contiguous blocks, one a thread, in order: the first dimension is dealt.
    XWise,
    /// The same blocks again in each part: the second dimension is dealt.
    YWise,
    /// Blocks inside y-wise blocks, or inside every page: the innermost dimension is dealt.
    ZWise,
    /// One or two pages to each thread in turn, as a cyclic schedule deals them.
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
/// Blocks of so many whole pages may be a cyclic schedule's.
const FEW_PAGES: f64 = 2.5;
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
    /// A cyclic schedule would look the same.
    pub cyclic: bool,
}

/// Whether a page has a place among `threads`.
pub(crate) fn is_placed(page: &PageUse, threads: usize) -> bool {
    let agreed = if threads == 2 { AGREED_OF_TWO } else { AGREED };
    page.accesses > 0.0 && page.agreement() >= agreed
}

/// What the loops of a region make of an object: one shape, or x-wise and another beneath it; each with
/// its share of the accesses and its pages.
pub(crate) fn recognise(map: &PageMap) -> Vec<(Shape, f64, Vec<PageUse>)> {
    let threads = map.team.threads.len();
    let whole = shape_of(&map.pages, threads, map.shift);
    let [blocks, rest] = [0, 1].map(|part| map.pages.iter().map(|p| p.peeled()[part]).collect::<Vec<_>>());
    let all: f64 = map.pages.iter().map(|p| f64::from(p.accesses)).sum();
    let in_blocks = blocks.iter().map(|p| f64::from(p.accesses)).sum::<f64>() / all.max(1.0);
    let by_chance = 1.3 / threads as f64;
    // What the other loops do in the same blocks counts with them.
    let beneath = (1.0 - in_blocks) / (1.0 - by_chance).max(0.1);
    if threads > 1 && (OWN_LOOP..=1.0 - OWN_LOOP).contains(&beneath) {
        let other = shape_of(&rest, threads, map.shift);
        let differs =
            matches!(other.pattern, Pattern::YWise) || (other.pattern == Pattern::XWise && other.inverse);
        if differs {
            return vec![
                (shape(Pattern::XWise, 1.0), 1.0 - beneath, blocks),
                (other, beneath, rest),
            ];
        }
    }
    vec![(whole, 1.0, map.pages.clone())]
}

fn shape_of(pages: &[PageUse], threads: usize, shift: u32) -> Shape {
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
    let walk = Walk::of(&owners, threads);
    let forwards = walk.forwards();
    if walk.travelled == 0.0 {
        return shape(
            Pattern::OneThread,
            sum_agreeing(&owners) / sum(&touched, |p| p.accesses),
        );
    }
    if forwards < ORDERED {
        return shape(Pattern::Irregular, owned);
    }
    let rounds = walk.rounds(threads);
    let repeat = rounds.round().max(1.0) as u32;
    let pages_a_block = placed.len() as f64 / walk.blocks;
    let agreed = sum_agreeing(&owners) / sum(&owners, |p| p.accesses);
    Shape {
        pattern: match repeat {
            1 => Pattern::XWise,
            2.. if walk.skips(agreed, threads) || same_owners(&placed, rounds) < SAME_OWNERS => {
                Pattern::BlockExclusive
            }
            _ => Pattern::YWise,
        },
        repeat,
        inverse: walk.gone < 0.0,
        explained: owned * (1.0 + forwards) / 2.0,
        cyclic: repeat > 1 && agreed >= ALONE && pages_a_block <= FEW_PAGES,
    }
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
        cyclic: false,
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
/// Threads divide a page when their lines add up to hardly more than a page has, or when they write
/// it: programs without data races write no item from two threads. What is only read again and again
/// cannot be told from a sweep by all.
fn shared(touched: &[&PageUse], shift: u32) -> Shape {
    let (accesses, writes, lines) = (
        sum(touched, |p| p.accesses),
        sum(touched, |p| p.writes),
        sum(touched, |p| p.lines),
    );
    let agreed = sum_agreeing(touched) / accesses.max(1.0);
    let few_lines = lines <= LINES_OF_A_PAGE * touched.len() as f64 * f64::from(1u32 << shift);
    let pattern = if accesses < PICKED * lines {
        Pattern::Random
    } else if few_lines || writes >= HARDLY_WRITTEN * accesses {
        Pattern::ZWise
    } else {
        Pattern::Uniform
    };
    shape(pattern, 1.0 - agreed)
}

/// The way that places take round the circle, in threads.
#[derive(Debug)]
struct Walk {
    gone: f64,
    travelled: f64,
    /// Stops on the way.
    blocks: f64,
}

impl Walk {
    fn of(placed: &[&PageUse], threads: usize) -> Self {
        let around = threads as f64;
        let place = |page: &&PageUse| page.place() * around;
        let (first, last) = (place(&placed[0]), place(&placed[placed.len() - 1]));
        let mut walk = Self {
            gone: 0.0,
            travelled: 0.0,
            blocks: 1.0,
        };
        let mut stop = first;
        for next in placed.iter().map(place) {
            let step = step(next - stop, around);
            if step.abs() >= STEP {
                walk.gone += step;
                walk.travelled += step.abs();
                walk.blocks += 1.0;
                stop = next;
            }
        }
        // Half a turn has no direction of its own.
        if walk.gone.abs() < around && walk.gone * (last - first) < 0.0 && walk.blocks < 3.0 {
            walk.gone = -walk.gone;
        }
        walk
    }

    /// 1 when all steps go one way, 0 when as many go back.
    fn forwards(&self) -> f64 {
        self.gone.abs() / self.travelled
    }

    /// Whether it goes on by several threads where pages have one owner: those in between have no part
    /// in the row.
    fn skips(&self, agreed: f64, threads: usize) -> bool {
        let neighbours = (std::f64::consts::PI / threads as f64).cos();
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

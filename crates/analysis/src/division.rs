//! How each region divides each object, and the pattern of the object as a whole, including uniform data sharing: pages
//! that two regions give to different nodes (Majo & Gross 3.1, Figure 5(e)).

use crate::page_use::{PageMap, PageUse};
use crate::pattern::{Pattern, Shape, is_placed, recognise};
use crate::region_sums::RegionSums;
use crate::{Affinity, Histogram};
use nodewise_machine::NodeId;
use nodewise_profile::{Object, ObjectId, ObjectKind, Profile, RegionId, RegionKind, ThreadId};
use std::collections::BTreeMap;

/// How one region divides one object.
#[derive(Clone, Debug, PartialEq)]
pub struct Division {
    /// The code region in which the object is used.
    pub region: RegionId,
    /// How the region's threads divide the object's pages.
    pub pattern: Pattern,
    /// Number of repetitions of the block sequence between the first and the last page with an owner: the rows that the
    /// region uses of a matrix divided y-wise. 1 if the sequence does not repeat, and for all patterns but y-wise,
    /// z-wise, strided and block-exclusive.
    pub repeat: u32,
    /// Whether blocks descend as threads ascend, as in a loop that counts down.
    pub inverse: bool,
    /// Share of the region's accesses to the object that the pattern accounts for.
    pub explained: f64,
    /// Share of the object's accesses made in the region.
    pub share: f64,
    /// Loads in the region.
    pub reads: u64,
    /// Stores in the region.
    pub writes: u64,
    /// Threads that use the object there.
    pub threads: usize,
    /// Index in the histogram of the first of `owners`.
    first: usize,
    /// Owner of each of the object's pages; [`NO_OWNER`] where there is none.
    owners: Vec<ThreadId>,
    /// Number of pages of the object before the first page with an owner, from there to the last one, and after it.
    /// Includes unused pages, which the histogram lacks.
    extent: [f64; 3],
    /// Whether the region is one parallel construct, so that its schedule can be changed.
    is_loop: bool,
    doubtful: bool,
}

const NO_OWNER: ThreadId = ThreadId(u32::MAX);

/// A region that makes less than this share of an object's accesses does not affect the object's overall pattern.
const MIN_SIGNIFICANT_SHARE: f64 = 0.05;
/// Share of the accesses of all significant regions from which one pattern becomes the object's overall pattern.
const MIN_DOMINANT_SHARE: f64 = 0.75;
/// Tolerance, in pages, of a measured row length.
const ROW_LENGTH_TOLERANCE: f64 = 1.5;

impl Division {
    /// Whether the region affects the object's overall pattern: it has several threads and a significant share of the
    /// accesses.
    #[must_use]
    pub fn is_significant(&self) -> bool {
        self.share >= MIN_SIGNIFICANT_SHARE && self.pattern != Pattern::OneThread
    }

    /// Whether the region is one parallel construct, so that its schedule can be changed.
    #[must_use]
    pub fn is_loop(&self) -> bool {
        self.is_loop
    }

    /// Whether the division tells something about the program's loops: the region is one parallel construct and
    /// significant.
    #[must_use]
    pub fn is_of_loops(&self) -> bool {
        self.is_loop && self.is_significant()
    }

    /// Other causes that would produce the same pages, and which recording would decide between them; `None` if there
    /// are none.
    #[must_use]
    pub fn alternative_causes(&self) -> Option<&'static str> {
        match self.pattern {
            Pattern::Blocks if self.threads < 4 => Some(
                "with so few threads a loop that counts down, a shift by a block and the order in which threads \
                 arrive look alike; a recording with 4 threads or more tells them apart",
            ),
            Pattern::Blocks => Some(
                "the blocks are not in the order of the threads' numbers, as after a shift or where threads take \
                 them as they arrive; a second recording shows whether it is always the same",
            ),
            Pattern::Strided if self.doubtful => Some(
                "chunks dealt in turn and the columns of a matrix look alike; in a recording with another number of \
                 threads a matrix has as many rows as before, and chunks come round more or less often",
            ),
            Pattern::ZWise if self.doubtful => Some(
                "threads divide each page, or have whole pages in turn, as a dynamic schedule deals them; a \
                 recording of one pass over it tells",
            ),
            _ => None,
        }
    }

    /// Whether the object's pages have owners in the region.
    #[must_use]
    pub fn has_owners(&self) -> bool {
        !self.owners.is_empty()
    }

    /// The node of the owner of a page, by the page's index in the histogram.
    #[must_use]
    pub fn node(&self, page: usize, affinity: &Affinity) -> Option<NodeId> {
        let owner = *self.owners.get(page.checked_sub(self.first)?)?;
        (owner != NO_OWNER).then(|| affinity.node(owner))
    }

    /// Mean length of a block in whole pages, rounded: the chunk of a cyclic schedule.
    #[must_use]
    pub fn pages_a_block(&self) -> u32 {
        let blocks = f64::from(self.repeat) * self.threads.max(1) as f64;
        (self.owners.len() as f64 / blocks).round() as u32
    }

    /// Indices in the histogram of the object's pages, where they have owners.
    #[must_use]
    pub fn pages(&self) -> std::ops::Range<usize> {
        self.first..self.first + self.owners.len()
    }

    /// Number of pages in one repetition of the blocks.
    fn row(&self) -> f64 {
        self.extent[1] / f64::from(self.repeat.max(1))
    }

    /// Number of rows of the whole array, if a row is one repetition of the blocks.
    fn all_rows(&self) -> Option<u64> {
        let pages: f64 = self.extent.iter().sum();
        (self.row() > 0.0).then(|| (pages / self.row()).round().max(1.0) as u64)
    }

    /// Whether the region leaves out whole rows at both ends of the array, as a loop over the inner points of a grid
    /// does. `false` for rows so short that chance would produce this more often than once in 20 times.
    fn leaves_out_rows(&self) -> bool {
        let ([before, _, after], row) = (self.extent, self.row());
        // The loop may leave out columns, too.
        let border = ROW_LENGTH_TOLERANCE.max(row / 16.0);
        let whole = |pages: f64| {
            let rows = (pages / row).round();
            rows >= 1.0 && (pages - rows * row).abs() <= border
        };
        (2.0 * border / row).powi(2) <= 0.05 && whole(before) && whole(after)
    }

    /// Marks the division of a pool of many allocations as irregular: one allocation does not tell how the others are
    /// divided.
    fn mark_pooled(&mut self) {
        if self.has_owners() && self.pattern != Pattern::OneThread {
            (self.pattern, self.repeat, self.inverse) = (Pattern::Irregular, 1, false);
        }
    }

    /// The division by one of the loops in a map's region. `part` is the share of the region's accesses that the loop
    /// makes.
    fn new(
        map: &PageMap,
        (shape, part, pages): &(Shape, f64, Vec<PageUse>),
        (sums, object, histogram): (&RegionSums, Option<&Object>, &Histogram),
        is_loop: bool,
    ) -> Self {
        let owners = owners(map, pages, shape.pattern);
        let cell = sums.region(map.object, map.region);
        let total: u64 = sums.regions(map.object).map(|(_, u)| u.accesses()).sum();
        let own = |count: u64| (count as f64 * part) as u64;
        Self {
            region: map.region,
            pattern: shape.pattern,
            repeat: shape.repeat,
            inverse: shape.inverse,
            explained: shape.explained.clamp(0.0, 1.0),
            share: part * cell.accesses() as f64 / total.max(1) as f64,
            reads: own(cell.reads),
            writes: own(cell.writes),
            threads: cell.threads(),
            first: map.first,
            extent: object.map_or([0.0; 3], |o| extent(o, (map.first, &owners), histogram)),
            owners,
            is_loop,
            doubtful: shape.doubtful,
        }
    }
}

fn owners(map: &PageMap, pages: &[PageUse], pattern: Pattern) -> Vec<ThreadId> {
    let threads = &map.team.threads;
    if matches!(pattern, Pattern::Uniform | Pattern::Random | Pattern::ZWise) {
        return Vec::new();
    }
    let last = threads.len() - 1;
    let owner = |page| match is_placed(page, threads.len()) {
        true => threads[((page.place() * threads.len() as f64) as usize).min(last)],
        false => NO_OWNER,
    };
    pages.iter().map(owner).collect()
}

/// See [`Division::extent`]; in pages of the histogram's size.
fn extent(object: &Object, (first, owners): (usize, &[ThreadId]), histogram: &Histogram) -> [f64; 3] {
    let owned = |owner: &ThreadId| *owner != NO_OWNER;
    let ends = owners.iter().position(owned).zip(owners.iter().rposition(owned));
    let Some((begin, last)) = ends else {
        return [0.0; 3];
    };
    let at = |index: usize| histogram.pages[first + index].0 as f64;
    let page = f64::from(1u32 << histogram.shift);
    let start = object.first_page.align_down(histogram.shift).0 as f64;
    let end = object.first_page.offset(object.pages).0 as f64;
    [
        (at(begin) - start) / page,
        (at(last) - at(begin)) / page + 1.0,
        ((end - at(last)) / page - 1.0).max(0.0),
    ]
}

/// The divisions of every object that has maps, its busiest region first.
pub(crate) fn divisions(
    profile: &Profile,
    sums: &RegionSums,
    (maps, histogram): (Vec<PageMap>, &Histogram),
) -> BTreeMap<ObjectId, Vec<Division>> {
    let mut all: BTreeMap<ObjectId, Vec<Division>> = BTreeMap::new();
    for mut map in maps {
        let is_loop = is_loop(profile, map.region) && is_array(profile, map.object);
        let object = profile.object(map.object);
        let loops = recognise(&mut map, is_loop);
        let divisions = loops
            .iter()
            .map(|l| Division::new(&map, l, (sums, object, histogram), is_loop));
        all.entry(map.object).or_default().extend(divisions);
    }
    // A loop distributes its iterations alike, whatever objects it uses.
    let bytes = |object: &ObjectId| profile.object(*object).map_or(0, |o| o.bytes);
    let columns: Vec<(RegionId, u32)> = all
        .iter()
        .filter(|(object, _)| is_array(profile, **object))
        .flat_map(|(object, found)| found.iter().map(move |d| (bytes(object), d)))
        .filter(|(bytes, d)| d.pattern == Pattern::YWise && is_matrix(d, *bytes))
        .map(|(_, d)| (d.region, d.repeat))
        .collect();
    for (object, divisions) in &mut all {
        let bytes = profile.object(*object).map_or(0, |o| o.bytes);
        // The size of a mapping is known in whole pages only.
        let is_exact = profile
            .object(*object)
            .is_some_and(|o| o.kind != ObjectKind::Mapping);
        if !is_array(profile, *object) {
            divisions.iter_mut().for_each(Division::mark_pooled);
            continue;
        }
        separate_chunks_from_columns(divisions, &columns, (bytes, is_exact));
        mark_nested(divisions);
    }
    all
}

/// Whether a region is one parallel construct. Region 0 is all other code.
fn is_loop(profile: &Profile, region: RegionId) -> bool {
    let known = profile.regions.get(region.index());
    known.map_or(region != RegionId(0), |r| r.kind == RegionKind::OpenMp)
}

/// Whether an object is one piece of memory, which may have rows.
fn is_array(profile: &Profile, object: ObjectId) -> bool {
    profile.object(object).is_none_or(|o| o.kind.is_array_or_file())
}

/// Decides whether repeated blocks are the columns of a matrix or chunks that a cyclic schedule assigns in turn, which
/// look alike. They are columns if chunks could not have this length, or if the loop leaves out whole rows; otherwise
/// they are called strided.
fn separate_chunks_from_columns(
    divisions: &mut [Division],
    columns: &[(RegionId, u32)],
    (bytes, is_exact): (u64, bool),
) {
    let again = |d: &Division| d.pattern == Pattern::YWise;
    let matrix = |d: &&Division| again(d) && is_matrix(d, bytes);
    let known = divisions
        .iter()
        .filter(matrix)
        .filter_map(Division::all_rows)
        .min();
    for division in divisions.iter_mut().filter(|d| again(d)) {
        let rows = division.all_rows();
        // A number of rows that equals the known one or is a multiple of it.
        let inside = known
            .zip(rows)
            .is_some_and(|(known, rows)| rows.is_multiple_of(known));
        let columns_elsewhere = columns
            .iter()
            .any(|(region, rows)| *region == division.region && rows.abs_diff(division.repeat) <= 2);
        if !inside && !columns_elsewhere && !is_matrix(division, bytes) {
            division.pattern = Pattern::Strided;
            division.doubtful = !is_exact || whole_rows(division, bytes).is_some();
        }
    }
}

fn is_matrix(division: &Division, bytes: u64) -> bool {
    division.leaves_out_rows()
        || whole_rows(division, bytes).is_some_and(|rows| {
            is_regular(bytes, rows) || !can_be_chunks(bytes, rows, division.threads as u64)
        })
}

/// Number of rows of the whole array; `None` if its size is not a whole number of rows.
fn whole_rows(division: &Division, bytes: u64) -> Option<u64> {
    let is_whole = |rows: &u64| bytes.is_multiple_of(*rows) && (bytes / rows).is_multiple_of(4);
    division.all_rows().filter(is_whole)
}

/// Whether the array would be a square or, with doubles, a cube. Chunks seldom have a length for which this holds.
fn is_regular(bytes: u64, rows: u64) -> bool {
    let of =
        |power, item: u64| rows.checked_pow(power).and_then(|items| items.checked_mul(item)) == Some(bytes);
    [4, 8, 16].iter().any(|item| of(2, *item)) || of(3, 8)
}

/// Whether chunks of whole items, of four bytes or more each, could repeat equally often: within half a repetition.
fn can_be_chunks(bytes: u64, rows: u64, threads: u64) -> bool {
    let (row, grid) = (bytes / rows, 4 * threads.max(1));
    let away = (row % grid).min(grid - row % grid);
    2 * away * rows <= row
}

/// Marks repeated blocks as nested (z-wise) if they repeat at least twice as often as those of another region.
fn mark_nested(divisions: &mut [Division]) {
    let parts = |d: &Division| (d.pattern == Pattern::YWise).then_some(d.repeat);
    let Some(fewest) = divisions.iter().filter_map(parts).min() else {
        return;
    };
    for division in divisions.iter_mut().filter(|d| d.pattern == Pattern::YWise) {
        if division.repeat >= 2 * fewest {
            division.pattern = Pattern::ZWise;
        }
    }
}

/// The overall pattern of an object: the one with most accesses over all significant regions, or uniform if that
/// pattern is not dominant, because then regions give pages to different owners.
pub(crate) fn pattern_of_all(divisions: &[Division]) -> Option<Pattern> {
    let mut shares: Vec<(Pattern, bool, f64)> = Vec::new();
    let significant = divisions.iter().filter(|d| d.is_significant());
    for division in significant {
        match shares
            .iter_mut()
            .find(|s| (s.0, s.1) == (division.pattern, division.inverse))
        {
            Some(known) => known.2 += division.share,
            None => shares.push((division.pattern, division.inverse, division.share)),
        }
    }
    let all: f64 = shares.iter().map(|s| s.2).sum();
    let most = shares.into_iter().max_by(|a, b| a.2.total_cmp(&b.2))?;
    let shared = matches!(most.0, Pattern::Uniform | Pattern::Random);
    Some(if shared || most.2 >= MIN_DOMINANT_SHARE * all {
        most.0
    } else {
        Pattern::Uniform
    })
}

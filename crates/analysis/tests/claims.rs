//! A pattern is claimed only if the pages exclude all others: for 1 to 16 threads, each assignment of the catalogue
//! gets the name of what made it, or a name that nothing in the catalogue has made.

use nodewise_analysis::random::mix;
use nodewise_analysis::{Affinity, Conflict, Division, Histogram, Pattern, Remedy, Usage};
use nodewise_machine::{CpuId, NodeId};
use nodewise_profile::{
    Access, InMemory, Object, ObjectId, ObjectKind, PageNumber, Profile, Region, RegionId, RegionKind,
    Thread, ThreadId,
};
use proptest::prelude::*;

const FIRST: u64 = 1 << 20;

/// The use of a page: thread, loads and lines.
type Uses = Vec<(u32, u64, u64)>;

/// The causes of assignments: the catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Maker {
    /// Blocks in the order of the threads.
    Static,
    /// Blocks in descending order, as by a loop that counts down.
    Down,
    /// Blocks in thread order, beginning with this thread.
    Shifted(u32),
    /// Blocks with neighbouring threads swapped.
    Swapped,
    /// One block per thread, in order of arrival.
    Arrival(u64),
    /// Whole chunks to the next free thread.
    Dynamic(u64),
    /// This many pages to each thread in turn.
    Cyclic(u32),
    /// A matrix of this many rows whose columns are distributed.
    Columns(u32),
    /// Columns, beginning with another thread.
    ShiftedColumns(u32),
    /// Rows that are traversed back and forth.
    Serpentine(u32),
    /// Blocks in thread order whose ends both neighbours read.
    Stencil,
    /// The same with wrap-around at the ends of the array.
    Periodic,
    /// Blocks in thread order, and all threads read everything.
    Gathered,
    /// All threads use everything.
    Everyone,
}

const MAKERS: [fn(u64) -> Maker; 14] = [
    |_| Maker::Static,
    |_| Maker::Down,
    |s| Maker::Shifted(s as u32 % 15 + 1),
    |_| Maker::Swapped,
    Maker::Arrival,
    Maker::Dynamic,
    |s| Maker::Cyclic(s as u32 % 8 + 1),
    |s| Maker::Columns(s as u32 % 31 + 2),
    |s| Maker::ShiftedColumns(s as u32 % 31 + 2),
    |s| Maker::Serpentine(s as u32 % 31 + 2),
    |_| Maker::Stencil,
    |_| Maker::Periodic,
    |_| Maker::Gathered,
    |_| Maker::Everyone,
];

fn order(threads: u32, seed: u64) -> Vec<u32> {
    let mut order: Vec<u32> = (0..threads).collect();
    order.sort_by_key(|t| mix(seed ^ mix(u64::from(*t))));
    order
}

impl Maker {
    /// The owner of each block, in address order.
    fn blocks(self, threads: u32) -> Option<Vec<u32>> {
        let row: Vec<u32> = (0..threads).collect();
        let moved = |by: u32| row.iter().map(|t| (t + by) % threads).collect::<Vec<_>>();
        Some(match self {
            Self::Static | Self::Stencil | Self::Periodic | Self::Gathered => row,
            Self::Down => row.into_iter().rev().collect(),
            Self::Shifted(by) => moved(by % threads),
            Self::Swapped => row.iter().map(|t| (t ^ 1).min(threads - 1)).collect(),
            Self::Arrival(seed) => order(threads, seed),
            Self::Dynamic(seed) => (0..64)
                .map(|c| (mix(seed ^ mix(c)) % u64::from(threads)) as u32)
                .collect(),
            Self::Cyclic(_) => row.repeat(24),
            Self::Columns(rows) => row.repeat(rows as usize),
            Self::ShiftedColumns(rows) => moved(1 % threads).repeat(rows as usize),
            Self::Serpentine(rows) => {
                let back: Vec<u32> = row.iter().rev().copied().collect();
                (0..rows)
                    .flat_map(|r| if r % 2 == 0 { row.clone() } else { back.clone() })
                    .collect()
            }
            Self::Everyone => return None,
        })
    }

    fn uses(self, threads: u32, size: u32) -> Vec<Uses> {
        let Some(blocks) = self.blocks(threads) else {
            return vec![(0..threads).map(|t| (t, 512, 64)).collect(); (threads * size) as usize];
        };
        let size = if let Self::Cyclic(pages) = self {
            pages
        } else {
            size
        };
        let pages = blocks.len() as u32 * size;
        let own = |page: u32| {
            let owner = blocks[(page / size) as usize];
            let mut uses = vec![(owner, 2048, 64)];
            let (first, last) = (page.is_multiple_of(size), page % size == size - 1);
            let neighbour = |by: u32| ((owner + by) % threads, 1024, 32);
            let inside = |end: u32| self == Self::Periodic || page != end;
            match self {
                Self::Stencil | Self::Periodic => {
                    uses.extend((first && inside(0)).then(|| neighbour(threads - 1)));
                    uses.extend((last && inside(pages - 1)).then(|| neighbour(1)));
                }
                Self::Gathered => uses.extend((0..threads).map(|t| (t, 512, 64))),
                _ => {}
            }
            uses
        };
        (0..pages).map(own).collect()
    }

    /// Whether this cause makes what the name of a division's pattern says.
    fn made(self, threads: u32, division: &Division) -> bool {
        let blocks = self.blocks(threads).unwrap_or_default();
        let ascending = blocks.iter().copied().eq(0..threads);
        match (division.pattern, division.inverse) {
            (Pattern::XWise, false) => ascending,
            (Pattern::XWise, true) => self == Self::Down || blocks.iter().copied().eq((0..threads).rev()),
            (Pattern::YWise | Pattern::Strided, false) => {
                let row: Vec<u32> = (0..threads).collect();
                blocks.len() > row.len() && blocks.chunks(row.len()).all(|part| part == row)
            }
            // Nothing in the catalogue makes these.
            (Pattern::YWise | Pattern::Strided, true) | (Pattern::BlockExclusive, _) => false,
            _ => true,
        }
    }
}

/// Divisions of one object that these loops use, each in a region of its own; `kind` is the kind of the regions.
fn divisions(threads: u32, loops: &[Vec<Uses>], kind: RegionKind) -> Vec<Division> {
    let pages = loops.iter().map(Vec::len).max().unwrap_or(0) as u64;
    divisions_of(threads, loops, kind, pages * 4096 - 8)
}

/// [`divisions`] of an array of this many bytes.
fn divisions_of(threads: u32, loops: &[Vec<Uses>], kind: RegionKind, bytes: u64) -> Vec<Division> {
    let pages = loops.iter().map(Vec::len).max().unwrap_or(0) as u64;
    let object = Object {
        kind: ObjectKind::Heap,
        first_page: PageNumber(FIRST),
        pages,
        bytes,
        ..Object::default()
    };
    let region = Region {
        kind,
        ..Region::default()
    };
    let profile = Profile {
        objects: vec![Object::default(), object],
        threads: (0..threads)
            .map(|t| Thread {
                openmp: Some(t),
                ..Thread::default()
            })
            .collect(),
        regions: std::iter::once(Region::default())
            .chain(vec![region; loops.len()])
            .collect(),
        ..Profile::default()
    };
    let mut rows = Vec::new();
    for (region, uses) in loops.iter().enumerate() {
        for (page, uses) in uses.iter().enumerate() {
            rows.extend(uses.iter().map(|&(thread, reads, lines)| Access {
                object: ObjectId(1),
                region: RegionId(region as u32 + 1),
                thread: ThreadId(thread),
                page: PageNumber(FIRST + page as u64),
                len: 1,
                reads,
                writes: reads / 2,
                lines,
                ..Access::default()
            }));
        }
    }
    let accesses = InMemory::new(rows);
    let histogram = Histogram::build(&accesses, threads as usize, 0).expect("in memory");
    let usage = Usage::of(&accesses, &profile, &histogram).expect("in memory");
    usage.divisions(ObjectId(1)).to_vec()
}

/// One sweep over an array of doubles whose items `schedule(static, chunk)` distributes.
fn dealt(threads: u64, items: u64, chunk: u64) -> Vec<Uses> {
    let page = |page: u64| {
        let (first, last) = (page * 512, (page * 512 + 512).min(items));
        let part = |c: u64| {
            let own = last.min(c * chunk + chunk) - first.max(c * chunk);
            ((c % threads) as u32, 4 * own, own.div_ceil(8))
        };
        (first / chunk..=(last - 1) / chunk).map(part).collect()
    };
    (0..items.div_ceil(512)).map(page).collect()
}

fn in_order(threads: u32, nodes: u32) -> Affinity {
    Affinity {
        name: "in order".into(),
        cpus: (0..threads).map(CpuId).collect(),
        nodes: (0..threads).map(|t| NodeId(t * nodes / threads)).collect(),
    }
}

fn decided(divisions: &[Division]) -> bool {
    divisions
        .iter()
        .any(|d| d.inverse || d.pattern == Pattern::BlockExclusive)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn what_is_claimed_made_the_pages(threads in 1u32..=16, maker in 0usize..MAKERS.len(), seed in 0u64..4096, size in 2u32..9) {
        let maker = MAKERS[maker](seed);
        let found = divisions(threads, &[maker.uses(threads, size)], RegionKind::OpenMp);
        for division in &found {
            prop_assert!(maker.made(threads, division), "{:?} by {} threads: {:?}", maker, threads, division);
        }
    }

    /// A pattern is not claimed if another cause in the catalogue makes the same pages.
    #[test]
    fn nothing_is_claimed_that_two_explain(threads in 1u32..=16, maker in 0usize..MAKERS.len(), seed in 0u64..4096, size in 2u32..9) {
        let maker = MAKERS[maker](seed);
        let uses = maker.uses(threads, size);
        let found = divisions(threads, std::slice::from_ref(&uses), RegionKind::OpenMp);
        let other = |other: &Maker| *other != maker && other.uses(threads, size) == uses;
        let others = MAKERS.iter().flat_map(|m| (0..24).map(m)).filter(other);
        for rival in others {
            let same = found.iter().all(|d| rival.made(threads, d));
            prop_assert!(same, "{:?} as well as {:?} by {} threads: {:?}", rival, maker, threads, found);
        }
        prop_assert!(threads >= 4 || !decided(&found), "{} threads: {:?}", threads, found);
    }

    /// Two loops with any causes: a schedule is advised only if both loops are what the advice assumes.
    #[test]
    fn a_remedy_is_of_loops_that_are_so(threads in 1u32..=16, one in 0usize..MAKERS.len(), two in 0usize..MAKERS.len(), seed in 0u64..4096, size in 2u32..9) {
        let makers = [MAKERS[one](seed), MAKERS[two](mix(seed) % 4096)];
        let loops = makers.map(|m| m.uses(threads, size));
        let found = divisions(threads, &loops, RegionKind::OpenMp);
        let nodes = threads.min(4);
        let Some(conflict) = Conflict::of(&found, &in_order(threads, nodes), &in_order(threads, nodes)) else { return Ok(()); };
        let down = |m: &Maker| m.blocks(threads).is_some_and(|b| b.iter().copied().eq((0..threads).rev()));
        if conflict.remedy == Remedy::StaticInverse {
            prop_assert!(threads >= 4 && makers.iter().any(down), "{:?} by {} threads: {:?}", makers, threads, found);
        }
    }

    /// Chunks of a one-dimensional array do not become columns, whatever another loop does with the array.
    #[test]
    fn chunks_dealt_in_turn_get_no_second_dimension(threads in 1u64..=16, pages in 1u64..9, more in 0u64..600, rounds in 2u64..40, rest in 0u64..100) {
        let (chunk, round) = (512 * pages + more / 2 * (more % 2), 512 * pages * threads);
        let items = rounds * chunk * threads + if rest < 50 { 0 } else { rest * round / 100 };
        // Chunk lengths that by chance make the array a square or a cube are excluded.
        let regular = |rounds: u64| [rounds * rounds / 2, rounds * rounds, 2 * rounds * rounds, rounds * rounds * rounds];
        prop_assume!((rounds..=rounds + 1).all(|r| !regular(r).contains(&items)));
        let loops = [dealt(threads, items, chunk), dealt(threads, items, items.div_ceil(threads))];
        let found = divisions_of(threads as u32, &loops, RegionKind::OpenMp, items * 8);
        let second = |p: Pattern| matches!(p, Pattern::YWise | Pattern::BlockExclusive);
        prop_assert!(!found.iter().any(|d| second(d.pattern)), "{} items, {} a chunk, {} threads: {:?}", items, chunk, threads,
            found.iter().map(|d| (d.pattern, d.repeat)).collect::<Vec<_>>());
        let all = in_order(threads as u32, threads.min(4) as u32);
        let conflict = Conflict::of(&found, &all, &all);
        let square = conflict.is_some_and(|c| matches!(c.remedy, Remedy::BlockExclusive { .. }));
        prop_assert!(!square, "{:?}", found);
    }

    /// Code outside parallel constructs gets no schedule, whatever its threads do.
    #[test]
    fn serial_code_and_threads_of_the_program_get_no_schedule(threads in 1u32..=16, maker in 0usize..MAKERS.len(), seed in 0u64..4096, size in 2u32..9) {
        let maker = MAKERS[maker](seed);
        let uses = maker.uses(threads, size);
        let found = divisions(threads, &[uses.clone(), maker.uses(threads, size)], RegionKind::Serial);
        prop_assert!(found.iter().all(|d| !d.inverse && !d.is_of_loops()), "{:?}", found);
        prop_assert_eq!(found.len(), 2);
        let all = in_order(threads, threads.min(4));
        prop_assert_eq!(Conflict::of(&found, &all, &all), None);
    }
}

/// Two threads have few possible orders: no cause can be excluded, and the text says so.
#[test]
fn two_threads_halves_the_other_way_round_are_explained_in_both_ways() {
    for maker in [Maker::Down, Maker::Shifted(1), Maker::Swapped] {
        let found = divisions(2, &[maker.uses(2, 8)], RegionKind::OpenMp);
        assert_eq!((found[0].pattern, found[0].inverse), (Pattern::Blocks, false));
        let causes = found[0].alternative_causes().expect("two explanations");
        assert!(
            causes.contains("counts down") && causes.contains("4 threads or more"),
            "{causes}"
        );
    }
}

/// Orders that by chance descend, or advance like a Latin square, for most of their blocks.
#[test]
fn an_order_that_resembles_another_is_not_called_by_its_name() {
    let cases = [
        (Maker::Arrival(870), 6, 5),
        (Maker::Arrival(3222), 6, 5),
        (Maker::Dynamic(641), 4, 2),
        (Maker::Dynamic(3313), 9, 2),
    ];
    for (maker, threads, size) in cases {
        let found = divisions(threads, &[maker.uses(threads, size)], RegionKind::OpenMp);
        assert!(
            found.iter().all(|d| maker.made(threads, d)) && !decided(&found),
            "{maker:?}: {found:?}"
        );
    }
}

/// A plain loop, and one whose chunks are distributed in turn, over the same one-dimensional arrays.
#[test]
fn chunks_of_an_array_are_no_columns() {
    for (items, chunk) in [(400_000, 4096), (1 << 20, 4096), (1 << 20, 2048), (1 << 18, 1024)] {
        for threads in 2..=16 {
            let loops = [
                dealt(threads, items, items.div_ceil(threads)),
                dealt(threads, items, chunk),
            ];
            let found = divisions_of(threads as u32, &loops, RegionKind::OpenMp, items * 8);
            // 2¹⁸ doubles are a cube of 64.
            let is_cube = chunk * threads * 64 == items && items == 1 << 18;
            let columns = found.iter().any(|d| d.pattern == Pattern::YWise);
            assert_eq!(columns, is_cube, "{items} by {chunk} to {threads}: {found:?}");
        }
    }
}

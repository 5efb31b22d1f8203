//! Tests the pattern recogniser on programs with known loops: each schedule that it names is one that the loop could
//! have had.

use nodewise_analysis::{Affinity, Conflict, Division, Histogram, Pattern, Remedy, Usage};
use nodewise_machine::{CpuId, NodeId};
use nodewise_profile::{
    Access, InMemory, Object, ObjectId, ObjectKind, PageNumber, Profile, RegionId, Thread, ThreadId,
};
use proptest::prelude::*;

/// What one thread does to a page: thread, loads, stores, lines.
type Use = (u32, u64, u64, u64);
/// One loop: the uses of each page.
type Loop<'a> = &'a dyn Fn(u32) -> Vec<Use>;

const FIRST: u64 = 1 << 20;

/// The usage of one heap object of `pages` pages by these loops, each in a region of its own, numbered from 1.
fn usage(threads: u32, pages: u32, bytes: u64, loops: &[Loop<'_>]) -> Usage {
    let object = Object {
        kind: ObjectKind::Heap,
        first_page: PageNumber(FIRST),
        pages: pages.into(),
        bytes,
        ..Object::default()
    };
    let thread = |t| Thread {
        openmp: Some(t),
        ..Thread::default()
    };
    let profile = Profile {
        objects: vec![Object::default(), object],
        threads: (0..threads).map(thread).collect(),
        ..Profile::default()
    };
    let row = |region: usize, page: u32, (thread, reads, writes, lines): Use| Access {
        object: ObjectId(1),
        region: RegionId(region as u32 + 1),
        thread: ThreadId(thread),
        page: PageNumber(FIRST + u64::from(page)),
        len: 1,
        reads,
        writes,
        lines,
        ..Access::default()
    };
    let mut rows = Vec::new();
    for (region, one) in loops.iter().enumerate() {
        rows.extend((0..pages).flat_map(|p| one(p).into_iter().map(move |u| row(region, p, u))));
    }
    let source = InMemory::new(rows);
    let Ok(histogram) = Histogram::build(&source, threads as usize, 0);
    let Ok(usage) = Usage::of(&source, &profile, &histogram);
    usage
}

fn divisions(threads: u32, pages: u32, loops: &[Loop<'_>]) -> Vec<Division> {
    let usage = usage(threads, pages, u64::from(pages) * 4096, loops);
    usage.divisions(ObjectId(1)).to_vec()
}

/// The divisions of a square matrix of this many rows, with items of eight bytes.
fn square(threads: u32, pages: u32, rows: u32, loops: &[Loop<'_>]) -> Vec<Division> {
    let usage = usage(threads, pages, u64::from(rows).pow(2) * 8, loops);
    usage.divisions(ObjectId(1)).to_vec()
}

fn one(threads: u32, pages: u32, of: Loop<'_>) -> (Pattern, u32, bool) {
    first(&divisions(threads, pages, &[of]))
}

fn first(all: &[Division]) -> (Pattern, u32, bool) {
    assert_eq!(all.len(), 1, "{all:?}");
    (all[0].pattern, all[0].repeat, all[0].inverse)
}

/// A page that one thread sweeps once.
fn own(thread: u32) -> Vec<Use> {
    vec![(thread, 512, 512, 64)]
}

/// Rows distributed over threads, as schedule(static) divides `pages` pages.
fn x_wise(threads: u32, pages: u32) -> impl Fn(u32) -> Vec<Use> {
    move |page| own(page * threads / pages)
}

/// Columns distributed over threads: blocks of `block` pages, repeated in each row.
fn y_wise(threads: u32, block: u32) -> impl Fn(u32) -> Vec<Use> {
    move |page| own(page / block % threads)
}

/// Threads in order, equally many on each node.
fn in_order(threads: u32, nodes: u32) -> Affinity {
    Affinity {
        name: "in order".into(),
        cpus: (0..threads).map(CpuId).collect(),
        nodes: (0..threads).map(|t| NodeId(t * nodes / threads)).collect(),
    }
}

#[test]
fn blocks_keep_their_name_despite_shared_borders_and_neighbours() {
    let stencil = |page: u32| {
        let owner = page / 16;
        let mut uses = own(owner);
        if page.is_multiple_of(16) && owner > 0 {
            uses.push((owner - 1, 512, 0, 64));
        }
        uses
    };
    assert_eq!(one(8, 128, &stencil), (Pattern::XWise, 1, false));
}

#[test]
fn blocks_smaller_than_a_page_still_have_an_order() {
    // Rows of two pages and eight threads, four of them on each page.
    let columns = |page: u32| (0..4).map(|t| (page % 2 * 4 + t, 128, 128, 16)).collect();
    assert_eq!(
        first(&square(8, 64, 32, &[&columns])),
        (Pattern::YWise, 32, false)
    );
    // Four pages for eight threads.
    let rows = |page: u32| (0..2).map(|t| (page * 2 + t, 256, 256, 32)).collect();
    assert_eq!(one(8, 4, &rows), (Pattern::XWise, 1, false));
}

#[test]
fn every_page_divided_by_all_is_z_wise_swept_by_all_uniform_and_picked_random() {
    let all = |reads, writes, lines| move |_: u32| (0..8).map(|t| (t, reads, writes, lines)).collect();
    // One sweep: eight lines of each page for each thread.
    assert_eq!(one(8, 64, &all(64, 0, 8)).0, Pattern::ZWise);
    // Many sweeps that write: no two threads write the same item.
    assert_eq!(one(8, 64, &all(6400, 6400, 800)).0, Pattern::ZWise);
    assert_eq!(one(8, 64, &all(512, 0, 64)).0, Pattern::Uniform);
    assert_eq!(one(8, 64, &all(100, 0, 90)).0, Pattern::Random);
    assert_eq!(one(8, 64, &all(50, 50, 90)).0, Pattern::Random);
}

#[test]
fn chunks_in_turn_are_strided_unless_they_are_columns_of_a_matrix() {
    let turns = y_wise(8, 1);
    assert_eq!(one(8, 1000, &turns).0, Pattern::Strided);
    // A square of doubles whose rows are eight pages long.
    let side = 8 * 4096 / 8;
    let matrix = square(8, side * 8, side, &[&turns]);
    assert_eq!(matrix[0].pattern, Pattern::YWise);
    // Another loop that distributes rows proves nothing: a plain static schedule divides any array in that way.
    let both = divisions(8, 1000, &[&turns, &x_wise(8, 1000)]);
    assert!(both.iter().all(|d| d.pattern != Pattern::YWise), "{both:?}");
    // Chunks may have many pages.
    let chunks = divisions(8, 1000, &[&y_wise(8, 5)]);
    assert_eq!(chunks[0].pattern, Pattern::Strided);
    assert!(
        chunks[0]
            .alternative_causes()
            .is_some_and(|doubt| doubt.contains("columns of a matrix"))
    );
    // An array that is not a whole number of these rows can only be chunks.
    let odd = usage(8, 1000, 1000 * 4096 - 8, &[&y_wise(8, 5)]);
    let odd = &odd.divisions(ObjectId(1))[0];
    assert_eq!((odd.pattern, odd.alternative_causes()), (Pattern::Strided, None));
    // A loop over the inner points of a grid leaves out the first and the last row.
    let inner = |page: u32| match page / 40 {
        0 | 24 => Vec::new(),
        _ => own(page / 5 % 8),
    };
    let both = divisions(8, 1000, &[&inner, &x_wise(8, 1000)]);
    let inner = both.iter().find(|d| d.region == RegionId(1)).unwrap();
    assert_eq!((inner.pattern, inner.repeat), (Pattern::YWise, 23));
    // It also leaves out the first and the last column.
    let inner = |page: u32| match (page / 64, page % 64) {
        (1..=30, column @ 2..=61) => own((column - 2) * 8 / 60),
        _ => Vec::new(),
    };
    let both = divisions(8, 2048, &[&inner, &x_wise(8, 2048)]);
    let among = both.iter().find(|d| d.region == RegionId(1)).unwrap();
    assert_eq!((among.pattern, among.repeat), (Pattern::YWise, 30));
    // Other threads must not use these pages.
    assert_eq!(one(8, 2048, &inner), (Pattern::YWise, 30, false));
    // 4,096 rows of 2,048 doubles: the chunks of three threads cannot be a third of a row.
    let thirds = |page: u32| (0..3).filter(|t| *t == page % 3).flat_map(own).collect();
    let rows = usage(3, 3 * 4096, 4096 * 2048 * 8, &[&thirds]);
    assert_eq!(rows.divisions(ObjectId(1))[0].pattern, Pattern::YWise);
}

#[test]
fn blocks_inside_blocks_are_z_wise() {
    // A cube of doubles.
    let loops: [Loop<'_>; 3] = [&x_wise(8, 1536), &y_wise(8, 24), &y_wise(8, 3)];
    let cube = usage(8, 8 * 8 * 3 * 8, 8 * 8 * 8 * 8, &loops);
    let all = cube.divisions(ObjectId(1));
    let of = |region| all.iter().find(|d| d.region == RegionId(region)).unwrap();
    assert_eq!(
        [1, 2, 3].map(|r| (of(r).pattern, of(r).repeat)),
        [(Pattern::XWise, 1), (Pattern::YWise, 8), (Pattern::ZWise, 64)]
    );
    let conflict = Conflict::of(all, &in_order(8, 2), &in_order(8, 2)).unwrap();
    assert_eq!(conflict.remedy, Remedy::BlockExclusive { dimensions: 0b111 });
}

#[test]
fn owners_in_no_order_are_irregular() {
    let scattered = |page: u32| own(page * page * 31 % 97 % 8);
    assert_eq!(one(8, 256, &scattered).0, Pattern::Irregular);
}

#[test]
fn two_loops_of_one_region_are_told_apart() {
    let (rows, columns) = (x_wise(8, 1024), y_wise(8, 4));
    let both = |page: u32| rows(page).into_iter().chain(columns(page)).collect();
    let all = square(8, 1024, 32, &[&both]);
    let found: Vec<_> = all.iter().map(|d| (d.pattern, d.repeat)).collect();
    assert_eq!(found, [(Pattern::XWise, 1), (Pattern::YWise, 32)]);
    assert!(all.iter().all(|d| (d.share - 0.5).abs() < 0.1), "{all:?}");
    let conflict = Conflict::of(&all, &in_order(8, 2), &in_order(8, 2)).unwrap();
    assert!((conflict.share - 0.5).abs() < 0.1, "{conflict:?}");
}

#[test]
fn loops_that_count_down_conflict_unless_the_binding_hides_it() {
    let rows = x_wise(8, 512);
    let down = |page: u32| rows(511 - page);
    let all = divisions(8, 512, &[&rows, &down]);
    assert!(all.iter().any(|d| d.inverse && d.pattern == Pattern::XWise));
    // Threads t and 7 - t are on the same node.
    let folded = Affinity {
        nodes: [0, 0, 1, 1, 1, 1, 0, 0].map(NodeId).to_vec(),
        ..in_order(8, 2)
    };
    let conflict = Conflict::of(&all, &folded, &in_order(8, 2)).unwrap();
    assert_eq!(conflict.remedy, Remedy::StaticInverse);
    assert_eq!((conflict.share, conflict.share_in_order), (0.0, 1.0));
    assert!(!conflict.shows());
}

#[test]
fn loops_that_agree_do_not_conflict() {
    let (rows, columns) = (x_wise(8, 512), y_wise(8, 4));
    for of in [&rows as Loop<'_>, &columns] {
        let all = divisions(8, 512, &[of, of]);
        assert_eq!(Conflict::of(&all, &in_order(8, 2), &in_order(8, 2)), None);
    }
}

/// Chunks of two lengths are two ways to distribute an array, which no distribution reconciles.
#[test]
fn chunks_of_two_lengths_conflict_and_get_no_square() {
    let all = divisions(8, 960, &[&y_wise(8, 5), &y_wise(8, 2)]);
    assert!(all.iter().all(|d| d.pattern == Pattern::Strided), "{all:?}");
    let conflict = Conflict::of(&all, &in_order(8, 2), &in_order(8, 2)).unwrap();
    assert_eq!(conflict.remedy, Remedy::None);
}

#[test]
fn shared_objects_that_are_hardly_written_have_names_of_their_own() {
    let all = |reads, writes, lines| move |_: u32| (0..8).map(|t| (t, reads, writes, lines)).collect();
    let pattern = |of: Loop<'_>| usage(8, 64, 64 * 4096, &[of]).pattern(ObjectId(1));
    assert_eq!(pattern(&all(512, 0, 64)), Pattern::ReadShared);
    assert_eq!(pattern(&all(100, 0, 90)), Pattern::Gather);
    assert_eq!(pattern(&all(60, 40, 90)), Pattern::Random);
    assert_eq!(pattern(&|_| vec![(3, 9, 9, 9)]), Pattern::OneThread);
}

/// Whether this many rows of blocks in the same order exclude chance at 1 in 20.
fn tells(threads: u32, rows: u32) -> bool {
    (1..=threads)
        .map(f64::from)
        .product::<f64>()
        .powi(rows as i32 - 1)
        >= 20.0
}

/// The owners under a block-exclusive schedule: blocks in rows and columns form a Latin square over the nodes, and
/// within a block the node's threads are side by side along one dimension.
fn exclusive(
    threads: u32,
    nodes: u32,
    (rows, row_pages): (u32, u32),
    along_rows: bool,
) -> impl Fn(u32) -> Vec<Use> {
    move |page| {
        let (x, y) = (page / row_pages, page % row_pages);
        let (bx, by) = (x * nodes / rows, y * nodes / row_pages);
        let within = match along_rows {
            true => (x - bx * rows / nodes) * (threads / nodes) * nodes / rows,
            false => (y - by * row_pages / nodes) * (threads / nodes) * nodes / row_pages,
        };
        own((bx + by) % nodes * (threads / nodes) + within)
    }
}

proptest! {
    #[test]
    fn static_blocks_are_x_wise_up_and_down(threads in 2u32..24, pages in 48u32..600) {
        let rows = x_wise(threads, pages);
        prop_assert_eq!(one(threads, pages, &rows), (Pattern::XWise, 1, false));
        let down = |page: u32| rows(pages - 1 - page);
        // Too many orders of two or three threads look like it.
        let claimed = if threads < 4 { (Pattern::Blocks, 1, false) } else { (Pattern::XWise, 1, true) };
        prop_assert_eq!(one(threads, pages, &down), claimed);
    }

    #[test]
    fn blocks_that_begin_again_are_counted(threads in 2u32..12, block in 3u32..9, repeat in 2u32..20) {
        let columns = y_wise(threads, block);
        let found = first(&square(threads, threads * block * repeat, repeat, &[&columns]));
        let claimed = if tells(threads, repeat) { (Pattern::YWise, repeat) } else { (Pattern::Irregular, 1) };
        prop_assert_eq!((found.0, found.1), claimed);
    }

    #[test]
    fn rows_and_columns_share_all_but_one_nth_of_the_pages(nodes in 2u32..5, each in 1u32..5, block in 3u32..5) {
        let threads = nodes * each;
        let pages = threads * block * threads;
        let all = square(threads, pages, threads, &[&x_wise(threads, pages), &y_wise(threads, block)]);
        let conflict = Conflict::of(&all, &in_order(threads, nodes), &in_order(threads, nodes)).unwrap();
        prop_assert!((conflict.share - (1.0 - 1.0 / f64::from(nodes))).abs() < 1e-9, "{:?}", conflict);
        let remedy = if tells(threads, threads) { Remedy::BlockExclusive { dimensions: 0b11 } } else { Remedy::None };
        prop_assert_eq!(conflict.remedy, remedy);
    }

    #[test]
    fn matched_loops_do_not_conflict(nodes in 2u32..5, each in 2u32..4, block in 3u32..5) {
        let threads = nodes * each;
        let shape = (threads * 4, threads * block);
        let loops = [true, false].map(|along| exclusive(threads, nodes, shape, along));
        let all = divisions(threads, shape.0 * shape.1, &[&loops[0], &loops[1]]);
        prop_assert!(all.iter().all(|d| d.pattern == Pattern::BlockExclusive), "{:?}",
            all.iter().map(|d| (d.pattern, d.repeat, d.explained)).collect::<Vec<_>>());
        prop_assert_eq!(Conflict::of(&all, &in_order(threads, nodes), &in_order(threads, nodes)), None);
    }

    #[test]
    fn shares_are_shares(owners in proptest::collection::vec((0u32..8, 1u64..500, 0u64..500), 8..80)) {
        let of = |page: u32| { let (t, r, w) = owners[page as usize]; vec![(t, r, w, 64), (0, 1, 0, 1)] };
        let all = divisions(8, owners.len() as u32, &[&of]);
        prop_assert!(all.iter().all(|d| (0.0..=1.0).contains(&d.explained) && (0.0..=1.0).contains(&d.share)));
    }
}

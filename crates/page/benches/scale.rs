//! Cost of a view of many pages: `cargo bench -p nodewise-page --bench scale -- [PAGES [THREADS]]`. Each page is used
//! by four threads. Prints the time to build the view, its memory, and the time to make a tile.

#[path = "../tests/sample/mod.rs"]
mod sample;

use nodewise_profile::*;
use sample::{Sample, machine};
use std::time::Instant;

/// Number of consecutive pages that the same four threads use.
const BLOCK: u64 = 64;

fn main() {
    let given = std::env::args().skip(1).filter(|a| a != "--bench"); // which cargo bench adds
    let mut arguments = given.map(|a| a.parse().expect("a number"));
    let pages: u64 = arguments.next().unwrap_or(1_000_000);
    let threads: u64 = arguments.next().unwrap_or(64);
    let row = |block: u64, user: u64| Access {
        object: ObjectId((block * BLOCK / pages.div_ceil(8)) as u32),
        page: PageNumber(block * BLOCK),
        len: BLOCK.min(pages - block * BLOCK) as u32,
        thread: ThreadId(((block * 5 + user * 17) % threads) as u32),
        reads: 100 + block % 77 + 10 * user,
        writes: user,
        lines: 64,
        ..Access::default()
    };
    let rows = (0..pages.div_ceil(BLOCK)).flat_map(|b| (0..4).map(move |u| row(b, u)));
    let sample = Sample::new(machine(8), rows.collect());
    let start = Instant::now();
    let made = sample.made("all");
    let (view, whole) = (made.view, start.elapsed());
    println!(
        "pages {pages}, threads {threads}, policies {}",
        made.mappings.len()
    );
    println!(
        "analysed and seen in {:.2} s, the view {:.2} s of it",
        whole.as_secs_f64(),
        made.seconds
    );
    let histogram = pages * (8 + 4 + 8)
        + made.histogram.entries.len() as u64 * size_of_val(&made.histogram.entries[0]) as u64;
    println!("histogram {histogram} bytes, beside it {} bytes", view.bytes());
    for level in 0..=view.coarsest() {
        let tiles = view.tiles(level);
        let of = |kind: &str| {
            let shown = 20.min(tiles);
            let start = Instant::now();
            for i in 0..shown {
                let tile = i * tiles / shown;
                view.document(&format!("{kind}/{level}/{tile}"))
                    .expect("it is there");
            }
            start.elapsed().as_secs_f64() * 1000.0 / shown as f64
        };
        println!(
            "level {level}: {tiles} tiles, {:.2} ms a tile, {:.2} ms a detail",
            of("tile"),
            of("detail")
        );
    }
}

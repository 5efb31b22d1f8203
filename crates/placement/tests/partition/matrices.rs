//! Communication matrices: patterns of real programs, and some that are hard to partition.

use nodewise_placement::SharingGraph;
use nodewise_placement::formulas::mix;

/// A pattern's name and its graph.
pub type Matrix = (&'static str, SharingGraph);

/// Every pattern for this many threads; drawn ones by `seed`.
pub fn all(threads: u32, seed: u64) -> Vec<Matrix> {
    let blocks = pairs(
        threads,
        |a, b| f64::from(u8::from(a / 8 == b / 8)) * 10.0 + 0.01,
        1 << 11,
    );
    let stencil = stencil(threads);
    let of = |pairs: &[(u32, u32, f64)]| SharingGraph::of_pairs(threads as usize, pairs.iter().copied());
    vec![
        ("block-diagonal", of(&blocks)),
        ("block-diagonal, shuffled", of(&shuffled(&blocks, threads, seed))),
        ("2-D stencil", of(&stencil)),
        ("2-D stencil, shuffled", of(&shuffled(&stencil, threads, seed))),
        ("random", of(&random(threads, seed))),
        ("power law", of(&power_law(threads, seed))),
        ("all to all", of(&pairs(threads, |_, _| 1.0, 1 << 11))),
        (
            "all to all, drawn",
            of(&pairs(threads, |a, b| drawn(seed, a, b), 1 << 11)),
        ),
    ]
}

fn drawn(seed: u64, a: u32, b: u32) -> f64 {
    (mix(seed ^ (u64::from(a) << 32) ^ u64::from(b)) >> 40) as f64
}

/// All pairs of up to `most` threads; of more, those up to 64 apart.
fn pairs(threads: u32, weight: impl Fn(u32, u32) -> f64, most: u32) -> Vec<(u32, u32, f64)> {
    let reach = if threads <= most { threads } else { 64 };
    (0..threads)
        .flat_map(|a| (a + 1..threads.min(a + reach)).map(move |b| (a, b)))
        .map(|(a, b)| (a, b, weight(a, b)))
        .collect()
}

/// Four neighbours on a grid as square as the number allows.
fn stencil(threads: u32) -> Vec<(u32, u32, f64)> {
    let width = (1..=threads)
        .filter(|w| threads.is_multiple_of(*w) && w * w <= threads)
        .max()
        .unwrap_or(1);
    let right = (0..threads)
        .filter(|t| (t + 1) % width != 0)
        .map(|t| (t, t + 1, 1.0));
    right
        .chain((0..threads - width).map(|t| (t, t + width, 1.0)))
        .collect()
}

/// Eight random partners for each thread.
fn random(threads: u32, seed: u64) -> Vec<(u32, u32, f64)> {
    let partner = |a: u32, i: u32| {
        (
            drawn(seed, a, i + threads) as u32 % threads,
            1.0 + drawn(seed, i, a) % 9.0,
        )
    };
    let of = |a: u32| {
        (0..8)
            .map(move |i| (a, partner(a, i)))
            .map(|(a, (b, w))| (a, b, w))
    };
    (0..threads).flat_map(of).collect()
}

/// Each newcomer joins four, rather those who have many (Barabási and Albert).
fn power_law(threads: u32, seed: u64) -> Vec<(u32, u32, f64)> {
    let mut ends: Vec<u32> = vec![0];
    let mut pairs = Vec::new();
    for a in 1..threads {
        for i in 0..4 {
            let b = ends[drawn(seed, a, i) as usize % ends.len()];
            pairs.push((a, b, 1.0));
            ends.push(b);
        }
        ends.extend([a; 4]);
    }
    pairs
}

fn shuffled(pairs: &[(u32, u32, f64)], threads: u32, seed: u64) -> Vec<(u32, u32, f64)> {
    let mut order: Vec<u32> = (0..threads).collect();
    order.sort_by_key(|t| mix(u64::from(*t) ^ (seed << 32)));
    let to = |t: u32| order[t as usize];
    pairs.iter().map(|&(a, b, w)| (to(a), to(b), w)).collect()
}

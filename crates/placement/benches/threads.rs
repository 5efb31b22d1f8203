//! Sharing-aware mapping at scale: `cargo bench -p nodewise-placement --bench threads -- [THREADS [NODES]]`.
//!
//! Prints a line for each matrix of `threads` threads on `nodes` nodes: name, milliseconds of CPU time (best of five),
//! the share of communication kept inside nodes, and what greedy pairing, bisection and blocks keep.

#[path = "../tests/partition/matrices.rs"]
mod matrices;
#[path = "../tests/partition/reference.rs"]
mod reference;

use nodewise_placement::{Parts, partition};

fn main() {
    let given = std::env::args().skip(1).filter(|a| a != "--bench"); // without the argument that cargo bench adds
    let mut arguments = given.map(|a| a.parse().expect("a number"));
    let threads: u32 = arguments.next().unwrap_or(1024);
    let nodes: u32 = arguments.next().unwrap_or(8);
    let parts = Parts::equal(vec![threads / nodes; nodes as usize]);
    for (name, graph) in matrices::all(threads, 1) {
        let mut times = Vec::new();
        let mut places = Vec::new();
        for _ in 0..if threads > 4096 { 1 } else { 5 } {
            let start = cpu_ms();
            places = partition(&graph, &parts);
            times.push(cpu_ms() - start);
        }
        let best = times.into_iter().fold(f64::INFINITY, f64::min);
        let kept = |places: &[u32]| 100.0 * graph.kept_inside(places);
        println!(
            "{name}\t{best:.1}\t{:.3}\t{:.3}\t{:.3}\t{:.3}",
            kept(&places),
            kept(&reference::greedy_pairing(&graph, &parts.sizes)),
            kept(&reference::recursive_bisection(&graph, &parts.sizes)),
            kept(&parts.blocks()),
        );
    }
}

/// CPU time of this thread, which other programs on the machine do not affect.
fn cpu_ms() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let ns: f64 = text
        .split(' ')
        .next()
        .and_then(|n| n.parse().ok())
        .expect("a number");
    ns * 1e-6
}

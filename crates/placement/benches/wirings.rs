//! Which five nodes of AsymSched's machine A (Lepers et al., Table 2) would have most bandwidth under other routes.
//!
//! `cargo bench -p nodewise-placement --bench wirings -- MACHINE 2,3,4,5,6 …` reads one wiring per line: `from-to:via`
//! for each pair of nodes that is two hops apart. For each wiring it prints the bandwidth (P_wbw of one cluster of
//! weight 1, MB/s) of the best set of that size, and of each set given as an argument.
//! set of as many nodes, and that of each set that is named.

#![forbid(unsafe_code)]

use nodewise_machine::{Channels, Machine, NodeId};
use nodewise_placement::asym::Bandwidth;
use rayon::prelude::*;
use std::fmt::Write as _;
use std::io::Read as _;

type Fault = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Fault> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let [file, named @ ..] = arguments.as_slice() else {
        return Ok(()); // when run by `cargo test --benches`
    };
    let text = std::fs::read_to_string(file)?;
    let named = named.iter().map(|s| nodes(s)).collect::<Result<Vec<_>, _>>()?;
    let size = named.first().map_or(0, Vec::len);
    let mut wirings = String::new();
    std::io::stdin().read_to_string(&mut wirings)?;
    let lines: Vec<&str> = wirings.lines().collect();
    let found: Vec<String> = lines
        .par_iter()
        .map(|line| ranked(&rewired(&text, line)?, size, &named))
        .collect::<Result<_, Fault>>()?;
    found.iter().for_each(|line| println!("{line}"));
    Ok(())
}

fn nodes(text: &str) -> Result<Vec<NodeId>, std::num::ParseIntError> {
    text.split(',').map(|n| n.parse().map(NodeId)).collect()
}

/// The machine file with the routes of a wiring.
fn rewired(text: &str, wiring: &str) -> Result<Machine, Fault> {
    let mut routes = String::from("routes = [\n");
    for each in wiring.split_whitespace() {
        let (pair, via) = each.split_once(':').ok_or("from-to:via")?;
        let (from, to) = pair.split_once('-').ok_or("from-to:via")?;
        writeln!(routes, "    {{ from = {from}, to = {to}, via = [{via}] }},")?;
    }
    let begin = text.find("routes = [").ok_or("a machine with routes")?;
    let end = begin + text[begin..].find("\n]").ok_or("a list of routes")?;
    let all = format!("{}{routes}{}", &text[..begin], &text[end + 1..]);
    Ok(Machine::parse(&all, "wiring")?)
}

fn ranked(machine: &Machine, size: usize, named: &[Vec<NodeId>]) -> Result<String, Fault> {
    let channels = Channels::of(machine);
    let mut bandwidth = Bandwidth::new(&channels);
    let mut of = |nodes: &[NodeId]| bandwidth.of(std::iter::once(nodes))[0];
    let mut best = 0.0f64;
    for set in 0u32..1 << machine.node_count() {
        if set.count_ones() as usize == size {
            let nodes: Vec<NodeId> = machine.node_ids().filter(|n| set >> n.0 & 1 == 1).collect();
            best = best.max(of(&nodes));
        }
    }
    let mut line = format!("{best:.3}");
    for nodes in named {
        write!(line, ",{:.3}", of(nodes))?;
    }
    Ok(line)
}

//! Reads a profile: `cargo run --release -p nodewise-store --example objects [FOLDER]` prints the accesses to each object,
//! most first; without FOLDER of the latest profile here.

use nodewise_profile::AccessSource;
use nodewise_store::{Reader, latest};
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args_os().nth(1).unwrap_or(".".into());
    let reader = Reader::open(&latest(Path::new(&folder))?)?;
    let profile = reader.profile();
    let mut accesses = vec![0; profile.objects.len()];
    // Rows are streamed: a profile need not fit in memory.
    reader.visit(&mut |rows| {
        for row in rows {
            accesses[row.object.index()] += row.accesses_per_page() * u64::from(row.len);
        }
    })?;
    let mut named: Vec<_> = profile.objects.iter().zip(accesses).collect();
    named.sort_by_key(|(_, accesses)| std::cmp::Reverse(*accesses));
    println!("{}", profile.program());
    for (object, accesses) in named {
        println!("{accesses:>16}  {} ({})", object.name, object.kind.name());
    }
    Ok(())
}

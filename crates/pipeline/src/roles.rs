//! Compares a profile with other recordings of the same command: which thread took which part of the work.

use anyhow::ensure;
use nodewise_analysis::{Histogram, taken};
use nodewise_profile::{TakenPart, Thread};
use nodewise_store::Reader;
use std::path::{Path, PathBuf};

/// The parts of a recorded run that threads took in other runs.
///
/// # Errors
/// If a profile cannot be read, is of another program or of another number of threads, or consists of samples.
pub fn compared(reader: &Reader, others: &[PathBuf]) -> anyhow::Result<Vec<TakenPart>> {
    let histogram = base_pages(reader)?;
    let mut rows = Vec::new();
    for (run, folder) in others.iter().enumerate() {
        let other = Reader::open(&nodewise_store::latest(folder)?)?;
        comparable(reader, &other)?;
        let pages = base_pages(&other)?;
        let run = u32::try_from(run).unwrap_or(u32::MAX);
        rows.extend(taken(
            run,
            (reader.profile(), &histogram),
            (other.profile(), &pages),
        ));
    }
    Ok(rows)
}

fn base_pages(reader: &Reader) -> anyhow::Result<Histogram> {
    Ok(Histogram::build(reader, reader.profile().threads.len(), 0)?)
}

fn comparable(reader: &Reader, other: &Reader) -> anyhow::Result<()> {
    let (one, two) = (reader.profile(), other.profile());
    let named = |folder: &Path| folder.display().to_string();
    let (first, second) = (named(reader.folder()), named(other.folder()));
    for (profile, name) in [(one, &first), (two, &second)] {
        ensure!(
            !profile.meta.observer.is_sampled(),
            "{name}: samples do not tell who takes which part; record without --via faults"
        );
    }
    ensure!(
        one.program() == two.program(),
        "{second}: it is of `{}`, {first} of `{}`; two recordings of one command are compared",
        two.program(),
        one.program()
    );
    let threads = |p: &nodewise_profile::Profile| Thread::count(&p.threads);
    ensure!(
        threads(one) == threads(two),
        "{second}: it has {} threads, {first} has {}; record both with the same number",
        threads(two),
        threads(one)
    );
    Ok(())
}

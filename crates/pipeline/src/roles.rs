//! Compares a profile with other recordings of the same command: which thread took which part of the work.

use anyhow::ensure;
use nodewise_analysis::{Histogram, taken};
use nodewise_profile::{Profile, Region, RegionKind, TakenPart, Thread};
use nodewise_store::Reader;
use std::path::{Path, PathBuf};

/// The parts of a recorded run that threads took in other runs.
///
/// # Errors
/// If a profile cannot be read, is of another program, was recorded with another number of threads, or consists of
/// samples.
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
    let threads = |p: &Profile| Thread::count(&p.threads);
    ensure!(
        threads(one) == threads(two) || chooses_threads_itself(one, two),
        "{second}: it has {} threads, {first} has {}; record both with the same number",
        threads(two),
        threads(one)
    );
    Ok(())
}

/// Whether it is the program that starts more or fewer threads in one of two runs, as pools do that add a worker when
/// there is work for it: the command lines are equal, and there is no OpenMP, whose teams the environment sizes.
fn chooses_threads_itself(one: &Profile, two: &Profile) -> bool {
    let of_openmp = |p: &Profile| {
        let is_construct = |region: &Region| region.kind == RegionKind::OpenMp;
        p.threads.iter().any(|t| t.openmp.is_some()) || p.regions.iter().any(is_construct)
    };
    one.meta.command == two.meta.command && !of_openmp(one) && !of_openmp(two)
}

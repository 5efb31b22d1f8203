//! Folds a profile onto fewer CPUs than it has threads: neighbouring threads are merged into one.

use crate::selection::{Files, Selected};
use anyhow::bail;
use nodewise_analysis::{Affinity, Entry, Histogram, thread_numbers};
use nodewise_placement::thread_policy;
use nodewise_profile::{Profile, Thread, ThreadId};

/// A profile with fewer threads, each of which stands for about the same number of neighbouring recorded threads.
pub struct Folded {
    pub profile: Profile,
    pub histogram: Histogram,
    /// Index of the folded thread of each recorded thread.
    pub groups: Vec<u32>,
}

/// Folds a profile onto `cpus` threads.
pub fn fewer(selected: &Selected, cpus: u32) -> anyhow::Result<Folded> {
    let numbers = thread_numbers(selected.profile());
    let threads = numbers.iter().max().map_or(0, |n| n + 1);
    if cpus == 0 || cpus > threads {
        bail!("--cpus {cpus}: the profile has {threads} threads; record it with more to predict more");
    }
    let group = |n: &u32| (u64::from(*n) * u64::from(cpus) / u64::from(threads)) as u32;
    let groups: Vec<u32> = numbers.iter().map(group).collect();
    let one = |n| Thread {
        openmp: Some(n),
        ..Thread::default()
    };
    Ok(Folded {
        profile: Profile {
            threads: (0..cpus).map(one).collect(),
            ..Profile::default()
        },
        histogram: regrouped(&selected.histogram, &groups, cpus as usize),
        groups,
    })
}

/// The affinity that `policy` gives the recorded threads if it places the folded ones.
pub fn folded(selected: &Selected, policy: &str, cpus: u32) -> anyhow::Result<Affinity> {
    let Folded {
        profile,
        histogram,
        groups,
    } = fewer(selected, cpus)?;
    let few = thread_policy(policy, &profile, &histogram, &selected.machine, &Files)?;
    Ok(Affinity {
        name: few.name,
        cpus: groups.iter().map(|&g| few.cpus[g as usize]).collect(),
        nodes: groups.iter().map(|&g| few.nodes[g as usize]).collect(),
    })
}

/// The histogram with groups of threads in place of threads.
fn regrouped(histogram: &Histogram, groups: &[u32], count: usize) -> Histogram {
    let mut out = Histogram::empty(count, histogram.shift);
    for page in histogram.iter() {
        let mut sums = vec![Entry::default(); count];
        for entry in page.entries {
            let group = groups[entry.thread.index()];
            let sum = &mut sums[group as usize];
            sum.thread = ThreadId(group);
            sum.reads += entry.reads;
            sum.writes += entry.writes;
            sum.lines = sum.lines.saturating_add(entry.lines);
        }
        out.pages.push(page.page);
        out.objects.push(page.object);
        out.entries.extend(sums.into_iter().filter(|s| s.accesses() > 0));
        out.offsets.push(out.entries.len() as u64);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_profile::{ObjectId, PageNumber};

    #[test]
    fn grouping_threads_keeps_every_access() {
        let entry = |t, reads| Entry {
            reads,
            writes: 1,
            lines: 2,
            thread: ThreadId(t),
        };
        let mut histogram = Histogram::empty(4, 0);
        histogram.pages = vec![PageNumber(7)];
        histogram.objects = vec![ObjectId(1)];
        histogram.entries = vec![entry(0, 10), entry(1, 20), entry(3, 40)];
        histogram.offsets = vec![0, 3];
        let two = regrouped(&histogram, &[0, 0, 1, 1], 2);
        let cells: Vec<_> = two
            .page(0)
            .entries
            .iter()
            .map(|e| (e.thread.0, e.reads, e.writes, e.lines))
            .collect();
        assert_eq!(cells, [(0, 30, 2, 4), (1, 40, 1, 2)]);
    }
}

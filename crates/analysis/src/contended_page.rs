//! Pages whose accesses go to a few cache lines: flags that threads spin on, locks, counters.
//!
//! Spinning in a program's own barrier counts as work. Its accesses hit the cache until another thread writes, so they
//! say little about the best node of the page, but they contribute to every share of accesses.

use crate::Histogram;
use nodewise_profile::ObjectId;

/// Smallest share of all accesses of a page that is reported.
const MIN_PAGE_SHARE: f64 = 0.05;
/// Smallest number of accesses per line of a contended page. A loop over an array makes tens, a thread that waits makes
/// thousands.
const MIN_ACCESSES_PER_LINE: u64 = 1000;

/// A page on which the accesses of several threads fall into a few cache lines.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ContendedPage {
    /// Position in the histogram.
    pub page: usize,
    /// The object that the page belongs to.
    pub object: ObjectId,
    /// Its share of all accesses.
    pub share: f64,
    /// Number of accesses for each cache line that was fetched.
    pub accesses_a_line: u64,
}

/// The pages that several threads use, that have a large share of all accesses, and whose accesses go to a few lines.
#[must_use]
pub fn contended_pages(histogram: &Histogram) -> Vec<ContendedPage> {
    let all: u64 = histogram.entries.iter().map(|e| e.accesses()).sum();
    let contended_page = |page: crate::PageView<'_>| {
        let (accesses, lines) = (
            page.accesses(),
            page.entries.iter().map(|e| u64::from(e.lines)).sum::<u64>(),
        );
        let share = accesses as f64 / all.max(1) as f64;
        let accesses_per_line = accesses / lines.max(1);
        let is_contended =
            page.entries.len() > 1 && share >= MIN_PAGE_SHARE && accesses_per_line >= MIN_ACCESSES_PER_LINE;
        is_contended.then_some(ContendedPage {
            page: page.index,
            object: page.object,
            share,
            accesses_a_line: accesses_per_line,
        })
    };
    histogram.iter().filter_map(contended_page).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Entry;
    use crate::fixtures::histogram;

    #[test]
    fn waiting_is_a_page_of_many_accesses_to_few_lines_by_several_threads() {
        let with = |pages: &[Vec<u64>], lines: u32| {
            let mut histogram = histogram(pages);
            histogram
                .entries
                .iter_mut()
                .for_each(|e: &mut Entry| e.lines = lines);
            contended_pages(&histogram)
                .iter()
                .map(|s| s.page)
                .collect::<Vec<_>>()
        };
        let pages = [vec![90_000, 4_000_000], vec![1_000_000, 0], vec![500, 500]];
        assert_eq!(with(&pages, 4), [0]);
        // The same number of accesses, but as many lines as a sweep has.
        assert_eq!(with(&pages, 100_000), []);
        // A page with a small share of all accesses is not reported.
        assert_eq!(with(&[vec![20_000, 20_000], vec![2_000_000, 0]], 4), []);
    }
}

//! Objects whose accesses go to a few cache lines: spinning that counts as work, or variables that all threads use.

use nodewise_analysis::{ContendedPage, Histogram};
use nodewise_profile::ObjectId;
use std::collections::BTreeMap;

/// If a smaller share of an object's accesses is to contended pages, the advice is about the rest of the object.
const MIN_CONTENDED_SHARE: f64 = 0.5;

/// The contended pages of an object: those whose accesses go to a few lines.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FewLines {
    /// Number of such pages.
    pub pages: usize,
    /// Their share of all accesses of the program.
    pub share: f64,
    /// Whether most accesses to the object are to these pages, so that its users say nothing about its best placement.
    pub is_most: bool,
}

/// The contended pages of each object that has some.
pub(crate) fn few_lines(
    histogram: &Histogram,
    contended_pages: &[ContendedPage],
) -> BTreeMap<ObjectId, FewLines> {
    if contended_pages.is_empty() {
        return BTreeMap::new();
    }
    let all: u64 = histogram.entries.iter().map(|e| e.accesses()).sum();
    let mut accesses: BTreeMap<ObjectId, u64> = contended_pages.iter().map(|s| (s.object, 0)).collect();
    for page in histogram.iter() {
        if let Some(sum) = accesses.get_mut(&page.object) {
            *sum += page.accesses();
        }
    }
    let one = |(object, accesses): (ObjectId, u64)| {
        let own = || contended_pages.iter().filter(|s| s.object == object);
        let share: f64 = own().map(|s| s.share).sum();
        let few = FewLines {
            pages: own().count(),
            share,
            is_most: share * all as f64 >= MIN_CONTENDED_SHARE * accesses as f64,
        };
        (share != 0.0).then_some((object, few))
    };
    accesses.into_iter().filter_map(one).collect()
}

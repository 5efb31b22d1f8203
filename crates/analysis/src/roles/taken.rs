//! The parts that threads took in another run of the same command.

use crate::{Histogram, PageView, contended_pages, thread_numbers};
use nodewise_profile::{Object, ObjectKind, PageNumber, Profile, TakenPart};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Identifies an object across runs. It does not include the allocating thread, which may differ.
type Key<'a> = (u16, ObjectKind, String, &'a str, u32, u64);

/// The first page of each object that can be identified in another run: no other object has the same key.
fn keys(profile: &Profile) -> HashMap<Key<'_>, PageNumber> {
    let sites: Vec<String> = profile.sites.iter().map(ToString::to_string).collect();
    let mut found: HashMap<Key<'_>, Option<PageNumber>> = HashMap::new();
    for object in profile.objects.iter().filter(|o| o.kind.is_mappable()) {
        found
            .entry(key(object, &sites))
            .and_modify(|first| *first = None)
            .or_insert(Some(object.first_page));
    }
    found
        .into_iter()
        .filter_map(|(key, first)| Some((key, first?)))
        .collect()
}

/// Whether each object can be identified in another run.
pub(super) fn identified(profile: &Profile) -> Vec<bool> {
    let keys = keys(profile);
    let sites: Vec<String> = profile.sites.iter().map(ToString::to_string).collect();
    let is_known = |object: &Object| object.kind.is_mappable() && keys.contains_key(&key(object, &sites));
    profile.objects.iter().map(is_known).collect()
}

fn key<'a>(object: &'a Object, sites: &[String]) -> Key<'a> {
    let site = sites.get(object.site.index()).cloned().unwrap_or_default();
    (
        object.first_page.process(),
        object.kind,
        site,
        &object.name,
        object.sequence,
        object.pages,
    )
}

/// The parts that threads took in another run of the same command; `run` is that run's number in the rows. Histograms
/// are of base pages. Objects of another size, and those that several threads allocate at one site, are left out,
/// because they cannot be identified in the other run.
#[must_use]
pub fn taken(
    run: u32,
    (profile, histogram): (&Profile, &Histogram),
    (other, others): (&Profile, &Histogram),
) -> Vec<TakenPart> {
    let keys = keys(profile);
    let sites: Vec<String> = other.sites.iter().map(ToString::to_string).collect();
    let first_pages: Vec<Option<PageNumber>> = other
        .objects
        .iter()
        .map(|o| keys.get(&key(o, &sites)).copied())
        .collect();
    let (parts, numbers) = (thread_numbers(profile), thread_numbers(other));
    let (waits_here, waits_there) = (contended(histogram), contended(others));
    let mut sums: BTreeMap<(Option<u32>, u32), u64> = BTreeMap::new();
    for page in others.iter() {
        let object = &other.objects[page.object.index()];
        let Some(first) = first_pages[page.object.index()] else {
            continue;
        };
        let here = PageNumber(first.0 + page.page.0.saturating_sub(object.first_page.0));
        let part = histogram.pages.binary_search(&here).ok();
        if waits_there.contains(&page.index) || part.is_some_and(|at| waits_here.contains(&at)) {
            continue;
        }
        let part = part.and_then(|at| majority_thread(&histogram.page(at)));
        for entry in page.entries {
            let by = numbers[entry.thread.index()];
            *sums.entry((part.map(|thread| parts[thread]), by)).or_default() += entry.accesses();
        }
    }
    let rows = sums.into_iter().filter(|(_, accesses)| *accesses > 0);
    rows.map(|((part, by), accesses)| TakenPart {
        run,
        part,
        by,
        accesses,
    })
    .collect()
}

/// The pages of which several threads access a few lines only, by index: they say nothing of parts.
pub(super) fn contended(histogram: &Histogram) -> BTreeSet<usize> {
    contended_pages(histogram)
        .iter()
        .map(|contended| contended.page)
        .collect()
}

/// The thread that makes more than half of a page's accesses, if there is one.
pub(super) fn majority_thread(page: &PageView<'_>) -> Option<usize> {
    let most = page.entries.iter().max_by_key(|e| e.accesses())?;
    (2 * most.accesses() > page.accesses()).then_some(most.thread.index())
}

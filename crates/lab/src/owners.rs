//! Attributes pages to the objects of the guest's processes.

use crate::GuestObject;
use std::collections::{BTreeMap, HashMap};

/// Maps ranges of virtual pages to values; later ranges replace earlier ones.
#[derive(Clone, Debug)]
struct RangeMap<T> {
    /// Disjoint ranges by first page: the end, and the value.
    ranges: BTreeMap<u64, (u64, T)>,
}

impl<T> Default for RangeMap<T> {
    fn default() -> Self {
        let ranges = BTreeMap::new();
        Self { ranges }
    }
}

impl<T: Copy> RangeMap<T> {
    fn put(&mut self, first: u64, end: u64, what: T) {
        let touched = |(_, (other_end, _)): &(&u64, &(u64, T))| *other_end > first;
        let old: Vec<(u64, (u64, T))> = self
            .ranges
            .range(..end)
            .rev()
            .take_while(touched)
            .map(|(a, b)| (*a, *b))
            .collect();
        for (start, (stop, which)) in old {
            self.ranges.remove(&start);
            if start < first {
                self.ranges.insert(start, (first, which));
            }
            if stop > end {
                self.ranges.insert(end, (stop, which));
            }
        }
        if first < end {
            self.ranges.insert(first, (end, what));
        }
    }

    /// The value of a page, and the first page of its range.
    fn at(&self, page: u64) -> Option<(u64, T)> {
        let (first, (end, what)) = self.ranges.range(..=page).next_back()?;
        (page < *end).then_some((*first, *what))
    }
}

/// The owner of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// It belongs to no object.
    NoObject,
    /// The object of this index.
    Object(usize),
    /// Several processes have an object at this address, and frames do not tell which one it is; the index is that of
    /// the object reported last.
    OneOfSeveral(usize),
}

/// What is known about one process.
#[derive(Debug, Default)]
struct GuestProcess {
    objects: RangeMap<usize>,
    /// The kernel's number of the first frame of each run of pages with consecutive frames.
    frames: RangeMap<u64>,
}

impl GuestProcess {
    fn has(&self, page: u64, frame: u64) -> bool {
        let at = self.frames.at(page);
        at.is_some_and(|(first, first_frame)| first_frame.checked_add(page - first) == Some(frame))
    }
}

/// The objects that the guest's processes reported (`runtime/preload/seen.c`).
#[derive(Debug, Default)]
pub(crate) struct Owners {
    by_process: BTreeMap<u32, GuestProcess>,
}

impl Owners {
    /// Reads lines of the forms `<pid> <rule or -> <first page hex> <pages> <thread>` and `<pid> = <first page hex>
    /// <frame hex> <pages>`. Other lines are skipped: the last line of a killed program may be truncated. Several
    /// objects of a process at the same first page count as one, with the largest size.
    pub fn read(text: &str) -> (Vec<GuestObject>, Self) {
        let mut owners = Self::default();
        let mut known: HashMap<(u32, u64), usize> = HashMap::new();
        let mut all: Vec<GuestObject> = Vec::new();
        for line in text.lines() {
            if let Some((process, page, frame, pages)) = frames(line) {
                let guest_process = owners.by_process.entry(process).or_default();
                guest_process.frames.put(page, page.saturating_add(pages), frame);
            } else if let Some(found) = object(line) {
                let index = *known.entry((found.process, found.page)).or_insert(all.len());
                match all.get_mut(index) {
                    Some(before) => before.pages = before.pages.max(found.pages),
                    None => all.push(found),
                }
            }
        }
        for (index, found) in all.iter().enumerate() {
            let guest_process = owners.by_process.entry(found.process).or_default();
            guest_process
                .objects
                .put(found.page, found.page.saturating_add(found.pages), index);
        }
        (all, owners)
    }

    /// The owner of a page on a frame (the kernel's number). The frame is used only if several processes have an object
    /// at this address.
    pub fn of(&self, page: u64, frame: Option<u64>) -> Owner {
        if let Some(only) = self.only() {
            return only
                .objects
                .at(page)
                .map_or(Owner::NoObject, |(_, object)| Owner::Object(object));
        }
        let there: Vec<(&GuestProcess, usize)> = self
            .by_process
            .values()
            .filter_map(|p| Some((p, p.objects.at(page)?.1)))
            .collect();
        let has = |p: &GuestProcess| frame.is_some_and(|f| p.has(page, f));
        let last = there.iter().map(|(_, object)| *object).max();
        let mut with_frame = there.iter().filter(|(p, _)| has(p));
        match (&there[..], with_frame.next(), with_frame.next()) {
            ([], ..) => Owner::NoObject,
            ([(_, only)], ..) => Owner::Object(*only),
            (_, Some((_, object)), None) => Owner::Object(*object),
            _ => last.map_or(Owner::NoObject, Owner::OneOfSeveral),
        }
    }

    /// The process, if only one has reported objects or frames, as with most commands.
    fn only(&self) -> Option<&GuestProcess> {
        let mut all = self.by_process.values();
        all.next().filter(|_| all.next().is_none())
    }
}

fn object(line: &str) -> Option<GuestObject> {
    let mut words = line.split_ascii_whitespace();
    let (process, rule) = (words.next()?.parse().ok()?, words.next()?);
    let page = u64::from_str_radix(words.next()?, 16).ok()?;
    Some(GuestObject {
        process,
        rule: if rule == "-" {
            None
        } else {
            Some(rule.parse().ok()?)
        },
        page,
        pages: words.next()?.parse().ok()?,
        thread: words.next()?.parse().ok()?,
        accesses: Vec::new(),
    })
}

/// Parses a line of frames: process, first page, first frame, pages.
fn frames(line: &str) -> Option<(u32, u64, u64, u64)> {
    let (process, rest) = line.split_once(" = ")?;
    let mut words = rest.split_ascii_whitespace();
    let mut hex = || u64::from_str_radix(words.next()?, 16).ok();
    let (page, frame) = (hex()?, hex()?);
    Some((process.parse().ok()?, page, frame, words.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_address_in_two_processes_is_told_by_the_frame() {
        // Both processes have pages 0x10 to 0x13; in the second one, the last page had moved before the process ended.
        let text = "7 - 10 4 0\n8 - 10 4 0\n7 - 40 1 0\n7 = 10 500 4\n8 = 10 900 3\n8 = 13 a00 1\n8 = 13";
        let (objects, owners) = Owners::read(text);
        assert_eq!(objects.iter().map(|o| o.process).collect::<Vec<_>>(), [7, 8, 7]);
        assert_eq!(owners.of(0x12, Some(0x502)), Owner::Object(0));
        assert_eq!(owners.of(0x12, Some(0x902)), Owner::Object(1));
        assert_eq!(owners.of(0x13, Some(0xa00)), Owner::Object(1));
        assert_eq!(owners.of(0x13, Some(0x903)), Owner::OneOfSeveral(1));
        assert_eq!(owners.of(0x13, None), Owner::OneOfSeveral(1));
        assert_eq!(
            owners.of(0x40, Some(0xdead)),
            Owner::Object(2),
            "no other has one there"
        );
        assert_eq!(owners.of(0x41, Some(0x504)), Owner::NoObject);
    }

    #[test]
    fn a_frame_that_both_had_tells_nothing() {
        let (_, owners) = Owners::read("7 - 10 1 0\n8 - 10 1 0\n7 = 10 500 1\n8 = 10 500 1");
        assert_eq!(owners.of(0x10, Some(0x500)), Owner::OneOfSeveral(1));
    }

    proptest! {
        #[test]
        fn the_last_object_put_on_a_page_has_it(puts in proptest::collection::vec((0u64..60, 0u64..20), 0..20)) {
            let (mut cover, mut naive) = (RangeMap::default(), HashMap::new());
            for (object, (first, pages)) in puts.iter().enumerate() {
                cover.put(*first, first + pages, object);
                naive.extend((*first..first + pages).map(|p| (p, object)));
            }
            for page in 0..100 {
                prop_assert_eq!(cover.at(page).map(|at| at.1), naive.get(&page).copied());
            }
        }
    }
}

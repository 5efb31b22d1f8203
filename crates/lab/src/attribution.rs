//! Attributes counted page accesses to objects, and computes the figures of a run.

use crate::calibration::Calibration;
use crate::rows::Seen;
use crate::{GuestRun, ObjectSeen, PageSeen};
use std::collections::{BTreeMap, HashMap};

/// Virtual pages, each with the object that was put there last.
#[derive(Debug, Default)]
struct Cover {
    /// By first page: the end and which object; disjoint.
    ranges: BTreeMap<u64, (u64, usize)>,
}

impl Cover {
    fn put(&mut self, first: u64, end: u64, object: usize) {
        let touched = |(_, (other_end, _)): &(&u64, &(u64, usize))| *other_end > first;
        let old: Vec<(u64, (u64, usize))> = self
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
            self.ranges.insert(first, (end, object));
        }
    }

    fn at(&self, page: u64) -> Option<usize> {
        let (_, (end, object)) = self.ranges.range(..=page).next_back()?;
        (page < *end).then_some(*object)
    }
}

/// Reads `<pid> <rule or -> <first page hex> <pages> <thread>`, one line each; what is no such line is
/// skipped: a killed program's last line may be cut. An object that a process allocates again, larger, is one.
pub(crate) fn objects(text: &str) -> Vec<ObjectSeen> {
    let object = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let (process, rule) = (words.next()?.parse().ok()?, words.next()?);
        let page = u64::from_str_radix(words.next()?, 16).ok()?;
        Some(ObjectSeen {
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
    };
    let mut known: HashMap<(u32, u64), usize> = HashMap::new();
    let mut all: Vec<ObjectSeen> = Vec::new();
    for seen in text.lines().filter_map(object) {
        let index = *known.entry((seen.process, seen.page)).or_insert(all.len());
        match all.get_mut(index) {
            Some(before) => before.pages = before.pages.max(seen.pages),
            None => all.push(seen),
        }
    }
    all
}

/// What is needed to read rows: nodes of frames and of virtual CPUs.
pub(crate) struct Places<'a> {
    pub nodes: usize,
    pub frames: &'a Calibration,
    /// The node of each virtual CPU.
    pub cpus: &'a HashMap<u32, usize>,
}

/// Fills in who accessed what. Without objects everything counts.
pub(crate) fn attribute(outcome: &mut GuestRun, seen: &[Seen], places: &Places<'_>) {
    let empty = vec![vec![0; places.nodes]; places.nodes];
    let mut cover = Cover::default();
    for (index, object) in outcome.objects.iter_mut().enumerate() {
        object.accesses.clone_from(&empty);
        cover.put(object.page, object.page.saturating_add(object.pages), index);
    }
    outcome.over_objects = !outcome.objects.is_empty();
    outcome.accesses.clone_from(&empty);
    outcome.elsewhere = empty;
    let mut pages = Pages::new(places.nodes);
    let mut lost = 0;
    for at in seen {
        let nodes = places.cpus.get(&at.vcpu).zip(places.frames.node(at.frame));
        let Some((&reader, memory)) = nodes.filter(|(r, m)| **r < places.nodes && *m < places.nodes) else {
            lost += at.accesses;
            continue;
        };
        let object = cover.at(at.page);
        pages.add(at, object, reader, memory);
        if outcome.over_objects && object.is_none() {
            outcome.elsewhere[reader][memory] += at.accesses;
            continue;
        }
        outcome.accesses[reader][memory] += at.accesses;
        if let Some(index) = object {
            outcome.objects[index].accesses[reader][memory] += at.accesses;
        }
    }
    outcome.page_list = pages.list();
    outcome.pages = vec![0; places.nodes];
    let counted = |p: &&PageSeen| p.object.is_some() || !outcome.over_objects;
    for page in outcome.page_list.iter().filter(counted) {
        outcome.pages[page.home] += 1;
    }
    if lost > 0 {
        outcome.notes.push(format!(
            "{lost} accesses to pages that lie on no node are left out"
        ));
    }
    if !outcome.over_objects {
        let note = "no objects are known, as of a static program: all accesses of user mode are counted";
        outcome.notes.push(note.to_owned());
    }
}

/// Pages as they are met.
struct Pages {
    nodes: usize,
    /// With when each was accessed last.
    seen: BTreeMap<u64, (u64, PageSeen)>,
}

impl Pages {
    fn new(nodes: usize) -> Self {
        let seen = BTreeMap::new();
        Self { nodes, seen }
    }

    fn add(&mut self, at: &Seen, object: Option<usize>, reader: usize, memory: usize) {
        let (last, page) = self.seen.entry(at.page).or_insert_with(|| {
            let page = PageSeen {
                page: at.page,
                object,
                home: memory,
                accesses: vec![0; self.nodes],
            };
            (at.last, page)
        });
        page.accesses[reader] += at.accesses;
        if (at.last, memory) > (*last, page.home) {
            (*last, page.home) = (at.last, memory);
        }
    }

    fn list(self) -> Vec<PageSeen> {
        self.seen.into_values().map(|(_, page)| page).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibration::{Sample, Segment};
    use proptest::prelude::*;

    /// Node n has frames 1000·n to 1000·n + 999; virtual CPU n is on node n.
    fn calibrated(nodes: u32) -> (Calibration, HashMap<u32, usize>) {
        let segment = |node: u32| Segment {
            node,
            first: u64::from(node) * 1000,
            pages: 1000,
        };
        let sample = |node: u32| Sample {
            node,
            kernel: u64::from(node) * 1000,
            emulator: u64::from(node) * 1000,
        };
        let segments: Vec<_> = (0..nodes).map(segment).collect();
        let samples: Vec<_> = (0..nodes).map(sample).collect();
        let cpus = (0..nodes).map(|n| (n, n as usize)).collect();
        (Calibration::learn(&segments, &samples).unwrap(), cpus)
    }

    fn counted(objects: &str, seen: &[Seen]) -> GuestRun {
        let (frames, cpus) = calibrated(4);
        let places = Places {
            nodes: 4,
            frames: &frames,
            cpus: &cpus,
        };
        let mut outcome = GuestRun {
            objects: super::objects(objects),
            ..GuestRun::default()
        };
        attribute(&mut outcome, seen, &places);
        outcome
    }

    fn seen(vcpu: u32, page: u64, frame: u64, accesses: u64, last: u64) -> Seen {
        Seen {
            vcpu,
            page,
            frame,
            accesses,
            last,
        }
    }

    #[test]
    fn a_page_counts_for_its_object_and_lies_where_it_was_last() {
        let rows = [
            seen(0, 0x10, 500, 7, 1),
            seen(1, 0x10, 1500, 5, 2),
            seen(2, 0x99, 0, 3, 3),
        ];
        let outcome = counted("12 3 10 4 0\n12 - 2", &rows);
        assert_eq!(outcome.objects.len(), 1, "a cut line is none");
        assert_eq!(outcome.objects[0].rule, Some(3));
        assert_eq!((outcome.accesses[0][0], outcome.accesses[1][1]), (7, 5));
        assert_eq!(outcome.elsewhere[2][0], 3);
        assert_eq!(outcome.pages, [0, 1, 0, 0]);
        assert_eq!(outcome.local_fraction(), Some(1.0));
        assert_eq!(outcome.reachable_fraction(), Some(7.0 / 12.0), "it moved in time");
        let objects: Vec<_> = outcome
            .page_list
            .iter()
            .map(|p| (p.page, p.object, p.home))
            .collect();
        assert_eq!(objects, [(0x10, Some(0), 1), (0x99, None, 0)]);
    }

    #[test]
    fn without_objects_everything_counts_and_it_says_so() {
        let outcome = counted("", &[seen(2, 0x99, 0, 3, 3)]);
        assert_eq!((outcome.over_objects, outcome.accesses[2][0]), (false, 3));
        assert!(outcome.notes[0].contains("no objects are known"));
    }

    #[test]
    fn what_is_on_no_node_is_said() {
        let outcome = counted("1 - 0 9 0", &[seen(0, 1, 99_999, 3, 3), seen(77, 1, 0, 4, 4)]);
        assert!(outcome.notes[0].starts_with("7 accesses"), "{:?}", outcome.notes);
    }

    proptest! {
        #[test]
        fn the_last_object_put_on_a_page_has_it(puts in proptest::collection::vec((0u64..60, 0u64..20), 0..20)) {
            let (mut cover, mut naive) = (Cover::default(), HashMap::new());
            for (object, (first, pages)) in puts.iter().enumerate() {
                cover.put(*first, first + pages, object);
                naive.extend((*first..first + pages).map(|p| (p, object)));
            }
            for page in 0..100 {
                prop_assert_eq!(cover.at(page), naive.get(&page).copied());
            }
        }

        #[test]
        fn every_access_is_counted_once(
            rows in proptest::collection::vec((0u32..6, 0u64..50, 0u64..5000, 1u64..1000), 0..60),
            puts in proptest::collection::vec((0u64..50, 1u64..20), 0..6),
        ) {
            let text: String = puts.iter().map(|(first, pages)| format!("1 - {first:x} {pages} 0\n")).collect();
            let rows: Vec<Seen> = rows.iter().zip(0..).map(|((c, p, f, n), at)| seen(*c, *p, *f, *n, at)).collect();
            let outcome = counted(&text, &rows);
            let sum = |m: &[Vec<u64>]| m.iter().flatten().sum::<u64>();
            let known = |s: &&Seen| s.vcpu < 4 && s.frame < 4000;
            let expected: u64 = rows.iter().filter(known).map(|s| s.accesses).sum();
            prop_assert_eq!(sum(&outcome.accesses) + sum(&outcome.elsewhere), expected);
            let of_pages: u64 = outcome.page_list.iter().flat_map(|p| &p.accesses).sum();
            prop_assert_eq!(of_pages, expected);
            if outcome.over_objects {
                let objects: u64 = outcome.objects.iter().map(|o| sum(&o.accesses)).sum();
                prop_assert_eq!(objects, sum(&outcome.accesses));
            }
        }
    }
}

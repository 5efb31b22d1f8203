//! Attributes counted page accesses to objects, and computes the figures of a run.

use crate::calibration::Calibration;
use crate::owners::{Owner, Owners};
use crate::rows::CountedPage;
use crate::{GuestPage, GuestRun, GuestSlice};
use std::collections::{BTreeMap, HashMap};

/// The nodes of frames and of virtual CPUs, which are needed to interpret rows.
pub(crate) struct NodeMaps<'a> {
    pub nodes: usize,
    pub frames: &'a Calibration,
    /// The node of each virtual CPU.
    pub cpus: &'a HashMap<u32, usize>,
}

impl NodeMaps<'_> {
    /// The nodes of the CPU and of the memory; `None` if either is unknown.
    fn nodes_of(&self, at: &CountedPage) -> Option<(usize, usize)> {
        let reader = *self.cpus.get(&at.vcpu)?;
        let memory = self.frames.node(at.frame)?;
        (reader < self.nodes && memory < self.nodes).then_some((reader, memory))
    }

    fn matrix<'s>(&self, seen: impl Iterator<Item = &'s CountedPage>) -> Vec<Vec<u64>> {
        let mut all = vec![vec![0; self.nodes]; self.nodes];
        for at in seen {
            if let Some((reader, memory)) = self.nodes_of(at) {
                all[reader][memory] += at.accesses;
            }
        }
        all
    }
}

/// Adds the counts of `seen` to a run's result. `object_log` is the text in which the guest's processes reported their
/// objects; without objects, accesses to all pages count. `slices` are the end of each slice in nanoseconds, and what
/// was counted in it.
pub(crate) fn attribute(
    outcome: &mut GuestRun,
    object_log: &str,
    seen: &[CountedPage],
    slices: &[(u64, &Vec<CountedPage>)],
    node_maps: &NodeMaps<'_>,
) {
    let empty = vec![vec![0; node_maps.nodes]; node_maps.nodes];
    let (objects, owners) = Owners::read(object_log);
    outcome.objects = objects;
    for object in &mut outcome.objects {
        object.accesses.clone_from(&empty);
    }
    outcome.over_objects = !outcome.objects.is_empty();
    outcome.accesses.clone_from(&empty);
    outcome.other_accesses = empty;
    let mut pages = PageAccumulator::new(node_maps.nodes);
    let (mut lost, mut doubtful) = (0, 0);
    for at in seen {
        let Some((reader, memory)) = node_maps.nodes_of(at) else {
            lost += at.accesses;
            continue;
        };
        let object = match owners.of(at.page, node_maps.frames.kernel(at.frame)) {
            Owner::Object(object) => Some(object),
            Owner::OneOfSeveral(last) => {
                doubtful += at.accesses;
                Some(last)
            }
            Owner::NoObject => None,
        };
        pages.add(at, object, reader, memory);
        if outcome.over_objects && object.is_none() {
            outcome.other_accesses[reader][memory] += at.accesses;
            continue;
        }
        outcome.accesses[reader][memory] += at.accesses;
        if let Some(index) = object {
            outcome.objects[index].accesses[reader][memory] += at.accesses;
        }
    }
    let over_objects = outcome.over_objects;
    let counts = |at: &CountedPage| {
        !over_objects || owners.of(at.page, node_maps.frames.kernel(at.frame)) != Owner::NoObject
    };
    let slice = |(end_ns, seen): &(u64, &Vec<CountedPage>)| GuestSlice {
        end_ns: *end_ns,
        accesses: node_maps.matrix(seen.iter().filter(|at| counts(at))),
    };
    outcome.slices = slices.iter().map(slice).collect();
    outcome.page_list = pages.list();
    outcome.pages = vec![0; node_maps.nodes];
    let counted = |p: &&GuestPage| p.object.is_some() || !outcome.over_objects;
    for page in outcome.page_list.iter().filter(counted) {
        outcome.pages[page.home] += 1;
    }
    if lost > 0 {
        outcome.notes.push(format!(
            "{lost} accesses to pages that lie on no node are left out"
        ));
    }
    if doubtful > 0 {
        outcome.notes.push(format!(
            "{doubtful} accesses are to addresses at which several processes have an object, and to pages that none of \
             them, or more than one, had when it ended: they count for the object that came last"
        ));
    }
    if !outcome.over_objects {
        let note = "no objects are known, as of a static program: all accesses of user mode are counted";
        outcome.notes.push(note.to_owned());
    }
}

/// Collects the accessed pages.
struct PageAccumulator {
    nodes: usize,
    /// By page and object, because several processes may have pages of the same number; each with the order of its last
    /// access.
    seen: BTreeMap<(u64, Option<usize>), (u64, GuestPage)>,
}

impl PageAccumulator {
    fn new(nodes: usize) -> Self {
        let seen = BTreeMap::new();
        Self { nodes, seen }
    }

    fn add(&mut self, at: &CountedPage, object: Option<usize>, reader: usize, memory: usize) {
        let (last, page) = self.seen.entry((at.page, object)).or_insert_with(|| {
            let page = GuestPage {
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

    fn list(self) -> Vec<GuestPage> {
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

    fn counted(objects: &str, seen: &[CountedPage]) -> GuestRun {
        let (frames, cpus) = calibrated(4);
        let node_maps = NodeMaps {
            nodes: 4,
            frames: &frames,
            cpus: &cpus,
        };
        let mut outcome = GuestRun::default();
        attribute(&mut outcome, objects, seen, &[(5, &seen.to_vec())], &node_maps);
        assert_eq!(outcome.slices[0].accesses, outcome.accesses);
        outcome
    }

    fn seen(vcpu: u32, page: u64, frame: u64, accesses: u64, last: u64) -> CountedPage {
        CountedPage {
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
        assert_eq!(outcome.other_accesses[2][0], 3);
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
        fn every_access_is_counted_once(
            rows in proptest::collection::vec((0u32..6, 0u64..50, 0u64..5000, 1u64..1000), 0..60),
            puts in proptest::collection::vec((0u64..50, 1u64..20), 0..6),
        ) {
            let text: String = puts.iter().map(|(first, pages)| format!("1 - {first:x} {pages} 0\n")).collect();
            let rows: Vec<CountedPage> = rows.iter().zip(0..).map(|((c, p, f, n), at)| seen(*c, *p, *f, *n, at)).collect();
            let outcome = counted(&text, &rows);
            let sum = |m: &[Vec<u64>]| m.iter().flatten().sum::<u64>();
            let known = |s: &&CountedPage| s.vcpu < 4 && s.frame < 4000;
            let expected: u64 = rows.iter().filter(known).map(|s| s.accesses).sum();
            prop_assert_eq!(sum(&outcome.accesses) + sum(&outcome.other_accesses), expected);
            let of_pages: u64 = outcome.page_list.iter().flat_map(|p| &p.accesses).sum();
            prop_assert_eq!(of_pages, expected);
            if outcome.over_objects {
                let objects: u64 = outcome.objects.iter().map(|o| sum(&o.accesses)).sum();
                prop_assert_eq!(objects, sum(&outcome.accesses));
            }
        }
    }
}

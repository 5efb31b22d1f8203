//! Compares the tracker with a map that stores everything exactly.

use super::entry::{LONGEST, is_change};
use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
enum Event {
    Add(u64, u32, u32),
    Home(u64, u32),
    Settle,
    Halve,
    Begin,
    Forget(u64, u64),
}

#[derive(Clone, Debug, Default)]
struct Page {
    home: Option<u32>,
    settled: bool,
    counts: Vec<f64>,
    first: Option<u32>,
    /// The node of the last samples, and how many in a row.
    trail: (u32, u32),
}

/// Unlimited counts in exact fractions, halved whenever the tracker halves a page.
#[derive(Clone, Debug, Default)]
struct Naive(BTreeMap<u64, Page>);

impl Naive {
    /// `stored`: the tracker's counts of the page.
    fn add(&mut self, page: u64, node: u32, weight: u32, nodes: usize, stored: &[u64]) {
        let page = self.0.entry(page).or_default();
        page.counts.resize(nodes, 0.0);
        let at = node as usize;
        let run = if page.trail.0 == node {
            page.trail.1 + weight
        } else {
            weight
        };
        page.trail = (node, run.min(u32::from(LONGEST)));
        page.counts[at] += f64::from(weight);
        page.first.get_or_insert(node);
        let halvings = (stored[at] + u64::from(weight))
            .checked_ilog2()
            .unwrap_or(0)
            .saturating_sub(6);
        let own = (stored[at] + u64::from(weight)) >> halvings;
        let others: u64 = (0..nodes)
            .filter(|n| *n != at)
            .map(|n| stored[n] >> halvings)
            .sum();
        let early = own.saturating_sub(u64::from(page.trail.1)) as u32;
        if is_change(others as u32 + early, early, page.trail.1 as u8) {
            let forgotten = page.counts.iter_mut().enumerate().filter(|(n, _)| *n != at);
            forgotten.for_each(|(_, count)| *count = 0.0);
        }
    }

    /// Halves the page's counts until they match the stored ones.
    fn follow(&mut self, page: u64, stored: &[u64]) {
        let counts = &mut self.0.get_mut(&page).unwrap().counts;
        while counts.iter().zip(stored).any(|(c, s)| *c >= *s as f64 + 1.0) {
            counts.iter_mut().for_each(|c| *c /= 2.0);
        }
    }

    fn halve(&mut self) {
        self.0
            .values_mut()
            .for_each(|p| p.counts.iter_mut().for_each(|c| *c /= 2.0));
    }
}

/// The tracker's counts of a page, settled or not.
fn stored(tracker: &Tracker, page: u64) -> Option<(Vec<u64>, Option<u32>)> {
    let mut tracker = tracker.clone();
    tracker.sort();
    let at = tracker.find(page)?;
    let mut counts = vec![0; tracker.layout.nodes];
    tracker.layout.counts(&tracker.entries[at], &mut counts);
    Some((counts, tracker.layout.first(&tracker.entries[at]).map(|n| n.0)))
}

fn events(nodes: u32) -> impl Strategy<Value = Vec<Event>> {
    let weight = prop_oneof![8 => 1u32..4, 1 => 0u32..5000];
    let event = prop_oneof![
        30 => (0u64..40, 0..nodes, weight).prop_map(|(p, n, w)| Event::Add(p, n, w)),
        10 => (0u64..40, 0..nodes).prop_map(|(p, n)| Event::Home(p, n)),
        3 => Just(Event::Settle),
        2 => Just(Event::Halve),
        1 => Just(Event::Begin),
        1 => (0u64..40, 0u64..9).prop_map(|(p, n)| Event::Forget(p, p + n)),
    ];
    proptest::collection::vec(event, 0..200)
}

fn play(tracker: &mut Tracker, naive: &mut Naive, event: &Event) {
    let nodes = tracker.layout.nodes;
    match *event {
        Event::Add(page, node, weight) => {
            let before = stored(tracker, page).map_or(vec![0; nodes], |s| s.0);
            tracker.add(PageNumber(page), NodeId(node), weight);
            naive.add(page, node, weight, nodes, &before);
            naive.follow(page, &stored(tracker, page).unwrap().0);
        }
        Event::Home(page, node) => {
            tracker.set_home(PageNumber(page), NodeId(node));
            if let Some(page) = naive.0.get_mut(&page) {
                let before = page.home.replace(node);
                if before.is_some_and(|b| b != node) {
                    page.trail = (0, 0);
                    page.counts.fill(0.0);
                }
            }
        }
        Event::Settle => {
            tracker.settle();
            naive.0.retain(|_, p| p.home.is_some());
            naive.0.values_mut().for_each(|p| p.settled = true);
        }
        Event::Halve => {
            tracker.halve();
            naive.halve();
            naive.0.retain(|page, _| stored(tracker, *page).is_some());
        }
        Event::Begin => {
            tracker.begin_interval();
            naive.0.values_mut().for_each(|p| p.first = None);
        }
        Event::Forget(from, to) => {
            tracker.forget(PageNumber(from)..PageNumber(to));
            naive.0.retain(|page, _| !(from..to).contains(page));
        }
    }
}

proptest! {
    #[test]
    fn counts_are_those_of_a_map_but_for_less_than_one_a_node(nodes in 1u32..9, events in events(8)) {
        let (mut tracker, mut naive) = (Tracker::new(nodes as usize, 0, 1000), Naive::default());
        let fits = |e: &&Event| !matches!(e, Event::Add(_, n, _) | Event::Home(_, n) if *n >= nodes);
        for event in events.iter().filter(fits) {
            play(&mut tracker, &mut naive, event);
            for (page, expected) in &naive.0 {
                let (counts, first) = stored(&tracker, *page).unwrap();
                prop_assert_eq!(first, expected.first);
                for (stored, exact) in counts.iter().zip(&expected.counts) {
                    let lost = exact - *stored as f64;
                    prop_assert!((0.0..1.0).contains(&lost), "{stored} {exact} {event:?}");
                }
            }
            let observed: Vec<_> = (0..tracker.len()).map(|i| (tracker.page(i).0, Some(tracker.home(i).0))).collect();
            let settled = naive.0.iter().filter(|p| p.1.settled);
            prop_assert_eq!(observed, settled.map(|(p, e)| (*p, e.home)).collect::<Vec<_>>());
            for (page, expected) in &naive.0 {
                let home = tracker.home_of(PageNumber(*page));
                prop_assert_eq!(home.map(|n| n.0), expected.home);
            }
            let homeless: Vec<_> = naive.0.iter().filter(|p| p.1.home.is_none()).map(|p| PageNumber(*p.0)).collect();
            prop_assert_eq!(tracker.homeless(), homeless);
        }
    }

    #[test]
    fn nothing_small_is_lost_or_made_up(adds in proptest::collection::vec((0u64..30, 0u32..100, 1u32..4), 0..300)) {
        for nodes in [8, 100] {
            let mut tracker = Tracker::new(nodes, 0, 1000);
            let (mut totals, mut exact, mut trails) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
            for &(page, node, weight) in &adds {
                let node = node % nodes as u32;
                let total = totals.entry(page).or_insert(0);
                let own = exact.entry((page, node)).or_insert(0u64);
                let (last, run) = trails.get(&page).copied().unwrap_or((node, 0));
                let run = weight + if last == node { run } else { 0 };
                let (before, early) = (*total + weight - run, *own as u32 + weight - run);
                if *total + weight < 128 && !is_change(before, early, run.min(u32::from(LONGEST)) as u8) {
                    *total += weight;
                    *own += u64::from(weight);
                    trails.insert(page, (node, run));
                    tracker.add(PageNumber(page), NodeId(node), weight);
                }
            }
            for (page, total) in totals {
                let counts = stored(&tracker, page).unwrap().0;
                prop_assert_eq!(counts.iter().sum::<u64>(), u64::from(total));
                let least = counts.iter().copied().filter(|c| *c > 0).min().unwrap_or(0);
                for (node, count) in counts.into_iter().enumerate() {
                    let true_count = exact.get(&(page, node as u32)).copied().unwrap_or(0);
                    prop_assert!(count == 0 || count >= true_count);
                    let over = if nodes > 8 { least } else { 0 };
                    prop_assert!(count <= true_count + over);
                    prop_assert!(3 * true_count <= u64::from(total) || count >= true_count);
                }
            }
        }
    }

    #[test]
    fn the_cap_holds_and_the_hot_stay(cap in 16usize..200, cold in proptest::collection::vec(100u64..5000, 0..1000)) {
        let mut tracker = Tracker::new(4, 0, cap);
        let hot = 0..cap as u64 / 2;
        for page in hot.clone() {
            tracker.add(PageNumber(page), NodeId(1), 9);
        }
        for page in cold {
            tracker.add(PageNumber(page), NodeId(2), 1);
            prop_assert!(tracker.tracked() <= cap && tracker.bytes() <= 16 * cap);
        }
        for page in hot {
            prop_assert_eq!(stored(&tracker, page).map(|s| s.0), Some(vec![0, 9, 0, 0]));
        }
    }

    #[test]
    fn a_page_is_read_back_as_it_was_given(process: u16, number in 0u64..(1 << 40), shift in 0u32..9, nodes in 1usize..255) {
        let layout = Layout { nodes, shift, ranks: false };
        let page = PageNumber::of_address(process, number << 12).align_down(shift);
        let (home, first) = (NodeId(nodes as u32 - 1), NodeId(nodes as u32 / 2));
        let mut entry = layout.new_entry(layout.number(page).unwrap());
        prop_assert_eq!((layout.home(&entry), layout.first(&entry)), (None, None));
        layout.touch(&mut entry, first, 7);
        layout.set_home(&mut entry, home);
        prop_assert_eq!((layout.page(&entry), layout.home(&entry), layout.first(&entry)), (page, Some(home), Some(first)));
        prop_assert_eq!(layout.total(&entry), 7);
    }
}

#[test]
fn a_page_that_moves_counts_anew() {
    for nodes in [4, 100] {
        let mut tracker = Tracker::new(nodes, 0, 10);
        tracker.add(PageNumber(7), NodeId(0), 9);
        tracker.set_home(PageNumber(7), NodeId(0));
        tracker.settle();
        let (page, from, to) = (PageNumber(7), NodeId(0), NodeId(2));
        let seen = |tracker: &Tracker| stored(tracker, 7).unwrap().0[..3].to_vec();
        tracker.set_home(page, from);
        assert_eq!(seen(&tracker), [9, 0, 0]);
        let reason = nodewise_placement::Reason::default();
        tracker.moved(&Move {
            index: 0,
            page,
            from,
            to,
            reason,
        });
        assert_eq!((seen(&tracker), tracker.home_of(page)), (vec![0, 0, 0], Some(to)));
        tracker.add(page, NodeId(1), 3);
        assert_eq!(seen(&tracker), [0, 3, 0]);
    }
}

#[test]
fn a_change_is_seen_after_a_few_samples_and_what_is_shared_is_no_change() {
    for nodes in [4, 100] {
        let seen = |samples: &[u32]| {
            let mut tracker = Tracker::new(nodes, 0, 10);
            for node in samples {
                tracker.add(PageNumber(7), NodeId(*node), 1);
            }
            stored(&tracker, 7).unwrap().0[..3].to_vec()
        };
        let until = |history: &[u32]| {
            let all = |run| [history, &vec![2; run]].concat();
            (1..30).find(|run| seen(&all(*run))[..2] == [0, 0]).unwrap()
        };
        // A node that had all accesses for a long time loses the page soonest.
        assert_eq!([2, 4, 8, 40].map(|long| until(&vec![0; long])), [5, 4, 3, 2]);
        assert_eq!(until(&[2, 0, 2, 0, 0, 2, 2, 0]), 9);
        assert_eq!(seen(&[0, 2, 0, 2, 2, 2, 0, 0, 0]), [5, 0, 4]);
        assert_eq!(seen(&[0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 2, 0]), [1, 0, 3]);
    }
}

#[test]
fn what_cannot_be_told_apart_is_not_tracked() {
    let mut tracker = Tracker::new(4, 0, 10);
    tracker.add(PageNumber(1 << 41), NodeId(0), 1);
    tracker.add(PageNumber(1), NodeId(4), 1);
    assert_eq!(tracker.tracked(), 0);
    assert_eq!(tracker.home_of(PageNumber(1)), None);
}

#[test]
fn an_idle_tracker_gives_its_memory_back() {
    let mut tracker = Tracker::new(4, 0, 1 << 20);
    for page in 0..200_000 {
        tracker.add(PageNumber(page), NodeId(0), 1);
    }
    (0..200_000).for_each(|page| tracker.set_home(PageNumber(page), NodeId(1)));
    tracker.settle();
    assert!(tracker.len() == 200_000 && tracker.bytes() <= 16 * (200_000 + ROOM));
    tracker.halve();
    assert!(tracker.tracked() == 0 && tracker.bytes() <= 32 * ROOM);
}

fn seen(tracker: &Tracker) -> Vec<(u64, u32, Vec<u64>)> {
    let row = |i| {
        let mut counts = vec![0; tracker.nodes()];
        tracker.counts(i, &mut counts);
        (tracker.page(i).0, tracker.home(i).0, counts)
    };
    (0..tracker.len()).map(row).collect()
}

#[test]
fn pages_that_are_ranked_stay_comparable() {
    let mut tracker = Tracker::new(2, 0, 100).ranking();
    let page = PageNumber;
    let all = page(0)..page(1000);
    assert!(
        tracker
            .take_residents(
                all.clone(),
                &[(page(3), Some(NodeId(0))), (page(5), Some(NodeId(1)))]
            )
            .is_empty()
    );
    for _ in 0..200 {
        tracker.add(page(3), NodeId(0), 1);
    }
    tracker.add(page(3), NodeId(1), 1);
    tracker.settle();
    // A count stays at its largest value instead of halving the page's others, and a page without accesses is known.
    assert_eq!(seen(&tracker), [(3, 0, vec![127, 1]), (5, 1, vec![0, 0])]);
    assert_eq!(tracker.accessed(), 1);
    tracker.set_home(page(3), NodeId(1));
    tracker.halve();
    assert_eq!(seen(&tracker), [(3, 1, vec![63, 0]), (5, 1, vec![0, 0])]);
    // Of what is there now: 3 was moved by others, 4 is new, 5 is gone; what is outside the range stays.
    tracker.add(page(2000), NodeId(0), 1);
    tracker.set_home(page(2000), NodeId(0));
    let moved = tracker.take_residents(all, &[(page(3), Some(NodeId(0))), (page(4), Some(NodeId(0)))]);
    assert_eq!(moved, [(page(3), NodeId(1))]);
    tracker.settle();
    assert_eq!(
        seen(&tracker)
            .iter()
            .map(|row| (row.0, row.1))
            .collect::<Vec<_>>(),
        [(3, 0), (4, 0), (2000, 0)]
    );
    assert_eq!(Observed::free(&tracker, NodeId(1)), None);
    tracker.set_free(vec![7, 9]);
    assert_eq!(Observed::free(&tracker, NodeId(1)), Some(9));
}

#[test]
fn samples_count_before_a_page_is_found_elsewhere() {
    let mut tracker = Tracker::new(2, 0, 100);
    let (page, node) = (PageNumber, NodeId);
    let homes = |at: u32| BTreeMap::from([(page(3), node(at)), (page(5), node(1))]);
    let seen_first = [
        (page(5), node(0), 1),
        (page(3), node(1), 2),
        (page(3), node(1), 1),
    ];
    assert_eq!(tracker.take_samples(&seen_first, false, &homes(0)), []);
    tracker.settle();
    assert_eq!(seen(&tracker), [(3, 0, vec![0, 3]), (5, 1, vec![1, 0])]);
    // Moved by somebody: its counts, also those of the same look, are of where it was.
    let then = [(page(3), node(0), 4), (page(5), node(0), 1)];
    assert_eq!(
        tracker.take_samples(&then, false, &homes(1)),
        [(page(3), node(0))]
    );
    assert_eq!(seen(&tracker), [(3, 1, vec![0, 0]), (5, 1, vec![2, 0])]);
}

#[test]
fn a_moving_sum_follows_its_page_and_leaves_the_others() {
    let mut tracker = Tracker::new(2, 0, 100).ranking();
    let page = PageNumber;
    let residents = [3, 5].map(|n| (page(n), Some(NodeId(1))));
    tracker.take_residents(page(0)..page(100), &residents);
    for _ in 0..50 {
        tracker.add_decaying(page(3), NodeId(0), 8);
        tracker.add_decaying(page(5), NodeId(0), 2);
    }
    tracker.settle();
    // w + 3/4 w + 9/16 w + ... = 4 w, less what is rounded down.
    assert_eq!(seen(&tracker), [(3, 1, vec![29, 0]), (5, 1, vec![5, 0])]);
    // What was accessed soon after the scan is not any more: after six samples, from wherever, the other one has more.
    for _ in 0..6 {
        assert!(seen(&tracker)[0].2[0] > 5);
        tracker.add_decaying(page(3), NodeId(1), 0);
    }
    assert_eq!(seen(&tracker), [(3, 1, vec![4, 0]), (5, 1, vec![5, 0])]);
}

#[test]
fn a_region_adds_to_the_moving_sums_of_its_pages_and_of_no_others() {
    let mut tracker = Tracker::new(2, 0, 100).ranking();
    let residents = [3, 5, 9].map(|n| (PageNumber(n), Some(NodeId(1))));
    tracker.take_residents(PageNumber(0)..PageNumber(100), &residents);
    tracker.settle();
    // One that came after the last interval is known as well.
    tracker.take_residents(
        PageNumber(200)..PageNumber(300),
        &[(PageNumber(200), Some(NodeId(1)))],
    );
    let mut visited = Vec::new();
    for weight in [8, 0] {
        tracker.add_to_range(PageNumber(4)..PageNumber(201), NodeId(0), weight, |page| {
            visited.push((page.0, weight));
        });
    }
    assert_eq!(visited, [(5, 8), (9, 8), (200, 8), (5, 0), (9, 0), (200, 0)]);
    tracker.settle();
    let sums = [0, 6, 6, 6].into_iter().zip([3, 5, 9, 200]);
    let expected: Vec<(u64, u32, Vec<u64>)> = sums.map(|(sum, page)| (page, 1, vec![sum, 0])).collect();
    assert_eq!(seen(&tracker), expected);
}

#[test]
fn where_there_is_no_room_for_more_pages_those_with_accesses_are_kept() {
    let mut tracker = Tracker::new(2, 0, 8).ranking();
    let residents: Vec<(PageNumber, Option<NodeId>)> =
        (0..20).map(|n| (PageNumber(n), Some(NodeId(0)))).collect();
    tracker.take_residents(PageNumber(0)..PageNumber(100), &residents);
    assert_eq!(tracker.tracked(), 8);
    tracker.add(PageNumber(15), NodeId(1), 4);
    tracker.set_home(PageNumber(15), NodeId(0));
    tracker.take_residents(PageNumber(0)..PageNumber(100), &residents);
    tracker.settle();
    assert!(seen(&tracker).contains(&(15, 0, vec![0, 4])));
    assert_eq!(tracker.tracked(), 8);
}

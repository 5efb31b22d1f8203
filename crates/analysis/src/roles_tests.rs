use super::*;
use crate::{Affinity, Histogram};
use nodewise_machine::{CpuId, NodeId};
use nodewise_profile::{
    Access, FirstTouch, InMemory, Object, ObjectId, ObjectKind, PageNumber, TakenPart, Thread, ThreadId,
};

const THREADS: u32 = 8;
const PAGES: u64 = 80;

/// One array of [`PAGES`] pages from page `first` on; `share(thread, page)` is the number of accesses.
fn run(first: u64, share: impl Fn(u32, u64) -> u64) -> (Profile, Histogram) {
    let array = Object {
        kind: ObjectKind::Heap,
        first_page: PageNumber(first),
        pages: PAGES,
        ..Object::default()
    };
    let profile = Profile {
        objects: vec![Object::default(), array],
        threads: vec![Thread::default(); THREADS as usize],
        ..Profile::default()
    };
    let row = |page, thread| Access {
        object: ObjectId(1),
        page: PageNumber(first + page),
        len: 1,
        thread: ThreadId(thread),
        writes: share(thread, page),
        lines: share(thread, page),
        ..Access::default()
    };
    let rows = (0..PAGES).flat_map(|page| (0..THREADS).map(move |thread| row(page, thread)));
    let rows: Vec<Access> = rows.filter(|r| r.writes > 0).collect();
    let histogram = Histogram::build(&InMemory::new(rows), THREADS as usize, 0).unwrap();
    (profile, histogram)
}

/// A run in which thread t has the part `of(t)`.
fn parts(first: u64, of: impl Fn(u32) -> u32) -> (Profile, Histogram) {
    run(first, |thread, page| {
        100 * u64::from(u64::from(of(thread)) == page * u64::from(THREADS) / PAGES)
    })
}

/// Compares the recorded run, in which parts have the numbers of their threads, with other runs.
fn compared(others: &[(Profile, Histogram)]) -> (Profile, Histogram, Roles) {
    let (mut profile, histogram) = parts(1000, |t| t);
    for (i, (other, pages)) in others.iter().enumerate() {
        let rows = taken(i as u32, (&profile, &histogram), (other, pages));
        profile.taken.extend(rows);
    }
    let roles = Roles::of(&profile).unwrap();
    (profile, histogram, roles)
}

/// Two threads on each of four nodes.
fn two_on_each_node() -> Affinity {
    Affinity {
        name: String::new(),
        cpus: (0..THREADS).map(CpuId).collect(),
        nodes: (0..THREADS).map(|t| NodeId(t / 2)).collect(),
    }
}

/// The expected local fractions with two threads on each of four nodes, and each page on the node of its thread in the
/// recorded run.
fn expected((profile, histogram, roles): &(Profile, Histogram, Roles)) -> Expected {
    let affinity = two_on_each_node();
    let homes: Vec<NodeId> = histogram
        .iter()
        .map(|page| page.entries.iter().max_by_key(|entry| entry.accesses()).unwrap())
        .map(|most| affinity.node(most.thread))
        .collect();
    let left = left_to_first_touch(profile, histogram, &affinity, &homes);
    roles.expected(profile, histogram, &affinity, (&homes, &left)).all
}

/// The same with all pages on node 0, by a rule.
fn expected_on_node_0((profile, histogram, roles): &(Profile, Histogram, Roles)) -> Expected {
    let (homes, left) = (vec![NodeId(0); histogram.len()], vec![false; histogram.len()]);
    roles
        .expected(profile, histogram, &two_on_each_node(), (&homes, &left))
        .all
}

#[test]
fn the_same_parts_at_other_addresses_are_fixed() {
    let found = compared(&[parts(77_000, |t| t)]);
    assert_eq!(found.2.assignment, Assignment::Fixed);
    assert_eq!(
        (found.2.by_number, found.2.by_data, found.2.in_parts),
        (1.0, 1.0, 1.0)
    );
    assert_eq!(
        expected(&found),
        Expected {
            by_number: 1.0,
            by_data: 1.0
        }
    );
}

#[test]
fn parts_of_other_threads_are_by_arrival_and_local_by_data() {
    // Rotated by two threads, and so by one node; and reversed, so that no thread stays on its node.
    let found = compared(&[parts(5, |t| (t + 2) % THREADS), parts(9, |t| THREADS - 1 - t)]);
    assert_eq!((found.2.runs, found.2.assignment), (2, Assignment::Arrival));
    assert_eq!((found.2.by_number, found.2.by_data), (0.0, 1.0));
    assert_eq!(
        expected(&found),
        Expected {
            by_number: 0.0,
            by_data: 1.0
        }
    );
}

/// What each row writes becomes something that it reads.
fn only_read(histogram: &mut Histogram) {
    for entry in &mut histogram.entries {
        (entry.reads, entry.writes) = (entry.accesses(), 0);
    }
}

#[test]
fn threads_that_only_read_their_parts_are_not_found_by_data() {
    let (profile, mut histogram, roles) = compared(&[parts(5, |t| THREADS - 1 - t)]);
    assert_eq!(roles.not_followed(&profile, &histogram), None);
    only_read(&mut histogram);
    assert_eq!(
        roles.not_followed(&profile, &histogram),
        Some(NotFollowed::NotWritten)
    );
    let Expected { by_number, by_data } = expected(&(profile, histogram, roles));
    assert_eq!((by_number, by_data), (0.0, 0.0));
}

/// Half of the pages of each part are only read: the others tell whose it is.
#[test]
fn a_part_is_found_by_the_pages_that_are_written() {
    let (profile, mut histogram, roles) = compared(&[parts(5, |t| THREADS - 1 - t)]);
    let of_even_pages = |entry: usize| entry.is_multiple_of(2);
    for (at, entry) in histogram.entries.iter_mut().enumerate() {
        if of_even_pages(at) {
            (entry.reads, entry.writes) = (entry.accesses(), 0);
        }
    }
    assert_eq!(roles.not_followed(&profile, &histogram), None);
    assert_eq!(expected(&(profile, histogram, roles)).by_data, 1.0);
}

/// All memory was touched by thread 0, on its node, where only a part of the threads have a place.
#[test]
fn no_more_threads_are_sent_to_a_node_than_it_has_places() {
    let (profile, histogram, roles) = compared(&[parts(5, |t| THREADS - 1 - t)]);
    let Expected { by_number, by_data } = expected_on_node_0(&(profile, histogram, roles));
    assert_eq!((by_number, by_data), (0.25, 0.25));
}

/// In the recorded run a quarter of the accesses to each part are those of its neighbour. Where another run shows the same, it
/// keeps what the recorded one has.
#[test]
fn pages_that_neighbours_read_too_are_no_other_part() {
    let shared = |first, of: fn(u32) -> u32| {
        run(first, move |thread, page| {
            let part = (page * u64::from(THREADS) / PAGES) as u32;
            match of(thread) {
                own if own == part => 300,
                own if (own + 1) % THREADS == part => 100,
                _ => 0,
            }
        })
    };
    let (mut profile, mut histogram) = shared(1000, |t| t);
    for entry in histogram
        .entries
        .iter_mut()
        .filter(|entry| entry.accesses() == 100)
    {
        (entry.reads, entry.writes) = (100, 0);
    }
    for (number, of) in [(0, (|t| t) as fn(u32) -> u32), (1, |t| THREADS - 1 - t)] {
        let (other, pages) = shared(5, of);
        profile.taken = taken(number, (&profile, &histogram), (&other, &pages));
        let roles = Roles::of(&profile).unwrap();
        // Each second neighbour is on the same node.
        let found = expected(&(profile.clone(), histogram.clone(), roles));
        assert_eq!(found.by_data, 0.75 + 0.125, "run {number}");
    }
}

#[test]
fn threads_of_openmp_stay_where_its_runtime_binds_them() {
    let (mut profile, histogram, roles) = compared(&[parts(5, |t| THREADS - 1 - t)]);
    for (number, thread) in (0..).zip(&mut profile.threads) {
        thread.openmp = Some(number);
    }
    assert_eq!(
        roles.not_followed(&profile, &histogram),
        Some(NotFollowed::OpenMp)
    );
    let Expected { by_number, by_data } = expected(&(profile, histogram, roles));
    assert_eq!((by_number, by_data), (0.0, 0.0));
}

/// A ninth thread that has initialised all data, and waits: it is sent nowhere, and takes no place of a worker's.
#[test]
fn a_thread_that_only_initialises_is_not_sent_to_data() {
    let (mut profile, histogram, _) = compared(&[parts(5, |t| THREADS - 1 - t)]);
    let initialises: Vec<TakenPart> = profile
        .taken
        .iter()
        .map(|row| TakenPart {
            by: 0,
            accesses: 1,
            ..*row
        })
        .collect();
    profile.taken.iter_mut().for_each(|row| row.by += 1);
    profile.taken.extend(initialises);
    let roles = Roles::of(&profile).unwrap();
    assert!(expected(&(profile, histogram, roles)).by_data > 0.98);
}

/// A tenth of what each thread uses it has touched first itself: that stays where the thread began when it is sent to its part.
#[test]
fn memory_that_a_thread_touches_before_it_is_sent_stays_behind() {
    let (mut profile, histogram, roles) = compared(&[parts(5, |t| THREADS - 1 - t)]);
    let affinity = two_on_each_node();
    let home = |page: &crate::PageView<'_>| affinity.node(page.entries[0].thread);
    let homes: Vec<NodeId> = histogram.iter().map(|page| home(&page)).collect();
    let touch = |page: crate::PageView<'_>| FirstTouch {
        page: page.page,
        len: 1,
        thread: page.entries[0].thread,
        object: ObjectId(1),
        ..FirstTouch::default()
    };
    profile.first_touches = histogram.iter().map(touch).collect();
    // One of the ten pages of each part.
    let left: Vec<bool> = (0..histogram.len()).map(|page| page % 10 == 0).collect();
    let found = roles
        .expected(&profile, &histogram, &affinity, (&homes, &left))
        .all;
    assert!(
        (found.by_number - 0.1).abs() < 1e-12 && (found.by_data - 0.9).abs() < 1e-12,
        "{found:?}"
    );
}

#[test]
fn neighbours_that_change_places_lose_nothing_where_they_share_a_node() {
    let found = compared(&[parts(5, |t| t ^ 1)]);
    assert_eq!(
        (found.2.assignment, found.2.by_number),
        (Assignment::Arrival, 0.0)
    );
    assert_eq!(expected(&found).by_number, 1.0);
}

/// In the other run an eleventh thread has part 0: bound by number it gets the place of the third, on another node.
#[test]
fn a_thread_that_the_recorded_run_lacked_gets_places_from_the_first_on() {
    let (mut profile, histogram, _) = compared(&[parts(5, |t| t)]);
    for row in profile.taken.iter_mut().filter(|row| row.part == Some(0)) {
        row.by = THREADS + 2;
    }
    let roles = Roles::of(&profile).unwrap();
    assert_eq!((roles.by_number, roles.by_data), (0.875, 1.0));
    let Expected { by_number, by_data } = expected(&(profile, histogram, roles));
    assert_eq!((by_number, by_data), (0.875, 1.0));
}

/// Two threads share each part in the other run: the one that is matched with it, and one that has the number of another part.
#[test]
fn two_threads_with_one_part_are_both_where_it_is() {
    let (mut profile, histogram, _) = compared(&[parts(5, |t| t)]);
    let more: Vec<TakenPart> = profile.taken.clone();
    for (row, more) in profile.taken.iter_mut().zip(more) {
        (row.by, row.accesses) = (THREADS + more.by, 6 * more.accesses);
    }
    let beside = profile.taken.clone();
    profile.taken.extend(beside.iter().map(|row| TakenPart {
        by: (row.by + THREADS / 2) % THREADS,
        accesses: row.accesses / 2,
        ..*row
    }));
    let roles = Roles::of(&profile).unwrap();
    assert!((roles.by_data - 2.0 / 3.0).abs() < 1e-12, "{}", roles.by_data);
    let found = expected(&(profile, histogram, roles));
    assert!((found.by_number - 2.0 / 3.0).abs() < 1e-12, "{found:?}");
    assert_eq!(found.by_data, 1.0);
}

#[test]
fn work_by_chance_is_dynamic_and_a_quarter_of_it_is_local_on_four_nodes() {
    let found = compared(&[run(5, |_, _| 10)]);
    assert_eq!(found.2.assignment, Assignment::Dynamic);
    assert_eq!(
        (found.2.by_number, found.2.by_data, found.2.by_chance),
        (0.125, 0.125, 0.125)
    );
    let Expected { by_number, by_data } = expected(&found);
    assert!((by_number - 0.25).abs() < 1e-12 && (by_data - 0.25).abs() < 1e-12);
}

/// Two threads do nearly all of the work in both runs, in different pieces: that the threads match is chance.
#[test]
fn unequal_shares_of_work_by_chance_are_dynamic() {
    let busy = |t: u32| match t {
        0 => 80,
        1 => 20,
        _ => 0,
    };
    let piece = |salt: u64| {
        move |t: u32, page: u64| {
            let drawn = (((page + salt) * 0x9e37_79b9_7f4a_7c15) >> 32) % 100;
            100 * u64::from(t == u32::from(drawn >= busy(0)))
        }
    };
    let (mut profile, histogram) = run(1000, piece(1));
    let (other, pages) = run(5, piece(77));
    profile.taken = taken(0, (&profile, &histogram), (&other, &pages));
    let roles = Roles::of(&profile).unwrap();
    assert!(roles.by_data > 0.6 && roles.by_chance > 0.6, "{roles:?}");
    assert_eq!(roles.assignment, Assignment::Dynamic);
}

/// On a busy host one of eight threads got half of the work: with a CPU for each, all get equally much.
#[test]
fn work_as_it_comes_is_expected_to_be_shared_equally() {
    let of = |t: u32| if t == 0 { 70 } else { 10 };
    let (mut profile, histogram) = parts(1000, |t| t);
    let (other, pages) = run(5, |t, _| of(t));
    profile.taken = taken(0, (&profile, &histogram), (&other, &pages));
    let roles = Roles::of(&profile).unwrap();
    assert_eq!(roles.assignment, Assignment::Dynamic);
    let found = expected_on_node_0(&(profile, histogram, roles));
    assert!((found.by_number - 0.25).abs() < 1e-12, "{found:?}");
}

#[test]
fn where_all_pages_are_shared_or_one_thread_works_nothing_is_said() {
    for share in [|_, _| 10, |t, _| 10 * u64::from(t == 3)] {
        let (mut profile, histogram) = run(1000, share);
        let (other, pages) = run(5, share);
        profile.taken = taken(0, (&profile, &histogram), (&other, &pages));
        assert_eq!((profile.taken.is_empty(), Roles::of(&profile)), (false, None));
    }
}

/// Each thread touches its own part first, and pages are on their first-touch nodes: in another run they follow the
/// thread that has the part.
#[test]
fn first_touch_follows_the_part_in_another_run() {
    let (mut profile, histogram, roles) = compared(&[parts(5, |t| (t + 2) % THREADS)]);
    profile.first_touches = histogram
        .iter()
        .map(|page| FirstTouch {
            page: page.page,
            len: 1,
            thread: page.entries[0].thread,
            ..FirstTouch::default()
        })
        .collect();
    let found = (profile, histogram, roles);
    assert_eq!(
        expected(&found),
        Expected {
            by_number: 1.0,
            by_data: 1.0
        }
    );
}

#[test]
fn pages_that_no_thread_uses_most_are_of_no_part() {
    let (mut profile, histogram) = run(1000, |t, page| match page {
        0..40 => 10,
        _ => 100 * u64::from(t == page as u32 % THREADS),
    });
    let (other, pages) = run(5, |t, page| match page {
        0..40 => 10,
        _ => 80 * u64::from(t == (page as u32 + 1) % THREADS),
    });
    profile.taken = taken(0, (&profile, &histogram), (&other, &pages));
    let roles = Roles::of(&profile).unwrap();
    assert_eq!((roles.in_parts, roles.assignment), (0.5, Assignment::Arrival));
}

#[test]
fn objects_that_cannot_be_found_again_say_nothing() {
    let (profile, histogram) = parts(1000, |t| t);
    let (mut other, pages) = parts(5, |t| t);
    other.objects[1].pages += 1;
    assert_eq!(taken(0, (&profile, &histogram), (&other, &pages)), []);
    assert_eq!(Roles::of(&profile), None);
}

#[test]
fn openmp_that_is_asked_for_nothing_but_dynamic_schedules_needs_no_other_run() {
    let (mut profile, histogram) = parts(1000, |t| t);
    assert_eq!(Roles::of(&profile), None);
    let region = |schedule| Region {
        kind: RegionKind::OpenMp,
        schedule: Some(schedule),
        ..Region::default()
    };
    profile.regions = vec![
        Region::default(),
        region(Schedule::Guided),
        region(Schedule::Tasks),
    ];
    for (number, thread) in (0..).zip(&mut profile.threads) {
        thread.openmp = Some(number);
    }
    let roles = Roles::of(&profile).unwrap();
    assert_eq!((roles.runs, roles.assignment), (0, Assignment::Dynamic));
    let found = (profile.clone(), histogram, roles);
    let Expected { by_number, by_data } = expected(&found);
    assert!((by_number - 0.25).abs() < 1e-12 && (by_data - 0.25).abs() < 1e-12);
    for schedule in [Some(Schedule::Static), None] {
        profile.regions.push(Region {
            schedule,
            ..region(Schedule::Tasks)
        });
        assert_eq!(Roles::of(&profile), None, "only another run can tell");
        profile.regions.pop();
    }
}

#[test]
fn threads_that_take_one_number_each_are_assumed_to_come_in_order_of_arrival() {
    let (mut profile, histogram) = parts(1000, |t| t);
    let ticket = |thread, again| CounterUse {
        site: SiteId(1),
        thread: ThreadId(thread),
        again,
    };
    profile.tickets = (0..THREADS).map(|t| ticket(t, false)).collect();
    let roles = Roles::of(&profile).unwrap();
    assert_eq!((roles.runs, roles.assignment), (0, Assignment::Arrival));
    assert_eq!(roles.counter, Some(SiteId(1)));
    let found = (profile.clone(), histogram, roles);
    let Expected { by_number, by_data } = expected(&found);
    assert!((by_number - 0.25).abs() < 1e-12, "any of the eight: {by_number}");
    assert_eq!(by_data, 1.0, "each where its part is");

    // A comparison with another run replaces the assumption.
    let other = parts(5, |t| t);
    profile.taken = taken(0, (&profile, &found.1), (&other.0, &other.1));
    assert_eq!(Roles::of(&profile).unwrap().assignment, Assignment::Fixed);
    // Not one with a run whose threads may have come in the same order by chance, unless it shows that they did not.
    profile.order_may_be_the_same = true;
    let roles = Roles::of(&profile).unwrap();
    assert_eq!(
        (roles.assignment, roles.counter),
        (Assignment::Arrival, Some(SiteId(1)))
    );
    let turned = parts(5, |t| THREADS - 1 - t);
    profile.taken = taken(0, (&profile, &found.1), (&turned.0, &turned.1));
    let roles = Roles::of(&profile).unwrap();
    assert_eq!((roles.assignment, roles.counter), (Assignment::Arrival, None));
    profile.order_may_be_the_same = false;
    profile.taken.clear();

    // Numbers that threads take repeatedly, or that only a few threads take, do not name parts.
    profile.tickets[3].again = true;
    assert_eq!(Roles::of(&profile), None);
    profile.tickets = (0..3).map(|t| ticket(t, false)).collect();
    assert_eq!(Roles::of(&profile), None);
    let counters = shared_counters(&profile);
    assert_eq!(
        (counters.len(), counters[0].threads, counters[0].again),
        (1, 3, 0)
    );
    profile.tickets = vec![ticket(3, true)];
    assert_eq!(shared_counters(&profile), [], "one thread's own counter");
    profile.tickets = (0..THREADS).map(|t| ticket(t, false)).collect();
    for (process, thread) in (0..).zip(&mut profile.threads) {
        thread.process = process;
    }
    assert_eq!(Roles::of(&profile), None, "a counter in each process");
}

#[test]
fn one_run_tells_where_all_is_dealt_by_number() {
    let (mut profile, _) = parts(1000, |t| t);
    assert!(
        !Roles::is_by_number(&profile),
        "threads, and nothing is known of them"
    );
    for (number, thread) in (0..).zip(&mut profile.threads) {
        thread.openmp = Some(number);
    }
    let construct = |schedule| Region {
        kind: RegionKind::OpenMp,
        schedule,
        ..Region::default()
    };
    profile.regions = vec![Region::default(), construct(Some(Schedule::Static))];
    assert!(Roles::is_by_number(&profile));
    let tickets = |again| {
        let ticket = |t| CounterUse {
            site: SiteId(1),
            thread: ThreadId(t),
            again,
        };
        (0..THREADS).map(ticket).collect()
    };
    profile.tickets = tickets(false);
    assert_eq!(
        Roles::of(&profile),
        None,
        "what OpenMP is asked for outweighs what may be a name"
    );
    assert!(Roles::is_by_number(&profile));
    profile.tickets = tickets(true);
    assert!(!Roles::is_by_number(&profile), "work is drawn beside the loops");
    profile.tickets.clear();
    profile.regions.push(construct(None));
    assert!(!Roles::is_by_number(&profile));
    profile.regions.pop();
    profile.threads[5].openmp = None;
    assert!(!Roles::is_by_number(&profile), "a thread outside the team");
    for (process, thread) in (0..).zip(&mut profile.threads) {
        (thread.process, thread.openmp) = (process, None);
    }
    assert!(Roles::is_by_number(&profile), "a thread each: processes");
}

/// Most of the array is on its first-touch nodes, but a rule places all of it, so it does not follow first touch.
#[test]
fn pages_of_an_object_that_is_placed_do_not_follow_first_touch() {
    let (mut profile, histogram, roles) = compared(&[parts(5, |t| (t + 2) % THREADS)]);
    let of = |index: usize| match index {
        0..20 => ThreadId(0),
        _ => histogram.page(index).entries[0].thread,
    };
    profile.first_touches = (0..histogram.len())
        .map(|index| FirstTouch {
            page: histogram.pages[index],
            len: 1,
            thread: of(index),
            object: ObjectId(1),
            ..FirstTouch::default()
        })
        .collect();
    // Pages 0 to 19 are of threads 0 and 1, which are on the same node, so a first touch by a thread of another node is
    // used.
    profile.first_touches[30].thread = ThreadId(7);
    profile.first_touches[31..40]
        .iter_mut()
        .for_each(|touch| touch.thread = ThreadId(6));
    let found = (profile, histogram.clone(), roles);
    let Expected { by_number, by_data } = expected(&found);
    assert_eq!((by_number, by_data), (0.0, 1.0));
}

//! Policies that copy objects: the same times as a program in which each thread reads its own copy by another address.

mod common;

use common::*;
use nodewise_analysis::balance;
use nodewise_machine::{Machine, NodeId};
use nodewise_placement::{Context, Copies, Mapping, Mirrored};
use nodewise_profile::{Access, InMemory, ObjectId, PageNumber, Profile, SliceId};
use nodewise_simulation::{Changing, Moving, Parameters, Prediction, simulate_moving};

const NODES: u32 = 4;
const THREADS: u32 = 8;
const PAGES: u64 = 16;
/// Copies in the other program: that of node n begins at page (n + 1) × this.
const APART: u64 = 1000;

fn host() -> Machine {
    machine(NODES, 2, 3000.0, 1000.0)
}

/// Slice 0: thread 0 writes all pages. Slices 1 to 3: every thread reads every page, thread t `t + 1` times as much, at
/// the page that `at` says for its node.
fn rows(at: &dyn Fn(u32, u64) -> u64) -> Vec<Access> {
    let write = |page| Access {
        writes: 64,
        ..read(0, page, 8)
    };
    let reads = |slice: u32| {
        (0..THREADS).flat_map(move |t| {
            (0..PAGES).map(move |page| Access {
                slice: SliceId(slice),
                ..read(t, at(t / 2, page), u64::from(t + 1))
            })
        })
    };
    let mut all: Vec<Access> = (0..PAGES).map(write).collect();
    for slice in 1..4 {
        let mut slice: Vec<Access> = reads(slice).collect();
        slice.sort_by_key(|row| (row.page, row.thread));
        all.extend(slice);
    }
    all
}

/// The last prediction; pages of the first program are on node 0, those of copies on the copy's node.
fn last(rows: &[Access], changing: Changing) -> Prediction {
    let (machine, profile) = (host(), Profile::default());
    let (histogram, affinity) = (
        histogram(rows, THREADS as usize),
        compact(&machine, THREADS as usize),
    );
    let context = Context {
        profile: &profile,
        histogram: &histogram,
        affinity: &affinity,
        machine: &machine,
    };
    let home = |page: &PageNumber| NodeId((page.0 / APART).saturating_sub(1) as u32);
    let mapping = [Mapping {
        policy: "first-touch".into(),
        nodes: histogram.pages.iter().map(home).collect(),
    }];
    let source = InMemory::new(rows.to_vec());
    let Ok(mut simulation) = simulate_moving(&context, &mapping, changing, &source, &Parameters::default());
    simulation.predictions.pop().unwrap()
}

fn copies(holders: &[u32], nearest: [u32; 4], after: Option<u32>) -> Changing {
    Changing {
        moving: Vec::<Moving>::new(),
        copies: vec![Copies {
            policy: "mirror".into(),
            holders: holders.iter().copied().map(NodeId).collect(),
            nearest: nearest.map(NodeId).to_vec(),
            objects: vec![Mirrored {
                object: ObjectId(1),
                name: "table".into(),
                bytes: PAGES * 4096,
                after: after.map(SliceId),
                stored: after.is_some(),
            }],
            instance_bytes: None,
        }],
        last_copy: None,
    }
}

fn in_place(_: u32, page: u64) -> u64 {
    page
}

fn close(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-9 * b.abs(), "{a} is not {b}");
}

#[test]
fn a_copy_on_each_node_makes_every_read_local_from_the_next_slice_on() {
    let mirror = last(&rows(&in_place), copies(&[0, 1, 2, 3], [0, 1, 2, 3], Some(0)));
    let by_hand = last(
        &rows(&|node, page| page + APART * u64::from(node + 1)),
        Changing::default(),
    );
    let copied = mirror.copied.as_ref().unwrap();
    close(mirror.seconds.typical - copied.seconds, by_hand.seconds.typical);
    // After that time as much was saved as copying took, against something 1.1 times as fast as the baseline.
    let gain = mirror.speedup_later.typical;
    let even = copied.break_even_seconds(gain, 1.1).unwrap();
    close(even / 1.1 - even / gain, copied.seconds);
    assert_eq!(copied.break_even_seconds(1.0, 1.1), None);
    assert_eq!((mirror.local_fraction, by_hand.local_fraction), (1.0, 1.0));
    close(mirror.access_balance, by_hand.access_balance);
    close(mirror.latency_ns, by_hand.latency_ns);
}

#[test]
fn the_gain_from_then_on_is_of_the_slices_after_the_last_copy() {
    let mirror = last(&rows(&in_place), copies(&[0, 1, 2, 3], [0, 1, 2, 3], Some(0)));
    // The same without the slice of initialisation; copies are there from the beginning, and their time is apart.
    let later: Vec<Access> = rows(&in_place).into_iter().filter(|r| r.slice.0 > 0).collect();
    let alone = last(&later, copies(&[0, 1, 2, 3], [0, 1, 2, 3], None));
    close(mirror.speedup_later.typical, alone.speedup_later.typical);
    assert!(mirror.speedup_later.typical > mirror.speedup.typical);
    let nothing = last(&rows(&in_place), Changing::default());
    assert_eq!(nothing.speedup_later, nothing.speedup);
}

#[test]
fn nodes_without_a_copy_read_the_nearest() {
    let nearest = [0, 1, 1, 0];
    let mirror = last(&rows(&in_place), copies(&[0, 1], nearest, Some(0)));
    let at = |node: u32, page| page + APART * u64::from(nearest[node as usize] + 1);
    let by_hand = last(&rows(&at), Changing::default());
    close(
        mirror.seconds.typical - mirror.copied.unwrap().seconds,
        by_hand.seconds.typical,
    );
    close(mirror.local_fraction, by_hand.local_fraction);
    assert!(mirror.local_fraction < 0.6);
}

#[test]
fn copies_cost_memory_on_each_node_and_the_time_of_filling_it() {
    let mirror = last(&rows(&in_place), copies(&[0, 1, 2, 3], [0, 1, 2, 3], Some(0)));
    let copied = mirror.copied.unwrap();
    assert_eq!(copied.copies.bytes(), 4 * PAGES * 4096);
    close(mirror.page_balance, balance(&[2 * PAGES, PAGES, PAGES, PAGES]));
    // Within node 0 the controller's 3 GB/s limit a copy, to the others the link's 1 GB/s; 0.15 s a GB for the pages.
    let per_byte = 1.0 / 3.0 + 3.0 / 1.0 + 4.0 * Parameters::default().seconds_per_gb;
    close(copied.seconds, PAGES as f64 * 4096.0 * per_byte * 1e-9);
}

#[test]
fn what_is_copied_later_is_read_remotely_until_then() {
    let at = |after| last(&rows(&in_place), copies(&[0, 1, 2, 3], [0, 1, 2, 3], after)).local_fraction;
    // Reads of a slice: threads 0 and 1, on node 0, make 3 of 36 parts.
    let (writes, slice) = (64.0 + 64.0, 8.0 * 36.0);
    let late = (writes + 2.0 * slice * 3.0 / 36.0 + slice) / (writes + 3.0 * slice);
    close(at(Some(2)), late);
    let never = (writes + 3.0 * slice * 3.0 / 36.0) / (writes + 3.0 * slice);
    close(at(Some(9)), never);
    close(at(None), 1.0);
}

#[test]
fn an_instance_on_each_node_has_all_of_its_pages_there_from_the_first_slice_on() {
    let mut changing = copies(&[0, 1, 2, 3], [0, 1, 2, 3], None);
    changing.copies[0].objects.clear();
    changing.copies[0].instance_bytes = Some(PAGES * 4096);
    let instances = last(&rows(&in_place), changing);
    // The same work where each node's threads have pages of their own: the first slice's writer is on node 0, as its pages are.
    let by_hand = last(
        &rows(&|node, page| page + APART * u64::from(node + 1)),
        Changing::default(),
    );
    close(instances.seconds.typical, by_hand.seconds.typical);
    assert_eq!((instances.local_fraction, instances.page_balance), (1.0, 1.0));
    assert_eq!(instances.copied.unwrap().seconds, 0.0);
    assert_eq!(instances.speedup_later, instances.speedup);
}

//! Laws, held against a model of the kernel that answers as the real one does: it works off runs of
//! pages, gives up after a run in which one failed, and leaves the rest without a word.

use super::kernel::Kernel;
use super::plan::{Pair, Plan};
use super::run::BASE;
use super::*;
use nodewise_linux::pages::{CallError, PageStatus, Scope};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Mutex;

const HUGE_PAGES: u64 = 512;
/// A node that the process may not use.
const FORBIDDEN: u32 = 7;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Plain,
    Huge,
    Pinned,
    Shared,
    Unmapped,
    Unmovable,
}

struct Model {
    pages: Mutex<BTreeMap<u64, (u32, Kind)>>,
    /// Pages that nodes still take; others take any number.
    room: Mutex<BTreeMap<u32, u64>>,
    /// How often a node was asked for more.
    refusals: Mutex<u64>,
    /// Calls until the process ends.
    life: Mutex<u64>,
}

impl Model {
    fn of(kinds: &[Kind], room: u64, life: u64) -> Self {
        let mut pages = BTreeMap::new();
        let mut at = 1 << 40;
        for kind in kinds {
            let count = if *kind == Kind::Huge { HUGE_PAGES } else { 1 };
            if count > 1 {
                at = u64::next_multiple_of(at, HUGE_PAGES << BASE);
            }
            pages.extend((0..count).map(|i| (at + (i << BASE), (0, *kind))));
            at += count << BASE;
        }
        Self {
            pages: Mutex::new(pages),
            room: Mutex::new(BTreeMap::from([(1, room)])),
            refusals: Mutex::new(0),
            life: Mutex::new(life),
        }
    }

    fn plan(&self) -> Plan {
        let mut pair = Pair {
            from: 0,
            to: 1,
            runs: Vec::new(),
        };
        self.pages
            .lock()
            .unwrap()
            .keys()
            .for_each(|a| pair.push(*a, BASE));
        Plan {
            pid: 1,
            pairs: vec![pair],
            ..Plan::default()
        }
    }

    fn count(&self, node: u32) -> u64 {
        let pages = self.pages.lock().unwrap();
        pages
            .values()
            .filter(|p| p.0 == node && p.1 != Kind::Unmapped)
            .count() as u64
    }

    fn live(&self) -> Result<(), CallError> {
        let mut life = self.life.lock().unwrap();
        *life = life.checked_sub(1).ok_or(CallError::Gone)?;
        Ok(())
    }

    /// Takes room for pages on a node, and gives back what they had.
    fn take(&self, from: u32, to: u32, pages: u64) -> Result<(), CallError> {
        let mut room = self.room.lock().unwrap();
        if let Some(left) = room.get_mut(&to) {
            let Some(less) = left.checked_sub(pages) else {
                *self.refusals.lock().unwrap() += 1;
                return Err(CallError::NoRoom);
            };
            *left = less;
        }
        if let Some(left) = room.get_mut(&from) {
            *left += pages;
        }
        Ok(())
    }

    /// Migrates a run; how many failed, or that there is no room.
    fn migrate(&self, queued: &mut Vec<u64>, node: u32) -> Result<usize, CallError> {
        let mut failed = 0;
        for address in queued.drain(..) {
            let mut pages = self.pages.lock().unwrap();
            let kind = pages[&address].1;
            if kind == Kind::Pinned {
                failed += 1;
                continue;
            }
            let size = if kind == Kind::Huge { HUGE_PAGES } else { 1 };
            self.take(pages[&address].0, node, size)?;
            let head = if kind == Kind::Huge {
                address / (HUGE_PAGES << BASE) * (HUGE_PAGES << BASE)
            } else {
                address
            };
            for page in (0..size).map(|i| head + (i << BASE)) {
                pages.get_mut(&page).unwrap().0 = node;
            }
        }
        Ok(failed)
    }

    /// Whether a page can be queued, else what is said of it.
    fn queue(&self, address: u64, queued: &[u64], node: u32) -> Result<(), PageStatus> {
        let (on, kind) = self.pages.lock().unwrap()[&address];
        let block = |a: u64| a / (HUGE_PAGES << BASE);
        match kind {
            Kind::Shared => Err(PageStatus::Shared),
            Kind::Unmapped => Err(PageStatus::Absent),
            Kind::Unmovable => Err(PageStatus::Fault),
            Kind::Huge if queued.iter().any(|q| block(*q) == block(address)) => Err(PageStatus::Busy),
            _ if on == node => Err(PageStatus::On(node)),
            _ => Ok(()),
        }
    }
}

impl Kernel for Model {
    fn query(&self, addresses: &[u64]) -> Result<Vec<PageStatus>, CallError> {
        self.live()?;
        let pages = self.pages.lock().unwrap();
        let status = |a: &u64| match pages[a] {
            (_, Kind::Unmapped) => PageStatus::Absent,
            (node, _) => PageStatus::On(node),
        };
        Ok(addresses.iter().map(status).collect())
    }

    fn move_to(&self, addresses: &[u64], node: u32) -> (Vec<PageStatus>, Option<CallError>) {
        let mut statuses = vec![PageStatus::Unreported; addresses.len()];
        if let Err(gone) = self.live() {
            return (statuses, Some(gone));
        }
        if node == FORBIDDEN {
            return (statuses, Some(CallError::NotAllowed));
        }
        let (mut queued, mut start) = (Vec::new(), 0);
        for (at, address) in addresses.iter().enumerate() {
            let Err(said) = self.queue(*address, &queued, node) else {
                queued.push(*address);
                continue;
            };
            statuses[at] = said;
            match self.migrate(&mut queued, node) {
                Ok(0) => statuses[start..at].fill(PageStatus::On(node)),
                Ok(_) => return (statuses, None),
                Err(error) => return (statuses, Some(error)),
            }
            start = at + 1;
        }
        match self.migrate(&mut queued, node) {
            Ok(0) => statuses[start..].fill(PageStatus::On(node)),
            Ok(_) => {}
            Err(error) => return (statuses, Some(error)),
        }
        (statuses, None)
    }

    fn room(&self, node: u32) -> Option<u64> {
        let room = self.room.lock().unwrap();
        Some(
            room.get(&node)
                .map_or(u64::MAX, |pages| pages.saturating_mul(1 << BASE)),
        )
    }

    fn spare(&self, node: u32) -> Option<u64> {
        self.room(node)
    }
}

fn kinds() -> impl Strategy<Value = Vec<Kind>> {
    let kind = prop_oneof![
        12 => Just(Kind::Plain),
        1 => Just(Kind::Huge),
        1 => Just(Kind::Pinned),
        1 => Just(Kind::Shared),
        1 => Just(Kind::Unmapped),
        1 => Just(Kind::Unmovable),
    ];
    let some = prop::collection::vec(kind, 1..60);
    // Long stretches of small pages are blocks that look like huge ones.
    (some, 0usize..1200).prop_map(|(mut kinds, plain)| {
        kinds.extend(vec![Kind::Plain; plain]);
        kinds
    })
}

fn run(model: &Model, workers: usize, chunk: usize) -> Moved {
    let mover = Mover {
        scope: Scope::Exclusive,
        nodes: Vec::new(),
        workers,
        chunk,
    };
    mover.work(model, &model.plan(), true, &|_| ())
}

proptest! {
    #[test]
    fn every_page_is_accounted_for_once_whatever_happens(
        kinds in kinds(), room in 0u64..40_000, life in prop_oneof![Just(u64::MAX), 0u64..12],
        workers in 1usize..4, chunk in 1usize..3000,
    ) {
        let model = Model::of(&kinds, room, life);
        let planned = model.plan().pages();
        let moved = run(&model, workers, chunk);
        prop_assert_eq!(moved.refusal, None);
        prop_assert_eq!(moved.pages + moved.stayed.total(), planned);
        prop_assert_eq!(moved.pairs[0].pages, moved.pages);
        prop_assert!(life < u64::MAX || !moved.gone);
    }

    #[test]
    fn with_room_all_that_can_move_does_and_the_rest_is_told_apart(
        kinds in kinds(), workers in 1usize..4, chunk in 1usize..3000,
    ) {
        let model = Model::of(&kinds, u64::MAX, u64::MAX);
        let moved = run(&model, workers, chunk);
        let of = |kind: Kind| kinds.iter().filter(|k| **k == kind).count() as u64;
        prop_assert_eq!(moved.pages, model.count(1));
        prop_assert_eq!(moved.pages, of(Kind::Plain) + HUGE_PAGES * of(Kind::Huge));
        prop_assert_eq!(moved.huge, of(Kind::Huge), "whole ones");
        let causes = [
            (Kind::Shared, Cause::Shared), (Kind::Pinned, Cause::Busy),
            (Kind::Unmapped, Cause::Gone), (Kind::Unmovable, Cause::Unmovable),
        ];
        for (kind, cause) in causes {
            prop_assert_eq!(moved.stayed.count(cause), of(kind), "{:?}", cause);
        }
        // And each page has its own.
        for (address, (_, kind)) in &*model.pages.lock().unwrap() {
            let expected = causes.iter().find(|(k, _)| k == kind).map(|(_, cause)| *cause);
            prop_assert_eq!(moved.stayed.cause_of(*address..*address + 1), expected);
        }
    }

    #[test]
    fn a_node_takes_what_it_has_room_for_and_no_more(count in 1u64..3000, room in 0u64..4000, chunk in 1usize..3000) {
        let model = Model::of(&vec![Kind::Plain; count as usize], room, u64::MAX);
        let moved = run(&model, 2, chunk);
        prop_assert_eq!(moved.refusal, None);
        prop_assert_eq!(moved.pages, model.count(1));
        prop_assert!(moved.pages <= room);
        prop_assert_eq!(moved.stayed.count(Cause::NoRoom), count - moved.pages);
        prop_assert!(moved.pages == count || moved.pages + HUGE_PAGES > room, "{} of {}", moved.pages, room);
    }
}

#[test]
fn what_moved_before_a_refusal_is_not_forgotten() {
    let model = Model::of(&[Kind::Plain; 100], u64::MAX, u64::MAX);
    let mut plan = model.plan();
    let mut refused = plan.pairs[0].clone();
    refused.to = FORBIDDEN;
    refused.runs[0].count = 40;
    plan.pairs[0].runs[0].address += 40 << BASE;
    plan.pairs[0].runs[0].count = 60;
    plan.pairs.push(refused);
    let mover = Mover {
        scope: Scope::Exclusive,
        nodes: Vec::new(),
        workers: 1,
        chunk: 4096,
    };
    let moved = mover.work(&model, &plan, false, &|_| ());
    assert_eq!(moved.refusal, Some(CallError::NotAllowed));
    assert_eq!((moved.pages, model.count(1)), (60, 60));
}

/// 500 pages on each of two nodes change places, of which node 1 has room for 40 pages more, and node 0 for `room`.
fn exchanged(room: u64) -> (Moved, u64) {
    let model = Model::of(&[Kind::Plain; 1000], 40, u64::MAX);
    model.room.lock().unwrap().insert(0, room);
    let mut plan = model.plan();
    let run = plan.pairs[0].runs[0];
    let pair = |from, to, first: u64| Pair {
        from,
        to,
        runs: vec![Run {
            address: run.address + (first << BASE),
            count: 500,
            ..run
        }],
    };
    plan.pairs = vec![pair(0, 1, 0), pair(1, 0, 500)];
    for (_, page) in model.pages.lock().unwrap().iter_mut().skip(500) {
        page.0 = 1;
    }
    let mover = Mover {
        scope: Scope::Exclusive,
        nodes: Vec::new(),
        workers: 1,
        chunk: 64,
    };
    let moved = mover.work(&model, &plan, false, &|_| ());
    let refusals = *model.refusals.lock().unwrap();
    (moved, refusals)
}

/// A full node, and two, each round of which leaves room for the next.
#[test]
fn pages_change_places_with_those_of_full_nodes_which_are_never_asked_for_more() {
    for room in [u64::MAX / 2, 3, 0] {
        let (moved, refusals) = exchanged(room);
        assert_eq!(
            (moved.pages, moved.stayed.total(), refusals),
            (1000, 0, 0),
            "{room}"
        );
    }
}

#[test]
fn pages_of_this_process_stay_where_they_are_wanted() {
    let memory = vec![7u8; 1 << 20];
    let address = (memory.as_ptr() as u64 + 4095) & !4095;
    let target = |node| Target {
        address,
        pages: 200,
        node,
    };
    let mover = Mover::new(2);
    let asked = mover.move_pages(std::process::id(), &[target(0)]).unwrap();
    let home = asked.homes[0].expect("touched");
    let moved = mover.move_pages(std::process::id(), &[target(home)]).unwrap();
    assert_eq!((moved.pages, moved.homes), (0, vec![Some(home)]));
    assert_eq!(moved.already, [true]);
    assert!(memory.iter().all(|b| *b == 7));
}

#[test]
fn a_process_that_is_gone_has_nothing_to_move() {
    let target = Target {
        address: 0x1000,
        pages: 4,
        node: 0,
    };
    let moved = Mover::new(0).move_pages(u32::MAX >> 2, &[target]).unwrap();
    assert_eq!((moved.pages, moved.homes), (0, vec![None]));
}

//! Keeps the pages with the most accesses in fast memory of a limited size, by exchanging pages between it and the rest.

use super::parameters::Parameters;
use super::{Made, MigrationPolicy, Move, Observed, Reason};
use crate::formulas::mix;
use crate::tier::Tier;
use nodewise_machine::{Machine, NodeId};
use nodewise_profile::BASE_PAGE_SIZE;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Promotes the pages with the most accesses into the nodes of a tier, and demotes those with the fewest to make room.
///
/// A page takes a free place in the tier, or that of a page with clearly fewer accesses, which leaves for it. Pages in
/// cooldown are passed over, so that no page leaves for one that may not come.
pub struct Hot {
    name: String,
    tier: Tier,
    hysteresis: f64,
    machine: Machine,
}

/// The hysteresis is that of `dominant`: of two pages that are used alike, one has half as many samples more by chance.
pub(super) fn make(p: &mut Parameters<'_>, machine: &Machine) -> Made {
    let name = p.name();
    let hysteresis = p.take(
        "hysteresis",
        0.5,
        |h: &f64| *h >= 0.0 && h.is_finite(),
        "a number from 0 up, such as 0.5",
    )?;
    Ok(Box::new(Hot {
        tier: Tier::parse(p.bare(), &name, machine)?,
        name,
        hysteresis,
        machine: machine.clone(),
    }))
}

/// The pages of an interval, and the room for more.
struct Pages<'a> {
    observed: &'a dyn Observed,
    /// Accesses to each page from all nodes.
    heat: Vec<u64>,
    /// Pages that each node has room for.
    room: Vec<u64>,
}

impl MigrationPolicy for Hot {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn tier(&self) -> Option<&Tier> {
        Some(&self.tier)
    }

    fn decide(&mut self, observed: &dyn Observed) -> Vec<Move> {
        let mut pages = Pages::of(observed, &self.machine);
        let inside = |i: &u32| self.tier.nodes().contains(&observed.home(*i as usize));
        let all = 0..observed.len() as u32;
        let (resident, others): (Vec<u32>, Vec<u32>) = all.partition(inside);
        let page_size = BASE_PAGE_SIZE << observed.page_shift();
        let limit = self.tier.size(&self.machine) / page_size;
        let used = resident.len() as u64;
        let free: u64 = self.tier.nodes().iter().map(|n| pages.room[n.index()]).sum();
        let mut moves = Vec::new();

        // Pages with equally many accesses are taken in the order of a hash, as by the page policy `hot`.
        let key = |i: &u32| (pages.heat[*i as usize], mix(observed.page(*i as usize).0), *i);
        let may_move = |i: u32| !observed.in_cooldown(i as usize);
        let mut hottest: BinaryHeap<_> = others.iter().map(key).filter(|k| k.0 > 0).collect();
        let mut coldest: BinaryHeap<_> = resident.iter().map(key).map(Reverse).collect();
        let mut hottest = std::iter::from_fn(|| hottest.pop()).filter(|(_, _, i)| may_move(*i));
        let mut coldest = std::iter::from_fn(|| coldest.pop().map(|k| k.0)).filter(|(_, _, i)| may_move(*i));
        for _ in 0..limit.saturating_sub(used).min(free) {
            let Some((heat, _, i)) = hottest.next() else { break };
            let reason = reason(heat, 0, heat, 0.0);
            moves.extend(pages.to(i, self.tier.nodes(), &self.machine, reason));
        }
        let outside: Vec<NodeId> = self
            .machine
            .node_ids()
            .filter(|n| !self.tier.nodes().contains(n))
            .collect();
        let known: u64 = pages.heat.iter().sum();
        for _ in 0..used.saturating_sub(limit) {
            let Some((heat, _, i)) = coldest.next() else { break };
            let over = Reason {
                regardless: true,
                ..reason(known, heat, known, 0.0)
            };
            moves.extend(pages.to(i, &outside, &self.machine, over));
        }
        for ((hot, _, comer), (cold, _, leaver)) in hottest.zip(coldest) {
            let threshold = cold as f64 * (1.0 + self.hysteresis);
            if hot as f64 <= threshold {
                break;
            }
            let for_other = |other: u32| Reason {
                partner: Some(other as usize),
                ..reason(hot, cold, hot + cold, threshold)
            };
            let Some(leaves) = pages.to(leaver, &outside, &self.machine, for_other(comer)) else {
                break;
            };
            pages.room[leaves.from.index()] += 1;
            let comes = pages.to(comer, self.tier.nodes(), &self.machine, for_other(leaver));
            moves.extend(comes.map(|comes| [leaves, comes]).into_iter().flatten());
        }
        moves.sort_unstable_by_key(|m| m.index);
        moves
    }
}

/// `to`, `home`: accesses to the page that comes in and to the one that has its place.
fn reason(to: u64, home: u64, evidence: u64, threshold: f64) -> Reason {
    Reason {
        to_count: to as f64,
        home_count: Some(home as f64),
        count_threshold: threshold,
        evidence: evidence as f64,
        regardless: false,
        partner: None,
    }
}

impl<'a> Pages<'a> {
    fn of(observed: &'a dyn Observed, machine: &Machine) -> Self {
        let page_size = BASE_PAGE_SIZE << observed.page_shift();
        let mut own = vec![0; machine.node_count()];
        let mut counts = vec![0; observed.nodes()];
        let mut heat = Vec::with_capacity(observed.len());
        for i in 0..observed.len() {
            own[observed.home(i).index()] += 1;
            observed.counts(i, &mut counts);
            heat.push(counts.iter().sum());
        }
        let nodes = machine.node_ids().zip(own);
        let room = nodes.map(|(node, own): (NodeId, u64)| {
            let has = machine.nodes[node.index()].memory / page_size;
            observed
                .free(node)
                .unwrap_or(u64::MAX)
                .min(has.saturating_sub(own))
        });
        let room = room.collect();
        Self { observed, heat, room }
    }

    /// The move of page `i` to that of `nodes` with room from which its accessors have it with the least latency; without
    /// accesses, that nearest to its home.
    fn to(&mut self, i: u32, nodes: &[NodeId], machine: &Machine, reason: Reason) -> Option<Move> {
        let index = i as usize;
        let from = self.observed.home(index);
        let mut counts = vec![0; self.observed.nodes()];
        self.observed.counts(index, &mut counts);
        if self.heat[index] == 0 {
            counts[from.index()] = 1;
        }
        let latency = |node: &NodeId| -> f64 {
            let readers = counts.iter().zip(&machine.latency_ns);
            readers.map(|(c, row)| *c as f64 * row[node.index()]).sum()
        };
        let free = nodes.iter().filter(|n| self.room[n.index()] > 0);
        let to = *free.min_by(|a, b| latency(a).total_cmp(&latency(b)))?;
        self.room[to.index()] -= 1;
        Some(Move {
            index,
            page: self.observed.page(index),
            from,
            to,
            reason,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migration::properties::{Pages as Shown, any_pages, policy};
    use proptest::prelude::*;

    /// Accesses to a page from all nodes.
    fn heat(pages: &Shown, i: usize) -> u64 {
        let mut counts = vec![0; pages.nodes()];
        pages.counts(i, &mut counts);
        counts.iter().sum()
    }

    proptest! {
        #[test]
        fn fast_memory_gets_the_most_accesses_it_can_and_never_more_pages_than_it_holds(
            pages in any_pages(), limit in 1u64..12, hysteresis in prop_oneof![Just(0.0), 0.0f64..2.0],
        ) {
            let mut pages = pages;
            let mut hot = policy(&format!("hot:1+3@{}K:hysteresis={hysteresis}", 4 * limit));
            let inside = |pages: &Shown| (0..pages.len()).filter(|i| pages.home(*i).0 % 2 == 1).collect::<Vec<_>>();
            let (mut moved, mut most) = (vec![0; pages.len()], limit.max(inside(&pages).len() as u64));
            for _ in 0..4 {
                let moves = hot.decide(&pages);
                moves.iter().for_each(|m| moved[m.index] += 1);
                pages.apply(&moves);
                let now = inside(&pages).len() as u64;
                prop_assert!(now <= most);
                most = now.max(limit);
            }
            prop_assert!(moved.iter().all(|m| *m <= 1), "{:?}", moved);
            prop_assert!(hot.decide(&pages).is_empty());
            let fast = inside(&pages);
            let outside = (0..pages.len()).filter(|i| !fast.contains(i)).map(|i| heat(&pages, i));
            let hottest = outside.max().unwrap_or(0) as f64;
            if (fast.len() as u64) < limit {
                prop_assert_eq!(hottest, 0.0);
            } else if hottest > 0.0 {
                let coldest = fast.iter().map(|i| heat(&pages, *i)).min().unwrap_or(0) as f64;
                prop_assert!(hottest <= coldest * (1.0 + hysteresis));
            }
        }
    }

    #[test]
    fn what_has_no_room_stays_and_the_nearest_node_with_room_is_taken() {
        let mut hot = policy("hot:1+3@8K");
        // Page 7 is used from node 3, page 8 from node 1; page 9 is cold.
        let pages = Shown::of(&[(7, 0, [1, 0, 0, 9]), (8, 2, [0, 5, 1, 0]), (9, 0, [0, 0, 0, 0])]);
        let to = |moves: Vec<Move>| moves.iter().map(|m| (m.page.0, m.to.0)).collect::<Vec<_>>();
        assert_eq!(to(hot.decide(&pages)), [(7, 3), (8, 1)]);
        assert_eq!(to(hot.decide(&Full(&pages, NodeId(3)))), [(7, 1)]);
    }

    /// Pages on a machine of which one node has no free memory and each other has a page of it.
    struct Full<'a>(&'a Shown, NodeId);

    impl Observed for Full<'_> {
        fn nodes(&self) -> usize {
            self.0.nodes()
        }

        fn len(&self) -> usize {
            self.0.len()
        }

        fn page(&self, index: usize) -> nodewise_profile::PageNumber {
            self.0.page(index)
        }

        fn home(&self, index: usize) -> NodeId {
            self.0.home(index)
        }

        fn counts(&self, index: usize, counts: &mut [u64]) {
            self.0.counts(index, counts);
        }

        fn free(&self, node: NodeId) -> Option<u64> {
            Some(u64::from(node != self.1))
        }
    }
}

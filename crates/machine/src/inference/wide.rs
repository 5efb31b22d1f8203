//! Bottlenecks that two flows cannot saturate, such as the link between two sockets of several nodes each.

use super::{Bottleneck, Estimate, Survey};
use crate::Flow;

/// Crowds are at least this many; two are a pair.
const CROWD: usize = 3;

/// Lets crowds run whose flows are pairwise apart. Where somebody loses, the crowd is reduced to the fewest
/// that still lose: all of them cross one bottleneck. Who else does is asked one by one, beside as many of
/// them as just fit. Ends after a crowd for each node in which nobody lost, or when time is up.
pub(super) fn look(survey: &mut Survey, measure: &mut impl FnMut(&[Flow]) -> Option<Vec<Estimate>>) {
    let nodes = survey
        .flows()
        .iter()
        .map(|f| f.memory.max(f.reader).0 + 1)
        .max()
        .unwrap_or(0);
    let (mut turn, mut quiet) = (0, 0);
    while quiet < nodes {
        let crowd = crowd(survey, turn, nodes);
        turn += 1;
        quiet += 1;
        if crowd.len() < CROWD {
            continue;
        }
        match found(survey, crowd, measure) {
            None => return,
            Some(None) => {}
            Some(Some(bottleneck)) => {
                survey.wide.push(bottleneck);
                quiet = 0;
            }
        }
    }
}

/// The bottleneck behind a crowd's loss, if there is one; the outer `None` when time is up.
fn found(
    survey: &Survey,
    mut crowd: Vec<usize>,
    measure: &mut impl FnMut(&[Flow]) -> Option<Vec<Estimate>>,
) -> Option<Option<Bottleneck>> {
    let mut lose = |group: &[usize]| {
        let rates = measure(&survey.of(group))?;
        let lost = group.iter().zip(&rates).any(|(f, r)| survey.loses(*f, r));
        Some((lost, rates.iter().map(|r| r.median).sum::<f64>()))
    };
    let (lost, mut capacity) = lose(&crowd)?;
    if !lost {
        return Some(None);
    }
    let mut at = 0;
    while at < crowd.len() && crowd.len() > CROWD {
        let mut without = crowd.clone();
        without.remove(at);
        match lose(&without)? {
            (true, sum) => (crowd, capacity) = (without, sum),
            (false, _) => at += 1,
        }
    }
    crowd.sort_unstable();
    let core = Bottleneck {
        capacity,
        flows: crowd,
    };
    Some(Some(with_members(survey, core, measure)?))
}

/// Adds all that lose beside flows known to cross it.
fn with_members(
    survey: &Survey,
    mut known: Bottleneck,
    measure: &mut impl FnMut(&[Flow]) -> Option<Vec<Estimate>>,
) -> Option<Bottleneck> {
    let mut open: Vec<usize> = (0..survey.flows().len())
        .filter(|f| !known.flows.contains(f))
        .collect();
    loop {
        let before = open.len();
        let mut unasked = Vec::new();
        for flow in open {
            let Some(group) = beside(survey, &known, flow) else {
                unasked.push(flow);
                continue;
            };
            let rates = measure(&survey.of(&group))?;
            if survey.all_lose(&group, &rates) {
                let at = known.flows.partition_point(|f| *f < flow);
                known.flows.insert(at, flow);
            }
        }
        // Those who found no company before may find it among new members.
        if unasked.len() == before {
            return Some(known);
        }
        open = unasked;
    }
}

/// A flow with as many of those who cross a bottleneck as fit through it, if it would then be too narrow.
fn beside(survey: &Survey, bottleneck: &Bottleneck, flow: usize) -> Option<Vec<usize>> {
    let width = |f: usize| survey.alone()[f].median;
    let (mut group, mut load) = (vec![flow], 0.0);
    for member in &bottleneck.flows {
        let room = load + width(*member) <= bottleneck.capacity;
        if room && group.iter().all(|f| survey.apart(*f, *member)) {
            group.push(*member);
            load += width(*member);
        }
    }
    let narrowest = group.iter().map(|f| width(*f)).fold(f64::INFINITY, f64::min);
    (load + width(flow) > bottleneck.capacity + 0.1 * narrowest).then_some(group)
}

/// As many flows as go together: first each node from the one so many further on, then as it comes.
fn crowd(survey: &Survey, turn: u32, nodes: u32) -> Vec<usize> {
    let mut order: Vec<usize> = (0..survey.flows().len()).collect();
    let shift = turn + 1;
    order.sort_by_cached_key(|f| {
        let flow = survey.flows()[*f];
        let further = (flow.memory.0 + nodes - flow.reader.0) % nodes;
        (further != shift % nodes, scattered(*f as u64, turn))
    });
    let mut crowd: Vec<usize> = Vec::new();
    for flow in order {
        if crowd.iter().all(|f| survey.apart(*f, flow)) && fits(survey, &crowd, flow) {
            crowd.push(flow);
        }
    }
    crowd
}

/// Whether no bottleneck that is known already becomes too narrow.
fn fits(survey: &Survey, crowd: &[usize], flow: usize) -> bool {
    survey.wide.iter().filter(|b| b.flows.contains(&flow)).all(|b| {
        let inside = crowd.iter().filter(|f| b.flows.contains(f)).chain([&flow]);
        inside.map(|f| survey.alone()[*f].median).sum::<f64>() <= b.capacity
    })
}

/// An order that differs from turn to turn (the finaliser of `SplitMix64`).
fn scattered(flow: u64, turn: u32) -> u64 {
    let mut mixed = (flow + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (u64::from(turn) << 32);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

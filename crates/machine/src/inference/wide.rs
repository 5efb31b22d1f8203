//! Bottlenecks that two flows cannot saturate, such as the link between two sockets of several nodes each.

use super::bottlenecks::bottlenecks;
use super::{Bottleneck, Estimate, Survey};
use crate::Flow;

/// Crowds are at least this many; two are a pair.
const CROWD: usize = 3;

/// Lets crowds run whose flows are pairwise apart and fit together through every bottleneck that is known. Where a
/// flow loses, the crowd is reduced to the fewest that still lose: all of them cross one bottleneck. Which other
/// flows cross it is asked one by one, beside as many of them as just fit. Ends after a crowd for each node in which
/// no flow lost, or when time is up.
///
/// Three flows can fill a link that no two of them do, though other pairs have shown that link. Without the
/// bottlenecks of pairs such a crowd would be taken for a further bottleneck, with members that lose
/// elsewhere.
pub(super) fn look(survey: &mut Survey, measure: &mut impl FnMut(&[Flow]) -> Option<Vec<Estimate>>) {
    let nodes = survey
        .flows()
        .iter()
        .map(|f| f.memory.max(f.reader).0 + 1)
        .max()
        .unwrap_or(0);
    let mut known = bottlenecks(survey);
    let (mut turn, mut quiet) = (0, 0);
    while quiet < nodes {
        let crowd = crowd(survey, &known, turn, nodes);
        turn += 1;
        quiet += 1;
        if crowd.len() < CROWD {
            continue;
        }
        match found(survey, &known, crowd, measure) {
            None => return,
            Some(None) => {}
            Some(Some(bottleneck)) => {
                survey.wide.push(bottleneck.clone());
                known.push(bottleneck);
                quiet = 0;
            }
        }
    }
}

/// The bottleneck behind a crowd's loss, if there is one; the outer `None` when time is up.
fn found(
    survey: &Survey,
    known: &[Bottleneck],
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
    Some(Some(with_members(survey, known, core, measure)?))
}

/// Adds all that lose beside flows known to cross it.
fn with_members(
    survey: &Survey,
    known: &[Bottleneck],
    mut core: Bottleneck,
    measure: &mut impl FnMut(&[Flow]) -> Option<Vec<Estimate>>,
) -> Option<Bottleneck> {
    let mut open: Vec<usize> = (0..survey.flows().len())
        .filter(|f| !core.flows.contains(f))
        .collect();
    loop {
        let before = open.len();
        let mut unasked = Vec::new();
        for flow in open {
            let Some(group) = beside(survey, known, &core, flow) else {
                unasked.push(flow);
                continue;
            };
            let rates = measure(&survey.of(&group))?;
            if survey.all_lose(&group, &rates) {
                let at = core.flows.partition_point(|f| *f < flow);
                core.flows.insert(at, flow);
            }
        }
        // Those who found no company before may find it among new members.
        if unasked.len() == before {
            return Some(core);
        }
        open = unasked;
    }
}

/// A flow with as many of those who cross a bottleneck as fit through it, if it would then be too narrow and no
/// other that is known.
fn beside(survey: &Survey, known: &[Bottleneck], bottleneck: &Bottleneck, flow: usize) -> Option<Vec<usize>> {
    let width = |f: usize| survey.alone()[f].median;
    let (mut group, mut load) = (vec![flow], 0.0);
    for member in &bottleneck.flows {
        let room = load + width(*member) <= bottleneck.capacity;
        if room && group.iter().all(|f| survey.apart(*f, *member)) && fits(survey, known, &group, *member) {
            group.push(*member);
            load += width(*member);
        }
    }
    let narrowest = group.iter().map(|f| width(*f)).fold(f64::INFINITY, f64::min);
    (load + width(flow) > bottleneck.capacity + 0.1 * narrowest).then_some(group)
}

/// As many flows as go together: first each node from the one so many further on, then as it comes.
fn crowd(survey: &Survey, known: &[Bottleneck], turn: u32, nodes: u32) -> Vec<usize> {
    let mut order: Vec<usize> = (0..survey.flows().len()).collect();
    let shift = turn + 1;
    order.sort_by_cached_key(|f| {
        let flow = survey.flows()[*f];
        let further = (flow.memory.0 + nodes - flow.reader.0) % nodes;
        (further != shift % nodes, scattered(*f as u64, turn))
    });
    let mut crowd: Vec<usize> = Vec::new();
    for flow in order {
        if crowd.iter().all(|f| survey.apart(*f, flow)) && fits(survey, known, &crowd, flow) {
            crowd.push(flow);
        }
    }
    crowd
}

/// Whether no bottleneck that is known already becomes too narrow for a flow beside a crowd, from which it is apart
/// pair by pair.
fn fits(survey: &Survey, known: &[Bottleneck], crowd: &[usize], flow: usize) -> bool {
    let crossed = |b: &&Bottleneck| b.flows.binary_search(&flow).is_ok();
    known.iter().filter(crossed).all(|b| {
        let beside = || crowd.iter().filter(|f| b.flows.binary_search(f).is_ok());
        // Two were seen to fit; their measured sum may be above the measured capacity by noise.
        let load = || {
            beside()
                .chain([&flow])
                .map(|f| survey.alone()[*f].median)
                .sum::<f64>()
        };
        beside().count() < 2 || load() <= b.capacity
    })
}

/// An order that differs from turn to turn (the finaliser of `SplitMix64`).
fn scattered(flow: u64, turn: u32) -> u64 {
    let mut mixed = (flow + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (u64::from(turn) << 32);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

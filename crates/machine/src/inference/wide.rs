//! Bottlenecks that two flows cannot saturate, such as the link between two sockets of several nodes each.

use super::bottlenecks::{CAPACITY_TOLERANCE, bottlenecks};
use super::{Bottleneck, Estimate, Survey};
use crate::{Channels, Flow};

/// Smallest number of flows in a crowd; two flows are a pair.
const MIN_CROWD: usize = 3;

/// Measures crowds of flows that pairwise share nothing. If a flow loses more than the known bottlenecks explain, the
/// crowd is reduced to the smallest one for which this holds: all of its flows cross one further bottleneck. Every
/// other flow is then tested for crossing it, beside as many of these flows as just fit. Ends when as many crowds as
/// there are nodes showed no loss in a row, or when time is up.
///
/// Three flows can fill a link that no two of them fill, although other pairs have shown that link already. Their loss
/// is then no sign of a further bottleneck.
pub(super) fn search(survey: &mut Survey, measure: &mut impl FnMut(&[Flow]) -> Option<Vec<Estimate>>) {
    let nodes = survey
        .flows()
        .iter()
        .map(|f| f.memory.max(f.reader).0 + 1)
        .max()
        .unwrap_or(0);
    let mut known = bottlenecks(survey);
    let (mut turn, mut quiet) = (0, 0);
    while quiet < nodes {
        let crowd = crowd(survey, turn, nodes);
        turn += 1;
        quiet += 1;
        if crowd.len() < MIN_CROWD {
            continue;
        }
        match find_bottleneck(survey, &expected(survey, &known, nodes), crowd, measure) {
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

/// The channels that predict what flows get together: the known bottlenecks, and one channel for each flow with its
/// bandwidth alone. A bottleneck's capacity is a sum of measured rates, so it is reduced by the tolerance within which
/// capacities count as equal: only rates below that are a loss.
fn expected(survey: &Survey, known: &[Bottleneck], nodes: u32) -> Channels {
    let mut capacity: Vec<f64> = known
        .iter()
        .map(|b| b.capacity * (1.0 - CAPACITY_TOLERANCE))
        .collect();
    let mut ways = vec![Vec::new(); (nodes * nodes) as usize];
    for (index, flow) in survey.flows().iter().enumerate() {
        let crossed = known
            .iter()
            .zip(0..)
            .filter(|(b, _)| b.flows.binary_search(&index).is_ok());
        let way = crossed.map(|(_, channel)| channel).chain([capacity.len() as u32]);
        ways[(flow.reader.0 * nodes + flow.memory.0) as usize] = way.collect();
        capacity.push(survey.alone()[index].median);
    }
    Channels::from_ways(capacity, ways, nodes as usize)
}

/// The bottleneck behind a crowd's loss; `Some(None)` if there is no loss, `None` when time is up.
fn find_bottleneck(
    survey: &Survey,
    expected: &Channels,
    mut crowd: Vec<usize>,
    measure: &mut impl FnMut(&[Flow]) -> Option<Vec<Estimate>>,
) -> Option<Option<Bottleneck>> {
    let mut lose = |group: &[usize]| {
        let flows = survey.flows_at(group);
        let rates = measure(&flows)?;
        let least = expected.max_min(&flows);
        let mut each = group.iter().zip(&rates).zip(least);
        let lost = each.any(|((f, r), least)| survey.loses_against(*f, r, least));
        Some((lost, rates.iter().map(|r| r.median).sum::<f64>()))
    };
    let (lost, mut capacity) = lose(&crowd)?;
    if !lost {
        return Some(None);
    }
    let mut at = 0;
    while at < crowd.len() && crowd.len() > MIN_CROWD {
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
    Some(Some(with_members(survey, expected, core, measure)?))
}

/// Adds all flows that lose bandwidth beside flows known to cross the bottleneck.
fn with_members(
    survey: &Survey,
    expected: &Channels,
    mut known: Bottleneck,
    measure: &mut impl FnMut(&[Flow]) -> Option<Vec<Estimate>>,
) -> Option<Bottleneck> {
    let mut open: Vec<usize> = (0..survey.flows().len())
        .filter(|f| !known.flows.contains(f))
        .collect();
    loop {
        let before = open.len();
        let mut untested = Vec::new();
        for flow in open {
            let Some(group) = probe_group(survey, &known, flow) else {
                untested.push(flow);
                continue;
            };
            let flows = survey.flows_at(&group);
            let rates = measure(&flows)?;
            let least: f64 = expected.max_min(&flows).iter().sum();
            if survey.all_lose_against(&group, &rates, least) {
                let at = known.flows.partition_point(|f| *f < flow);
                known.flows.insert(at, flow);
            }
        }
        // Flows that could not be tested with the members so far may be testable with the new ones.
        if untested.len() == before {
            return Some(known);
        }
        open = untested;
    }
}

/// A flow with as many members of a bottleneck as fit through it; `None` if the bottleneck would have room for all of
/// them.
fn probe_group(survey: &Survey, bottleneck: &Bottleneck, flow: usize) -> Option<Vec<usize>> {
    let width = |f: usize| survey.alone()[f].median;
    let (mut group, mut load) = (vec![flow], 0.0);
    for member in &bottleneck.flows {
        let room = load + width(*member) <= bottleneck.capacity;
        if room && group.iter().all(|f| survey.are_independent(*f, *member)) {
            group.push(*member);
            load += width(*member);
        }
    }
    let narrowest = group.iter().map(|f| width(*f)).fold(f64::INFINITY, f64::min);
    (load + width(flow) > bottleneck.capacity + 0.1 * narrowest).then_some(group)
}

/// Chooses as many flows as can run together. In turn `t`, first come the flows whose memory is `t + 1` nodes after
/// their reader, then others in pseudo-random order.
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
        if crowd.iter().all(|f| survey.are_independent(*f, flow)) && fits(survey, &crowd, flow) {
            crowd.push(flow);
        }
    }
    crowd
}

/// Whether a flow can join a crowd without exceeding a known bottleneck of many flows.
fn fits(survey: &Survey, crowd: &[usize], flow: usize) -> bool {
    survey.wide.iter().filter(|b| b.flows.contains(&flow)).all(|b| {
        let inside = crowd.iter().filter(|f| b.flows.contains(f)).chain([&flow]);
        inside.map(|f| survey.alone()[*f].median).sum::<f64>() <= b.capacity
    })
}

/// A pseudo-random sort key that differs from turn to turn (the finaliser of `SplitMix64`).
fn scattered(flow: u64, turn: u32) -> u64 {
    let mut mixed = (flow + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (u64::from(turn) << 32);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

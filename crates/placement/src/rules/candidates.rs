//! Candidate distributions for an object, simplest first.

use super::samples::{Piece, Sample};
use super::{Dealt, Distribution, Order, is_prime};
use nodewise_machine::NodeId;
use nodewise_profile::ObjectKind;

/// The input of candidates besides the object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scene<'a> {
    /// Node of thread number i.
    pub threads: &'a [NodeId],
    /// Nodes of the machine.
    pub nodes: usize,
    /// The list of nodes by which the weighted policy deals pages.
    pub weighted: &'a [NodeId],
    /// Lengths of other lists by which the policy may deal pages.
    pub rounds: &'a [usize],
    /// Mean number of accesses to a page of the program.
    pub mean: f64,
}

/// Number of samples for scoring: enough to distinguish two distributions, few enough to try hundreds.
const MAX_SCORED_SAMPLES: usize = 1 << 12;
/// How many numbers of repetitions to try around the estimate.
const REPEATS_TO_TRY: u32 = 200;

/// How much a simpler distribution may score below the best.
const SIMPLICITY_BONUS: f64 = 0.01;
/// How much more blocks by thread may score below, where few pages lie between block borders.
const BLOCK_ORDER_BONUS: f64 = 0.1;

/// Distributions worth trying for one object, in ascending complexity.
pub(super) fn candidates(piece: &Piece<'_>, scene: &Scene<'_>) -> Vec<Distribution> {
    let mut found = Vec::new();
    // A file lies where whatever read it last put it, which may have ended long ago; shared memory where another process
    // has touched it.
    if piece.object.kind != ObjectKind::File {
        found.push(Distribution::FirstTouch);
    }
    found.extend(heaviest_node(&piece.samples).map(Distribution::Node));
    found.push(Distribution::Allocator);
    let all: Vec<NodeId> = (0..scene.nodes as u32).map(NodeId).collect();
    found.push(Distribution::Interleave(all.clone()));
    found.push(Distribution::Interleave(scene.weighted.to_vec()));
    found.push(Distribution::ByThread { repeat: 1 });
    found.extend(turns_of(&piece.samples, scene));
    found.extend(orders(&all));
    found.extend(repeated(piece, scene));
    found.extend(shares(piece));
    found
}

fn heaviest_node(samples: &[Sample]) -> Option<NodeId> {
    let mut weight: Vec<(NodeId, u64)> = Vec::new();
    for sample in samples {
        match weight.iter_mut().find(|w| w.0 == sample.home) {
            Some(entry) => entry.1 += sample.accesses,
            None => weight.push((sample.home, sample.accesses)),
        }
    }
    weight
        .into_iter()
        .max_by_key(|(node, w)| (*w, std::cmp::Reverse(*node)))
        .map(|w| w.0)
}

/// An interleave over another list of nodes: the most frequent node at each position, for lists as long as the number
/// of nodes, or of nodes in use.
fn turns_of(samples: &[Sample], scene: &Scene<'_>) -> Vec<Distribution> {
    let mut used: Vec<NodeId> = samples.iter().map(|s| s.home).collect();
    used.sort_unstable();
    used.dedup();
    let mut lengths = vec![used.len(), scene.nodes, scene.weighted.len()];
    lengths.extend_from_slice(scene.rounds);
    lengths.sort_unstable();
    lengths.dedup();
    lengths.retain(|l| *l > 1);
    lengths
        .into_iter()
        .filter_map(|length| turns(samples, length))
        .map(Distribution::Interleave)
        .collect()
}

/// MAI's orders over all nodes, with the primes that MAI may have been configured with.
fn orders(all: &[NodeId]) -> impl Iterator<Item = Distribution> {
    const PRIMES: usize = 8;
    let nodes = all.len() as u32;
    let primes = (nodes..).filter(|p| is_prime(*p)).take(PRIMES).map(Order::Prime);
    let orders = [Order::Cyclic, Order::Skew].into_iter().chain(primes);
    orders.filter(move |_| nodes > 1).map(|order| {
        let nodes = all.to_vec();
        Distribution::Dealt(Dealt {
            order,
            nodes,
            block: 1,
        })
    })
}

fn turns(samples: &[Sample], length: usize) -> Option<Vec<NodeId>> {
    let mut by_turn: Vec<Vec<Sample>> = vec![Vec::new(); length];
    for sample in samples {
        by_turn[(sample.at.number % length as u64) as usize].push(*sample);
    }
    by_turn.iter().map(|turn| heaviest_node(turn)).collect()
}

/// Blocks by thread in several parts, as from y- and z-wise loops. The estimated number of parts is the ratio of the
/// node changes in the mapping to those of one part; nearby numbers are tried as well.
fn repeated(piece: &Piece<'_>, scene: &Scene<'_>) -> Option<Distribution> {
    let changes = |nodes: &[NodeId]| nodes.windows(2).filter(|w| w[0] != w[1]).count();
    let homes: Vec<NodeId> = piece.samples.iter().map(|s| s.home).collect();
    let cyclic: Vec<NodeId> = scene
        .threads
        .iter()
        .chain(scene.threads.first())
        .copied()
        .collect();
    let per_part = changes(&cyclic).max(1);
    let estimate = (changes(&homes) + 1).div_ceil(per_part) as u32;
    let most = (piece.object.pages / per_part as u64).min(u64::from(u32::MAX)) as u32;
    let reach = (estimate / 4).clamp(2, REPEATS_TO_TRY / 2);
    let thin = piece.thinned(MAX_SCORED_SAMPLES);
    let tried = estimate.saturating_sub(reach).max(2)..=estimate.saturating_add(reach).min(most);
    let candidates = tried.map(|repeat| Distribution::ByThread { repeat });
    candidates.rev().max_by_key(|d| thin.agreement(d, scene.threads))
}

/// One contiguous part per node, in the order of the nodes' pages.
fn shares(piece: &Piece<'_>) -> Option<Distribution> {
    const WHOLE: u64 = 1_000_000;
    let mut parts: Vec<(NodeId, u64, u64)> = Vec::new(); // node, pages, sum of indices
    for sample in &piece.samples {
        match parts.iter_mut().find(|p| p.0 == sample.home) {
            Some(part) => (part.1, part.2) = (part.1 + 1, part.2 + sample.at.index),
            None => parts.push((sample.home, 1, sample.at.index)),
        }
    }
    parts.sort_by_key(|(_, pages, sum)| sum / pages);
    let mut ranks = 0;
    let mut begun = 0;
    let mut list = Vec::new();
    for (i, (node, pages, _)) in parts.iter().enumerate() {
        ranks += *pages as usize;
        let end = match piece.samples.get(ranks) {
            Some(next) if i + 1 < parts.len() => {
                u128::from(next.first) * u128::from(WHOLE) / u128::from(piece.object.pages.max(1))
            }
            _ => u128::from(WHOLE),
        };
        let end = (end as u64).min(WHOLE);
        list.extend((end > begun).then(|| (*node, (end - begun) as f64 / WHOLE as f64)));
        begun = end.max(begun);
    }
    (list.len() > 1).then_some(Distribution::Block(list))
}

/// The first candidate that scores nearly as well as the best, over all pieces.
pub(super) fn simplest(
    pieces: &[&Piece<'_>],
    candidates: Vec<Distribution>,
    scene: &Scene<'_>,
) -> Distribution {
    let thin: Vec<Piece<'_>> = pieces.iter().map(|p| p.thinned(MAX_SCORED_SAMPLES)).collect();
    let total = thin.iter().map(|p| p.accesses).sum::<u64>().max(1) as f64;
    let pages: u64 = pieces.iter().map(|p| p.object.pages).sum();
    let score =
        |d: &Distribution| thin.iter().map(|p| p.agreement(d, scene.threads)).sum::<u64>() as f64 / total;
    let scores: Vec<f64> = candidates.iter().map(score).collect();
    let best = candidates
        .iter()
        .zip(&scores)
        .map(|(d, s)| s - handicap(d))
        .fold(0.0, f64::max);
    let borders = |d: &Distribution| (borders(d, scene) * pieces.len()) as f64 / pages.max(1) as f64;
    let enough = |(d, score): &(Distribution, f64)| {
        score - handicap(d) >= best - SIMPLICITY_BONUS - borders(d).min(BLOCK_ORDER_BONUS)
    };
    candidates
        .into_iter()
        .zip(scores)
        .find(enough)
        .map_or(Distribution::FirstTouch, |f| f.0)
}

/// A penalty for parts by node, which do not transfer to more threads or nodes as blocks by thread do.
fn handicap(distribution: &Distribution) -> f64 {
    match distribution {
        Distribution::Block(_) => 0.1,
        _ => 0.0,
    }
}

/// Borders between nodes; at each of them the program's division of work may differ from ours by a page.
fn borders(distribution: &Distribution, scene: &Scene<'_>) -> usize {
    match distribution {
        Distribution::ByThread { repeat } => *repeat as usize * changes(scene.threads.iter()),
        _ => 0,
    }
}

fn changes<'n>(nodes: impl Iterator<Item = &'n NodeId> + Clone) -> usize {
    nodes.clone().zip(nodes.skip(1)).filter(|(a, b)| a != b).count()
}

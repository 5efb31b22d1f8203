//! Derives bottlenecks, sets of flows that share one capacity, from pairs of flows.

use super::{Bottleneck, Survey, Verdict};
use std::collections::BTreeSet;

/// Capacities that differ by less than this share count as equal: sums of two measured rates are no more accurate.
pub(super) const CAPACITY_TOLERANCE: f64 = 0.06;

/// Whether one bottleneck explains everything that another one explains.
fn covers(one: &Bottleneck, other: &Bottleneck) -> bool {
    is_same_capacity(one.capacity, other.capacity)
        && other.flows.iter().all(|f| one.flows.binary_search(f).is_ok())
}

pub(super) fn is_same_capacity(a: f64, b: f64) -> bool {
    (a - b).abs() <= CAPACITY_TOLERANCE * a.max(b)
}

/// A small set of bottlenecks that explains every pair.
///
/// A flow whose way is a single link is slowed by exactly the flows that cross the link, and these slow each other: the
/// flow and its neighbours are a clique with one capacity. A flow over several links has neighbours that do not slow
/// each other, and yields no bottleneck by itself. Pairs that no clique of this kind explains are covered greedily.
pub(super) fn bottlenecks(survey: &Survey) -> Vec<Bottleneck> {
    let sharing = Sharing::of(survey);
    let levels = (0..survey.flows().len()).flat_map(|f| sharing.bottlenecks_by_capacity(f));
    let mut found = without_covered(levels.filter(|b| sharing.is_consistent(b)).collect());
    found.extend(sharing.unexplained_cliques(&found));
    without_covered(found)
}

/// The bottlenecks that no other one covers, those with most flows first.
fn without_covered(mut all: Vec<Bottleneck>) -> Vec<Bottleneck> {
    all.sort_by(|a, b| {
        let size = b.flows.len().cmp(&a.flows.len());
        size.then_with(|| a.flows.cmp(&b.flows))
            .then_with(|| a.capacity.total_cmp(&b.capacity))
    });
    let mut kept: Vec<Bottleneck> = Vec::new();
    for one in all {
        if !kept.iter().any(|k| covers(k, &one)) {
            kept.push(one);
        }
    }
    kept
}

struct Sharing<'a> {
    survey: &'a Survey,
    /// For each flow, the flows that slow it, with the capacity of the pair, in ascending order of capacity.
    neighbours: Vec<Vec<(f64, usize)>>,
}

impl<'a> Sharing<'a> {
    fn of(survey: &'a Survey) -> Self {
        let count = survey.flows().len();
        let mut neighbours = vec![Vec::new(); count];
        for high in 0..count {
            for low in 0..high {
                if let Verdict::Sharing(capacity) = survey.verdict(low, high) {
                    neighbours[low].push((capacity, high));
                    neighbours[high].push((capacity, low));
                }
            }
        }
        neighbours
            .iter_mut()
            .for_each(|n| n.sort_by(|a, b| a.0.total_cmp(&b.0)));
        Self { survey, neighbours }
    }

    /// A flow with its neighbours, as one bottleneck for each distinct capacity.
    fn bottlenecks_by_capacity(&self, flow: usize) -> Vec<Bottleneck> {
        let mut levels: Vec<&[(f64, usize)]> = Vec::new();
        let mut rest = &self.neighbours[flow][..];
        while let Some((lowest, _)) = rest.first() {
            let (level, above) = rest.split_at(rest.partition_point(|n| is_same_capacity(n.0, *lowest)));
            levels.push(level);
            rest = above;
        }
        let bottleneck = |level: &[(f64, usize)]| {
            let mut flows: Vec<usize> = level.iter().map(|n| n.1).chain([flow]).collect();
            flows.sort_unstable();
            let capacity = level[level.len() / 2].0;
            Bottleneck { capacity, flows }
        };
        levels.into_iter().map(bottleneck).collect()
    }

    /// Whether any two flows of a bottleneck share at most its capacity, or are too narrow together to show that they
    /// share it.
    fn is_consistent(&self, bottleneck: &Bottleneck) -> bool {
        let flows = &bottleneck.flows;
        let rest = |i: usize| flows[i + 1..].iter();
        (0..flows.len()).all(|i| rest(i).all(|f| self.is_consistent_pair(flows[i], *f, bottleneck.capacity)))
    }

    fn is_consistent_pair(&self, i: usize, j: usize, capacity: f64) -> bool {
        let alone = self.survey.alone();
        match self.survey.verdict(i, j) {
            Verdict::Unknown => true,
            Verdict::Sharing(at) => at <= capacity * (1.0 + CAPACITY_TOLERANCE),
            Verdict::Independent => {
                alone[i].median + alone[j].median <= capacity * (1.0 + CAPACITY_TOLERANCE)
            }
        }
    }

    /// Cliques over the pairs that no known bottleneck explains, the narrowest first.
    fn unexplained_cliques(&self, known: &[Bottleneck]) -> Vec<Bottleneck> {
        let mut unexplained: Vec<(f64, [usize; 2])> = Vec::new();
        for (i, neighbours) in self.neighbours.iter().enumerate() {
            let later = neighbours.iter().filter(|n| n.1 > i);
            unexplained.extend(later.map(|n| (n.0, [i, n.1])));
        }
        let explained = |b: &Bottleneck, (capacity, pair): &(f64, [usize; 2])| {
            b.capacity <= capacity * (1.0 + CAPACITY_TOLERANCE)
                && pair.iter().all(|f| b.flows.binary_search(f).is_ok())
        };
        unexplained.retain(|p| !known.iter().any(|b| explained(b, p)));
        unexplained.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
        let mut found: Vec<Bottleneck> = Vec::new();
        for pair in unexplained {
            if !found.iter().any(|b| explained(b, &pair)) {
                found.push(self.grow_clique(pair));
            }
        }
        found
    }

    fn grow_clique(&self, (capacity, pair): (f64, [usize; 2])) -> Bottleneck {
        let mut flows: BTreeSet<usize> = pair.into();
        for (_, h) in self.neighbours[pair[0]]
            .iter()
            .filter(|n| is_same_capacity(n.0, capacity))
        {
            if flows
                .iter()
                .all(|f| f != h && self.is_consistent_pair(*f, *h, capacity))
            {
                flows.insert(*h);
            }
        }
        let flows = flows.into_iter().collect();
        Bottleneck { capacity, flows }
    }
}

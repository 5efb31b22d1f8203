//! Which of equally large clusters gets which set.

use super::enumeration::Arrangement;
use super::problem::{Problem, Set};
use std::ops::Range;

/// How many ways there are to name sets.
pub(super) fn ways(runs: &[Range<usize>]) -> f64 {
    runs.iter().flat_map(|r| 1..=r.len()).map(|n| n as f64).product()
}

/// Every way of giving each slot a set of its size: permutations within runs, the first one in order.
pub(super) struct Names {
    runs: Vec<Range<usize>>,
    next: Option<Vec<usize>>,
}

impl Names {
    pub fn new(runs: Vec<Range<usize>>, slots: usize) -> Self {
        let next = Some((0..slots).collect());
        Self { runs, next }
    }
}

impl Iterator for Names {
    type Item = Vec<usize>;

    fn next(&mut self) -> Option<Vec<usize>> {
        let names = self.next.take()?;
        let mut after = names.clone();
        let advanced = self
            .runs
            .iter()
            .any(|run| next_permutation(&mut after[run.clone()]));
        self.next = advanced.then_some(after);
        Some(names)
    }
}

/// The next in lexicographic order; the first again, and false, after the last.
fn next_permutation(names: &mut [usize]) -> bool {
    let Some(at) = (1..names.len()).rev().find(|i| names[i - 1] < names[*i]) else {
        names.reverse();
        return false;
    };
    let with = (at..names.len())
        .rev()
        .find(|i| names[*i] > names[at - 1])
        .unwrap_or(at);
    names.swap(at - 1, with);
    names[at..].reverse();
    true
}

/// Names under which little memory moves, and P_wbw is not below `least`: sets are exchanged between clusters
/// while that helps.
pub(super) fn fewest_bytes(problem: &Problem<'_>, arrangement: &Arrangement, least: f64) -> Vec<usize> {
    let mut names: Vec<usize> = (0..arrangement.sets.len()).collect();
    let left = |slot: usize, set: Set| -> u64 {
        let cluster = &problem.clusters[problem.wide[slot]];
        let stays = |n| problem.nodes.binary_search(n).is_ok_and(|i| set >> i & 1 == 1);
        cluster
            .at
            .iter()
            .filter(|n| !stays(n))
            .map(|n| cluster.resident_on(*n))
            .sum()
    };
    let bytes: Vec<Vec<u64>> = (0..names.len())
        .map(|slot| arrangement.sets.iter().map(|set| left(slot, *set)).collect())
        .collect();
    let mut better = true;
    while better {
        better = false;
        for run in problem.runs() {
            for a in run.clone() {
                for b in a + 1..run.end {
                    let before = bytes[a][names[a]] + bytes[b][names[b]];
                    if bytes[a][names[b]] + bytes[b][names[a]] >= before {
                        continue;
                    }
                    names.swap(a, b);
                    if arrangement.worth(problem, &names) >= least {
                        better = true;
                    } else {
                        names.swap(a, b);
                    }
                }
            }
        }
    }
    names
}

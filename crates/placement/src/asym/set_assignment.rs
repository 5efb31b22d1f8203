//! Assigns node sets to clusters of equal size.

use super::enumeration::Arrangement;
use super::problem::{Problem, Set};
use std::ops::Range;

/// Number of assignments: the product of the factorials of the runs' lengths.
pub(super) fn assignment_count(runs: &[Range<usize>]) -> f64 {
    runs.iter().flat_map(|r| 1..=r.len()).map(|n| n as f64).product()
}

/// Iterates over all assignments of sets to slots: permutations within runs, in lexicographic order.
pub(super) struct SetAssignments {
    runs: Vec<Range<usize>>,
    next: Option<Vec<usize>>,
}

impl SetAssignments {
    pub fn new(runs: Vec<Range<usize>>, slots: usize) -> Self {
        let next = Some((0..slots).collect());
        Self { runs, next }
    }
}

impl Iterator for SetAssignments {
    type Item = Vec<usize>;

    fn next(&mut self) -> Option<Vec<usize>> {
        let assignment = self.next.take()?;
        let mut after = assignment.clone();
        let advanced = self
            .runs
            .iter()
            .any(|run| next_permutation(&mut after[run.clone()]));
        self.next = advanced.then_some(after);
        Some(assignment)
    }
}

/// Advances to the next permutation in lexicographic order; after the last one wraps to the first and returns false.
fn next_permutation(assignment: &mut [usize]) -> bool {
    let Some(at) = (1..assignment.len())
        .rev()
        .find(|i| assignment[i - 1] < assignment[*i])
    else {
        assignment.reverse();
        return false;
    };
    let with = (at..assignment.len())
        .rev()
        .find(|i| assignment[*i] > assignment[at - 1])
        .unwrap_or(at);
    assignment.swap(at - 1, with);
    assignment[at..].reverse();
    true
}

/// An assignment that moves little memory with P_wbw of at least `least`: hill climbing by pairwise exchanges of sets.
pub(super) fn least_moved_assignment(
    problem: &Problem<'_>,
    arrangement: &Arrangement,
    least: f64,
) -> Vec<usize> {
    let mut assignment: Vec<usize> = (0..arrangement.sets.len()).collect();
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
    let bytes: Vec<Vec<u64>> = (0..assignment.len())
        .map(|slot| arrangement.sets.iter().map(|set| left(slot, *set)).collect())
        .collect();
    let mut better = true;
    while better {
        better = false;
        for run in problem.runs() {
            for a in run.clone() {
                for b in a + 1..run.end {
                    let before = bytes[a][assignment[a]] + bytes[b][assignment[b]];
                    if bytes[a][assignment[b]] + bytes[b][assignment[a]] >= before {
                        continue;
                    }
                    assignment.swap(a, b);
                    if arrangement.objective(problem, &assignment) >= least {
                        better = true;
                    } else {
                        assignment.swap(a, b);
                    }
                }
            }
        }
    }
    assignment
}

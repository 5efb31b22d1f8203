//! ARS's algorithms as the paper defines them, page by page, to check the policies, which compute sliding sums.

use super::properties::{NODES, Pages, any_pages, policy};
use super::*;
use proptest::prelude::*;

/// Σ W·C of page `i` from a node, over the nearby pages that `of` selects, in units of 1 / (radius + 1).
fn relative(pages: &Pages, i: usize, node: usize, radius: u64, of: impl Fn(&NodeId) -> bool) -> u128 {
    let number = |j: usize| pages.page(j).0;
    let near = (0..pages.len()).filter(|j| number(*j).abs_diff(number(i)) <= radius && of(&pages.home(*j)));
    let weigh = |j: usize| {
        let mut counts = [0; NODES];
        pages.counts(j, &mut counts);
        u128::from(radius + 1 - number(j).abs_diff(number(i))) * u128::from(counts[node])
    };
    near.map(weigh).sum()
}

/// Out-U and Out-W with a threshold of 2, with and without local accesses. Returns (index, node) of the pages that
/// move.
fn outward(pages: &Pages, radius: u64, local: bool) -> Vec<(usize, usize)> {
    let judge = |i: usize| {
        let home = pages.home(i);
        let sums: Vec<u128> = (0..NODES)
            .map(|n| relative(pages, i, n, radius, |h| *h == home))
            .collect();
        let remote = || (0..NODES).filter(|n| *n != home.index());
        let most = remote().map(|n| sums[n]).max()?;
        let goes = match local {
            true => most > 2 * sums[home.index()],
            false => most * (NODES - 1) as u128 > 2 * remote().map(|n| sums[n]).sum::<u128>(),
        };
        let to = remote().find(|n| sums[*n] == most)?;
        goes.then_some((i, to))
    };
    (0..pages.len()).filter_map(judge).collect()
}

/// In-W with a threshold of 2: the first node that wants a page gets it.
fn inward(pages: &Pages, radius: u64) -> Vec<(usize, usize)> {
    let mut taken = vec![None; pages.len()];
    for node in 0..NODES {
        let remote: Vec<usize> = (0..pages.len())
            .filter(|i| pages.home(*i).index() != node)
            .collect();
        let own = |i: usize| relative(pages, i, node, 0, |_| true) > 0;
        let sum = |i: usize| relative(pages, i, node, radius, |h| h.index() != node);
        let used: Vec<usize> = remote.iter().copied().filter(|i| own(*i)).collect();
        let all: u128 = used.iter().map(|i| sum(*i)).sum();
        for i in used {
            if sum(i) * remote.len() as u128 > 2 * all {
                taken[i] = taken[i].or(Some(node));
            }
        }
    }
    let moved = taken.iter().enumerate();
    moved.filter_map(|(i, to)| to.map(|to| (i, to))).collect()
}

fn decided(name: &str, pages: &Pages) -> Vec<(usize, usize)> {
    let moves = policy(name).decide(pages);
    moves.iter().map(|m| (m.index, m.to.index())).collect()
}

proptest! {
    #[test]
    fn sweeping_decides_as_the_paper_defines(pages in any_pages(), radius in 0u64..40, factor in prop_oneof![Just(1), Just(1 << 30)]) {
        // Large counts are summed in another number type than small ones.
        let pages = pages.times(factor);
        let name = |text: &str| format!("{text}:window={radius}");
        prop_assert_eq!(decided(&name("out-w"), &pages), outward(&pages, radius, false));
        prop_assert_eq!(decided(&name("out-w-local"), &pages), outward(&pages, radius, true));
        prop_assert_eq!(decided(&name("in-w"), &pages), inward(&pages, radius));
        prop_assert_eq!(decided("out-u", &pages), outward(&pages, 0, false));
        prop_assert_eq!(decided("out-u-local", &pages), outward(&pages, 0, true));
    }
}

//! Formulas that assign blocks to the nodes of a list, used by libnodewise and by the preload that places memory.
//!
//! `lib/src/formulas.h` is the original in C; a property test in `nodewise-enforce` checks each formula here against
//! it. `nodes` and `parts` are at least 1; results are indices into the list.

pub use nodewise_analysis::random::{SplitMix, mix};

/// Round-robin: index of the node of a block.
#[must_use]
pub fn cyclic(block: u64, nodes: u32) -> u32 {
    (block % u64::from(nodes)) as u32
}

/// Each round starts one node further on (Ribeiro and Méhaut, MAI, 2.1: 0,1,2,3 then 1,2,3,0…).
#[must_use]
pub fn skew(block: u64, nodes: u32) -> u32 {
    let nodes = u64::from(nodes);
    ((block % nodes + block / nodes % nodes) % nodes) as u32
}

/// In turn over `prime` ≥ `nodes` virtual nodes; blocks of virtual nodes beyond the real ones are dealt round-robin
/// over the real ones (MAI, 2.1 and 3.1).
#[must_use]
pub fn prime(block: u64, prime: u32, nodes: u32) -> u32 {
    let (prime, nodes) = (u64::from(prime), u64::from(nodes));
    let at = block % prime;
    if at < nodes {
        return at as u32;
    }
    ((block / prime * (prime - nodes) + at - nodes) % nodes) as u32
}

/// A pseudo-random node: uniform, independent of order, and equal in every run.
#[must_use]
pub fn random(block: u64, seed: u64, nodes: u32) -> u32 {
    ((u128::from(mix(seed ^ mix(block))) * u128::from(nodes)) >> 64) as u32
}

/// The part that holds `unit` when `n` units are divided into parts as by `schedule(static)`: the first `n mod parts`
/// parts are one unit longer.
#[must_use]
pub fn static_part(unit: u64, n: u64, parts: u32) -> u32 {
    let parts = u64::from(parts);
    let (each, more) = (n / parts, n % parts);
    let longer = more * (each + 1);
    if unit < longer {
        (unit / (each + 1)) as u32
    } else {
        (more + (unit - longer) / each) as u32
    }
}

/// The owner of a block of a block-exclusive distribution: a Latin square in two dimensions, a cube in
/// three (Majo and Gross, CGO 2012, 4.1).
#[must_use]
pub fn latin(coordinates: &[u32], nodes: u32) -> u32 {
    let sum: u64 = coordinates.iter().map(|c| u64::from(*c)).sum();
    (sum % u64::from(nodes)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn first(count: u64, formula: impl FnMut(u64) -> u32) -> Vec<u32> {
        (0..count).map(formula).collect()
    }

    #[test]
    fn rounds_are_those_of_the_paper() {
        assert_eq!(first(12, |b| skew(b, 4)), [0, 1, 2, 3, 1, 2, 3, 0, 2, 3, 0, 1]);
        // Five virtual nodes: every fifth block is dealt to the real nodes in turn.
        assert_eq!(
            first(15, |b| prime(b, 5, 4)),
            [0, 1, 2, 3, 0, 0, 1, 2, 3, 1, 0, 1, 2, 3, 2]
        );
    }

    proptest! {
        #[test]
        fn a_round_gives_every_node_its_turn(round in 0u64..1000, nodes in 1u32..40) {
            let mut seen = first(u64::from(nodes), |b| skew(round * u64::from(nodes) + b, nodes));
            seen.sort_unstable();
            prop_assert!(seen.into_iter().eq(0..nodes));
        }

        #[test]
        fn prime_differs_by_a_block_a_node_at_most_after_whole_rounds(rounds in 1u64..60, nodes in 1u32..20) {
            let p = (nodes..).find(|p| (2..*p).all(|d| p % d != 0) && *p > 1).unwrap();
            let mut count = vec![0u64; nodes as usize];
            for block in 0..rounds * u64::from(p) {
                count[prime(block, p, nodes) as usize] += 1;
            }
            prop_assert!(count.iter().max().unwrap() - count.iter().min().unwrap() <= 1);
        }

        #[test]
        fn static_parts_are_in_order_and_differ_by_one_at_most(n in 1u64..3000, parts in 1u32..70) {
            let owners = first(n, |u| static_part(u, n, parts));
            prop_assert!(owners.is_sorted() && owners.iter().all(|o| *o < parts));
            let size = |p: u32| owners.iter().filter(|o| **o == p).count() as u64;
            let sizes: Vec<u64> = (0..parts).map(size).collect();
            prop_assert!(sizes.iter().rev().is_sorted() && sizes[0] - sizes[parts as usize - 1] <= 1);
        }

        #[test]
        fn latin_gives_a_line_along_any_dimension_to_all_nodes(
            at in proptest::collection::vec(0u32..50, 1..5), dimension in 0usize..4, nodes in 1u32..30,
        ) {
            let mut at = at;
            let dimension = dimension % at.len();
            let mut seen = first(u64::from(nodes), |b| {
                at[dimension] = b as u32;
                latin(&at, nodes)
            });
            seen.sort_unstable();
            prop_assert!(seen.into_iter().eq(0..nodes));
        }
    }
}

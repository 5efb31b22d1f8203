//! A tile: 256 cells of the strip with all values that determine the colours of pictures.

use crate::packed::{Packed, share};
use crate::sums::{Shape, Sums};
use serde_json::{Map, Value};

/// Node and class of a cell without accesses.
const NO_ACCESS: u8 = 255;

/// Position of a tile, and the first page of each cell.
#[derive(Debug)]
pub struct Place {
    /// Level of the tile: a cell sums 2^level pages.
    pub level: u32,
    /// Index of its first cell.
    pub first_cell: usize,
    /// For each cell, the number of its first page, relative to the first page of its run.
    pub pages: Vec<u32>,
}

/// Packs rows of sums, one per cell.
#[must_use]
pub fn pack(place: &Place, shape: Shape, rows: &[u64]) -> Vec<u8> {
    let cells: Vec<Sums<'_>> = rows.chunks(shape.width()).map(|row| shape.read(row)).collect();
    let bytes = |of: &dyn Fn(Sums<'_>) -> u8| cells.iter().map(|c| of(*c)).collect::<Vec<u8>>();
    let mut packed = Packed::default();
    packed.counts(
        "accesses",
        &cells.iter().map(|c| c.accesses()).collect::<Vec<_>>(),
    );
    packed.bytes("writes", &bytes(&|c| part(c.writes(), c.accesses())));
    packed.bytes("dominant", &bytes(&|c| largest(c.nodes())));
    packed.bytes("exclusivity", &bytes(&|c| share(c.exclusive(), c.accesses())));
    packed.bytes("class", &bytes(&|c| largest(c.classes())));
    packed.words("page", &place.pages);
    let by_node = (0..shape.nodes).flat_map(|n| bytes(&move |c: Sums<'_>| part(c.nodes()[n], c.accesses())));
    packed.bytes("nodes", &by_node.collect::<Vec<_>>());
    for policy in 0..shape.policies {
        let home = |c: Sums<'_>| largest(c.homes(policy));
        let pages = |c: Sums<'_>| c.homes(policy).iter().sum::<u64>();
        let most = |c: Sums<'_>| c.homes(policy).iter().copied().max().unwrap_or_default();
        packed.bytes(&format!("home_{policy}"), &bytes(&home));
        packed.bytes(
            &format!("homeshare_{policy}"),
            &bytes(&|c| share(most(c), pages(c))),
        );
        let local = |c: Sums<'_>| share(c.local(policy), c.accesses());
        packed.bytes(&format!("local_{policy}"), &bytes(&local));
    }
    packed.finish(Map::from_iter([
        ("level".to_owned(), Value::from(place.level)),
        ("first_cell".to_owned(), Value::from(place.first_cell)),
    ]))
}

/// [`share`], but 0 if `part` and `whole` are 0.
fn part(part: u64, whole: u64) -> u8 {
    if whole == 0 { 0 } else { share(part, whole) }
}

/// Index of the largest value; of equal ones, the first.
fn largest(counts: &[u64]) -> u8 {
    let most = counts.iter().enumerate().rev().max_by_key(|(_, n)| **n);
    most.filter(|(_, n)| **n > 0)
        .map_or(NO_ACCESS, |(index, _)| index as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_equals_is_the_largest_and_nothing_is_no_node() {
        assert_eq!(
            [largest(&[1, 3, 3]), largest(&[0, 0]), largest(&[])],
            [1, NO_ACCESS, NO_ACCESS]
        );
    }
}

//! R_PN = Σ W·C of ARS (3.2): accesses to a page and to its neighbours, the nearer counting more.

use super::parameters::Parameters;
use crate::PolicyError;
use std::str::FromStr;

/// How a neighbour's weight depends on its distance d.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// 1 − d / (radius + 1): "a closer page is assigned a higher weight".
    Linear,
    /// 1 for all of the window.
    Uniform,
}

impl FromStr for Weight {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "linear" => Ok(Self::Linear),
            "uniform" => Ok(Self::Uniform),
            _ => Err(()),
        }
    }
}

/// Which pages are neighbours, and what they count.
///
/// Distance is between page numbers, not between places in a list: pages dealt round-robin over four
/// nodes are four apart on each, and "*Out-W* takes pages, which are not directly neighboring".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The furthest neighbour to each side, pages; 0 is the page alone.
    pub radius: u64,
    /// What a neighbour counts.
    pub weight: Weight,
}

/// Wider ones would be as wide as whole arrays, and take a row of counts a page of it.
const WIDEST: u64 = 4096;

impl Window {
    /// The page alone.
    pub const PAGE: Self = Self {
        radius: 0,
        weight: Weight::Uniform,
    };

    /// `window=8:weight=linear`: eight pages to each side reach two neighbours there on each of four
    /// nodes dealt to in turn, and the furthest counts a ninth.
    pub(super) fn of(parameters: &mut Parameters<'_>) -> Result<Self, PolicyError> {
        let wide = format!("a number of pages from 0 to {WIDEST}");
        Ok(Self {
            radius: parameters.take("window", 8, |r| *r <= WIDEST, wide)?,
            weight: parameters.take("weight", Weight::Linear, |_| true, "`linear` or `uniform`")?,
        })
    }
}

/// The sums of one page after another, ascending, at a cost that does not depend on the radius.
///
/// Pages `tail..head` are in the window around the centre; those up to the centre are its left side.
/// Sums of counts below 2⁵³ / radius² are exact.
pub struct Sweep {
    radius: u64,
    weight: Weight,
    /// Lanes of a row.
    width: usize,
    tail: usize,
    head: usize,
    centre: u64,
    /// Numbers and rows of `tail..head`, page i at i modulo their number, a power of two.
    numbers: Vec<u64>,
    rows: Vec<Lanes>,
    loaded: Vec<u64>,
    left: Side,
    right: Side,
    sums: Vec<Lanes>,
}

/// Counts of eight nodes: rows are made of these, for the sake of vector instructions.
type Lanes = [f64; 8];

/// Of one side: Σ C, and Σ (radius + 1 − d)·C.
struct Side {
    plain: Vec<Lanes>,
    weighted: Vec<Lanes>,
}

impl Side {
    fn new(width: usize) -> Self {
        Self {
            plain: vec![Lanes::default(); width],
            weighted: vec![Lanes::default(); width],
        }
    }

    /// Adds a row `sign` times (1 or −1), at a weight.
    fn add(&mut self, row: &[Lanes], sign: f64, weight: f64) {
        let both = self.plain.iter_mut().zip(&mut self.weighted);
        for ((plain, weighted), row) in both.zip(row) {
            for lane in 0..row.len() {
                plain[lane] += sign * row[lane];
                weighted[lane] += sign * weight * row[lane];
            }
        }
    }

    /// All of the side comes nearer by so many pages, or goes away.
    fn nearer(&mut self, by: f64) {
        for (weighted, plain) in self.weighted.iter_mut().zip(&self.plain) {
            for lane in 0..plain.len() {
                weighted[lane] += by * plain[lane];
            }
        }
    }
}

impl Sweep {
    /// With rows of `width` counts.
    pub(super) fn new(window: Window, width: usize) -> Self {
        let most = (2 * window.radius as usize + 2).next_power_of_two();
        let (nodes, width) = (width, width.div_ceil(8));
        Self {
            radius: window.radius,
            weight: window.weight,
            width,
            tail: 0,
            head: 0,
            centre: 0,
            numbers: vec![0; most],
            rows: vec![Lanes::default(); most * width],
            loaded: vec![0; nodes],
            left: Side::new(width),
            right: Side::new(width),
            sums: vec![Lanes::default(); width],
        }
    }

    /// Another list of pages, or new counts.
    pub(super) fn restart(&mut self) {
        (self.tail, self.head, self.centre) = (0, 0, 0);
        for side in [&mut self.left, &mut self.right] {
            side.plain.fill(Lanes::default());
            side.weighted.fill(Lanes::default());
        }
    }

    /// Σ W·C of page `i` of so many, asked for one after the other; `number(i)` ascends with i, and
    /// `load(i, row)` fills in the counts of page i.
    pub(super) fn at(
        &mut self,
        i: usize,
        pages: usize,
        number: impl Fn(usize) -> u64,
        mut load: impl FnMut(usize, &mut [u64]),
    ) -> &[f64] {
        if self.radius == 0 {
            load(i, &mut self.loaded);
            let sums = self.sums.as_flattened_mut();
            sums.iter_mut()
                .zip(&self.loaded)
                .for_each(|(s, c)| *s = *c as f64);
            return &sums[..self.loaded.len()];
        }
        self.centre_on(i, pages, &number, &mut load);
        self.sums()
    }

    fn place(&self, page: usize) -> (u64, std::ops::Range<usize>) {
        let at = page & (self.numbers.len() - 1);
        (self.numbers[at], at * self.width..(at + 1) * self.width)
    }

    fn weight(&self, distance: u64) -> f64 {
        (self.radius + 1 - distance) as f64
    }

    /// Reads page `head` into its place.
    fn take(&mut self, number: u64, load: &mut impl FnMut(usize, &mut [u64])) {
        load(self.head, &mut self.loaded);
        let at = self.head & (self.numbers.len() - 1);
        self.numbers[at] = number;
        let row = &mut self.rows[at * self.width..(at + 1) * self.width];
        let row = row.as_flattened_mut().iter_mut();
        row.zip(&self.loaded).for_each(|(r, c)| *r = *c as f64);
        self.head += 1;
    }

    /// Moves on to page `i`, the one after the last centre.
    fn centre_on(
        &mut self,
        i: usize,
        pages: usize,
        number: &impl Fn(usize) -> u64,
        load: &mut impl FnMut(usize, &mut [u64]),
    ) {
        let (centre, before) = (number(i), self.centre);
        let step = centre - before;
        while self.tail < i {
            let (q, row) = self.place(self.tail);
            if q + self.radius >= centre {
                break;
            }
            let weight = self.weight(before - q);
            self.left.add(&self.rows[row], -1.0, weight);
            self.tail += 1;
        }
        self.left.nearer(-(step as f64));
        if self.head == i {
            self.take(centre, load);
        } else {
            let (_, row) = self.place(i);
            let weight = self.weight(step);
            self.right.add(&self.rows[row], -1.0, weight);
        }
        self.right.nearer(step as f64);
        let (_, row) = self.place(i);
        let own = self.weight(0);
        self.left.add(&self.rows[row], 1.0, own);
        self.centre = centre;
        self.look_ahead(pages, number, load);
    }

    fn look_ahead(
        &mut self,
        pages: usize,
        number: &impl Fn(usize) -> u64,
        load: &mut impl FnMut(usize, &mut [u64]),
    ) {
        while self.head < pages {
            let q = number(self.head);
            if q - self.centre > self.radius {
                break;
            }
            self.take(q, load);
            let (_, row) = self.place(self.head - 1);
            let weight = self.weight(q - self.centre);
            self.right.add(&self.rows[row], 1.0, weight);
        }
    }

    /// Σ W·C around the centre, with W = 1 for the page itself.
    fn sums(&mut self) -> &[f64] {
        let (left, right, scale) = match self.weight {
            Weight::Linear => (&self.left.weighted, &self.right.weighted, self.weight(0)),
            Weight::Uniform => (&self.left.plain, &self.right.plain, 1.0),
        };
        let sides = left.as_flattened().iter().zip(right.as_flattened());
        for (sum, (l, r)) in self.sums.as_flattened_mut().iter_mut().zip(sides) {
            *sum = (l + r) / scale;
        }
        &self.sums.as_flattened()[..self.loaded.len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Σ W·C as written, page by page.
    fn naive(window: Window, pages: &[(u64, Vec<u64>)], i: usize, column: usize) -> f64 {
        let weight = |d: u64| match window.weight {
            Weight::Linear => 1.0 - d as f64 / (window.radius + 1) as f64,
            Weight::Uniform => 1.0,
        };
        let near = pages.iter().filter(|p| p.0.abs_diff(pages[i].0) <= window.radius);
        near.map(|p| weight(p.0.abs_diff(pages[i].0)) * p.1[column] as f64)
            .sum()
    }

    fn pages() -> impl Strategy<Value = Vec<(u64, Vec<u64>)>> {
        let gap = prop_oneof![5 => Just(1u64), 4 => 1u64..9, 1 => 1u64..(1 << 50)];
        let row = proptest::collection::vec(0u64..1000, 3);
        proptest::collection::vec((gap, row), 0..60).prop_map(|list| {
            let mut at = 0;
            let place = |(gap, row)| {
                at += gap;
                (at, row)
            };
            list.into_iter().map(place).collect()
        })
    }

    proptest! {
        #[test]
        fn the_sweep_is_the_sum_over_all_pages_near_by(pages in pages(), radius in 0u64..12, linear: bool) {
            let weight = if linear { Weight::Linear } else { Weight::Uniform };
            let window = Window { radius, weight };
            let mut sweep = Sweep::new(window, 3);
            for _ in 0..2 {
                sweep.restart();
                for i in 0..pages.len() {
                    let load = |i: usize, row: &mut [u64]| row.copy_from_slice(&pages[i].1);
                    let sums = sweep.at(i, pages.len(), |i| pages[i].0, load);
                    for (column, sum) in sums.iter().enumerate() {
                        let naive = naive(window, &pages, i, column);
                        prop_assert!((sum - naive).abs() < 1e-6, "{sum} {naive}");
                    }
                }
            }
        }
    }
}

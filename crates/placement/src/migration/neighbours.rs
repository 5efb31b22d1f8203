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
/// Pages `tail..head` are in the window around the centre. When the centre moves on by a page number,
/// what is behind it counts one step less and what is ahead one more, so that three sums are enough.
/// They are whole numbers, and exact below 2⁶⁴. Rows are of `LANES` nodes and as many rows more as it
/// takes, for the sake of vector instructions.
pub struct Sweep<const LANES: usize> {
    window: Window,
    /// Rows of a page.
    width: usize,
    tail: usize,
    head: usize,
    /// Number of page `head`, once it has been asked for.
    next: Option<u64>,
    centre: u64,
    /// Numbers and rows of `tail..head`, page i at i modulo their number, a power of two.
    numbers: Vec<u64>,
    rows: Vec<[u64; LANES]>,
    loaded: Vec<u64>,
    sums: Vec<Sums<LANES>>,
}

#[derive(Clone, Copy)]
struct Sums<const LANES: usize> {
    /// Σ (radius + 1 − d)·C.
    weighted: [u64; LANES],
    /// Σ C of the centre and what is behind it.
    behind: [u64; LANES],
    /// Σ C of what is ahead.
    ahead: [u64; LANES],
}

impl<const LANES: usize> Sweep<LANES> {
    /// With rows of `width` counts.
    pub(super) fn new(window: Window, width: usize) -> Self {
        let most = (2 * window.radius as usize + 2).next_power_of_two();
        let lanes = width.div_ceil(LANES);
        let none = [0; LANES];
        let nothing = Sums {
            weighted: none,
            behind: none,
            ahead: none,
        };
        Self {
            window,
            width: lanes,
            tail: 0,
            head: 0,
            next: None,
            centre: 0,
            numbers: vec![0; most],
            rows: vec![none; most * lanes],
            loaded: vec![0; width],
            sums: vec![nothing; lanes],
        }
    }

    /// What [`Sweep::at`] has too much of: a page alone counts so many times.
    pub(super) fn scale(&self) -> f64 {
        match self.window.weight {
            Weight::Linear => (self.window.radius + 1) as f64,
            Weight::Uniform => 1.0,
        }
    }

    /// Σ W·C times [`Sweep::scale`] of page `i` of so many, asked for one after the other from the first
    /// on; `number(i)` ascends with i, and `load(i, row)` fills in the counts of page i.
    pub(super) fn at(
        &mut self,
        i: usize,
        pages: usize,
        number: impl Fn(usize) -> u64,
        mut load: impl FnMut(usize, &mut [u64]),
        result: &mut [f64],
    ) {
        if self.window.radius == 0 {
            load(i, &mut self.loaded);
            fill(result, &self.loaded);
            return;
        }
        let before = self.centre;
        let known = self.head > i;
        if !known {
            let number = self.next.unwrap_or_else(|| number(i));
            self.take(number, &mut load);
        }
        self.centre = self.numbers[self.place(i)];
        self.leave_behind(i, before);
        self.step(i, self.centre - before, known);
        while self.head < pages {
            let q = *self.next.get_or_insert_with(|| number(self.head));
            if q - self.centre > self.window.radius {
                break;
            }
            self.take(q, &mut load);
            self.come_ahead(self.head - 1, self.window.radius + 1 - (q - self.centre));
        }
        for (sums, result) in self.sums.iter().zip(result.chunks_mut(LANES)) {
            fill(result, &sums.result(self.window.weight));
        }
    }

    fn place(&self, page: usize) -> usize {
        page & (self.numbers.len() - 1)
    }

    #[inline]
    fn with_row(&mut self, page: usize, each: impl Fn(&mut Sums<LANES>, &[u64; LANES])) {
        let at = self.place(page) * self.width;
        let rows = &self.rows[at..at + self.width];
        self.sums
            .iter_mut()
            .zip(rows)
            .for_each(|(sums, row)| each(sums, row));
    }

    /// Reads page `head` into its place.
    fn take(&mut self, number: u64, load: &mut impl FnMut(usize, &mut [u64])) {
        let at = self.place(self.head);
        self.numbers[at] = number;
        let row = &mut self.rows[at * self.width..(at + 1) * self.width];
        load(self.head, &mut row.as_flattened_mut()[..self.loaded.len()]);
        self.head += 1;
        self.next = None;
    }

    /// Lets go of pages before `i` that the new centre is too far from, while it is still at `before`.
    fn leave_behind(&mut self, i: usize, before: u64) {
        while self.tail < i {
            let q = self.numbers[self.place(self.tail)];
            if q + self.window.radius >= self.centre {
                break;
            }
            let weight = self.window.radius + 1 - (before - q);
            self.with_row(self.tail, |sums, row| {
                for (n, c) in row.iter().enumerate() {
                    sums.weighted[n] = sums.weighted[n].wrapping_sub(weight.wrapping_mul(*c));
                    sums.behind[n] = sums.behind[n].wrapping_sub(*c);
                }
            });
            self.tail += 1;
        }
    }

    /// Moves on to page `i`, which was among those ahead if it is known already.
    fn step(&mut self, i: usize, step: u64, known: bool) {
        let (radius, known) = (self.window.radius + 1, u64::from(known));
        let new = (1 - known) * radius;
        self.with_row(i, |sums, row| {
            for (n, c) in row.iter().enumerate() {
                let nearer = sums.ahead[n].wrapping_sub(sums.behind[n]);
                let grown = step.wrapping_mul(nearer).wrapping_add(new.wrapping_mul(*c));
                sums.weighted[n] = sums.weighted[n].wrapping_add(grown);
                sums.ahead[n] = sums.ahead[n].wrapping_sub(known.wrapping_mul(*c));
                sums.behind[n] = sums.behind[n].wrapping_add(*c);
            }
        });
    }

    fn come_ahead(&mut self, page: usize, weight: u64) {
        self.with_row(page, |sums, row| {
            for (n, c) in row.iter().enumerate() {
                sums.weighted[n] = sums.weighted[n].wrapping_add(weight.wrapping_mul(*c));
                sums.ahead[n] = sums.ahead[n].wrapping_add(*c);
            }
        });
    }
}

fn fill(result: &mut [f64], counts: &[u64]) {
    let each = result.iter_mut().zip(counts);
    each.for_each(|(r, c)| *r = *c as f64);
}

impl<const LANES: usize> Sums<LANES> {
    fn result(&self, weight: Weight) -> [u64; LANES] {
        match weight {
            Weight::Linear => self.weighted,
            Weight::Uniform => std::array::from_fn(|n| self.behind[n].wrapping_add(self.ahead[n])),
        }
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
            let mut sweep = Sweep::<2>::new(window, 3);
            for i in 0..pages.len() {
                let load = |i: usize, row: &mut [u64]| row.copy_from_slice(&pages[i].1);
                let mut sums = [0.0; 3];
                sweep.at(i, pages.len(), |i| pages[i].0, load, &mut sums);
                for (column, sum) in sums.iter().map(|s| s / sweep.scale()).enumerate() {
                    let naive = naive(window, &pages, i, column);
                    prop_assert!((sum - naive).abs() < 1e-6, "{sum} {naive}");
                }
            }
        }
    }
}

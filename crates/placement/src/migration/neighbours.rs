//! R_PN = Σ W·C of ARS (3.2): accesses to a page and to its neighbours, with larger weights for nearer ones.

use super::Number;
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

/// The neighbours of a page, and their weights.
///
/// Distance is measured in page numbers, not in positions in a list: pages dealt round-robin over four nodes are four
/// apart on each node, and "*Out-W* takes pages, which are not directly neighboring".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The largest distance of a neighbour to either side, in pages; 0: no neighbours.
    pub radius: u64,
    /// The weight of a neighbour by its distance.
    pub weight: Weight,
}

/// Largest radius: a wider window would cover whole arrays, and needs memory for a row of counts per page.
const MAX_RADIUS: u64 = 4096;

impl Window {
    /// A window without neighbours.
    pub const PAGE: Self = Self {
        radius: 0,
        weight: Weight::Uniform,
    };

    /// `window=8:weight=linear`: with pages dealt to four nodes in turn, eight pages to each side contain two
    /// neighbours on the same node; the furthest page has a weight of one ninth.
    pub(super) fn of(parameters: &mut Parameters<'_>) -> Result<Self, PolicyError> {
        let wide = format!("a number of pages from 0 to {MAX_RADIUS}");
        Ok(Self {
            radius: parameters.take("window", 8, |r| *r <= MAX_RADIUS, wide)?,
            weight: parameters.take("weight", Weight::Linear, |_| true, "`linear` or `uniform`")?,
        })
    }

    /// The factor by which the results of [`Sweep::at`] are scaled up: the weight of the page itself.
    pub(super) fn scale(self) -> f64 {
        match self.weight {
            Weight::Linear => (self.radius + 1) as f64,
            Weight::Uniform => 1.0,
        }
    }

    /// The number of bits of sums over the window, and over this many nodes, if counts have `counts` bits.
    pub(super) fn bits(self, counts: u32, nodes: usize) -> u32 {
        let weights = 2 * (self.radius + 1).pow(2) * nodes as u64;
        counts + u64::BITS - weights.leading_zeros()
    }
}

/// The weighted sums of pages in ascending order, at a cost that does not depend on the radius, for `LANES` nodes in
/// parallel.
///
/// Pages `tail..head` are in the window around the centre. When the centre advances by one page number, the weight of
/// each page behind it falls by one step and that of each page ahead rises by one step, so three sums suffice. They are
/// whole numbers, and exact as long as [`Window::bits`] permits.
pub struct Sweep<N, const LANES: usize> {
    window: Window,
    tail: usize,
    head: usize,
    /// Number of page `head`, once it has been read.
    next: Option<u64>,
    centre: u64,
    /// Ring buffer of pages `tail..head`: page i is at i modulo the length, a power of two.
    pages: Vec<Page<N, LANES>>,
    sums: Sums<N, LANES>,
}

#[derive(Clone, Copy)]
struct Page<N, const LANES: usize> {
    number: u64,
    /// Whether any of these nodes has used the page; otherwise its counts are not filled in.
    used: bool,
    counts: [N; LANES],
}

#[derive(Clone, Copy)]
struct Sums<N, const LANES: usize> {
    /// Σ (radius + 1 − d)·C.
    weighted: [N; LANES],
    /// Σ C of the centre and the pages behind it.
    behind: [N; LANES],
    /// Σ C of the pages ahead.
    ahead: [N; LANES],
}

impl<N: Number, const LANES: usize> Sweep<N, LANES> {
    pub(super) fn new(window: Window) -> Self {
        let most = (2 * window.radius as usize + 2).next_power_of_two();
        let none = [N::default(); LANES];
        let page = Page {
            number: 0,
            used: false,
            counts: none,
        };
        Self {
            window,
            tail: 0,
            head: 0,
            next: None,
            centre: 0,
            pages: vec![page; most],
            sums: Sums {
                weighted: none,
                behind: none,
                ahead: none,
            },
        }
    }

    /// Σ W·C, times [`Window::scale`], of page `i` of `pages`; call it for each page in order from the first.
    /// `number(i)` ascends with i. `load(i, row)` fills in the counts of page i, or returns false if all are 0.
    #[inline]
    pub(super) fn at(
        &mut self,
        i: usize,
        pages: usize,
        number: impl Fn(usize) -> u64,
        load: impl Fn(usize, &mut [N; LANES]) -> bool,
    ) -> [N; LANES] {
        if self.window.radius == 0 {
            let mut counts = [N::default(); LANES];
            load(i, &mut counts);
            return counts;
        }
        let mut sums = self.sums;
        let before = self.centre;
        let known = self.head > i;
        if !known {
            let number = self.next.unwrap_or_else(|| number(i));
            self.take(number, &load);
        }
        self.centre = self.pages[self.place(i)].number;
        self.leave_behind(i, before, &mut sums);
        self.step(i, before, known, &mut sums);
        while self.head < pages {
            let q = *self.next.get_or_insert_with(|| number(self.head));
            if q - self.centre > self.window.radius {
                break;
            }
            let weight = N::of(self.window.radius + 1 - (q - self.centre));
            let page = self.take(q, &load);
            if page.used {
                sums.come_ahead(&page.counts, weight);
            }
        }
        self.sums = sums;
        sums.result(self.window.weight)
    }

    #[inline]
    fn place(&self, page: usize) -> usize {
        page & (self.pages.len() - 1)
    }

    /// Reads page `head` into the ring buffer.
    #[inline]
    fn take(&mut self, number: u64, load: &impl Fn(usize, &mut [N; LANES]) -> bool) -> &Page<N, LANES> {
        let at = self.place(self.head);
        let page = &mut self.pages[at];
        page.number = number;
        page.used = load(self.head, &mut page.counts);
        self.head += 1;
        self.next = None;
        page
    }

    /// Removes pages before `i` that are too far from the new centre, while the centre is still at `before`.
    #[inline]
    fn leave_behind(&mut self, i: usize, before: u64, sums: &mut Sums<N, LANES>) {
        while self.tail < i {
            let page = &self.pages[self.place(self.tail)];
            if page.number + self.window.radius >= self.centre {
                break;
            }
            if page.used {
                let weight = self.window.radius + 1 - (before - page.number);
                sums.leave(&page.counts, N::of(weight));
            }
            self.tail += 1;
        }
    }

    /// Advances the centre from `before` to page `i`. `known`: the page was already among those ahead.
    #[inline]
    fn step(&self, i: usize, before: u64, known: bool, sums: &mut Sums<N, LANES>) {
        // After a longer step no page remains in the window.
        sums.step(N::of((self.centre - before).min(self.window.radius)));
        let page = &self.pages[self.place(i)];
        if page.used && known {
            sums.pass(&page.counts);
        } else if page.used {
            sums.arrive(&page.counts, N::of(self.window.radius + 1));
        }
    }
}

impl<N: Number, const LANES: usize> Sums<N, LANES> {
    fn come_ahead(&mut self, counts: &[N; LANES], weight: N) {
        for (n, c) in counts.iter().enumerate() {
            self.weighted[n] = self.weighted[n].plus(weight.times(*c));
            self.ahead[n] = self.ahead[n].plus(*c);
        }
    }

    fn leave(&mut self, counts: &[N; LANES], weight: N) {
        for (n, c) in counts.iter().enumerate() {
            self.weighted[n] = self.weighted[n].minus(weight.times(*c));
            self.behind[n] = self.behind[n].minus(*c);
        }
    }

    /// Advances the centre by a number of pages.
    fn step(&mut self, by: N) {
        for n in 0..LANES {
            let nearer = self.ahead[n].minus(self.behind[n]);
            self.weighted[n] = self.weighted[n].plus(by.times(nearer));
        }
    }

    /// The new centre is a page that was ahead.
    fn pass(&mut self, counts: &[N; LANES]) {
        for (n, c) in counts.iter().enumerate() {
            self.ahead[n] = self.ahead[n].minus(*c);
            self.behind[n] = self.behind[n].plus(*c);
        }
    }

    /// The new centre is a page that was not read ahead.
    fn arrive(&mut self, counts: &[N; LANES], weight: N) {
        for (n, c) in counts.iter().enumerate() {
            self.weighted[n] = self.weighted[n].plus(weight.times(*c));
            self.behind[n] = self.behind[n].plus(*c);
        }
    }

    fn result(&self, weight: Weight) -> [N; LANES] {
        match weight {
            Weight::Linear => self.weighted,
            Weight::Uniform => std::array::from_fn(|n| self.behind[n].plus(self.ahead[n])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Σ W·C by its definition, page by page.
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
            let (exact, quick) = (swept::<u64>(window, &pages), swept::<f32>(window, &pages));
            prop_assert!(window.bits(10, 3) <= f32::EXACT);
            prop_assert_eq!(&exact, &quick);
            for (i, sums) in exact.iter().enumerate() {
                for (column, sum) in sums.iter().map(|s| s / window.scale()).enumerate() {
                    let naive = naive(window, &pages, i, column);
                    prop_assert!((sum - naive).abs() < 1e-6, "{sum} {naive}");
                }
            }
        }
    }

    /// The weighted sums of each page, as [`Sweep`] computes them.
    fn swept<N: Number>(window: Window, pages: &[(u64, Vec<u64>)]) -> Vec<[f64; 3]> {
        let mut sweep = Sweep::<N, 3>::new(window);
        let load = |i: usize, row: &mut [N; 3]| {
            row.iter_mut().zip(&pages[i].1).for_each(|(r, c)| *r = N::of(*c));
            pages[i].1.iter().any(|c| *c > 0)
        };
        let at = |i: usize| sweep.at(i, pages.len(), |i| pages[i].0, load).map(N::get);
        (0..pages.len()).map(at).collect()
    }
}

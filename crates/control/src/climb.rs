//! A search for the best share of pages on one side, by measurements that contain noise.

/// 1 / φ: the part of a bracket that golden-section search keeps.
const KEPT: f64 = 0.618_033_988_749_895;
/// Width, in hundredths, from which on the rest of the measurements is spread over the bracket: within it, noise
/// exceeds what neighbouring shares differ by.
const NARROW: f64 = 8.0;
/// Distance from the best measurement up to which others are fitted.
const FITTED: u32 = 15;
/// Two lines fit any points better than one: they must by this factor.
const ONE_LINE: f64 = 1.15;

/// Finds the share, 0 to 100, at which a cost (time, or one over a rate) is lowest, by [`Climb::STEPS`] measurements.
///
/// The cost has one minimum where a near and a far memory serve a program at a time: up to some share the near one is waited
/// for, beyond it the far one. Golden-section search narrows the bracket; the measurements that are left are spread over it
/// and as far to both sides. The answer is where two lines cross that fit those around the best, one falling
/// and one rising, so that it rests on all of them and not on the luckiest. (Sun et al., Caption, MICRO 2023, go by one
/// fixed step at a time, Gureya et al., BWAP, IPDPS 2020, from one end to the other.)
#[derive(Clone, Debug)]
pub struct Climb {
    /// The bracket in which the minimum lies.
    low: f64,
    high: f64,
    /// Costs at the two shares within the bracket, once measured.
    lower: Option<f64>,
    upper: Option<f64>,
    measured: Vec<(u32, f64)>,
    /// What is left to measure in the end, the next one last; `None` until the bracket is narrow.
    last: Option<Vec<u32>>,
}

impl Default for Climb {
    fn default() -> Self {
        Self {
            low: 0.0,
            high: 100.0,
            lower: None,
            upper: None,
            measured: Vec::new(),
            last: None,
        }
    }
}

impl Climb {
    /// How many measurements a search takes.
    pub const STEPS: usize = 15;

    /// The share to measure next, in hundredths; the same until [`Climb::measured`] is called, `None` at the end.
    #[must_use]
    pub fn next_share(&self) -> Option<u32> {
        match &self.last {
            Some(left) => left.last().copied(),
            None => Some(self.inner().round() as u32),
        }
    }

    /// Takes the cost at [`Climb::next_share`]; nothing at the end of the search.
    pub fn measured(&mut self, cost: f64) {
        let Some(share) = self.next_share() else {
            return;
        };
        self.measured.push((share, cost));
        match &mut self.last {
            Some(left) => {
                left.pop();
            }
            None => self.narrow(cost),
        }
    }

    /// Keeps the part of the bracket with the lower cost.
    fn narrow(&mut self, cost: f64) {
        match self.lower {
            None => self.lower = Some(cost),
            Some(_) => self.upper = Some(cost),
        }
        let (Some(lower), Some(upper)) = (self.lower, self.upper) else {
            return;
        };
        if lower < upper {
            self.high = self.point(KEPT);
            (self.lower, self.upper) = (None, Some(lower));
        } else {
            self.low = self.point(1.0 - KEPT);
            (self.lower, self.upper) = (Some(upper), None);
        }
        let width = self.high - self.low;
        if width < NARROW {
            let best = f64::from(self.cheapest().unwrap_or(0));
            let (from, to) = ((best - width).max(0.0), (best + width).min(100.0));
            let left = Self::STEPS - self.measured.len();
            let at = |i: usize| from + (to - from) * i as f64 / (left - 1) as f64;
            self.last = Some((0..left).rev().map(|i| at(i).round() as u32).collect());
        }
    }

    fn point(&self, part: f64) -> f64 {
        self.low + part * (self.high - self.low)
    }

    /// The share within the bracket that has no cost.
    fn inner(&self) -> f64 {
        self.point(if self.lower.is_none() { 1.0 - KEPT } else { KEPT })
    }

    /// All measurements in their order: share and cost.
    #[must_use]
    pub fn steps(&self) -> &[(u32, f64)] {
        &self.measured
    }

    /// The share whose mean cost is the lowest.
    fn cheapest(&self) -> Option<u32> {
        let mean = |share: u32| {
            let costs = self.measured.iter().filter(|(at, _)| *at == share).map(|m| m.1);
            let (sum, count) = costs.fold((0.0, 0.0), |(sum, count), c| (sum + c, count + 1.0));
            sum / count
        };
        let shares = self.measured.iter().map(|m| m.0);
        shares.min_by(|a, b| mean(*a).total_cmp(&mean(*b)))
    }

    /// The best share; `None` before the first measurement.
    #[must_use]
    pub fn best(&self) -> Option<u32> {
        let cheapest = self.cheapest()?;
        let near = self.measured.iter().filter(|m| m.0.abs_diff(cheapest) <= FITTED);
        let mut points: Vec<Point> = near
            .map(|(share, cost)| Point::near(cheapest, *share, *cost))
            .collect();
        points.sort_by(|a, b| a.share.total_cmp(&b.share));
        let fits = (0..=points.len()).filter_map(|cut| Fit::of(points.split_at(cut)));
        let fit = fits.min_by(|a, b| a.error.total_cmp(&b.error));
        let shares = cheapest.saturating_sub(FITTED)..=(cheapest + FITTED).min(100);
        let cost = |fit: &Fit, share: u32| fit.cost(f64::from(share));
        fit.map_or(Some(cheapest), |fit| {
            shares.min_by(|a, b| cost(&fit, *a).total_cmp(&cost(&fit, *b)))
        })
    }
}

/// A measurement in a fit, with a weight that falls with its distance: further away there may be a third line.
struct Point {
    share: f64,
    cost: f64,
    weight: f64,
}

impl Point {
    fn near(cheapest: u32, share: u32, cost: f64) -> Self {
        let distance = f64::from(share.abs_diff(cheapest));
        Self {
            share: f64::from(share),
            cost,
            weight: 1.0 - distance / f64::from(FITTED + 1),
        }
    }
}

/// A straight line by least squares.
#[derive(Clone, Copy)]
struct Line {
    at_zero: f64,
    slope: f64,
}

impl Line {
    /// `None` for fewer than two different shares.
    fn of(points: &[Point]) -> Option<Self> {
        let sum = |f: fn(&Point) -> f64| points.iter().map(|p| p.weight * f(p)).sum::<f64>();
        let (weight, x, y) = (sum(|_| 1.0), sum(|p| p.share), sum(|p| p.cost));
        let spread = weight * sum(|p| p.share * p.share) - x * x;
        let slope = (weight * sum(|p| p.share * p.cost) - x * y) / spread;
        (spread > 1e-9).then(|| Self {
            at_zero: (y - slope * x) / weight,
            slope,
        })
    }

    fn cost(&self, share: f64) -> f64 {
        self.at_zero + self.slope * share
    }
}

/// The larger of two lines, the left one less steep, or a single line.
struct Fit {
    lines: Vec<Line>,
    error: f64,
}

impl Fit {
    fn of((left, right): (&[Point], &[Point])) -> Option<Self> {
        let sides = [left, right].into_iter().filter(|side| !side.is_empty());
        let fitted: Option<Vec<(Line, f64)>> = sides
            .map(|side| {
                let line = Line::of(side)?;
                let off = side
                    .iter()
                    .map(|p| p.weight * (p.cost - line.cost(p.share)).powi(2));
                Some((line, off.sum()))
            })
            .collect();
        let fitted = fitted.filter(|f| f.first().zip(f.get(1)).is_none_or(|(l, r)| l.0.slope < r.0.slope))?;
        let factor = if fitted.len() == 1 { ONE_LINE } else { 1.0 };
        Some(Self {
            error: factor * fitted.iter().map(|f| f.1).sum::<f64>(),
            lines: fitted.into_iter().map(|f| f.0).collect(),
        })
    }

    fn cost(&self, share: f64) -> f64 {
        let each = self.lines.iter().map(|line| line.cost(share));
        each.fold(f64::NEG_INFINITY, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn climbed(cost: impl Fn(f64) -> f64) -> Climb {
        let mut climb = Climb::default();
        while let Some(share) = climb.next_share() {
            climb.measured(cost(f64::from(share)));
        }
        climb
    }

    #[test]
    fn the_only_minimum_is_found_to_a_hundredth() {
        for minimum in 0..=100u32 {
            let at = f64::from(minimum);
            for slopes in [(1.0, 1.0), (0.1, 5.0), (3.0, 0.2)] {
                let climb = climbed(|share| 100.0 + ((at - share) * slopes.0).max((share - at) * slopes.1));
                let best = climb.best().unwrap();
                assert!(
                    best.abs_diff(minimum) <= 1,
                    "{best} for {minimum}: {:?}",
                    climb.steps()
                );
                assert_eq!(climb.steps().len(), Climb::STEPS);
            }
        }
    }

    #[test]
    fn the_end_of_a_search_takes_no_cost() {
        let mut climb = climbed(|share| share);
        climb.measured(-1e9);
        assert_eq!((climb.steps().len(), climb.next_share()), (Climb::STEPS, None));
        assert_eq!(Climb::default().best(), None);
    }

    #[test]
    fn costs_that_are_all_the_same_or_no_numbers_end_the_search_too() {
        for cost in [0.0, f64::NAN, f64::INFINITY] {
            let climb = climbed(|_| cost);
            assert!(climb.best().is_some_and(|best| best <= 100));
        }
    }
}

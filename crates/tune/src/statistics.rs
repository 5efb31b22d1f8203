//! Tests whether a command is faster than another: medians, a bootstrap interval with a fixed seed, and a rank test.

use nodewise_placement::formulas::SplitMix;

/// Comparison of two sets of wall times, `a` and `b`: `b` is faster if the ratio is above 1.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Comparison {
    /// Median of `a` over median of `b`.
    pub ratio: f64,
    /// 95 % bootstrap interval of the ratio.
    pub interval: [f64; 2],
    /// Two-sided p-value of the Mann-Whitney test.
    pub p: f64,
}

const BOOTSTRAP_RESAMPLES: usize = 4000;

/// The median; 0 for an empty slice.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => 0.5 * (sorted[n / 2 - 1] + sorted[n / 2]),
    }
}

/// Compares the times of `b` with those of `a`; neither may be empty.
pub fn compare(a: &[f64], b: &[f64], seed: u64) -> Comparison {
    Comparison {
        ratio: median(a) / median(b),
        interval: bootstrap(a, b, seed),
        p: mann_whitney(a, b),
    }
}

/// Percentile bootstrap of the ratio of medians.
fn bootstrap(a: &[f64], b: &[f64], seed: u64) -> [f64; 2] {
    let mut random = SplitMix(seed);
    let mut draw = |from: &[f64]| {
        let drawn: Vec<f64> = from.iter().map(|_| from[random.below(from.len())]).collect();
        median(&drawn)
    };
    let mut ratios: Vec<f64> = (0..BOOTSTRAP_RESAMPLES).map(|_| draw(a) / draw(b)).collect();
    ratios.sort_by(f64::total_cmp);
    [
        ratios[BOOTSTRAP_RESAMPLES / 40],
        ratios[BOOTSTRAP_RESAMPLES - 1 - BOOTSTRAP_RESAMPLES / 40],
    ]
}

/// The exact two-sided p-value of the Mann-Whitney rank-sum test. A tie counts as half a win; the statistic is rounded
/// towards "no difference".
fn mann_whitney(a: &[f64], b: &[f64]) -> f64 {
    let wins: f64 = a
        .iter()
        .flat_map(|x| {
            b.iter().map(move |y| {
                if x < y {
                    1.0
                } else if x == y {
                    0.5
                } else {
                    0.0
                }
            })
        })
        .sum();
    let pairs = a.len() * b.len();
    let extreme = wins.min(pairs as f64 - wins).ceil() as usize;
    let ways = rank_sums(a.len(), b.len());
    let tail: f64 = ways[..=extreme.min(pairs)].iter().sum();
    (2.0 * tail / ways.iter().sum::<f64>()).min(1.0)
}

/// Distribution of the Mann-Whitney statistic: for each u, the number of orders of `n` and `m` values in which values
/// of the first set win exactly u pairs.
fn rank_sums(n: usize, m: usize) -> Vec<f64> {
    // The last value in the order is either of the first set (and wins no pair) or of the second set (and loses to
    // all n values of the first): ways(n, m, u) = ways(n - 1, m, u) + ways(n, m - 1, u - n).
    let mut row: Vec<Vec<f64>> = (0..=n).map(|_| unit(n * m)).collect();
    for _ in 1..=m {
        let mut next = vec![unit(n * m)];
        for i in 1..=n {
            let mut ways = next[i - 1].clone();
            for u in i..=n * m {
                ways[u] += row[i][u - i];
            }
            next.push(ways);
        }
        row = next;
    }
    row.pop().unwrap_or_default()
}

fn unit(pairs: usize) -> Vec<f64> {
    let mut ways = vec![0.0; pairs + 1];
    ways[0] = 1.0;
    ways
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_and_even_counts() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
    }

    #[test]
    fn five_runs_apart_have_the_tabulated_p() {
        let p = mann_whitney(&[1.0, 2.0, 3.0, 4.0, 5.0], &[6.0, 7.0, 8.0, 9.0, 10.0]);
        assert!((p - 2.0 / 252.0).abs() < 1e-12, "{p}");
    }

    #[test]
    fn all_orders_are_counted_once() {
        assert_eq!(rank_sums(5, 5).iter().sum::<f64>(), 252.0);
        assert_eq!(rank_sums(2, 2), [1.0, 1.0, 2.0, 1.0, 1.0]);
    }

    #[test]
    fn equal_samples_do_not_differ() {
        let same = [1.0, 1.1, 0.9, 1.05, 0.95];
        let c = compare(&same, &same, 7);
        assert_eq!(c.ratio, 1.0);
        assert!(c.interval[0] <= 1.0 && c.interval[1] >= 1.0);
        assert!(c.p > 0.9, "{}", c.p);
    }

    #[test]
    fn a_clear_gain_is_found_and_repeats_with_its_seed() {
        let (a, b) = ([2.0, 2.1, 1.9, 2.05, 1.95], [1.0, 1.02, 0.98, 1.01, 0.99]);
        let c = compare(&a, &b, 7);
        assert_eq!(c.ratio, 2.0);
        assert!(c.interval[0] > 1.8 && c.interval[1] < 2.2, "{:?}", c.interval);
        assert_eq!(c, compare(&a, &b, 7));
    }
}

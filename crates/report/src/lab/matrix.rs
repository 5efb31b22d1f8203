//! Access counts as shares of their sum.

use crate::percent;

/// A matrix of counts with its sums.
pub struct Shares<'a> {
    counts: &'a [Vec<u64>],
    /// Number of all accesses.
    pub total: u64,
}

impl<'a> Shares<'a> {
    pub fn of(counts: &'a [Vec<u64>]) -> Self {
        let total = counts.iter().flatten().sum();
        Self { counts, total }
    }

    fn share(&self, count: u64) -> f64 {
        count as f64 / self.total.max(1) as f64
    }

    /// Share of the accesses from one CPU node to one memory node.
    pub fn cell(&self, reader: usize, memory: usize) -> f64 {
        self.share(self.count(reader, memory))
    }

    pub fn count(&self, reader: usize, memory: usize) -> u64 {
        let row = self.counts.get(reader);
        row.and_then(|r| r.get(memory)).copied().unwrap_or(0)
    }

    /// Share of the accesses that the CPUs of a node issued.
    pub fn by_reader(&self, reader: usize) -> f64 {
        self.share(self.counts.get(reader).map_or(0, |row| row.iter().sum()))
    }

    /// Share of the accesses that the memory of a node served.
    pub fn by_memory(&self, memory: usize) -> f64 {
        self.share(self.counts.iter().filter_map(|row| row.get(memory)).sum())
    }
}

/// A share in per cent, at most four characters; a dot stands for exactly zero.
pub fn short(share: f64) -> String {
    match share {
        0.0 => "·".to_owned(),
        s if s < 0.0005 => "<0.1".to_owned(),
        1.0.. => "100".to_owned(),
        s => percent(s).trim_end_matches(" %").to_owned(),
    }
}

/// A count in at most four characters: `999`, `1.2k`, `35k`.
pub fn tiny(count: u64) -> String {
    let (mut value, mut unit) = (count as f64, 0);
    while value >= 999.5 && unit < 5 {
        value /= 1000.0;
        unit += 1;
    }
    match ["", "k", "M", "G", "T", "P"][unit] {
        "" => count.to_string(),
        unit if value < 9.95 => format!("{value:.1}{unit}"),
        unit => format!("{value:.0}{unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_and_all_are_called_so_only_when_they_are() {
        let all = [0.0, 1e-9, 0.125, 0.999_99, 1.0].map(short);
        assert_eq!(all, ["·", "<0.1", "12.5", "99.9", "100"]);
    }

    #[test]
    fn page_counts_fit_a_cell() {
        let all = [0, 999, 1000, 9949, 9950, 999_499, 999_500].map(tiny);
        assert_eq!(all, ["0", "999", "1.0k", "9.9k", "10k", "999k", "1.0M"]);
    }

    proptest! {
        #[test]
        fn rows_and_columns_sum_to_all(counts in proptest::collection::vec(
            proptest::collection::vec(0u64..1 << 40, 5), 5)) {
            let shares = Shares::of(&counts);
            prop_assume!(shares.total > 0);
            let sum = |f: &dyn Fn(usize) -> f64| (0..5).map(f).sum::<f64>();
            prop_assert!((sum(&|r| shares.by_reader(r)) - 1.0).abs() < 1e-9);
            prop_assert!((sum(&|m| shares.by_memory(m)) - 1.0).abs() < 1e-9);
        }
    }
}

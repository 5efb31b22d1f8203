//! Sets of numbers as disjoint runs.

use std::collections::BTreeMap;

/// Disjoint, non-adjacent runs of numbers, from begin to end: adding a run costs the same however long it is.
#[derive(Debug, Default)]
pub struct Runs {
    ends: BTreeMap<u64, u64>,
    count: u64,
}

impl Runs {
    /// Adds the numbers from `begin` to `end`, exclusive, and returns how many of them are new.
    pub fn add(&mut self, mut begin: u64, mut end: u64) -> u64 {
        let before = self.count;
        while let Some((&from, &to)) = self
            .ends
            .range(..=end)
            .next_back()
            .filter(|(_, to)| **to >= begin)
        {
            self.ends.remove(&from);
            self.count -= to - from;
            (begin, end) = (begin.min(from), end.max(to));
        }
        self.ends.insert(begin, end);
        self.count += end - begin;
        self.count - before
    }

    /// How many numbers there are.
    pub fn count(&self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    proptest::proptest! {
        #[test]
        fn runs_are_those_of_a_set(added in proptest::collection::vec((0..60u64, 1..12u64), 0..40)) {
            let mut runs = Runs::default();
            let mut set = HashSet::new();
            for (begin, length) in added {
                let before = set.len();
                set.extend(begin..begin + length);
                proptest::prop_assert_eq!(runs.add(begin, begin + length), (set.len() - before) as u64);
                proptest::prop_assert_eq!(runs.count(), set.len() as u64);
            }
        }
    }
}

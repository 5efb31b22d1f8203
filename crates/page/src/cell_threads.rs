//! Accesses by thread to each cell, for tooltips.

use crate::packed::Packed;
use serde_json::{Map, Value};

/// Stands for all threads that a cell does not name, together.
const OTHER_THREADS: u16 = u16::MAX;
/// Largest number of threads named per cell if size is not limited.
pub const MAX_NAMED_THREADS: usize = 256;

/// Packs the accesses by thread of each cell; `rows` has `threads` numbers per cell. The `named` busiest threads of a
/// cell are named by index, the others are summed.
#[must_use]
pub fn pack(level: u32, first_cell: usize, threads: usize, named: usize, rows: &[u64]) -> Vec<u8> {
    let (mut offsets, mut thread, mut accesses) = (vec![0], Vec::new(), Vec::new());
    for row in rows.chunks(threads.max(1)) {
        for (index, count) in named_of(row, named) {
            thread.push(index);
            accesses.push(count);
        }
        offsets.push(thread.len() as u32);
    }
    let mut packed = Packed::default();
    packed.words("offsets", &offsets);
    packed.shorts("thread", &thread);
    packed.counts("accesses", &accesses);
    packed.finish(Map::from_iter([
        ("level".to_owned(), Value::from(level)),
        ("first_cell".to_owned(), Value::from(first_cell)),
    ]))
}

/// The busiest threads, in ascending order, then all others together.
fn named_of(row: &[u64], named: usize) -> Vec<(u16, u64)> {
    let busy = row.iter().enumerate().filter(|(_, n)| **n > 0);
    let mut busy: Vec<(usize, u64)> = busy.map(|(t, n)| (t, *n)).collect();
    let (most, rest) = (named.min(busy.len()), busy.len() > named);
    if rest {
        busy.sort_by_key(|(thread, n)| (std::cmp::Reverse(*n), *thread));
        busy[..most].sort_unstable();
    }
    let nameable = |(thread, _): &(usize, u64)| *thread < usize::from(OTHER_THREADS);
    let (kept, left): (Vec<_>, Vec<_>) = busy[..most].iter().copied().partition(nameable);
    let others: u64 = left.iter().chain(&busy[most..]).map(|(_, n)| n).sum();
    let others = (others > 0).then_some((OTHER_THREADS, others));
    let kept = kept.into_iter().map(|(thread, n)| (thread as u16, n));
    kept.chain(others).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packed::tests::unpack;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_access_is_somebodys_and_the_busiest_are_named(
            rows in proptest::collection::vec(proptest::collection::vec(0u64..9, 7), 0..9),
            named in 0usize..9,
        ) {
            let (_, columns) = unpack(&pack(3, 256, 7, named, &rows.concat()));
            prop_assert_eq!(columns["offsets"].len(), rows.len() + 1);
            for (cell, row) in rows.iter().enumerate() {
                let range = columns["offsets"][cell] as usize..columns["offsets"][cell + 1] as usize;
                let (threads, accesses) = (&columns["thread"][range.clone()], &columns["accesses"][range]);
                prop_assert_eq!(accesses.iter().sum::<f64>(), row.iter().sum::<u64>() as f64);
                prop_assert!(threads.is_sorted_by(|a, b| a < b));
                let own: Vec<_> = threads.iter().zip(accesses).filter(|(t, _)| **t != f64::from(OTHER_THREADS)).collect();
                let busy = row.iter().filter(|n| **n > 0).count();
                prop_assert_eq!(own.len(), busy.min(named));
                prop_assert!(own.iter().all(|(t, n)| row[**t as usize] as f64 == **n));
                let least = own.iter().map(|(_, n)| **n).fold(f64::INFINITY, f64::min);
                let unnamed = (0..7).filter(|t| own.iter().all(|(o, _)| **o as usize != *t));
                prop_assert!(unnamed.into_iter().all(|t| row[t] as f64 <= least));
            }
        }
    }

    #[test]
    fn more_threads_than_numbers_are_others() {
        let mut row = vec![0; 70_000];
        (row[3], row[65_535], row[69_999]) = (1, 2, 4);
        assert_eq!(named_of(&row, 9), [(3, 1), (OTHER_THREADS, 6)]);
    }
}

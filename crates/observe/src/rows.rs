//! Joins runs of pages with equal counts to one row.

use nodewise_profile::{Access, PageNumber};

/// Appends the rows of one thread, joining adjacent pages with equal counts. `rows` have one page each, are in any
/// order, and have distinct (page, region).
pub fn compress(mut rows: Vec<Access>, into: &mut Vec<Access>) {
    rows.sort_unstable_by_key(|a| (a.region, a.page));
    let begin = into.len();
    for row in rows {
        match into[begin..].last_mut() {
            Some(last) if continues(last, &row) => last.len += 1,
            _ => into.push(row),
        }
    }
}

fn continues(last: &Access, next: &Access) -> bool {
    let same = Access {
        page: last.page,
        len: last.len,
        ..*next
    } == *last;
    same && last.page.offset(u64::from(last.len)) == next.page && last.len < u32::MAX
}

/// Sorts rows by page, as profiles require.
pub fn sort(rows: &mut [Access]) {
    let key = |a: &Access| -> (PageNumber, u32, u32) { (a.page, a.thread.0, a.region.0) };
    rows.sort_unstable_by_key(key);
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_profile::{ObjectId, RegionId};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn compression_is_exact(
            pages in prop::collection::btree_map((0u64..60, 0u32..3), (0u64..3, 0u64..2, 1u32..3), 0..80)
        ) {
            let rows: Vec<Access> = pages.iter().map(|(&(page, region), &(reads, writes, object))| Access {
                page: PageNumber(page), region: RegionId(region), object: ObjectId(object), reads, writes,
                len: 1, ..Access::default()
            }).collect();
            let mut compressed = Vec::new();
            compress(rows, &mut compressed);
            let mut back = BTreeMap::new();
            for row in &compressed {
                for i in 0..u64::from(row.len) {
                    let counts = (row.reads, row.writes, row.object.0);
                    prop_assert!(back.insert((row.page.0 + i, row.region.0), counts).is_none());
                }
            }
            prop_assert_eq!(back, pages);
        }
    }
}

//! Checks that the pages named by rows are plausible, to limit the memory that a small hostile file can make analysis
//! use.
//!
//! A few bytes of a row can name any number of pages, and analysis needs memory for each page. In a real recording,
//! pages belong to the row's object or have a recorded first touch. Other pages (of pools, or of memory without a known
//! owner) occur only in rows of a few pages, or were sampled one by one.

use crate::runs::Runs;
use nodewise_profile::{Access, PageNumber, Profile};

/// Number of pages that are accepted without being accounted for (4 GiB); [`ALLOWANCE_PER_ROW`] is added for each row.
const ALLOWANCE: u64 = 1 << 20;
/// Number of further pages that are accepted without being accounted for, for each row read so far.
const ALLOWANCE_PER_ROW: u64 = 64;

/// Counts the pages of rows that neither belong to their object nor have a recorded first touch.
#[derive(Debug)]
pub struct Accounted<'p> {
    profile: &'p Profile,
    unaccounted: Runs,
    allowance: u64,
}

impl<'p> Accounted<'p> {
    pub fn new(profile: &'p Profile) -> Self {
        let samples = profile.meta.sampling.as_ref().map_or(0, |s| s.samples);
        Self {
            profile,
            unaccounted: Runs::default(),
            allowance: ALLOWANCE.saturating_add(samples),
        }
    }

    /// Checks a row whose object exists and whose run stays in its address space.
    pub fn check(&mut self, row: &Access) -> Result<(), String> {
        self.allowance = self.allowance.saturating_add(ALLOWANCE_PER_ROW);
        let object = &self.profile.objects[row.object.index()];
        let (begin, end) = (row.page.0, row.page.0 + u64::from(row.len));
        let (first, beyond) = (object.first_page.0, object.first_page.0 + object.pages);
        self.untouched(begin, end.min(first));
        self.untouched(begin.max(beyond), end);
        match self.unaccounted.count() > self.allowance {
            true => Err(format!(
                "its rows name {} pages that are in no object and that nothing touched first",
                self.unaccounted.count()
            )),
            false => Ok(()),
        }
    }

    /// Adds those pages from `begin` to `end` (exclusive) that have no recorded first touch.
    fn untouched(&mut self, mut begin: u64, end: u64) {
        if begin >= end {
            return;
        }
        let touches = &self.profile.first_touches;
        let beyond = |t: &nodewise_profile::FirstTouch| t.page.offset(u64::from(t.len));
        let at = touches.partition_point(|t| beyond(t) <= PageNumber(begin));
        for touch in touches[at..].iter().take_while(|t| t.page.0 < end) {
            if touch.page.0 > begin {
                self.unaccounted.add(begin, touch.page.0);
            }
            begin = beyond(touch).0;
        }
        if begin < end {
            self.unaccounted.add(begin, end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_profile::{FirstTouch, Object, ObjectId, Sampling};

    /// Pages 100 to 200 are an object's; of those above, 210 to 220 and 230 to 240 were touched first.
    fn profile() -> Profile {
        let touch = |page| FirstTouch {
            page: PageNumber(page),
            len: 10,
            ..FirstTouch::default()
        };
        Profile {
            objects: vec![
                Object::default(),
                Object {
                    first_page: PageNumber(100),
                    pages: 100,
                    ..Object::default()
                },
            ],
            first_touches: vec![touch(210), touch(230)],
            ..Profile::default()
        }
    }

    fn row(object: u32, page: u64, len: u32) -> Access {
        Access {
            object: ObjectId(object),
            page: PageNumber(page),
            len,
            ..Access::default()
        }
    }

    #[test]
    fn pages_count_that_are_in_neither() {
        let profile = profile();
        for (row, unaccounted) in [
            (row(1, 100, 100), 0),
            (row(1, 99, 102), 2),
            (row(0, 100, 100), 100),
            (row(0, 210, 10), 0),
            (row(0, 205, 10), 5),
            (row(0, 215, 20), 10),
            (row(1, 0, 300), 180),
            (row(1, 240, 1), 1),
        ] {
            let mut accounted = Accounted::new(&profile);
            accounted.check(&row).unwrap();
            accounted.check(&row).unwrap(); // the same pages count once
            assert_eq!(accounted.unaccounted.count(), unaccounted, "{row:?}");
        }
    }

    #[test]
    fn an_object_may_be_as_large_as_it_says() {
        let mut profile = profile();
        assert!(Accounted::new(&profile).check(&row(1, 100, 1 << 30)).is_err());
        profile.objects[1].pages = 1 << 30;
        assert!(Accounted::new(&profile).check(&row(1, 100, 1 << 30)).is_ok());
    }

    #[test]
    fn rows_and_samples_account_for_some_pages() {
        let mut profile = profile();
        let mut accounted = Accounted::new(&profile);
        let scattered = (0..1u64 << 17).all(|i| accounted.check(&row(0, 1000 + 100 * i, 64)).is_ok());
        assert!(scattered, "8 times as many pages as are free, in as many rows");
        assert!(Accounted::new(&profile).check(&row(0, 1000, 1 << 23)).is_err());
        profile.meta.sampling = Some(Sampling {
            samples: 1 << 23,
            ..Sampling::default()
        });
        assert!(Accounted::new(&profile).check(&row(0, 1000, 1 << 23)).is_ok());
    }
}

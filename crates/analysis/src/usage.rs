//! Use of objects by code region, and how a region's threads divide them. (A histogram sums over all regions.)

use crate::Histogram;
use crate::division::{self, Division};
use crate::page_use::Maps;
use crate::pattern::{HARDLY_WRITTEN, Pattern};
use crate::region_sums::{RegionSums, RegionUse};
use crate::visitor::{Visitor, read};
use nodewise_profile::{Access, AccessSource, ObjectId, Profile, RegionId};
use std::collections::BTreeMap;

/// For each object and region: sums, and the division of the pages if the object has pages of its own.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    sums: RegionSums,
    divisions: BTreeMap<ObjectId, Vec<Division>>,
}

/// The first pass: sums, which determine the regions that matter for each object.
impl Visitor for Usage {
    fn rows(&mut self, rows: &[Access]) {
        self.sums.rows(rows);
    }
}

/// The second pass: how threads divide the pages of an object in the regions that matter.
#[derive(Debug)]
pub struct UsageMaps<'a> {
    profile: &'a Profile,
    usage: Usage,
    maps: Maps<'a>,
}

impl UsageMaps<'_> {
    /// The usage with sums and divisions, once all rows were seen.
    #[must_use]
    pub fn finish(self) -> Usage {
        let mut usage = self.usage;
        let histogram = self.maps.histogram;
        usage.divisions = division::divisions(self.profile, &usage.sums, (self.maps.finish(), histogram));
        usage
    }
}

impl Visitor for UsageMaps<'_> {
    fn rows(&mut self, rows: &[Access]) {
        self.maps.rows(rows);
    }
}

impl Usage {
    /// Two passes over the accesses: sums, then the pages of the regions that matter.
    ///
    /// # Errors
    /// When the source cannot be read to its end.
    pub fn of<S: AccessSource>(
        source: &S,
        profile: &Profile,
        histogram: &Histogram,
    ) -> Result<Self, S::Error> {
        let mut usage = Self::default();
        read(source, &mut [&mut usage])?;
        let mut maps = usage.maps(profile, histogram);
        read(source, &mut [&mut maps])?;
        Ok(maps.finish())
    }

    /// A consumer for the second pass, once all sums are known: it maps the pages of the regions that matter.
    #[must_use]
    pub fn maps<'a>(self, profile: &'a Profile, histogram: &'a Histogram) -> UsageMaps<'a> {
        UsageMaps {
            profile,
            maps: Maps::new(profile, histogram, &self.sums),
            usage: self,
        }
    }

    /// The regions that used an object.
    pub fn regions(&self, object: ObjectId) -> impl Iterator<Item = (RegionId, &RegionUse)> {
        self.sums.regions(object)
    }

    /// How threads divide an object, for each region that makes at least 1 % of its accesses, in descending order of
    /// accesses. Empty for stacks, images and pages without a known owner.
    #[must_use]
    pub fn divisions(&self, object: ObjectId) -> &[Division] {
        self.divisions.get(&object).map_or(&[], Vec::as_slice)
    }

    /// The overall pattern of an object over all its regions. Of shared patterns, the read-only forms are told apart.
    #[must_use]
    pub fn pattern(&self, object: ObjectId) -> Pattern {
        let mut sum = RegionUse::default();
        self.regions(object).for_each(|(_, cell)| sum.absorb(cell));
        let pattern = match division::pattern_of_all(self.divisions(object)) {
            Some(pattern) => pattern,
            None if sum.threads() <= 1 || !self.divisions(object).is_empty() => Pattern::OneThread,
            None => Pattern::Uniform,
        };
        // Writes of a region with a single thread, such as an initialisation, do not make the object a written one.
        let teams = || self.divisions(object).iter().filter(|d| d.is_significant());
        let (reads, writes) = match teams().next() {
            Some(_) => teams().fold((0, 0), |(r, w), d| (r + d.reads, w + d.writes)),
            None => (sum.reads, sum.writes),
        };
        let hardly_written = (writes as f64) < HARDLY_WRITTEN * (reads + writes) as f64;
        match pattern {
            Pattern::Uniform if hardly_written && self.conflict_free(object) => Pattern::ReadShared,
            Pattern::Random if hardly_written => Pattern::Gather,
            pattern => pattern,
        }
    }

    /// Whether a uniform pattern means that all threads sweep the object, not that regions divide it differently.
    fn conflict_free(&self, object: ObjectId) -> bool {
        let significant = |d: &&Division| d.is_significant();
        !self
            .divisions(object)
            .iter()
            .filter(significant)
            .any(Division::has_owners)
    }
}

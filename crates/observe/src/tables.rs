//! The tables of a profile that is being recorded, shared by all process images.

use crate::code::Library;
use nodewise_analysis::figures::exact;
use nodewise_profile::{
    FirstTouch, Frame, Object, ObjectId, PageNumber, Profile, Region, RegionId, Schedule, Site, SiteId,
    Thread, ThreadId,
};
use std::collections::HashMap;

/// The profile without its accesses, as far as it is recorded.
pub struct Tables {
    /// The profile's own tables.
    pub profile: Profile,
    /// The loaded modules and their symbols.
    pub library: Library,
    sites: HashMap<Site, SiteId>,
    regions: HashMap<Region, RegionId>,
    /// Pages that were logged as first touched again.
    touched_again: u64,
}

impl Default for Tables {
    fn default() -> Self {
        let profile = Profile {
            objects: vec![Object {
                name: "unknown".to_owned(),
                ..Object::default()
            }],
            regions: vec![Region::default()],
            sites: vec![Site::default()],
            ..Profile::default()
        };
        Self {
            sites: HashMap::from([(Site::default(), SiteId(0))]),
            regions: HashMap::from([(Region::default(), RegionId(0))]),
            profile,
            library: Library::default(),
            touched_again: 0,
        }
    }
}

impl Tables {
    /// The number of a site, assigned if it is new.
    pub fn site(&mut self, site: Site) -> SiteId {
        let sites = &mut self.profile.sites;
        *self.sites.entry(site).or_insert_with_key(|site| {
            sites.push(site.clone());
            SiteId::from_index(sites.len() - 1)
        })
    }

    /// The schedule by which the loops of a construct are dealt that asks for `schedule`: `record --schedule` has those dealt
    /// statically that ask for something else, but for loops with `ordered`, and with `schedule(runtime)`, which the program
    /// may choose itself.
    pub fn dealt(&self, schedule: Option<Schedule>) -> Option<Schedule> {
        let is_changed = self.profile.meta.loop_schedule.is_some();
        match schedule {
            Some(Schedule::Dynamic | Schedule::Guided | Schedule::Auto) if is_changed => {
                Some(Schedule::Static)
            }
            other => other,
        }
    }

    /// The number of a region, assigned if it is new; equal regions of several processes share one.
    pub fn region(&mut self, region: Region) -> RegionId {
        let regions = &mut self.profile.regions;
        *self.regions.entry(region).or_insert_with_key(|region| {
            regions.push(region.clone());
            RegionId::from_index(regions.len() - 1)
        })
    }

    /// Appends an object and returns its number.
    pub fn object(&mut self, object: Object) -> ObjectId {
        self.profile.objects.push(object);
        ObjectId::from_index(self.profile.objects.len() - 1)
    }

    /// Appends a thread and returns its number.
    pub fn thread(&mut self, process: u16, start: Frame) -> ThreadId {
        self.profile.threads.push(Thread {
            process,
            start,
            ..Thread::default()
        });
        ThreadId::from_index(self.profile.threads.len() - 1)
    }

    /// Appends a thread with the current properties of another one.
    pub fn thread_like(&mut self, other: ThreadId) -> ThreadId {
        let row = self.profile.threads[other.index()].clone();
        self.profile.threads.push(row);
        ThreadId::from_index(self.profile.threads.len() - 1)
    }

    /// Appends first touches, joining runs of adjacent pages.
    pub fn first_touches(&mut self, mut touches: Vec<FirstTouch>) {
        touches.sort_unstable_by_key(|t| t.page);
        let all = &mut self.profile.first_touches;
        let begin = all.len();
        for touch in touches {
            match all[begin..].last_mut() {
                Some(last) if continues(last, &touch) => last.len += touch.len,
                _ => all.push(touch),
            }
        }
    }

    /// Sorts the tables as profiles require; more may be added afterwards. If a page was logged as first touched several times, the
    /// earliest is kept: readers refuse overlapping runs, and a single wrong line must not make the rest unreadable.
    pub fn sort(&mut self) {
        self.profile.tickets.sort_unstable();
        let touches = &mut self.profile.first_touches;
        touches.sort_unstable_by_key(|t| (t.page, t.slice));
        let mut next = PageNumber(0);
        touches.retain_mut(|touch| {
            let end = touch.page.offset(u64::from(touch.len));
            let known = next.0.saturating_sub(touch.page.0).min(u64::from(touch.len));
            self.touched_again += known;
            touch.page = touch.page.offset(known);
            touch.len -= known as u32; // at most `len`
            next = next.max(end);
            touch.len > 0
        });
    }

    /// Sorts the tables, and notes in the profile what was wrong in them.
    pub fn finish(&mut self) {
        self.sort();
        if self.touched_again > 0 {
            let pages = exact(self.touched_again, "page");
            let why = format!("first touches of {pages} were logged twice");
            let truncated = &mut self.profile.meta.truncated;
            *truncated = Some(
                truncated
                    .take()
                    .map_or(why.clone(), |first| format!("{first}; {why}")),
            );
        }
    }
}

fn continues(last: &FirstTouch, next: &FirstTouch) -> bool {
    last.page.offset(u64::from(last.len)) == next.page
        && FirstTouch {
            page: next.page,
            len: next.len,
            ..*last
        } == *next
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_profile::SliceId;

    #[test]
    fn pages_touched_first_twice_keep_the_earliest_touch() {
        let touch = |page, len, slice| FirstTouch {
            page: PageNumber(page),
            len,
            slice: SliceId(slice),
            ..FirstTouch::default()
        };
        let finished = |touches: Vec<FirstTouch>| {
            let mut tables = Tables::default();
            tables.profile.first_touches = touches;
            tables.finish();
            let found = tables.profile.first_touches.iter();
            let found: Vec<_> = found.map(|t| (t.page.0, t.len, t.slice.0)).collect();
            (found, tables.profile.meta.truncated)
        };
        let (found, why) = finished(vec![touch(6, 4, 0), touch(2, 3, 1)]);
        assert_eq!((found, why), (vec![(2, 3, 1), (6, 4, 0)], None));
        let touches = vec![touch(2, 9, 0), touch(2, 1, 1), touch(9, 4, 2), touch(10, 1, 0)];
        let (found, why) = finished(touches);
        assert_eq!(found, [(2, 9, 0), (11, 2, 2)]);
        assert!(why.is_some_and(|why| why.starts_with("first touches of 4 pages")));
    }
}

//! The profile under construction: tables shared by all process images.

use crate::code::Library;
use nodewise_profile::{
    FirstTouch, Frame, Object, ObjectId, Profile, Region, RegionId, Site, SiteId, Thread, ThreadId,
};
use std::collections::HashMap;

/// Everything but the accesses, as far as it is known.
pub struct Tables {
    /// The profile's own tables.
    pub profile: Profile,
    /// Modules and their symbols.
    pub library: Library,
    sites: HashMap<Site, SiteId>,
    regions: HashMap<Region, RegionId>,
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
        }
    }
}

impl Tables {
    /// The number of a site.
    pub fn site(&mut self, site: Site) -> SiteId {
        let sites = &mut self.profile.sites;
        *self.sites.entry(site).or_insert_with_key(|site| {
            sites.push(site.clone());
            SiteId::from_index(sites.len() - 1)
        })
    }

    /// The number of a region; equal regions of several processes are one.
    pub fn region(&mut self, region: Region) -> RegionId {
        let regions = &mut self.profile.regions;
        *self.regions.entry(region).or_insert_with_key(|region| {
            regions.push(region.clone());
            RegionId::from_index(regions.len() - 1)
        })
    }

    /// Appends an object.
    pub fn object(&mut self, object: Object) -> ObjectId {
        self.profile.objects.push(object);
        ObjectId::from_index(self.profile.objects.len() - 1)
    }

    /// Appends a thread.
    pub fn thread(&mut self, process: u16, start: Frame) -> ThreadId {
        self.profile.threads.push(Thread {
            process,
            start,
            ..Thread::default()
        });
        ThreadId::from_index(self.profile.threads.len() - 1)
    }

    /// Appends a thread as another one is, so far.
    pub fn thread_like(&mut self, other: ThreadId) -> ThreadId {
        let row = self.profile.threads[other.index()].clone();
        self.profile.threads.push(row);
        ThreadId::from_index(self.profile.threads.len() - 1)
    }

    /// Appends first touches, joining runs of pages.
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

    /// Brings the tables into their promised order.
    pub fn finish(&mut self) {
        self.profile.first_touches.sort_unstable_by_key(|t| t.page);
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

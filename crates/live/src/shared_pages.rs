//! Memory that several processes map: its pages have one number each, whichever process accesses them.
//!
//! A sample names a process and an address. Of memory that is shared, samples of different processes are of the same
//! page: it is counted, and moved, under the address at which the first process that was seen to access it has it
//! mapped. That process is the page's *owner* until it ends.

use nodewise_linux::Host;
use nodewise_linux::maps::Area;
use nodewise_profile::{BASE_PAGE_SHIFT, PageNumber};
use std::collections::HashMap;
use std::time::Duration;

/// How long the mappings of a process are believed: it may map other memory at the same addresses.
const BELIEVED: Duration = Duration::from_secs(5);
/// They are not read more often than that, even for addresses that are in none of them.
const READ_EVERY: Duration = Duration::from_secs(1);

/// A page of shared memory: the device and inode of its file (shared anonymous memory has one as well), and the page's
/// number in it.
type SharedPage = ((u64, u64), u64);

/// A mapping: shared memory, or anything else.
struct Mapping {
    start: u64,
    end: u64,
    /// File, and offset in it, if the mapping is shared and may be written to.
    shared: Option<((u64, u64), u64)>,
}

impl From<Area> for Mapping {
    fn from(area: Area) -> Self {
        let shared = area.permissions.contains('w') && area.permissions.ends_with('s');
        Self {
            start: area.start,
            end: area.end,
            shared: shared.then_some((area.file, area.offset)),
        }
    }
}

/// The mappings of a process.
#[derive(Default)]
struct Mappings {
    areas: Vec<Mapping>,
    read_at: Option<Duration>,
}

impl Mappings {
    /// The mapping that contains an address; reads the mappings again if it is time to.
    fn of(&mut self, host: &Host, pid: u32, now: Duration, address: u64) -> Option<&Mapping> {
        let age = self.read_at.map(|at| now.saturating_sub(at));
        let known = self.position(address).is_some();
        let due = if known { BELIEVED } else { READ_EVERY };
        if age.is_none_or(|age| age >= due) {
            self.read_at = Some(now);
            self.areas = host
                .maps(pid)
                .unwrap_or_default()
                .into_iter()
                .map(Mapping::from)
                .collect();
        }
        self.position(address).map(|at| &self.areas[at])
    }

    fn position(&self, address: u64) -> Option<usize> {
        let at = self.areas.partition_point(|area| area.end <= address);
        self.areas
            .get(at)
            .is_some_and(|area| area.start <= address)
            .then_some(at)
    }
}

/// The shared memory of all processes of a session.
pub struct SharedPages {
    host: Host,
    page_shift: u32,
    mappings: HashMap<u16, Mappings>,
    /// The number of each page: its owner and the address there.
    numbers: HashMap<SharedPage, PageNumber>,
}

impl SharedPages {
    /// With decisions on pages of `1 << page_shift` base pages.
    pub fn new(page_shift: u32) -> Self {
        Self {
            host: Host::default(),
            page_shift,
            mappings: HashMap::new(),
            numbers: HashMap::new(),
        }
    }

    /// The owner of the page at an address of a process, and the page's address there; `None` if the memory is not
    /// shared. The first process that asks becomes the owner.
    pub fn owner(&mut self, process: u16, pid: u32, now: Duration, address: u64) -> Option<(u16, u64)> {
        let mappings = self.mappings.entry(process).or_default();
        let mapping = mappings.of(&self.host, pid, now, address)?;
        let (file, offset) = mapping.shared?;
        let shift = BASE_PAGE_SHIFT + self.page_shift;
        let start = (address >> shift << shift).max(mapping.start);
        let page = (file, (offset + (start - mapping.start)) >> shift);
        let first = || PageNumber::of_address(process, address >> BASE_PAGE_SHIFT << BASE_PAGE_SHIFT);
        let number = *self.numbers.entry(page).or_insert_with(first);
        Some((number.process(), number.virtual_number() << BASE_PAGE_SHIFT))
    }

    /// Forgets a process that has ended: others become owners of its pages.
    pub fn forget(&mut self, process: u16) {
        self.mappings.remove(&process);
        self.numbers.retain(|_, number| number.process() != process);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A host with the mappings of some processes.
    fn host(test: &str, maps: &[(u32, &str)]) -> Host {
        let root = std::env::temp_dir().join(format!("nodewise-shared-{test}-{}", std::process::id()));
        for (pid, text) in maps {
            let folder = root.join(format!("proc/{pid}"));
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("maps"), text).unwrap();
        }
        Host::at(&root)
    }

    const FIRST: &str =
        "10000-20000 rw-s 00000000 00:01 77  /dev/zero (deleted)\n30000-40000 rw-p 00000000 00:00 0 \n";
    const SECOND: &str =
        "50000-58000 rw-s 00008000 00:01 77  /dev/zero (deleted)\n60000-70000 r--s 00000000 00:01 77  x\n";

    #[test]
    fn processes_that_map_the_same_page_have_one_number_for_it() {
        let mut shared = SharedPages::new(0);
        shared.host = host("numbers", &[(10, FIRST), (20, SECOND)]);
        let now = Duration::ZERO;
        assert_eq!(shared.owner(1, 10, now, 0x19123), Some((1, 0x19000)));
        assert_eq!(
            shared.owner(2, 20, now, 0x51008),
            Some((1, 0x19000)),
            "offset 0x9000 of the same file"
        );
        assert_eq!(
            shared.owner(2, 20, now, 0x52000),
            Some((2, 0x52000)),
            "nobody else has accessed it yet"
        );
        assert_eq!(shared.owner(1, 10, now, 0x1a000), Some((2, 0x52000)));
        assert_eq!(shared.owner(1, 10, now, 0x31000), None, "private");
        assert_eq!(shared.owner(2, 20, now, 0x61000), None, "read only");
        assert_eq!(shared.owner(2, 20, now, 0x90000), None, "unmapped");
        shared.forget(1);
        assert_eq!(shared.owner(2, 20, now, 0x51008), Some((2, 0x51000)));
    }

    #[test]
    fn mappings_are_read_again_now_and_then() {
        let mut shared = SharedPages::new(0);
        shared.host = host("again", &[(10, FIRST)]);
        assert_eq!(shared.owner(1, 10, Duration::ZERO, 0x51000), None);
        host("again", &[(10, SECOND)]);
        assert_eq!(shared.owner(1, 10, READ_EVERY / 2, 0x51000), None);
        assert!(shared.owner(1, 10, READ_EVERY, 0x51000).is_some());
    }

    #[test]
    fn of_huge_pages_all_parts_are_one() {
        let mut shared = SharedPages::new(9);
        let map = "200000-600000 rw-s 00200000 00:01 5  /dev/shm/x\n";
        shared.host = host("huge", &[(10, map), (20, map)]);
        let owner = shared.owner(1, 10, Duration::ZERO, 0x3f_f000);
        assert_eq!(owner, Some((1, 0x3f_f000)));
        assert_eq!(shared.owner(2, 20, Duration::ZERO, 0x20_0000), owner);
        assert_ne!(shared.owner(2, 20, Duration::ZERO, 0x40_0000), owner);
    }
}

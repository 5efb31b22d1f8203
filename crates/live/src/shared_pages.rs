//! Memory that several processes map: its pages have one number each, whichever process accesses them.
//!
//! A sample names a process and an address. Of memory that is shared, samples of different processes are of the same
//! page: it is counted, and moved, under the address at which one of them has it mapped. That process is the page's
//! *owner*: the first that was seen to access it, until it ends or no longer has the page there.

use nodewise_linux::Host;
use nodewise_linux::maps::Area;
use nodewise_profile::{BASE_PAGE_SHIFT, PageNumber};
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

/// How long the mappings of a process are believed: it may map other memory at the same addresses.
const BELIEVED: Duration = Duration::from_secs(5);
/// They are not read more often than that, even for addresses that are in none of them.
const READ_EVERY: Duration = Duration::from_secs(1);

/// What is mapped: device, inode, and for System V segments, whose numbers are those of an IPC namespace, that
/// namespace. Shared anonymous memory has an inode as well.
type File = (u64, u64, u64);

/// A page of shared memory: its file, and its number in it.
type SharedPage = (File, u64);

/// A mapping: shared memory, or anything else.
#[derive(Clone)]
struct Mapping {
    start: u64,
    end: u64,
    /// File, and offset in it, if the mapping is shared and may be written to.
    shared: Option<(File, u64)>,
}

impl Mapping {
    fn of(area: &Area, namespace: u64) -> Self {
        let shared = area.permissions.contains('w') && area.permissions.ends_with('s');
        let namespace = if area.name.starts_with("/SYSV") {
            namespace
        } else {
            0
        };
        Self {
            start: area.start,
            end: area.end,
            shared: shared.then_some(((area.file.0, area.file.1, namespace), area.offset)),
        }
    }

    /// The shared page at an address.
    fn page(&self, address: u64, shift: u32) -> Option<SharedPage> {
        let (file, offset) = self.shared?;
        Some((file, (offset + (address - self.start)) >> shift))
    }
}

/// The mappings of a process.
#[derive(Default)]
struct Mappings {
    pid: u32,
    areas: Vec<Mapping>,
    read_at: Option<Duration>,
}

impl Mappings {
    /// The mapping that contains an address; reads the mappings again if it is time to.
    fn of(&mut self, host: &Host, now: Duration, address: u64) -> Option<&Mapping> {
        let age = self.read_at.map(|at| now.saturating_sub(at));
        let known = self.position(address).is_some();
        let due = if known { BELIEVED } else { READ_EVERY };
        if age.is_none_or(|age| age >= due) {
            self.read_at = Some(now);
            let namespace = std::fs::metadata(host.proc().join(format!("{}/ns/ipc", self.pid)));
            let namespace = namespace.map_or(0, |m| m.ino());
            let areas = host.maps(self.pid).unwrap_or_default();
            self.areas = areas.iter().map(|area| Mapping::of(area, namespace)).collect();
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

/// A page of shared memory, as a sample of it is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned {
    /// The ordinal of its owner.
    pub process: u16,
    /// An address in the page where the owner has it.
    pub address: u64,
    /// The part of the owner's mapping that lies in the page: huge pages may lie in several mappings.
    pub extent: Range<u64>,
    /// Whether the owner has just become it.
    pub new: bool,
}

/// The shared memory of all processes of a session.
pub struct SharedPages {
    host: Host,
    page_shift: u32,
    /// How many pages are known at most; beyond, all are forgotten and found anew.
    most: usize,
    mappings: HashMap<u16, Mappings>,
    /// The number of each page: its owner and an address in the page there.
    numbers: HashMap<SharedPage, PageNumber>,
    /// Pages that their owners do not have in memory: the next process that accesses one becomes its owner.
    absent: HashSet<PageNumber>,
}

impl SharedPages {
    /// With decisions on pages of `1 << page_shift` base pages; knows `most` pages at once.
    pub fn new(page_shift: u32, most: usize) -> Self {
        Self {
            host: Host::default(),
            page_shift,
            most,
            mappings: HashMap::new(),
            numbers: HashMap::new(),
            absent: HashSet::new(),
        }
    }

    /// The page at an address of a process, with its owner; `None` if the memory is not shared.
    pub fn owner(&mut self, process: u16, pid: u32, now: Duration, address: u64) -> Option<Owned> {
        let shift = BASE_PAGE_SHIFT + self.page_shift;
        let mappings = self.mappings.entry(process).or_default();
        mappings.pid = pid;
        let own = mappings.of(&self.host, now, address)?.clone();
        let page = own.page(address, shift)?;
        let known = self.numbers.get(&page).copied();
        let absent = known.is_some_and(|number| self.absent.remove(&number));
        if let Some(number) = known.filter(|number| number.process() == process || !absent)
            && let Some(mapping) = self.still_mapped(number, page, now)
        {
            return Some(owned(number, &mapping, shift, false));
        }
        if self.numbers.len() >= self.most {
            self.numbers.clear();
            self.absent.clear();
        }
        let number = PageNumber::of_address(process, address);
        self.numbers.insert(page, number);
        Some(owned(number, &own, shift, true))
    }

    /// The mapping in which the owner has a page, if it still has it there.
    fn still_mapped(&mut self, number: PageNumber, page: SharedPage, now: Duration) -> Option<Mapping> {
        let address = number.virtual_number() << BASE_PAGE_SHIFT;
        let mappings = self.mappings.get_mut(&number.process())?;
        let mapping = mappings.of(&self.host, now, address)?;
        let same = mapping.page(address, BASE_PAGE_SHIFT + self.page_shift) == Some(page);
        same.then(|| mapping.clone())
    }

    /// Records that the owner of a page does not have it in memory. `address`: in the page, as [`SharedPages::owner`] returned it.
    pub fn set_absent(&mut self, process: u16, address: u64) {
        self.absent.insert(PageNumber::of_address(process, address));
    }

    /// Forgets a process that has ended: others become owners of its pages.
    pub fn forget(&mut self, process: u16) {
        self.mappings.remove(&process);
        self.numbers.retain(|_, number| number.process() != process);
        self.absent.retain(|number| number.process() != process);
    }
}

fn owned(number: PageNumber, mapping: &Mapping, shift: u32, new: bool) -> Owned {
    let address = number.virtual_number() << BASE_PAGE_SHIFT;
    let start = address >> shift << shift;
    Owned {
        process: number.process(),
        address,
        extent: start.max(mapping.start)..(start + (1 << shift)).min(mapping.end),
        new,
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

    /// Processes 10, 20, … with ordinals 1, 2, …
    fn shared(test: &str, page_shift: u32, maps: &[(u32, &str)]) -> SharedPages {
        SharedPages {
            host: host(test, maps),
            ..SharedPages::new(page_shift, 100)
        }
    }

    fn at(shared: &mut SharedPages, process: u16, seconds: u64, address: u64) -> Option<(u16, u64)> {
        let owned = shared.owner(
            process,
            u32::from(process) * 10,
            Duration::from_secs(seconds),
            address,
        )?;
        Some((owned.process, owned.address))
    }

    const FIRST: &str =
        "10000-20000 rw-s 00000000 00:01 77  /dev/zero (deleted)\n30000-40000 rw-p 00000000 00:00 0 \n";
    const SECOND: &str =
        "50000-58000 rw-s 00008000 00:01 77  /dev/zero (deleted)\n60000-70000 r--s 00000000 00:01 77  x\n";

    #[test]
    fn processes_that_map_the_same_page_have_one_number_for_it() {
        let mut shared = shared("numbers", 0, &[(10, FIRST), (20, SECOND)]);
        assert_eq!(at(&mut shared, 1, 0, 0x19123), Some((1, 0x19000)));
        assert_eq!(
            at(&mut shared, 2, 0, 0x51008),
            Some((1, 0x19000)),
            "offset 0x9000 of the same file"
        );
        assert_eq!(
            at(&mut shared, 2, 0, 0x52000),
            Some((2, 0x52000)),
            "nobody else has accessed it yet"
        );
        assert_eq!(at(&mut shared, 1, 0, 0x1a000), Some((2, 0x52000)));
        assert_eq!(at(&mut shared, 1, 0, 0x31000), None, "private");
        assert_eq!(at(&mut shared, 2, 0, 0x61000), None, "read only");
        assert_eq!(at(&mut shared, 2, 0, 0x90000), None, "unmapped");
        shared.forget(1);
        assert_eq!(at(&mut shared, 2, 0, 0x51008), Some((2, 0x51000)));
    }

    #[test]
    fn mappings_are_read_again_now_and_then() {
        let mut shared = shared("again", 0, &[(10, FIRST)]);
        assert_eq!(at(&mut shared, 1, 0, 0x51000), None);
        host("again", &[(10, SECOND)]);
        assert_eq!(at(&mut shared, 1, 0, 0x51000), None);
        assert!(at(&mut shared, 1, 1, 0x51000).is_some());
    }

    #[test]
    fn an_owner_that_no_longer_has_the_page_is_replaced() {
        let mut shared = shared("unmapped", 0, &[(10, FIRST), (20, SECOND)]);
        at(&mut shared, 1, 0, 0x19000);
        at(&mut shared, 1, 0, 0x1a000);
        // The first process maps memory of its own there.
        host("unmapped", &[(10, "10000-20000 rw-p 00000000 00:00 0 \n")]);
        assert_eq!(
            at(&mut shared, 2, 1, 0x51000),
            Some((1, 0x19000)),
            "believed for a while"
        );
        assert_eq!(at(&mut shared, 2, 9, 0x51000), Some((2, 0x51000)));
        // It has the page mapped, and not in memory.
        host("unmapped", &[(10, FIRST)]);
        assert_eq!(at(&mut shared, 1, 20, 0x19000), Some((2, 0x51000)));
        shared.set_absent(2, 0x51000);
        assert_eq!(
            at(&mut shared, 2, 20, 0x51000),
            Some((2, 0x51000)),
            "it accesses it again"
        );
        assert_eq!(at(&mut shared, 1, 20, 0x19000), Some((2, 0x51000)));
        shared.set_absent(2, 0x51000);
        assert_eq!(at(&mut shared, 1, 20, 0x19000), Some((1, 0x19000)));
        assert_eq!(at(&mut shared, 2, 20, 0x51000), Some((1, 0x19000)));
    }

    #[test]
    fn of_huge_pages_all_parts_are_one_and_other_mappings_are_left_out() {
        let aligned = "200000-600000 rw-s 00200000 00:01 5  /dev/shm/x\n";
        // The same at an odd address.
        let odd = "300000-700000 rw-s 00200000 00:01 5  /dev/shm/x\n";
        let mut shared = shared("huge", 9, &[(10, aligned), (20, aligned), (30, odd)]);
        assert_eq!(at(&mut shared, 1, 0, 0x3f_f000), Some((1, 0x3f_f000)));
        assert_eq!(at(&mut shared, 2, 0, 0x20_0000), Some((1, 0x3f_f000)));
        assert_eq!(at(&mut shared, 2, 0, 0x40_0000), Some((2, 0x40_0000)));
        assert_eq!(
            at(&mut shared, 3, 0, 0x30_0000),
            Some((1, 0x3f_f000)),
            "by the offset in the file"
        );
        assert_eq!(at(&mut shared, 3, 0, 0x50_0000), Some((2, 0x40_0000)));
        shared.forget(1);
        shared.forget(2);
        let owned = shared.owner(3, 30, Duration::ZERO, 0x30_0000).unwrap();
        assert_eq!((owned.extent, owned.new), (0x30_0000..0x40_0000, true));
    }

    #[test]
    fn no_more_pages_are_kept_than_are_allowed() {
        let mut shared = shared("most", 0, &[(10, "1000000-2000000 rw-s 00000000 00:01 5  x\n")]);
        for page in 0..1000 {
            assert!(at(&mut shared, 1, 0, 0x100_0000 + (page << 12)).is_some());
            assert!(shared.numbers.len() <= 100);
        }
    }
}

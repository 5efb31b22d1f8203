//! What processes map, gathered from `/proc/PID/maps`.

use crate::Kind;
use nodewise_linux::Host;
use nodewise_linux::maps::Area;
use nodewise_linux::page_cache;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What tells objects apart: kind, device and inode; and for System V segments the namespace in which their
/// identifiers are counted.
type Key = (Kind, u64, u64, u64);

/// A process that maps an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Mapper {
    /// Its identifier on this host.
    pub pid: u32,
    /// The first 15 bytes of the executable's name.
    pub name: String,
    /// Where its mappings of the object begin.
    #[serde(skip)]
    pub(crate) starts: Vec<u64>,
}

/// An object and the processes that map it.
#[derive(Clone, Debug)]
pub struct Mapped {
    /// What kind of memory it is.
    pub kind: Kind,
    /// Its path or name.
    pub name: String,
    /// Whether it has no name in the file system any more, or never had.
    pub deleted: bool,
    /// The processes, by their numbers.
    pub mappers: Vec<Mapper>,
    /// Inode on the file system where it lies; that of a System V segment is its identifier (`ipcs -m`).
    pub inode: u64,
    /// A mapping of the first of the processes, its largest.
    at: (u32, Area),
}

/// All objects that processes map.
#[derive(Debug, Default)]
pub struct MappedObjects {
    /// Each object that at least one process maps.
    pub(crate) objects: BTreeMap<Key, Mapped>,
    /// Number of processes that this user may not look into.
    pub unreadable: usize,
    /// Number of processes that were looked into.
    pub processes: usize,
}

impl MappedObjects {
    /// The objects that these processes map. Processes that end meanwhile are left out.
    #[must_use]
    pub fn of(host: &Host, pids: &[u32]) -> Self {
        let mut found = Self::default();
        for pid in pids {
            match host.maps(*pid) {
                Ok(areas) if areas.is_empty() => {} // a kernel thread, or ending
                Ok(areas) => {
                    found.processes += 1;
                    let name = host.status(*pid).map(|s| s.name).unwrap_or_default();
                    let process = (*pid, &*name, ipc_namespace(host, *pid));
                    areas.iter().for_each(|area| found.enter(process, area));
                }
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => found.unreadable += 1,
                Err(_) => {}
            }
        }
        found
    }

    /// Enters a mapping of a process: its number, its name, and the namespace of its segments.
    fn enter(&mut self, (pid, process, namespace): (u32, &str, u64), area: &Area) {
        let Some((kind, name)) = Kind::of(&area.name) else {
            return;
        };
        let (device, inode) = area.file;
        let namespace = if kind == Kind::Sysv { namespace } else { 0 };
        let key = (kind, device, inode, namespace);
        let object = self.objects.entry(key).or_insert_with(|| Mapped {
            kind,
            name: name.to_owned(),
            deleted: area.name.ends_with(" (deleted)"),
            mappers: Vec::new(),
            inode,
            at: (pid, area.clone()),
        });
        let larger = area.end - area.start > object.mapped_bytes();
        if larger && object.at.0 == pid {
            object.at.1 = area.clone();
        }
        match object.mappers.last_mut() {
            Some(last) if last.pid == pid => last.starts.push(area.start),
            _ => object.mappers.push(Mapper {
                pid,
                name: process.to_owned(),
                starts: vec![area.start],
            }),
        }
    }

    /// The object that is the file at a path, of which `stat` said this. On overlay and some other file systems `maps`
    /// shows another device and inode: there the object of that path is taken if it opens to the same file.
    #[must_use]
    pub fn at(&self, host: &Host, path: &Path, metadata: &Metadata) -> Option<&Mapped> {
        let same = |kind: Kind| self.objects.get(&(kind, metadata.dev(), metadata.ino(), 0));
        if let Some(object) = same(Kind::File).or_else(|| same(Kind::Shm)) {
            return Some(object);
        }
        let path = path.canonicalize().ok()?;
        let opens_to_it = |object: &&Mapped| {
            let opened = object.open(host).and_then(|file| file.metadata());
            opened.is_ok_and(|m| (m.dev(), m.ino()) == (metadata.dev(), metadata.ino()))
        };
        let of_path = |object: &&Mapped| !object.deleted && object.path().as_ref() == Some(&path);
        self.objects.values().filter(of_path).find(opens_to_it)
    }
}

/// The number of the namespace in which a process's System V segments are counted; 0 if it cannot be read.
fn ipc_namespace(host: &Host, pid: u32) -> u64 {
    let link = std::fs::read_link(host.proc().join(format!("{pid}/ns/ipc"))).unwrap_or_default();
    let text = link.to_string_lossy();
    let number = text
        .strip_prefix("ipc:[")
        .and_then(|rest| rest.strip_suffix(']')?.parse().ok());
    number.unwrap_or(0)
}

impl Mapped {
    /// Opens it: by the kernel's link to what a process maps, which needs root, also for what has no name; else by its
    /// path as that process sees it.
    ///
    /// # Errors
    /// Neither is allowed, or another file has its name by now.
    pub fn open(&self, host: &Host) -> io::Result<File> {
        let (pid, area) = &self.at;
        let process = host.proc().join(pid.to_string());
        let link = process.join(format!("map_files/{:x}-{:x}", area.start, area.end));
        page_cache::open(&link, true).or_else(|_| {
            if self.deleted {
                return Err(io::ErrorKind::PermissionDenied.into());
            }
            let path = self.path().ok_or(io::ErrorKind::NotFound)?;
            let below = path.strip_prefix("/").map_err(io::Error::other)?;
            let file = page_cache::open(&process.join("root").join(below), true)?;
            let found = file.metadata()?;
            match (found.dev(), found.ino()) == area.file {
                true => Ok(file),
                false => Err(io::ErrorKind::NotFound.into()),
            }
        })
    }

    /// Bytes of the largest mapping of the first process that maps it.
    pub(crate) fn mapped_bytes(&self) -> u64 {
        self.at.1.end - self.at.1.start
    }

    /// Its path in the file system, if it has one.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        match self.kind {
            Kind::File => Some(self.name.clone().into()),
            Kind::Shm => Some(format!("/dev/shm/{}", self.name).into()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area(line: &str) -> Area {
        Area::parse(line).unwrap()
    }

    #[test]
    fn an_object_is_one_however_often_it_is_mapped() {
        let mut found = MappedObjects::default();
        let text = "1000-2000 r-xp 00000000 08:01 77 /bin/a";
        let data = "2000-3000 rw-p 00001000 08:01 77 /bin/a";
        let heap = "5000-6000 rw-p 00000000 00:05 0 [heap]";
        for (pid, line) in [(4, text), (4, data), (9, text), (9, heap)] {
            found.enter((pid, "a", 1), &area(line));
        }
        assert_eq!(found.objects.len(), 1);
        let object = found.objects.values().next().unwrap();
        let pids: Vec<u32> = object.mappers.iter().map(|m| m.pid).collect();
        assert_eq!((object.kind, pids, object.inode), (Kind::File, vec![4, 9], 77));
        assert_eq!(object.mappers[0].starts, [0x1000, 0x2000]);
    }

    #[test]
    fn segments_of_two_namespaces_are_two_although_their_identifiers_are_equal() {
        let mut found = MappedObjects::default();
        let segment = "1000-2000 rw-s 00000000 00:01 0 /SYSV00000000 (deleted)";
        for (pid, namespace) in [(4, 7), (5, 7), (9, 8)] {
            found.enter((pid, "a", namespace), &area(segment));
        }
        let mappers: Vec<usize> = found.objects.values().map(|o| o.mappers.len()).collect();
        assert_eq!(mappers, [2, 1]);
    }

    #[test]
    fn this_process_maps_its_own_executable_which_can_be_opened() {
        let host = Host::default();
        let found = MappedObjects::of(&host, &[std::process::id(), u32::MAX - 1]);
        assert_eq!((found.processes, found.unreadable), (1, 0));
        let own = std::env::current_exe().unwrap();
        let metadata = own.metadata().unwrap();
        let object = found.at(&host, &own, &metadata).unwrap();
        let file = object.open(&host).unwrap();
        assert_eq!(file.metadata().unwrap().len(), metadata.len());
    }
}

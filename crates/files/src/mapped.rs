//! What processes map, gathered from `/proc/PID/maps`.

use crate::Kind;
use nodewise_linux::Host;
use nodewise_linux::maps::Area;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// A process that maps an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Mapper {
    /// Its identifier on this host.
    pub pid: u32,
    /// The first 15 bytes of the executable's name.
    pub name: String,
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
    /// A mapping of the first of the processes.
    at: (u32, Area),
}

/// All objects that processes map, by device and inode.
#[derive(Debug, Default)]
pub struct MappedObjects {
    /// Each object that at least one process maps.
    pub objects: BTreeMap<(u64, u64), Mapped>,
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
                    areas.into_iter().for_each(|area| found.enter(*pid, &name, area));
                }
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => found.unreadable += 1,
                Err(_) => {}
            }
        }
        found
    }

    fn enter(&mut self, pid: u32, process: &str, area: Area) {
        let Some((kind, name)) = Kind::of(&area.name) else {
            return;
        };
        let object = self.objects.entry(area.file).or_insert_with(|| Mapped {
            kind,
            name: name.to_owned(),
            deleted: area.name.ends_with(" (deleted)"),
            mappers: Vec::new(),
            inode: area.file.1,
            at: (pid, area.clone()),
        });
        if object.mappers.last().is_none_or(|last| last.pid != pid) {
            object.mappers.push(Mapper {
                pid,
                name: process.to_owned(),
            });
        }
    }
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
        File::open(link).or_else(|_| {
            if self.deleted {
                return Err(io::ErrorKind::PermissionDenied.into());
            }
            let path = self.path().ok_or(io::ErrorKind::NotFound)?;
            let below = path.strip_prefix("/").map_err(io::Error::other)?;
            let file = File::open(process.join("root").join(below))?;
            match file.metadata()?.ino() == area.file.1 {
                true => Ok(file),
                false => Err(io::ErrorKind::NotFound.into()),
            }
        })
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
        for (pid, line) in [
            (4, text),
            (4, data),
            (9, text),
            (9, "5000-6000 rw-p 0 00:00 0 [heap]"),
        ] {
            found.enter(pid, "a", area(line));
        }
        assert_eq!(found.objects.len(), 1);
        let object = found.objects.values().next().unwrap();
        let pids: Vec<u32> = object.mappers.iter().map(|m| m.pid).collect();
        assert_eq!((object.kind, pids, object.inode), (Kind::File, vec![4, 9], 77));
    }

    #[test]
    fn this_process_maps_its_own_executable_which_can_be_opened() {
        let host = Host::default();
        let found = MappedObjects::of(&host, &[std::process::id(), u32::MAX - 1]);
        assert_eq!((found.processes, found.unreadable), (1, 0));
        let own = std::env::current_exe().unwrap();
        let object = found
            .objects
            .values()
            .find(|o| own.ends_with(o.name.trim_start_matches('/')))
            .unwrap();
        let file = object.open(&host).unwrap();
        assert_eq!(file.metadata().unwrap().len(), own.metadata().unwrap().len());
    }
}

//! Shared memory that has no path, found through the processes that map it.

use crate::gather::Found;
use crate::mapped::{Mapped, MappedObjects};
use crate::{Kind, entry};
use anyhow::bail;
use nodewise_linux::Host;
use nodewise_placement::{NAMED_KINDS, Named};

/// Shared memory of a process, or by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SharedMemory {
    /// All that this process maps.
    Of(u32),
    /// What is called so, whoever maps it: `shm:GLOB`, `memfd:GLOB`, `sysv:ID` or `sysv:0xKEY`, `shared`.
    Named(String),
}

impl SharedMemory {
    /// Reads a word of the command line; `None` if it can only be a path.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        if let Ok(pid) = word.parse() {
            return Some(Self::Of(pid));
        }
        let kind = word.split_once(':').map_or(word, |(kind, _)| kind);
        let is_kind = kind != Kind::File.name() && NAMED_KINDS.contains(&kind);
        is_kind.then(|| Self::Named(word.to_owned()))
    }

    /// The objects, each once however many processes map it.
    ///
    /// # Errors
    /// No process maps such memory, or this user may not look: one line.
    pub fn find(&self, host: &Host) -> anyhow::Result<Vec<Found>> {
        let pids = match self {
            Self::Of(pid) if !host.has_process(*pid) => {
                bail!("no process {pid}; a file of that name: ./{pid}")
            }
            Self::Of(pid) => vec![*pid],
            Self::Named(_) => host.pids()?,
        };
        let mapped = MappedObjects::of(host, &pids);
        self.check(&mapped)?;
        let objects = mapped.objects.values().filter(|object| self.is(object));
        Ok(objects.map(|object| self.found(object, host)).collect())
    }

    /// Whether it is among what processes map.
    ///
    /// # Errors
    /// It is not, in one line.
    pub(crate) fn check(&self, mapped: &MappedObjects) -> anyhow::Result<()> {
        let there = mapped.objects.values().any(|object| self.is(object));
        let what = match self {
            _ if there => return Ok(()),
            Self::Of(pid) if mapped.unreadable > 0 => {
                bail!("cannot read what process {pid} maps; run as its owner, or as root")
            }
            Self::Of(pid) => bail!("process {pid} maps no shared memory"),
            Self::Named(name) => format!("no process maps shared memory called {name}"),
        };
        match mapped.unreadable {
            0 => bail!("{what}"),
            unread => bail!("{what}, but {unread} of the processes may be read by root alone"),
        }
    }

    /// Whether it is this object.
    pub(crate) fn is(&self, object: &Mapped) -> bool {
        match (self, object.kind) {
            (_, Kind::File | Kind::Dax) | (Self::Of(_), Kind::Hugetlb) => false,
            // Where `run` and `balance` keep what they tell the process.
            (_, Kind::Shm) if object.name.starts_with("nodewise-") => false,
            (Self::Of(_), _) => true,
            (Self::Named(name), kind) => {
                let identifier = format!("{}:{}", kind.name(), object.inode);
                let called = kind.call(&object.name);
                (kind == Kind::Sysv && *name == identifier)
                    || Named::new(name).is_some_and(|n| n.matches(&called))
            }
        }
    }

    fn found(&self, object: &Mapped, host: &Host) -> Found {
        let size = object
            .open(host)
            .and_then(|file| file.metadata())
            .map_or(0, |m| m.len());
        Found {
            path: entry::title(object.kind, &object.name, object.inode).into(),
            size,
            named: true,
            mapped: Some(object.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_processes_names_or_paths() {
        assert_eq!(SharedMemory::parse("4711"), Some(SharedMemory::Of(4711)));
        let named = |word: &str| Some(SharedMemory::Named(word.to_owned()));
        for word in ["memfd:ram", "sysv", "sysv:32768", "shared", "shm:x"] {
            assert_eq!(SharedMemory::parse(word), named(word));
        }
        for word in ["weights", "./4711", "models:2/weights", "file:x"] {
            assert_eq!(SharedMemory::parse(word), None);
        }
    }

    #[test]
    fn what_nobody_maps_is_an_error_of_one_line() {
        let host = Host::default();
        for word in ["memfd:there-is-none-called-so", "4294967294"] {
            let error = SharedMemory::parse(word).unwrap().find(&host).unwrap_err();
            assert!(error.to_string().starts_with("no process") && !error.to_string().contains('\n'));
        }
    }
}

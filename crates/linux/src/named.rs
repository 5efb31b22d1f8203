//! Memory that has a name of its own: what a mapping is a mapping of, by its name in `/proc/PID/maps`.

use crate::dax;
use std::borrow::Cow;

/// Where systems mount `hugetlbfs`.
const HUGE_PAGES: &str = "/dev/hugepages/";

/// Memory that several processes can map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A file on a file system: its pages are the page cache.
    File,
    /// A POSIX shared memory object (`shm_open(3)`), or another file in `/dev/shm`.
    Shm,
    /// A System V segment (`shmget(2)`).
    Sysv,
    /// An anonymous file (`memfd_create(2)`).
    Memfd,
    /// Anonymous memory shared with children (`MAP_SHARED | MAP_ANONYMOUS`).
    Shared,
    /// Pages of a pool of huge pages, mapped without a name (`MAP_HUGETLB`).
    Hugetlb,
    /// A DAX device: memory of a node that nothing moves.
    Dax,
}

impl Kind {
    /// Its stable lower-case name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Shm => "shm",
            Self::Sysv => "sysv",
            Self::Memfd => "memfd",
            Self::Shared => "shared",
            Self::Hugetlb => "hugetlb",
            Self::Dax => "dax",
        }
    }

    /// The name by which recordings, rules and `files` call what a mapping maps: a path as it is, other memory after its
    /// kind: `shm:NAME`, `memfd:NAME`, `sysv:0xKEY`, `shared:`, `hugetlb:`. Devices keep the kernel's name.
    #[must_use]
    pub fn called(mapping: &str) -> Cow<'_, str> {
        match Self::of(mapping) {
            Some((Self::File, name)) if name.starts_with(HUGE_PAGES) => Self::Hugetlb.call(name).into(),
            Some((kind, name)) => kind.call(name).into(),
            None => mapping.into(),
        }
    }

    /// Likewise, of an object of this kind whose name [`Kind::of`] gave.
    #[must_use]
    pub fn call(self, name: &str) -> String {
        match self {
            Self::File | Self::Dax => name.to_owned(),
            Self::Sysv => format!("sysv:0x{name}"),
            _ => format!("{}:{name}", self.name()),
        }
    }

    /// The kind of a mapping and the name of what it maps, without the prefix that the kernel gives to it; `None` for
    /// memory of the process alone, and for other devices than of DAX.
    #[must_use]
    pub fn of(mapping: &str) -> Option<(Self, &str)> {
        let (name, deleted) = match mapping.strip_suffix(" (deleted)") {
            Some(name) => (name, true),
            None => (mapping, false),
        };
        if let Some(name) = name.strip_prefix("/memfd:") {
            return Some((Self::Memfd, name));
        }
        if let Some(key) = name.strip_prefix("/SYSV").filter(|_| deleted) {
            return Some((Self::Sysv, key));
        }
        if let Some(name) = name.strip_prefix("/dev/shm/") {
            return Some((Self::Shm, name));
        }
        match name {
            "/dev/zero" if deleted => Some((Self::Shared, "")),
            "/anon_hugepage" if deleted => Some((Self::Hugetlb, "")),
            _ if name.starts_with(HUGE_PAGES) => Some((Self::File, name)),
            _ if dax::is_device(name) => Some((Self::Dax, name)),
            _ if name.starts_with("/dev/") || !name.starts_with('/') => None,
            _ => Some((Self::File, name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_by_their_names() {
        for (mapping, expected) in [
            ("/usr/lib/libc.so.6", Some((Kind::File, "/usr/lib/libc.so.6"))),
            (
                "/models/a b.gguf (deleted)",
                Some((Kind::File, "/models/a b.gguf")),
            ),
            ("/dev/shm/PostgreSQL.1", Some((Kind::Shm, "PostgreSQL.1"))),
            ("/memfd:ram (deleted)", Some((Kind::Memfd, "ram"))),
            ("/SYSV0052e2c1 (deleted)", Some((Kind::Sysv, "0052e2c1"))),
            ("/dev/zero (deleted)", Some((Kind::Shared, ""))),
            ("/anon_hugepage (deleted)", Some((Kind::Hugetlb, ""))),
            ("/dev/hugepages/pool", Some((Kind::File, "/dev/hugepages/pool"))),
            ("/dev/dax0.0", Some((Kind::Dax, "/dev/dax0.0"))),
            ("/dev/nvidia0", None),
            ("/dev/zero", None),
            ("[heap]", None),
            ("", None),
            ("anon_inode:[perf_event]", None),
        ] {
            assert_eq!(Kind::of(mapping), expected, "{mapping}");
        }
    }

    #[test]
    fn what_is_mapped_is_called_as_rules_write_it() {
        for (mapping, called) in [
            ("/models/a b.gguf (deleted)", "/models/a b.gguf"),
            ("/dev/shm/PostgreSQL.1", "shm:PostgreSQL.1"),
            ("/memfd:ram (deleted)", "memfd:ram"),
            ("/SYSV0052e2c1 (deleted)", "sysv:0x0052e2c1"),
            ("/dev/zero (deleted)", "shared:"),
            ("/anon_hugepage (deleted)", "hugetlb:"),
            ("/dev/hugepages/pool", "hugetlb:/dev/hugepages/pool"),
            ("/dev/nvidia0", "/dev/nvidia0"),
        ] {
            assert_eq!(Kind::called(mapping), called);
        }
    }
}

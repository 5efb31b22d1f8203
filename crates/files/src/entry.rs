//! An object: where it lies, how that is known, and who maps it.

use crate::gather::Found;
use crate::mapped::{Mapped, Mapper};
use crate::residence::{OnNode, Residence};
use crate::{Kind, users};
use anyhow::bail;
use nodewise_linux::Host;
use nodewise_linux::dax;
use nodewise_linux::numa_maps::Range;
use nodewise_linux::page_cache::Backing;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;

/// `ENODEV`: the error of files that cannot be mapped.
const NO_MAPPING: i32 = 19;

/// How the distribution of an object is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// From its file: all of it that is in memory, mapped or not.
    File,
    /// From the process that has most of it mapped: what only others map is missing.
    Mapping,
}

/// An object, where it lies, and who maps it.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    /// What kind of memory it is.
    #[serde(serialize_with = "by_name")]
    pub kind: Kind,
    /// Its path or name.
    pub name: String,
    /// Its inode; that of a System V segment is its identifier, as `ipcs -m` lists it.
    pub inode: u64,
    /// Whether its name is gone from the file system.
    pub deleted: bool,
    /// On which nodes it lies.
    #[serde(flatten)]
    pub residence: Residence,
    /// How that is known.
    pub source: Source,
    /// The processes that map it.
    pub mapped_by: Vec<Mapper>,
    /// The share of these processes' CPU time by the node where their threads run, by the kernel's number.
    pub cpu_share: BTreeMap<u32, f64>,
    /// The share of accesses that would be local if these threads used all of it alike; `None` if no process maps it.
    pub expected_local: Option<f64>,
}

fn by_name<S: serde::Serializer>(kind: &Kind, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(kind.name())
}

impl Entry {
    pub(crate) fn new(object: &Mapped, residence: Residence, source: Source) -> Self {
        Self {
            kind: object.kind,
            name: object.name.clone(),
            inode: object.inode,
            deleted: object.deleted,
            residence,
            source,
            mapped_by: object.mappers.clone(),
            cpu_share: BTreeMap::new(),
            expected_local: None,
        }
    }

    pub(crate) fn of_file(
        found: &Found,
        metadata: &Metadata,
        residence: Residence,
        object: Option<&Mapped>,
    ) -> Self {
        Self {
            kind: Kind::File,
            name: found.path.display().to_string(),
            inode: metadata.ino(),
            deleted: false,
            residence,
            source: Source::File,
            mapped_by: object.map(|o| o.mappers.clone()).unwrap_or_default(),
            cpu_share: BTreeMap::new(),
            expected_local: None,
        }
    }

    /// How it is called in text.
    #[must_use]
    pub fn title(&self) -> String {
        title(self.kind, &self.name, self.inode)
    }
}

/// How an object is called in text.
pub(crate) fn title(kind: Kind, name: &str, inode: u64) -> String {
    match kind {
        Kind::Sysv => format!("System V segment {inode}"),
        Kind::Shared => "anonymous shared memory".to_owned(),
        Kind::Hugetlb => "anonymous huge pages (hugetlb)".to_owned(),
        Kind::File | Kind::Shm | Kind::Memfd | Kind::Dax => kind.call(name),
    }
}

/// The share of accesses that is local if threads with these shares of CPU time use all of the memory alike.
pub(crate) fn expected_local(residence: &Residence, cpu_share: &BTreeMap<u32, f64>) -> Option<f64> {
    let memory = residence.nodes.iter().map(|(node, on)| (*node, on.bytes));
    (!cpu_share.is_empty() && residence.in_memory() > 0).then(|| users::local_share(memory, cpu_share))
}

/// Looks at an object of the host through its file, and where that cannot be opened through those who map it.
pub(crate) fn of_mapped(host: &Host, object: &Mapped, most: u64, mappings: &mut Mappings<'_>) -> Entry {
    if object.kind == Kind::Dax {
        return Entry::new(object, on_device(host, object), Source::Mapping);
    }
    match through_file(host, object, most) {
        Ok(residence) => Entry::new(object, residence, Source::File),
        Err(_) => Entry::new(object, through_mappings(object, mappings), Source::Mapping),
    }
}

/// All of a DAX device that is mapped is on its node, touched or not; the kernel counts none of its pages.
fn on_device(host: &Host, object: &Mapped) -> Residence {
    let size = object.mapped_bytes();
    let on = OnNode {
        bytes: size,
        mapped: size,
        cold: 0,
    };
    let node = dax::device_node(host, &object.name).flatten();
    Residence {
        size,
        looked_at: 1.0,
        unknown: node.map_or(size, |_| 0),
        nodes: node.into_iter().map(|node| (node, on)).collect(),
        ..Residence::default()
    }
}

fn through_file(host: &Host, object: &Mapped, most: u64) -> io::Result<Residence> {
    let file = object.open(host)?;
    match Backing::of(&file)? {
        Backing::HugePages => Err(io::ErrorKind::Unsupported.into()),
        _ => Residence::of(&file, file.metadata()?.len(), most),
    }
}

/// What processes have mapped, of each read once: the kernel walks all its page tables for it.
pub(crate) struct Mappings<'a> {
    host: &'a Host,
    known: BTreeMap<u32, Vec<Range>>,
}

impl<'a> Mappings<'a> {
    pub fn of(host: &'a Host) -> Self {
        Self {
            host,
            known: BTreeMap::new(),
        }
    }

    /// The ranges of a process; none if it has ended, or may not be looked into.
    fn ranges(&mut self, pid: u32) -> &[Range] {
        let read = |pid: &u32| self.host.numa_maps(*pid).unwrap_or_default();
        self.known.entry(pid).or_insert_with_key(read)
    }
}

/// What the process has mapped that has most of the object mapped.
fn through_mappings(object: &Mapped, mappings: &mut Mappings<'_>) -> Residence {
    let of_process = |mapper: &Mapper| {
        let mut nodes: BTreeMap<u32, OnNode> = BTreeMap::new();
        let ranges = mappings.ranges(mapper.pid).iter();
        for range in ranges.filter(|range| mapper.starts.contains(&range.start)) {
            for (node, bytes) in range.bytes() {
                let on = nodes.entry(node).or_default();
                on.bytes += bytes;
                on.mapped += bytes;
            }
        }
        Residence {
            size: nodes.values().map(|on| on.bytes).sum(),
            looked_at: 1.0,
            nodes,
            ..Residence::default()
        }
    };
    let each = object.mappers.iter().map(of_process);
    each.max_by_key(Residence::in_memory).unwrap_or_default()
}

/// Looks at all of a file that was named.
pub(crate) fn of_file(found: &Found) -> anyhow::Result<(Residence, Metadata)> {
    let file = found.open().map_err(explained)?;
    let metadata = file.metadata()?;
    if Backing::of(&file)? == Backing::HugePages {
        bail!("it lies in huge pages (hugetlbfs), whose nodes only a process shows: `nodewise files PID`");
    }
    if Backing::of(&file)? == Backing::Device {
        bail!(
            "it lies on a file system that maps the device's own memory (dax), and has no pages in the page cache"
        );
    }
    let residence = Residence::of(&file, metadata.len(), u64::MAX).map_err(explained)?;
    Ok((residence, metadata))
}

/// Why the kernel does not let this user look at a file, with what helps.
pub(crate) fn explained(error: io::Error) -> anyhow::Error {
    let kept = "which of its pages are in memory, only its owner, who may write to it, and root learn";
    match error.kind() {
        // The kernel's own refusal is of opening it; ours has no number.
        io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => anyhow::anyhow!(kept),
        _ if error.raw_os_error() == Some(NO_MAPPING) => {
            anyhow::anyhow!("it cannot be mapped, and has no pages in the page cache")
        }
        _ => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locality_is_where_memory_and_threads_meet() {
        let on = |bytes| OnNode {
            bytes,
            ..OnNode::default()
        };
        let residence = Residence {
            nodes: BTreeMap::from([(0, on(300)), (1, on(100))]),
            ..Residence::default()
        };
        let share = |shares: &[(u32, f64)]| expected_local(&residence, &shares.iter().copied().collect());
        assert_eq!(share(&[(1, 1.0)]), Some(0.25));
        assert_eq!(share(&[(0, 0.5), (1, 0.5)]), Some(0.5));
        assert_eq!(share(&[]), None);
    }

    #[test]
    fn memory_of_a_dax_device_is_on_its_drivers_node() {
        let root = std::env::temp_dir().join(format!("nodewise-mapped-dax-{}", std::process::id()));
        let put = |path: &str, text: &str| {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put("sys/bus/dax/devices/dax0.0/target_node", "2\n");
        put(
            "proc/4711/maps",
            "7f0000000000-7f0000200000 rw-s 00000000 00:06 9 /dev/dax0.0\n7f0000400000-7f0000a00000 rw-s 00200000 00:06 9 /dev/dax0.0\n",
        );
        let host = Host::at(&root);
        let found = crate::mapped::MappedObjects::of(&host, &[4711]);
        let object = found.objects.values().next().unwrap();
        let entry = of_mapped(&host, object, u64::MAX, &mut Mappings::of(&host));
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!(
            (found.objects.len(), entry.kind, &*entry.name),
            (1, Kind::Dax, "/dev/dax0.0")
        );
        let on: Vec<(u32, u64)> = entry
            .residence
            .nodes
            .iter()
            .map(|(n, on)| (*n, on.mapped))
            .collect();
        assert_eq!((on, entry.residence.unknown), (vec![(2, 6 << 20)], 0));
    }
}

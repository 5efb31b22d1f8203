//! What `nodewise files` shows: named memory of the whole host, of a process, or of given files.

use crate::guests::Guest;
use crate::mapped::{Mapped, MappedObjects, Mapper};
use crate::nodes::NodeUse;
use crate::residence::{OnNode, Residence};
use crate::{Kind, users};
use anyhow::{Context, bail};
use nodewise_linux::Host;
use nodewise_linux::file_pages::Backing;
use nodewise_linux::numa_maps::RangeKind;
use nodewise_machine::Machine;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Bytes of an object that are looked at in a survey of the whole host; larger ones are sampled.
const MOST_OF_EACH: u64 = 1 << 30;

/// What to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Everything that processes map.
    Host,
    /// What these processes map.
    Processes(Vec<u32>),
    /// These files, and those in these folders.
    Paths(Vec<PathBuf>),
}

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

/// The result of looking. `files --json` serialises it without changes.
#[derive(Debug, Serialize)]
pub struct Survey {
    /// What each node's memory is used for.
    pub nodes: Vec<NodeUse>,
    /// Number of processes whose mappings were read.
    pub processes: usize,
    /// Number of processes that this user may not look into.
    pub unreadable: usize,
    /// The objects, those with most memory first.
    pub objects: Vec<Entry>,
    /// Files in the given folders that could not be opened or looked at, with the reason.
    pub failed: Vec<String>,
    /// The virtual machines that run here.
    pub guests: Vec<Guest>,
}

impl Survey {
    /// Looks at the subject. `progress` is called with the number of objects and how many of them were looked at.
    ///
    /// # Errors
    /// A path or process does not exist, or may not be read.
    pub fn of(host: &Host, subject: &Subject, progress: &dyn Fn(usize, usize)) -> anyhow::Result<Self> {
        let machine = Machine::from_sysfs(&host.sys(), "this")?;
        let all = host.pids()?;
        let pids = match subject {
            Subject::Processes(pids) => existing(host, pids)?,
            _ => all.into_iter().filter(|pid| *pid != std::process::id()).collect(),
        };
        let mapped = MappedObjects::of(host, &pids);
        if let (Subject::Processes(_), 0) = (subject, mapped.processes) {
            bail!("cannot read what the processes map; run as their owner, or as root");
        }
        let mut survey = Self {
            nodes: NodeUse::all(host),
            processes: mapped.processes,
            unreadable: mapped.unreadable,
            objects: Vec::new(),
            failed: Vec::new(),
            guests: pids
                .iter()
                .filter_map(|pid| Guest::of(host, &machine, *pid))
                .collect(),
        };
        match subject {
            Subject::Paths(paths) => survey.add_paths(paths, &mapped, progress)?,
            Subject::Host => survey.add_mapped(host, &mapped, MOST_OF_EACH, progress),
            Subject::Processes(_) => survey.add_mapped(host, &mapped, u64::MAX, progress),
        }
        if matches!(subject, Subject::Paths(_)) {
            survey.guests.clear();
        }
        survey
            .objects
            .sort_by_key(|o| (std::cmp::Reverse(o.residence.in_memory()), o.name.clone()));
        let mut shares: BTreeMap<Vec<u32>, BTreeMap<u32, f64>> = BTreeMap::new();
        for object in &mut survey.objects {
            let pids: Vec<u32> = object.mapped_by.iter().map(|m| m.pid).collect();
            let share = shares
                .entry(pids)
                .or_insert_with_key(|pids| users::cpu_shares(host, &machine, pids.iter().copied()));
            object.cpu_share = share.clone();
            object.expected_local = expected_local(&object.residence, share);
        }
        Ok(survey)
    }

    fn add_mapped(
        &mut self,
        host: &Host,
        mapped: &MappedObjects,
        most: u64,
        progress: &dyn Fn(usize, usize),
    ) {
        let count = mapped.objects.len();
        for (done, object) in mapped.objects.values().enumerate() {
            progress(done, count);
            let found = through_file(host, object, most);
            let (residence, source) = match found {
                Ok(residence) => (residence, Source::File),
                Err(_) => (through_mappings(host, object), Source::Mapping),
            };
            if residence.in_memory() > 0 {
                self.objects.push(Entry::new(object, residence, source));
            }
        }
        progress(count, count);
    }

    fn add_paths(
        &mut self,
        paths: &[PathBuf],
        mapped: &MappedObjects,
        progress: &dyn Fn(usize, usize),
    ) -> anyhow::Result<()> {
        let mut files = Vec::new();
        for path in paths {
            gather(path, &mut files, &mut self.failed)?;
        }
        // On overlay and some other file systems, `maps` shows another device and inode than `stat`.
        let by_path: BTreeMap<PathBuf, &Mapped> = mapped
            .objects
            .values()
            .filter_map(|object| Some((object.path()?, object)))
            .collect();
        for (done, (path, metadata)) in files.iter().enumerate() {
            progress(done, files.len());
            match through_path(path, metadata.len()) {
                Ok(residence) => {
                    let by_inode = mapped.objects.get(&(metadata.dev(), metadata.ino()));
                    let object = by_inode.or_else(|| by_path.get(&path.canonicalize().ok()?).copied());
                    self.objects
                        .push(Entry::of_file(path, metadata.ino(), residence, object));
                }
                Err(error) if paths.contains(path) => {
                    return Err(error.context(format!("cannot look at {}", path.display())));
                }
                Err(error) => self.failed.push(format!("{}: {error:#}", path.display())),
            }
        }
        progress(files.len(), files.len());
        Ok(())
    }
}

impl Entry {
    fn new(object: &Mapped, residence: Residence, source: Source) -> Self {
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

    fn of_file(path: &Path, inode: u64, residence: Residence, object: Option<&Mapped>) -> Self {
        Self {
            kind: Kind::File,
            name: path.display().to_string(),
            inode,
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
        match self.kind {
            Kind::Sysv => format!("System V segment {}", self.inode),
            kind => kind.title(&self.name),
        }
    }
}

/// The share of accesses that is local if threads with these shares of CPU time use all of the memory alike.
fn expected_local(residence: &Residence, cpu_share: &BTreeMap<u32, f64>) -> Option<f64> {
    let local = |(node, share): (u32, f64)| share * cpu_share.get(&node).unwrap_or(&0.0);
    (!cpu_share.is_empty() && residence.in_memory() > 0)
        .then(|| residence.shares().into_iter().map(local).sum())
}

fn existing(host: &Host, pids: &[u32]) -> anyhow::Result<Vec<u32>> {
    match pids.iter().find(|pid| !host.has_process(**pid)) {
        Some(pid) => bail!("no process {pid}; a file of that name: ./{pid}"),
        None => Ok(pids.to_vec()),
    }
}

fn through_file(host: &Host, object: &Mapped, most: u64) -> io::Result<Residence> {
    let file = object.open(host)?;
    match Backing::of(&file)? {
        Backing::HugePages => Err(io::ErrorKind::Unsupported.into()),
        _ => Residence::of(&file, file.metadata()?.len(), most, &mut |_| ()),
    }
}

fn through_path(path: &Path, size: u64) -> anyhow::Result<Residence> {
    let file = File::open(path)?;
    if Backing::of(&file)? == Backing::HugePages {
        bail!("it lies in huge pages (hugetlbfs), whose nodes only a process shows: `nodewise files PID`");
    }
    Ok(Residence::of(&file, size, u64::MAX, &mut |_| ())?)
}

/// What the process has mapped that has most of the object mapped.
fn through_mappings(host: &Host, object: &Mapped) -> Residence {
    let of_process = |pid: u32| {
        let mut nodes: BTreeMap<u32, OnNode> = BTreeMap::new();
        for range in host.numa_maps(pid).unwrap_or_default() {
            let RangeKind::File(name) = &range.kind else {
                continue;
            };
            if Kind::of(name) == Some((object.kind, &object.name)) {
                for (node, bytes) in range.bytes() {
                    let on = nodes.entry(node).or_default();
                    on.bytes += bytes;
                    on.mapped += bytes;
                }
            }
        }
        Residence {
            size: nodes.values().map(|on| on.bytes).sum(),
            looked_at: 1.0,
            nodes,
            ..Residence::default()
        }
    };
    let each = object.mappers.iter().map(|mapper| of_process(mapper.pid));
    each.max_by_key(Residence::in_memory).unwrap_or_default()
}

/// The regular files at a path, those of a folder with all that is below it on the same file system; links in it are
/// not followed.
fn gather(path: &Path, files: &mut Vec<(PathBuf, Metadata)>, failed: &mut Vec<String>) -> anyhow::Result<()> {
    let metadata = std::fs::metadata(path).with_context(|| format!("cannot look at {}", path.display()))?;
    if metadata.is_file() {
        files.push((path.to_owned(), metadata));
        return Ok(());
    }
    if !metadata.is_dir() {
        let what = if metadata.file_type().is_char_device() {
            "a device"
        } else {
            "no file"
        };
        bail!(
            "{}: is {what}, and has no pages in the page cache; name a file or a folder",
            path.display()
        );
    }
    let device = metadata.dev();
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if folder == path => bail!("cannot list {}: {error}", path.display()),
            Err(error) => {
                failed.push(format!("{}: {error}", folder.display()));
                continue;
            }
        };
        for entry in entries.flatten() {
            let Ok(metadata) = entry.path().symlink_metadata() else {
                continue;
            };
            if metadata.is_dir() && metadata.dev() == device {
                folders.push(entry.path());
            } else if metadata.is_file() && metadata.len() > 0 {
                files.push((entry.path(), metadata));
            }
        }
    }
    files.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(())
}

/// The regular files at these paths with their sizes, and what could not be listed.
///
/// # Errors
/// A path does not exist, or is neither a file nor a folder.
pub fn files_at(paths: &[PathBuf]) -> anyhow::Result<(Vec<(PathBuf, u64)>, Vec<String>)> {
    let (mut files, mut failed) = (Vec::new(), Vec::new());
    for path in paths {
        gather(path, &mut files, &mut failed)?;
    }
    let with_size = files.into_iter().map(|(path, metadata)| (path, metadata.len()));
    Ok((with_size.collect(), failed))
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
    fn files_of_a_folder_are_found_below_it_and_links_are_not_followed() {
        let folder = std::env::temp_dir().join(format!("nodewise-survey-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("below")).unwrap();
        std::fs::write(folder.join("below/b"), vec![1; 9000]).unwrap();
        std::fs::write(folder.join("a"), vec![1; 5000]).unwrap();
        std::fs::write(folder.join("empty"), "").unwrap();
        std::os::unix::fs::symlink("/proc/kcore", folder.join("link")).unwrap();
        let subject = Subject::Paths(vec![folder.clone()]);
        let survey = Survey::of(&Host::default(), &subject, &|_, _| ());
        std::fs::remove_dir_all(&folder).unwrap();
        let survey = survey.unwrap();
        let names: Vec<&str> = survey
            .objects
            .iter()
            .map(|o| o.name.rsplit('/').next().unwrap())
            .collect();
        assert_eq!(names, ["b", "a"], "largest first");
        assert!(survey.failed.is_empty() && survey.objects.iter().all(|o| o.mapped_by.is_empty()));
    }

    #[test]
    fn what_cannot_be_looked_at_is_refused_in_a_line() {
        for (path, expected) in [
            ("/nonexistent-file", "No such file"),
            ("/dev/null", "is a device"),
        ] {
            let error = Survey::of(&Host::default(), &Subject::Paths(vec![path.into()]), &|_, _| ());
            let error = format!("{:#}", error.unwrap_err());
            assert!(error.contains(expected) && !error.contains('\n'), "{error}");
        }
        let error = Survey::of(
            &Host::default(),
            &Subject::Processes(vec![u32::MAX - 1]),
            &|_, _| (),
        );
        assert!(error.unwrap_err().to_string().contains("no process"));
    }
}

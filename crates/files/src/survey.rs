//! What `nodewise files` shows: named memory of the whole host, of a process, or of given files.

use crate::entry::{self, Entry, Mappings, expected_local};
use crate::gather::gather;
use crate::guests::Guest;
use crate::mapped::MappedObjects;
use crate::nodes::NodeUse;
use crate::{SharedMemory, users};
use anyhow::bail;
use nodewise_linux::Host;
use nodewise_machine::Machine;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

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
    /// Shared memory that is called so.
    Memory(Vec<SharedMemory>),
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
        let mut mapped = MappedObjects::of(host, &pids);
        if let (Subject::Processes(_), 0) = (subject, mapped.processes) {
            bail!("cannot read what the processes map; run as their owner, or as root");
        }
        if let Subject::Memory(named) = subject {
            named.iter().try_for_each(|name| name.check(&mapped))?;
            mapped
                .objects
                .retain(|_, object| named.iter().any(|name| name.is(object)));
        }
        let mut survey = Self {
            nodes: NodeUse::all(host),
            processes: mapped.processes,
            unreadable: mapped.unreadable,
            objects: Vec::new(),
            failed: Vec::new(),
            guests: Vec::new(),
        };
        match subject {
            Subject::Paths(paths) => survey.add_paths(host, paths, &mapped, progress)?,
            Subject::Host => survey.add_mapped(host, &mapped, MOST_OF_EACH, progress),
            Subject::Processes(_) | Subject::Memory(_) => {
                survey.add_mapped(host, &mapped, u64::MAX, progress);
            }
        }
        if matches!(subject, Subject::Host | Subject::Processes(_)) {
            let guest = |pid: &u32| Guest::of(host, &machine, *pid);
            survey.guests = pids.iter().filter_map(guest).collect();
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
        let (count, mut mappings) = (mapped.objects.len(), Mappings::of(host));
        for (done, object) in mapped.objects.values().enumerate() {
            progress(done, count);
            let entry = entry::of_mapped(host, object, most, &mut mappings);
            if entry.residence.in_memory() > 0 {
                self.objects.push(entry);
            }
        }
        progress(count, count);
    }

    fn add_paths(
        &mut self,
        host: &Host,
        paths: &[PathBuf],
        mapped: &MappedObjects,
        progress: &dyn Fn(usize, usize),
    ) -> anyhow::Result<()> {
        let files = gather(paths, &mut self.failed)?;
        for (done, found) in files.iter().enumerate() {
            progress(done, files.len());
            match entry::of_file(found) {
                Ok((residence, metadata)) => {
                    let object = mapped.at(host, &found.path, &metadata);
                    self.objects
                        .push(Entry::of_file(found, &metadata, residence, object));
                }
                Err(error) if found.named => {
                    return Err(error.context(format!("cannot look at {}", found.path.display())));
                }
                Err(error) => self.failed.push(format!("{}: {error:#}", found.path.display())),
            }
        }
        progress(files.len(), files.len());
        Ok(())
    }
}

fn existing(host: &Host, pids: &[u32]) -> anyhow::Result<Vec<u32>> {
    match pids.iter().find(|pid| !host.has_process(**pid)) {
        Some(pid) => bail!("no process {pid}; a file of that name: ./{pid}"),
        None => Ok(pids.to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

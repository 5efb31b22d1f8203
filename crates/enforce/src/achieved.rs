//! What a placement achieved, over all processes that it was applied to.

use crate::live::Live;
use crate::summary::{LARGEST, State, Summary, Tally};
use crate::{EnforceError, Table};
use nodewise_linux::Host;
use nodewise_linux::process::own_user;
use serde::Serialize;
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs::DirEntry;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Pages of the objects of one rule: wanted and actual nodes, as logical nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RuleAchieved {
    /// Number of objects placed.
    pub objects: u64,
    /// Pages of these objects.
    pub pages: u64,
    /// Pages that had memory at the last look.
    pub touched: u64,
    /// Of those, the pages on their wanted node; all of them where the kernel was to decide.
    pub right: u64,
    /// Pages wanted on each node.
    pub wanted: Vec<u64>,
    /// Pages with memory on each node.
    pub got: Vec<u64>,
}

/// Result of one run under a placement.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Achieved {
    /// Number of process images that were placed.
    pub processes: usize,
    /// Results for each rule of the placement.
    pub rules: Vec<RuleAchieved>,
    /// Results for objects that no rule names.
    pub rest: RuleAchieved,
    /// Threads bound by the preload; does not include those that OpenMP binds.
    pub threads_bound: u32,
    /// Number of placement calls that the kernel refused.
    pub refused: u32,
    /// The reason of the last refusal, in words.
    pub refusal: Option<String>,
    /// Objects placed at a coarser granularity, because mappings or memory were short.
    pub coarsened: u32,
    /// Objects placed but not tracked, because their table was full.
    pub untracked: u32,
    /// Pages that the preload touched in the program's stead, so that they are allocated where wanted.
    pub populated: u64,
    /// Objects recognised by function names and the order of calls only.
    pub by_name: u64,
    /// Processes that could not write a summary because the folder for temporary files was full.
    pub unreported: usize,
    /// Programs that were started with an environment without the preload, or in a root directory without its library.
    pub unreached: u64,
    /// Why placement was switched off in some process.
    pub switched_off: Option<String>,
    /// Processes that were killed before their final look at their objects; their figures are from the last look from
    /// outside.
    pub killed: usize,
}

/// Queries the nodes of placed processes' pages while they run, so that little is lost if one is killed.
#[derive(Debug, Default)]
pub struct Watch {
    /// For each process image, by the name of its summary file: touched, right and actual pages of each rule.
    seen: HashMap<OsString, Vec<Tally>>,
}

/// The approximate number of pages of one object that are queried in one look.
const SAMPLE: u64 = 65_536;

/// The distance between sampled pages: a prime that divides no number of nodes, because the samples of an interleaved
/// object would otherwise all be on the same nodes.
fn stride(pages: u64) -> u64 {
    const PRIMES: [u64; 6] = [131, 521, 2053, 8209, 32_771, 131_101];
    if pages <= SAMPLE {
        1
    } else {
        PRIMES
            .into_iter()
            .find(|p| *p >= pages / SAMPLE)
            .unwrap_or(1_048_583)
    }
}

impl Watch {
    /// Asks the kernel for the nodes of a sample of pages of each live object.
    pub fn look(&mut self, folder: &Path, table: &Table) {
        let running =
            |s: &(OsString, Summary)| s.1.state() == State::Running && s.1.rules() == table.rules.len();
        for (name, summary) in summaries(folder).filter(running) {
            let mut tallies = vec![
                Tally {
                    got: vec![0; table.nodes.len()],
                    ..Tally::default()
                };
                summary.rules() + 1
            ];
            for object in summary.live() {
                if let Some(tally) = tallies.get_mut(object.rule as usize) {
                    read_back(summary.pid(), object, table, tally);
                }
            }
            self.seen.insert(name, tallies);
        }
    }
}

fn read_back(pid: u32, object: Live, table: &Table, tally: &mut Tally) {
    let stride = stride(object.pages);
    let pages: Vec<u64> = (object.page..object.page + object.pages)
        .step_by(stride as usize)
        .collect();
    let addresses: Vec<u64> = pages.iter().map(|p| p << 12).collect();
    let Ok(nodes) = nodewise_linux::mempolicy::nodes_of_pages(pid, &addresses) else {
        return;
    };
    for (page, node) in pages.into_iter().zip(nodes) {
        let Some(node) = node.and_then(|n| table.nodes.iter().position(|o| *o == n)) else {
            continue;
        };
        let wanted = table.wanted(&object, page);
        tally.touched += stride;
        tally.got[node] += stride;
        tally.right += if wanted.is_none_or(|w| w.index() == node) {
            stride
        } else {
            0
        };
    }
}

/// Of other users' summaries, where root started the program: the bytes of the largest, and how many are read. Any user can
/// add one, so they cost no more than this.
const LARGEST_OF_OTHERS: u64 = 64 << 20;
const MOST_OF_OTHERS: usize = 4096;

/// Summary files of all process images, and whose they are; a process that called exec has left several.
fn files(folder: &Path) -> impl Iterator<Item = (DirEntry, u32)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let (us, mut others) = (own_user(), 0);
    entries.filter_map(move |entry| {
        let named = entry.file_name().to_string_lossy().starts_with("summary-");
        let metadata = entry.metadata().ok().filter(|m| named && m.is_file())?; // follows no link
        others += usize::from(metadata.uid() != us);
        (metadata.uid() == us || others <= MOST_OF_OTHERS).then_some((entry, metadata.uid()))
    })
}

fn summary(entry: &DirEntry, owner: u32) -> Option<Summary> {
    let largest = match owner == own_user() {
        true => LARGEST,
        false => LARGEST_OF_OTHERS,
    };
    Summary::read(&entry.path(), largest)
}

pub(crate) fn summaries(folder: &Path) -> impl Iterator<Item = (OsString, Summary)> {
    files(folder).filter_map(|(entry, owner)| {
        let summary = summary(&entry, owner)?;
        (owner == own_user() || is_of(summary.pid(), owner)).then(|| (entry.file_name(), summary))
    })
}

/// Whether a process that is still there is this user's: what a report says is done to no one else's.
fn is_of(pid: u32, user: u32) -> bool {
    Host::default()
        .status(pid)
        .map_or(true, |status| status.uid == user)
}

/// Number of summary files that could not be written.
fn unreported(folder: &Path) -> usize {
    files(folder)
        .filter(|(entry, owner)| summary(entry, *owner).is_none())
        .count()
}

/// Number of processes that were killed: no image took a final look though one had objects, and none executed another
/// program. A program that was executed by a direct system call is recognised by its own image.
fn killed(folder: &Path) -> usize {
    let (mut ended, mut lost) = (HashSet::new(), HashSet::new());
    for (_, summary) in summaries(folder) {
        match summary.state() {
            State::Running if summary.live().next().is_some() => drop(lost.insert(summary.pid())),
            State::Running | State::Executed => {}
            State::ReadBack | State::Off => drop(ended.insert(summary.pid())),
        }
    }
    lost.difference(&ended).count()
}

impl Achieved {
    /// Adds up the summaries that the processes left in `folder`. `rules` maps the table's rules to those of the
    /// placement, of which there are `count`.
    ///
    /// # Errors
    /// The folder does not exist.
    pub fn read(
        folder: &Path,
        table: &Table,
        rules: &[usize],
        count: usize,
        watch: &Watch,
    ) -> Result<Self, EnforceError> {
        folder
            .metadata()
            .map_err(|e| EnforceError::io("read", folder, &e))?;
        let mut all = Self {
            rules: vec![RuleAchieved::default(); count],
            ..Self::default()
        };
        for (name, summary) in summaries(folder) {
            all.add(&summary, table, rules, watch.seen.get(&name));
        }
        all.killed = killed(folder);
        all.unreported = unreported(folder);
        Ok(all)
    }

    /// Adds a process image. `seen`: the result of the last look from outside.
    fn add(&mut self, summary: &Summary, table: &Table, rules: &[usize], seen: Option<&Vec<Tally>>) {
        self.processes += 1;
        self.threads_bound += summary.threads();
        self.coarsened += summary.coarsened();
        self.untracked += summary.untracked();
        self.populated += summary.populated();
        self.by_name += summary.by_name();
        self.unreached += u64::from(summary.unreached());
        let (refused, error) = summary.refused();
        self.refused += refused;
        if refused > 0 {
            self.refusal = Some(std::io::Error::from_raw_os_error(error).to_string());
        }
        self.switched_off = summary.off().or(self.switched_off.take());
        // The image ended without its own final look.
        let seen = seen.filter(|_| matches!(summary.state(), State::Running | State::Executed));
        for rule in 0..=summary.rules() {
            let mut tally = summary.tally(rule, table.nodes.len());
            if let Some(last) = seen.and_then(|s| s.get(rule)) {
                tally.touched += last.touched;
                tally.right += last.right;
                tally.got.iter_mut().zip(&last.got).for_each(|(a, b)| *a += b);
            }
            let into = rules
                .get(rule)
                .and_then(|r| self.rules.get_mut(*r))
                .unwrap_or(&mut self.rest);
            into.add(&tally);
        }
    }

    /// The sum over all rules, without objects that no rule names.
    #[must_use]
    pub fn total(&self) -> RuleAchieved {
        let mut total = RuleAchieved::default();
        for rule in &self.rules {
            total.merge(rule);
        }
        total
    }
}

impl RuleAchieved {
    fn add(&mut self, tally: &Tally) {
        self.merge(&Self {
            objects: tally.objects,
            pages: tally.pages,
            touched: tally.touched,
            right: tally.right,
            wanted: tally.wanted.clone(),
            got: tally.got.clone(),
        });
    }

    fn merge(&mut self, other: &Self) {
        self.objects += other.objects;
        self.pages += other.pages;
        self.touched += other.touched;
        self.right += other.right;
        for (into, from) in [(&mut self.wanted, &other.wanted), (&mut self.got, &other.got)] {
            into.resize(into.len().max(from.len()), 0);
            into.iter_mut().zip(from).for_each(|(a, b)| *a += b);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::file;

    #[test]
    fn killed_is_who_had_objects_and_took_no_last_look() {
        let folder = std::env::temp_dir().join(format!("nodewise-achieved-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        // Process 1 ended as its second image, 2 had no objects, 3 was killed at work, 4 continued as a static program,
        // and 5 executed another program that was killed at work.
        let images = [
            (1, 1, 5),
            (1, 2, 5),
            (2, 1, 0),
            (3, 1, 5),
            (4, 4, 5),
            (5, 4, 5),
            (5, 1, 5),
        ];
        for (number, (pid, state, page)) in images.into_iter().enumerate() {
            std::fs::write(folder.join(format!("summary-{number}")), file(pid, state, page)).unwrap();
        }
        assert_eq!(killed(&folder), 2);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

//! Files that rules name: their page cache is put on nodes before the program starts, as it follows no policy of a
//! program's mapping.

use nodewise_files::pieces::Policy;
use nodewise_files::request::{FilePlaced, Request};
use nodewise_files::{Found, gather};
use nodewise_linux::page_cache::Backing;
use nodewise_machine::NodeId;
use nodewise_placement::{Distribution, Named, Rule};
use nodewise_profile::ObjectKind;
use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Files of one rule.
#[derive(Clone, Debug)]
pub struct FilesOfRule {
    /// The rule's index among [`crate::Plan::rules`].
    pub rule: usize,
    /// The regular files that its name matches now.
    pub found: Vec<Found>,
    request: Request,
}

impl FilesOfRule {
    /// The files that the rules name, of each rule that names files. A file goes by the first rule that names it. Shared
    /// memory is left to who maps it, whatever its path.
    pub(crate) fn of(rules: &[Rule], nodes: &[u32], threads: &[NodeId]) -> Vec<Self> {
        let mut taken = HashSet::new();
        let with_files = rules.iter().enumerate().filter_map(|(index, rule)| {
            let name = rule
                .object
                .name
                .as_ref()
                .filter(|_| rule.object.kind == ObjectKind::File)?;
            let mut found = files(Named::new(name)?.path()?);
            found.retain(|file| identity(file).is_some_and(|file| taken.insert(file)));
            let leaves = rule.distribution == Distribution::FirstTouch && rule.runs.is_empty();
            (!leaves).then(|| Self {
                rule: index,
                found,
                request: request(rule, nodes, threads),
            })
        });
        with_files.collect()
    }

    /// Bytes of all files.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.found.iter().map(|file| file.size).sum()
    }

    /// Puts the files on nodes, and loads what is not in memory. `progress` is called with further bytes that are done.
    /// What cannot be placed is an error of its file alone: the program can run without it.
    pub fn place(&self, progress: &(dyn Fn(u64) + Sync)) -> Vec<Result<FilePlaced, String>> {
        let place = |file: &Found| self.request.carry_out(file, progress);
        let each = self.found.iter();
        each.map(|file| place(file).map_err(|e| format!("{e:#}")))
            .collect()
    }
}

/// The files of a pattern, on a disk. A folder that is named by its path means all that is in it.
fn files(pattern: &str) -> Vec<Found> {
    let named = Path::new(pattern);
    let paths = match named.is_dir() {
        true => vec![named.to_owned()],
        false => glob::glob(pattern).map_or_else(
            |_| Vec::new(),
            |paths| paths.flatten().filter(|path| path.is_file()).collect(),
        ),
    };
    gather(&paths, &mut Vec::new()).unwrap_or_default()
}

/// Device and inode of a file on a disk.
fn identity(file: &Found) -> Option<(u64, u64)> {
    let metadata = match file.open() {
        Ok(opened) if matches!(Backing::of(&opened), Ok(Backing::Storage)) => opened.metadata(),
        Ok(_) => return None,
        // Placing it says why it cannot be read.
        Err(_) => std::fs::metadata(&file.path),
    };
    metadata.ok().map(|file| (file.dev(), file.ino()))
}

fn request(rule: &Rule, nodes: &[u32], threads: &[NodeId]) -> Request {
    let policy = Policy::Rule {
        rule: Box::new(rule.clone()),
        threads: threads.to_vec(),
    };
    Request {
        policy: Some(policy),
        nodes: nodes.to_vec(),
        piece: None,
        drop: false,
        load: true,
        dry_run: false,
    }
}

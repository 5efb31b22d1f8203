//! Files that rules name: their page cache is put on nodes before the program starts, as it follows no policy of a
//! program's mapping.

use nodewise_files::pieces::Policy;
use nodewise_files::request::{FilePlaced, Request};
use nodewise_files::{Found, gather};
use nodewise_linux::page_cache::Backing;
use nodewise_machine::NodeId;
use nodewise_placement::{Distribution, Named, Rule};
use nodewise_profile::ObjectKind;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

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
    /// The files that the rules name, of each rule that names files. A file goes by the first rule that names it.
    pub(crate) fn of(rules: &[Rule], nodes: &[u32], threads: &[NodeId]) -> Vec<Self> {
        let mut taken = Vec::new();
        let with_files = rules.iter().enumerate().filter_map(|(index, rule)| {
            let name = rule
                .object
                .name
                .as_ref()
                .filter(|_| rule.object.kind == ObjectKind::File)?;
            if rule.distribution == Distribution::FirstTouch && rule.runs.is_empty() {
                return None;
            }
            let paths = glob::glob(&Named::new(name)?.path()?).ok()?;
            let paths: Vec<PathBuf> = paths.flatten().filter(|path| path.is_file()).collect();
            let mut found = gather(&paths, &mut Vec::new()).unwrap_or_default();
            found.retain(|file| !taken.contains(&file.path));
            taken.extend(found.iter().map(|file| file.path.clone()));
            Some(Self {
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
        let place = |file: &Found| self.request_for(file).carry_out(file, progress);
        let each = self.found.iter();
        each.map(|file| place(file).map_err(|e| format!("{e:#}")))
            .collect()
    }

    /// What to do with a file. Shared memory is dealt page by page, as the preload does where a program maps it.
    fn request_for(&self, file: &Found) -> Request {
        let mut request = self.request.clone();
        let opened = file
            .open()
            .and_then(|opened| Ok((Backing::of(&opened)?, opened.metadata()?.ino())));
        if let (Ok((Backing::Memory, inode)), Some(Policy::Rule { phase, .. })) =
            (opened, &mut request.policy)
        {
            *phase = inode;
            request.piece = Some(1);
        }
        request
    }
}

fn request(rule: &Rule, nodes: &[u32], threads: &[NodeId]) -> Request {
    let policy = Policy::Rule {
        rule: Box::new(rule.clone()),
        threads: threads.to_vec(),
        phase: 0,
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

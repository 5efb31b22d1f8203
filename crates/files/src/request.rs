//! A request to put files on nodes, and its result for each file.

use crate::pieces::{Pieces, Policy};
use crate::placing::{Job, Placed};
use crate::residence::Residence;
use anyhow::{Context, bail};
use nodewise_linux::Host;
use nodewise_linux::file_pages::{Backing, drop_cache};
use nodewise_linux::pages::Scope;
use nodewise_linux::process::Capability;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

/// What to do with files.
#[derive(Clone, Debug)]
pub struct Request {
    /// Where their pages go; `None` only drops them.
    pub policy: Option<Policy>,
    /// The nodes to use, by the kernel's numbers.
    pub nodes: Vec<u32>,
    /// Pages of a piece, if the user chose.
    pub piece: Option<u64>,
    /// Whether the page cache of the files is dropped first.
    pub drop: bool,
    /// Whether what is not in memory is read.
    pub load: bool,
    /// Whether nothing is changed.
    pub dry_run: bool,
}

/// What became of a file. `files --policy --json` serialises it without changes.
#[derive(Debug, Serialize)]
pub struct FilePlaced {
    /// The path, as it was given.
    pub path: PathBuf,
    /// Size of the file in bytes.
    pub size: u64,
    /// In memory before anything was done, bytes.
    pub before: Residence,
    /// In memory after the cache was dropped, bytes; `None` if it was not.
    pub after_drop: Option<u64>,
    /// Pages of a piece; all pages of a piece are on one node.
    pub piece_pages: Option<u64>,
    /// What became of its pages; `None` if no policy was named.
    pub placed: Option<Placed>,
}

impl Request {
    /// Carries it out for one file. `progress` is called with further bytes that are done.
    ///
    /// # Errors
    /// The file cannot be opened or read, it is in huge pages, or the policy does not fit the nodes.
    pub fn carry_out(&self, path: &Path, progress: &(dyn Fn(u64) + Sync)) -> anyhow::Result<FilePlaced> {
        let named = || format!("cannot place {}", path.display());
        let file = File::open(path).with_context(named)?;
        let size = file.metadata().with_context(named)?.len();
        let backing = Backing::of(&file).with_context(named)?;
        match backing {
            Backing::HugePages => bail!(
                "{}: lies in huge pages (hugetlbfs), which are placed when they are allocated",
                path.display()
            ),
            Backing::Memory if self.drop => bail!(
                "{}: lies in memory alone, so there is nothing it could be read from again; leave --drop out",
                path.display()
            ),
            _ => {}
        }
        let before = Residence::of(&file, size, u64::MAX, &mut |_| ()).with_context(named)?;
        let after_drop = match (self.drop, self.dry_run) {
            (true, false) => {
                drop_cache(&file).with_context(|| format!("cannot drop {}", path.display()))?;
                Some(Residence::of(&file, size, u64::MAX, &mut |_| ())?.in_memory())
            }
            // What processes map cannot be dropped.
            (true, true) => Some(before.nodes.values().map(|on| on.mapped).sum()),
            _ => None,
        };
        let pieces = self
            .policy
            .as_ref()
            .map(|policy| self.pieces(policy, size))
            .transpose()?;
        let place = |pieces: &Pieces| {
            if let (true, true, Some(left)) = (self.dry_run, self.load, after_drop) {
                return Ok(anew(pieces, size, left));
            }
            let job = Job {
                file: &file,
                size,
                pieces,
                load: self.load && backing == Backing::Storage,
                scope: scope(),
                shared_memory: backing == Backing::Memory,
                dry_run: self.dry_run,
            };
            job.carry_out(progress).with_context(named)
        };
        Ok(FilePlaced {
            path: path.to_owned(),
            size,
            before,
            after_drop,
            piece_pages: pieces.as_ref().map(|p| p.piece),
            placed: pieces.as_ref().map(place).transpose()?,
        })
    }

    /// How the policy deals a file of this size.
    ///
    /// # Errors
    /// The policy does not fit the nodes.
    pub fn pieces(&self, policy: &Policy, size: u64) -> anyhow::Result<Pieces> {
        Pieces::of(policy, size.div_ceil(4096), &self.nodes, self.piece)
    }
}

/// What loading a file anew does, of which `left` bytes cannot be dropped.
fn anew(pieces: &Pieces, size: u64, left: u64) -> Placed {
    let mut wanted = BTreeMap::new();
    (0..size.div_ceil(4096)).for_each(|page| *wanted.entry(pieces.node(page)).or_default() += 4096);
    Placed {
        loaded: size.saturating_sub(left),
        wanted,
        ..Placed::default()
    }
}

/// Pages that other processes map too are moved if this process may.
fn scope() -> Scope {
    match Host::default().own_status() {
        Ok(status) if status.has(Capability::SysNice) => Scope::Shared,
        _ => Scope::Exclusive,
    }
}

//! A request to put files on nodes, and its result for each file.

use crate::entry::explained;
use crate::gather::Found;
use crate::pieces::{HUGE_PIECE, Pieces, Policy};
use crate::placing::{Job, Placed};
use crate::residence::Residence;
use anyhow::{Context, bail};
use nodewise_analysis::figures::bytes;
use nodewise_linux::Host;
use nodewise_linux::file_pages::FilePages;
use nodewise_linux::mempolicy::Policy as MemoryPolicy;
use nodewise_linux::page_cache::{Backing, drop_cache};
use nodewise_linux::pages::Scope;
use nodewise_linux::process::Capability;
use serde::Serialize;
use std::fs::File;
use std::io;
use std::path::PathBuf;

/// Stretches of a shared memory object that get a policy of their own; the kernel keeps each in a tree of the object.
const MAX_STRETCHES: u64 = 4096;

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
    /// The path, as it was given or below the folder that was.
    pub path: PathBuf,
    /// Size of the file in bytes.
    pub size: u64,
    /// In memory before anything was done.
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
    /// The file cannot be opened or read, this user does not learn what of it is in memory, its memory cannot be placed, or
    /// there is not enough memory to load it.
    pub fn carry_out(&self, found: &Found, progress: &(dyn Fn(u64) + Sync)) -> anyhow::Result<FilePlaced> {
        let named = || format!("cannot place {}", found.path.display());
        let file = found.open().map_err(explained).with_context(named)?;
        let size = file.metadata().with_context(named)?.len();
        let backing = Backing::of(&file).with_context(named)?;
        self.check(backing).with_context(named)?;
        let before = Residence::of(&file, size, u64::MAX)
            .map_err(explained)
            .with_context(named)?;
        self.check_room(size, &before).with_context(named)?;
        let after_drop = self.drop_first(&file, size, &before).with_context(named)?;
        let job = |piece| self.place(&file, size, (backing, piece), progress);
        let (piece_pages, placed) = match &self.policy {
            None => (None, None),
            Some(Policy::FirstTouch) => (None, Some(self.forget_policy(&file, size).with_context(named)?)),
            Some(_) if self.dry_run && self.load && after_drop.is_some() => {
                (None, Some(anew(size, after_drop.unwrap_or_default())))
            }
            Some(_) => {
                let (piece, placed) = job(None).map_err(explained).with_context(named)?;
                // Pages that should be apart and are together, without a cause: a large page of the page cache.
                let together = placed.stayed.is_empty() && placed.in_place < placed.nodes.values().sum();
                match together && !self.dry_run && self.piece.is_none() && piece < HUGE_PIECE {
                    true => {
                        let (piece, again) = job(Some(HUGE_PIECE)).map_err(explained).with_context(named)?;
                        let moved = placed.moved.max(again.moved);
                        (Some(piece), Some(Placed { moved, ..again }))
                    }
                    false => (Some(piece), Some(placed)),
                }
            }
        };
        Ok(FilePlaced {
            path: found.path.clone(),
            size,
            before,
            after_drop,
            piece_pages,
            placed,
        })
    }

    /// Refuses what such memory cannot do.
    fn check(&self, backing: Backing) -> anyhow::Result<()> {
        match backing {
            Backing::HugePages => {
                bail!("it lies in huge pages (hugetlbfs), which are placed when they are allocated")
            }
            Backing::Device => bail!(
                "it lies on a file system that maps the device's own memory (dax), which nothing moves; without that mount option, \
                 or on another file system, it has pages in the page cache"
            ),
            Backing::Fixed => bail!("it lies on a ramfs, whose pages can neither be moved nor dropped"),
            Backing::Memory if self.drop => {
                bail!("it lies in memory alone and could not be read again; leave --drop out")
            }
            Backing::Storage if self.policy == Some(Policy::FirstTouch) => {
                bail!("--policy first-touch has shared memory forget its policy; files on a disk have none")
            }
            _ => Ok(()),
        }
    }

    /// Refuses to load more than memory holds, which would drive out what others need, and then the file itself.
    fn check_room(&self, size: u64, before: &Residence) -> anyhow::Result<()> {
        let to_load = size.saturating_sub(before.in_memory());
        match Host::default().available_memory() {
            Some(room) if self.load && to_load > room => bail!(
                "{} of it are not in memory yet, and only {} are available to load it",
                bytes(to_load),
                bytes(room)
            ),
            _ => Ok(()),
        }
    }

    /// Drops the file from memory if that is asked for; returns the bytes that stay.
    fn drop_first(&self, file: &File, size: u64, before: &Residence) -> io::Result<Option<u64>> {
        match (self.drop, self.dry_run) {
            (false, _) => Ok(None),
            // What processes map cannot be dropped.
            (true, true) => Ok(Some(before.nodes.values().map(|on| on.mapped).sum())),
            (true, false) => {
                drop_cache(file)?;
                Residence::of(file, size, u64::MAX).map(|left| Some(left.in_memory()))
            }
        }
    }

    /// Deals the file to the nodes, and returns the pages of a piece with what became of it.
    fn place(
        &self,
        file: &File,
        size: u64,
        (backing, piece): (Backing, Option<u64>),
        progress: &(dyn Fn(u64) + Sync),
    ) -> io::Result<(u64, Placed)> {
        let policy = self.policy.as_ref().unwrap_or(&Policy::FirstTouch);
        let in_memory = backing == Backing::Memory;
        let mut pieces = self.pieces(policy, size, piece).map_err(io::Error::other)?;
        // A shared memory object keeps a policy for each piece, for MAX_STRETCHES of them at most.
        let least = size.div_ceil(4096).div_ceil(MAX_STRETCHES).next_power_of_two();
        if in_memory && self.piece.is_none() && pieces.piece < least {
            pieces = self.pieces(policy, size, Some(least)).map_err(io::Error::other)?;
        }
        // Before anything moves: what is allocated meanwhile goes to its node as well.
        let policy_kept = in_memory && !self.dry_run && keep_policy(file, size, &pieces).is_ok();
        let job = Job {
            file,
            size,
            pieces: &pieces,
            load: self.load && !in_memory,
            scope: scope(),
            dry_run: self.dry_run,
        };
        let placed = job.carry_out(progress)?;
        Ok((
            pieces.piece,
            Placed {
                policy_kept,
                ..placed
            },
        ))
    }

    /// How the policy deals a file of this size.
    ///
    /// # Errors
    /// The policy does not fit the nodes.
    pub fn pieces(&self, policy: &Policy, size: u64, piece: Option<u64>) -> anyhow::Result<Pieces> {
        Pieces::of(policy, size.div_ceil(4096), &self.nodes, self.piece.or(piece))
    }

    /// Has a shared memory object forget its policy; its pages stay where they are.
    fn forget_policy(&self, file: &File, size: u64) -> io::Result<Placed> {
        if !self.dry_run && size > 0 {
            let pages = FilePages::map(file, 0, size)?;
            pages.set_policy(0..pages.count(), &MemoryPolicy::Local)?;
        }
        Ok(Placed::default())
    }
}

/// Has a shared memory object keep the policy, stretch by stretch.
fn keep_policy(file: &File, size: u64, pieces: &Pieces) -> io::Result<()> {
    let count = size.div_ceil(4096);
    if pieces.stretches(count).take(MAX_STRETCHES as usize + 1).count() > MAX_STRETCHES as usize {
        return Err(io::ErrorKind::QuotaExceeded.into());
    }
    let pages = FilePages::map(file, 0, size)?;
    for (stretch, node) in pieces.stretches(count) {
        let stretch = stretch.start as usize..stretch.end as usize;
        pages.set_policy(stretch, &MemoryPolicy::Preferred([node].into_iter().collect()))?;
    }
    Ok(())
}

/// What loading a file anew does, of which `left` bytes cannot be dropped.
fn anew(size: u64, left: u64) -> Placed {
    Placed {
        loaded: size.saturating_sub(left),
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

//! Writes a profile while the program runs.

use crate::accesses;
use crate::error::{Error, ErrorKind, Result};
use crate::manifest::{FILE, Group, Manifest};
use crate::table::{TableWriter, partial};
use crate::{tables, validate};
use nodewise_profile::{Access, Meta, Profile, Slice, SliceId};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// Rows of one row group, the unit that is buffered and decoded: 28 MiB in memory.
const GROUP_ROWS: usize = 1 << 19;
/// Row groups in a file, after which the next one is begun.
const FILE_GROUPS: u64 = 4;

/// Writes a profile slice by slice in bounded memory.
///
/// [`Writer::checkpoint`] makes everything written so far readable, [`Writer::finish`] completes the profile; dropping
/// the writer leaves the last checkpoint.
pub struct Writer {
    folder: PathBuf,
    manifest: Manifest,
    slices: Vec<Slice>,
    /// Rows that are not written yet: fewer than make a row group.
    pending: Vec<Access>,
    group_rows: usize,
    open: Option<(TableWriter, SliceId)>,
    /// Files that are complete and will not change.
    closed: Vec<Group>,
    checkpoints: u32,
}

impl Writer {
    /// Creates the folder of a new profile.
    ///
    /// # Errors
    /// `folder` exists already; with `force`, it is no profile; or something cannot be written.
    pub fn create(folder: &Path, meta: &Meta, force: bool) -> Result<Self> {
        make_room(folder, force)?;
        std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, "create", &e))?;
        let manifest = Manifest::new(meta);
        manifest.write(folder, true)?;
        Ok(Self {
            folder: folder.to_owned(),
            manifest,
            slices: Vec::new(),
            pending: Vec::new(),
            group_rows: GROUP_ROWS,
            open: None,
            closed: Vec::new(),
            checkpoints: 0,
        })
    }

    /// Sets the number of rows that are buffered for a row group; 2¹⁹ by default.
    #[must_use]
    pub fn with_group_rows(self, rows: NonZeroUsize) -> Self {
        Self {
            group_rows: rows.get(),
            ..self
        }
    }

    /// Appends the next slice with all its rows, in any order. Sets their `slice` field.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn slice(&mut self, slice: Slice, rows: &[Access]) -> Result<SliceId> {
        let id = SliceId::from_index(self.slices.len());
        self.slices.push(slice);
        let mut rows: Vec<Access> = rows.iter().map(|a| Access { slice: id, ..*a }).collect();
        let key = |a: &Access| (a.page, a.thread, a.region);
        if !rows.is_sorted_by_key(key) {
            rows.sort_unstable_by_key(key);
        }
        let mut rest = &rows[..];
        while !rest.is_empty() {
            let room = self.group_rows - self.pending.len();
            let (part, later) = rest.split_at(rest.len().min(room));
            self.pending.extend_from_slice(part);
            rest = later;
            if self.pending.len() == self.group_rows {
                self.flush()?;
            }
        }
        Ok(id)
    }

    /// Makes everything so far readable, in case nothing follows. `profile` holds what is known by now; its slices are
    /// replaced by those that were appended. Small tables and incomplete row groups are rewritten at each checkpoint,
    /// so every access file but the last holds at least a whole row group, however many checkpoints there are. What the next
    /// checkpoint replaces is not forced to the disk, as programs may wait meanwhile: it survives our end, not the host's.
    ///
    /// # Errors
    /// `profile` contradicts itself, or a file cannot be written.
    pub fn checkpoint(&mut self, profile: &Profile) -> Result<()> {
        let suffix = format!("-{:04}", self.checkpoints);
        self.checkpoints += 1;
        self.publish(profile, &suffix, false)
    }

    /// Completes the profile. `profile.meta` replaces the metadata given to [`Writer::create`].
    ///
    /// # Errors
    /// As [`Writer::checkpoint`].
    pub fn finish(mut self, profile: &Profile) -> Result<()> {
        self.publish(profile, "", true)
    }

    /// Writes tables and rows, then the manifest that lists them, and then removes the files that it no longer lists.
    fn publish(&mut self, profile: &Profile, suffix: &str, complete: bool) -> Result<()> {
        validate::tables(profile, &self.slices).map_err(Error::invalid)?;
        let rest = if complete {
            self.flush().map(|()| None)
        } else {
            self.tail(suffix)
        }?;
        self.close_file()?;
        let accesses = self.closed.iter().cloned().chain(rest).collect();
        let tables = tables::write(&self.folder, suffix, profile, &self.slices, complete)?;
        let old_tables = std::mem::replace(&mut self.manifest.tables, tables);
        let old_accesses = std::mem::replace(&mut self.manifest.accesses, accesses);
        self.manifest.meta = (&profile.meta).into();
        self.manifest.complete = complete && profile.meta.truncated.is_none();
        self.manifest.write(&self.folder, complete)?;
        let named = |file: &str| self.manifest.accesses.iter().any(|g| g.entry.file == file);
        let old_accesses = old_accesses.iter().map(|g| &g.entry).filter(|e| !named(&e.file));
        for entry in old_tables.values().chain(old_accesses) {
            // A file that cannot be removed is harmless: the manifest does not list it.
            let _ = std::fs::remove_file(self.folder.join(&entry.file));
        }
        Ok(())
    }

    /// Writes the rows that do not fill a row group to a file of their own, which lasts until the next checkpoint.
    fn tail(&self, suffix: &str) -> Result<Option<Group>> {
        let Some(first) = self.pending.first() else {
            return Ok(None);
        };
        let name = format!("accesses-last{suffix}.parquet");
        let mut file = TableWriter::create(&self.folder, &name, accesses::SCHEMA)?;
        file.append(&accesses::columns(&self.pending))?;
        Ok(Some(Group {
            entry: file.finish(false)?,
            first_slice: first.slice.0,
        }))
    }

    /// Moves the pending rows into the open file, and closes it when it is large.
    fn flush(&mut self) -> Result<()> {
        let Some(first) = self.pending.first() else {
            return Ok(());
        };
        if self.open.is_none() {
            let name = format!("accesses-{:04}.parquet", self.closed.len());
            self.open = Some((
                TableWriter::create(&self.folder, &name, accesses::SCHEMA)?,
                first.slice,
            ));
        }
        let mut full = false;
        if let Some((file, _)) = &mut self.open {
            file.append(&accesses::columns(&self.pending))?;
            full = file.rows() >= FILE_GROUPS * self.group_rows as u64;
        }
        self.pending.clear();
        if full { self.close_file() } else { Ok(()) }
    }

    fn close_file(&mut self) -> Result<()> {
        if let Some((file, first)) = self.open.take() {
            self.closed.push(Group {
                entry: file.finish(true)?,
                first_slice: first.0,
            });
        }
        Ok(())
    }
}

/// Refuses an existing folder; with `force`, empties it if it is a profile. The folder itself stays: it may be a
/// symbolic link.
fn make_room(folder: &Path, force: bool) -> Result<()> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(e) if e.kind() == std::io::ErrorKind::NotADirectory => {
            return Err(occupied(folder, NO_PROFILE));
        }
        Err(e) => return Err(Error::io(folder, "read", &e)),
    };
    let mut names: Vec<_> = entries.filter_map(|e| e.ok().map(|e| e.file_name())).collect();
    // The manifest is removed last, so that the folder is still a profile if this is interrupted.
    names.sort_unstable_by_key(|name| name == FILE);
    if names.is_empty() {
        return Ok(());
    }
    if !folder.join(FILE).exists() && !is_failed(folder) {
        return Err(occupied(folder, NO_PROFILE));
    }
    if let Some(foreign) = names.iter().find(|n| *n != RAW && !is_ours(&n.to_string_lossy())) {
        let foreign = foreign.to_string_lossy();
        let remedy = format!("it also holds `{foreign}`, which is not the profile's; choose another with -o");
        return Err(occupied(folder, &remedy));
    }
    if !force {
        return Err(occupied(
            folder,
            "choose another with -o, or replace it with --force",
        ));
    }
    names.iter().try_for_each(|name| remove(&folder.join(name)))
}

/// Whether the folder is left over from a recording that could not write its manifest: the disk was full, or it was
/// killed before.
fn is_failed(folder: &Path) -> bool {
    folder.join(partial(FILE)).is_file() || folder.join(RAW).join("control").is_file()
}

const RAW: &str = "raw";
const NO_PROFILE: &str = "it is no profile and stays; choose another with -o";

fn remove(path: &Path) -> Result<()> {
    let removed = match std::fs::symlink_metadata(path) {
        Ok(there) if there.is_dir() => std::fs::remove_dir_all(path),
        _ => std::fs::remove_file(path),
    };
    removed.map_err(|e| Error::io(path, "replace", &e))
}

fn is_ours(name: &str) -> bool {
    let name = name.strip_suffix(&partial("")).unwrap_or(name);
    name == FILE || name.ends_with(".parquet")
}

fn occupied(folder: &Path, remedy: &str) -> Error {
    Error::new(
        ErrorKind::Exists,
        format!("{}: exists already; {remedy}", folder.display()),
    )
}

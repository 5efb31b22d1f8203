//! Reads a profile from disk and checks it.

use crate::accesses;
use crate::error::{Error, ErrorKind, Result};
use crate::manifest::{Group, Manifest, MetaOnDisk};
use crate::table::Table;
use crate::{bounds, tables, validate};
use nodewise_profile::{Access, AccessSource, Meta, Profile, TakenPart};
use std::path::{Path, PathBuf};

/// How often a profile is opened anew because its recorder has written another checkpoint meanwhile.
const OPENINGS: usize = 20;
/// Rows handed to a visitor at a time: few enough to stay in the cache.
const BATCH_ROWS: usize = 1 << 14;

/// An opened profile: the small tables in memory, the accesses streamed from disk.
#[derive(Debug)]
pub struct Reader {
    folder: PathBuf,
    profile: Profile,
    groups: Vec<Group>,
    /// The last access file of a recording that has not ended: the next checkpoint removes it, so it is read when opened.
    tail: Option<Table>,
    /// Number of histogram cells for which there is memory. It is determined once, so that memory used by a first pass
    /// over the accesses does not make a second pass fail.
    room: u64,
    /// Number of recorded slices, including those of a lost file.
    recorded: usize,
}

impl Reader {
    /// Opens a profile. A truncated one is opened up to its last complete slice, and `meta.truncated` tells why.
    ///
    /// ```
    /// # use nodewise_profile::{Access, AccessSource, Meta, Object, Profile, Region, Site, Slice, Thread};
    /// # use nodewise_store::{Reader, Writer};
    /// # let folder = std::env::temp_dir().join(format!("nodewise-reader-{}", std::process::id()));
    /// # let mut profile = Profile { objects: vec![Object::default()], threads: vec![Thread::default()], ..Profile::default() };
    /// # (profile.regions, profile.sites) = (vec![Region::default()], vec![Site::default()]);
    /// # profile.meta.command = vec!["./solver".into()];
    /// # let mut writer = Writer::create(&folder, &Meta::default(), false)?;
    /// # writer.slice(Slice::default(), &[Access { len: 4, reads: 25, ..Access::default() }])?;
    /// # writer.finish(&profile)?;
    /// let reader = Reader::open(&folder)?;
    /// assert_eq!(reader.profile().program(), "solver");
    /// let mut reads = 0;
    /// reader.visit(&mut |rows| reads += rows.iter().map(|row| row.reads * u64::from(row.len)).sum::<u64>())?;
    /// assert_eq!(reads, 100);
    /// # std::fs::remove_dir_all(&folder).unwrap();
    /// # Ok::<(), nodewise_store::Error>(())
    /// ```
    /// # Errors
    /// There is no profile, it is damaged, or a newer version wrote it.
    pub fn open(folder: &Path) -> Result<Self> {
        for _ in 1..OPENINGS {
            let manifest = Manifest::read(folder)?;
            let (tables, complete) = (manifest.tables.clone(), manifest.complete);
            let listed = manifest.accesses.len();
            let found = Self::at_checkpoint(folder, manifest);
            let whole = |reader: &Self| {
                complete || reader.groups.len() == listed && (listed == 0 || reader.tail.is_some())
            };
            if found.as_ref().is_ok_and(whole) || Manifest::read(folder)?.tables == tables {
                return found;
            }
        }
        Self::at_checkpoint(folder, Manifest::read(folder)?)
    }

    /// Opens the files that a manifest lists. A recorder removes them at its next checkpoint.
    fn at_checkpoint(folder: &Path, manifest: Manifest) -> Result<Self> {
        if manifest.tables.is_empty() {
            let message = "the recording ended before its first slice; record again";
            return Err(Error::new(
                ErrorKind::Missing,
                format!("{}: {message}", folder.display()),
            ));
        }
        let mut profile = tables::read(folder, &manifest.tables)?;
        profile.meta = known_meta(manifest.meta, folder)?;
        validate::tables(&profile, &profile.slices).map_err(|what| Error::damaged(folder, what))?;
        if !manifest.complete {
            mark_truncated(&mut profile, "the recording goes on, or its recorder was stopped");
        }
        let mut reader = Self {
            folder: folder.to_owned(),
            recorded: profile.slices.len(),
            profile,
            groups: manifest.accesses,
            tail: None,
            room: bounds::cells_here(),
        };
        reader.drop_missing_tail()?;
        if !manifest.complete {
            // One that is damaged is reported by those who read it.
            let last = reader
                .groups
                .last()
                .map(|group| Table::open(folder, &group.entry));
            reader.tail = last.and_then(Result::ok);
        }
        Ok(reader)
    }

    /// Metadata of a recording, even of one that ended before its first slice.
    ///
    /// # Errors
    /// As [`Reader::open`].
    pub fn meta(folder: &Path) -> Result<Meta> {
        known_meta(Manifest::read(folder)?.meta, folder)
    }

    /// Whether the recording has ended, completely or cut short. If not, it may still be running.
    ///
    /// # Errors
    /// As [`Reader::meta`].
    pub fn ended(folder: &Path) -> Result<bool> {
        let manifest = Manifest::read(folder)?;
        Ok(manifest.complete || known_meta(manifest.meta, folder)?.truncated.is_some())
    }

    /// The profile without its accesses.
    #[must_use]
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Replaces the profile's record of which threads took which parts in other runs.
    pub fn set_taken(&mut self, taken: Vec<TakenPart>) {
        self.profile.taken = taken;
        self.profile.order_may_be_the_same = true;
    }

    /// Returns the small tables, when the accesses are no longer needed.
    #[must_use]
    pub fn into_profile(self) -> Profile {
        self.profile
    }

    /// The folder that the profile was opened from.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Number of rows of the access table.
    #[must_use]
    pub fn rows(&self) -> u64 {
        let rows = self.groups.iter().map(|g| g.entry.rows);
        rows.fold(0, u64::saturating_add)
    }

    /// Accepts that the last access file is missing or short, as in a copy that was interrupted: the profile then ends
    /// with the last slice before it.
    fn drop_missing_tail(&mut self) -> Result<()> {
        let whole = |g: &Group| {
            let size = std::fs::metadata(self.folder.join(&g.entry.file)).map(|m| m.len());
            size.is_ok_and(|n| n >= g.entry.bytes)
        };
        let Some(lost) = self.groups.iter().position(|g| !whole(g)) else {
            return Ok(());
        };
        let Group { entry, first_slice } = self.groups[lost].clone();
        if lost + 1 < self.groups.len() || first_slice == 0 {
            let path = self.folder.join(&entry.file);
            return Err(Error::damaged(&path, "it is missing or cut short"));
        }
        self.groups.truncate(lost);
        self.profile.slices.truncate(first_slice as usize);
        let slices = self.profile.slices.len();
        self.profile.first_touches.retain(|t| t.slice.index() < slices);
        self.profile.migrations.retain(|m| m.slice.index() < slices);
        mark_truncated(
            &mut self.profile,
            &format!("{} is missing or cut short", entry.file),
        );
        Ok(())
    }

    fn visit_table(&self, table: &Table, check: &mut validate::Rows<'_>, visit: Visit<'_>) -> Result<()> {
        table.check_density(bounds::ROWS)?;
        let mut batch = Vec::with_capacity(BATCH_ROWS);
        for index in 0..table.groups() {
            if table.group_rows(index) > bounds::GROUP_ROWS {
                let rows = table.group_rows(index);
                return Err(Error::damaged(
                    table.path(),
                    format!("a row group of {rows} rows"),
                ));
            }
            let columns = table.group(index, accesses::SCHEMA)?;
            let rows = columns[0].len();
            for start in (0..rows).step_by(BATCH_ROWS) {
                accesses::rows(&columns, start..rows.min(start + BATCH_ROWS), &mut batch);
                self.drop_incomplete(&mut batch);
                let checked = batch.iter().try_for_each(|row| check.check(row));
                checked.map_err(|what| Error::damaged(table.path(), what))?;
                if !batch.is_empty() {
                    visit(&batch);
                }
            }
        }
        Ok(())
    }

    /// Removes the rows of slices that [`Self::drop_missing_tail`] dropped: an earlier file may hold the first rows of
    /// a slice whose remaining rows were in the lost one. Rows with a slice number beyond the recorded ones are kept,
    /// so that validation refuses them.
    fn drop_incomplete(&self, batch: &mut Vec<Access>) {
        let lost = self.profile.slices.len()..self.recorded;
        if !lost.is_empty() && batch.last().is_some_and(|a| a.slice.index() >= lost.start) {
            batch.retain(|a| !lost.contains(&a.slice.index()));
        }
    }
}

type Visit<'a> = &'a mut dyn FnMut(&[Access]);

fn known_meta(meta: MetaOnDisk, folder: &Path) -> Result<Meta> {
    meta.into_meta().map_err(|what| Error::damaged(folder, what))
}

fn mark_truncated(profile: &mut Profile, why: &str) {
    profile.meta.truncated.get_or_insert_with(|| why.to_owned());
}

impl AccessSource for Reader {
    type Error = Error;

    fn visit(&self, visit: &mut dyn FnMut(&[Access])) -> Result<()> {
        let mut check = validate::Rows::new(&self.profile, self.room);
        for (index, group) in self.groups.iter().enumerate() {
            let tail = self.tail.as_ref().filter(|_| index + 1 == self.groups.len());
            match tail {
                Some(table) => self.visit_table(table, &mut check, visit),
                None => self.visit_table(&Table::open(&self.folder, &group.entry)?, &mut check, visit),
            }?;
        }
        Ok(())
    }
}

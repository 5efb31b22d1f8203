//! Reads all process images of a recording slice by slice into a profile.

use crate::checkpoints::Checkpoints;
use crate::coverage::Samples;
use crate::error::Error;
use crate::image::Image;
use crate::tables::Tables;
use crate::{objects, rows};
use nodewise_analysis::figures::plural;
use nodewise_linux::child::CpuTime;
use nodewise_linux::perf::Sampler;
use nodewise_profile::{Access, Profile, Slice, SliceId};
use nodewise_store::Writer;
use std::collections::HashSet;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The pause after a checkpoint, at least, by the time that it took: a program that asks for slices waits for at most a tenth of its time.
const CHECKPOINT_PAUSE: u32 = 10;

/// Largest number of images: page numbers have 16 bits for it.
const MAX_IMAGES: usize = 1 << 16;

/// A recording in progress.
pub struct Recording {
    raw: PathBuf,
    writer: Writer,
    tables: Tables,
    sampler: Option<Sampler>,
    is_sampled: bool,
    samples: Samples,
    images: Vec<Image>,
    known: HashSet<OsString>,
    counted: usize,
    accesses: u64,
    dropped: u64,
    /// For images that have ended: number of threads whose counters could not be read, and why.
    unread: Vec<(usize, String)>,
    last_end: u64,
    checkpoints: Checkpoints,
}

impl Recording {
    /// Reads the images below `raw` into `writer`, and samples of their CPU time from `sampler`.
    #[must_use]
    pub fn new(raw: &Path, writer: Writer, sampler: Option<Sampler>) -> Self {
        Self {
            raw: raw.to_owned(),
            writer,
            tables: Tables::default(),
            is_sampled: sampler.is_some(),
            sampler,
            samples: Samples::default(),
            images: Vec::new(),
            known: HashSet::new(),
            counted: 0,
            accesses: 0,
            dropped: 0,
            unread: Vec::new(),
            last_end: 0,
            checkpoints: Checkpoints::new(CHECKPOINT_PAUSE),
        }
    }

    /// Ends a slice at `now`, nanoseconds since the start.
    ///
    /// # Errors
    /// The profile cannot be written, or a raw file cannot be read.
    pub fn cut(&mut self, now: u64) -> Result<(), Error> {
        self.find_images()?;
        let slice = SliceId::from_index(self.slices());
        let mut rows: Vec<Access> = Vec::new();
        for image in self.images.iter_mut().filter(|i| !i.is_closed()) {
            let ended = !runs(image.pid);
            let ordinal = u16::try_from(self.counted).unwrap_or(u16::MAX);
            let was_counted = image.ordinal.is_some();
            image
                .advance(&mut self.tables, slice, ordinal, &mut rows)
                .map_err(|e| Error::raw(&image.folder, &e))?;
            self.counted += usize::from(!was_counted && image.ordinal.is_some());
            if ended {
                self.unread
                    .extend(image.unread().map(|(n, why)| (n, why.to_owned())));
                self.dropped += image.dropped();
                image.close();
            }
        }
        self.images.retain(|i| i.ordinal.is_some() || !i.is_closed());
        rows::sort(&mut rows);
        self.accesses += rows.iter().map(Access::total).sum::<u64>();
        let ended = Slice {
            start_ns: self.last_end,
            end_ns: now.max(self.last_end),
        };
        self.writer.slice(ended, &rows)?;
        self.last_end = ended.end_ns;
        self.tables.profile.slices.push(ended);
        Ok(())
    }

    /// Takes the samples of CPU time since the last call; call it often, or samples are lost.
    pub fn take_samples(&mut self) {
        if let Some(sampler) = &mut self.sampler {
            self.samples.take(sampler, &mut self.tables.library);
        }
    }

    /// Whether CPU time is sampled.
    #[must_use]
    pub fn samples_permitted(&self) -> bool {
        self.is_sampled
    }

    /// Takes the remaining samples and computes coverage. What is started later is not sampled.
    pub fn finish_samples(&mut self, used: CpuTime) {
        self.take_samples();
        self.samples.end(used);
        self.sampler = None;
        self.tables.profile.meta.coverage = self.samples.coverage(&mut self.tables.library);
    }

    /// Accesses counted so far by all processes.
    #[must_use]
    pub fn accesses(&self) -> u64 {
        self.accesses
    }

    /// Accesses so far that could not be counted.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped + self.images.iter().map(Image::dropped).sum::<u64>()
    }

    /// Number of slices so far.
    #[must_use]
    pub fn slices(&self) -> usize {
        self.tables.profile.slices.len()
    }

    /// Number of process images that made accesses.
    #[must_use]
    pub fn processes(&self) -> usize {
        self.counted
    }

    /// Whether any program wrote a log, with accesses or without.
    #[must_use]
    pub fn any_announced(&self) -> bool {
        !self.known.is_empty()
    }

    /// Number of counting processes that still ran at the end of the last slice; their later accesses are in no
    /// profile.
    #[must_use]
    pub fn running(&self) -> usize {
        let open = self
            .images
            .iter()
            .filter(|i| i.ordinal.is_some() && !i.is_closed());
        open.map(|i| i.pid).collect::<HashSet<u32>>().len()
    }

    /// Describes which raw files could not be read, in a sentence.
    #[must_use]
    pub fn unread(&self) -> Option<String> {
        let alive = self
            .images
            .iter()
            .filter(|i| !i.is_closed())
            .filter_map(Image::unread);
        let all = self.unread.iter().map(|u| (u.0, u.1.as_str())).chain(alive);
        let (threads, why) = all.reduce(|a, b| (a.0 + b.0, a.1))?;
        Some(format!(
            "counters of {} could not be read: {why}",
            plural(threads, "thread")
        ))
    }

    /// The metadata and tables that will be written.
    pub fn profile_mut(&mut self) -> &mut Profile {
        &mut self.tables.profile
    }

    /// Makes what was recorded so far readable: by others meanwhile, and afterwards in case we are killed. Does nothing, and returns
    /// false, if the last time was recent, by what it took: requests for slices wait meanwhile.
    ///
    /// # Errors
    /// The profile cannot be written.
    pub fn checkpoint(&mut self) -> Result<bool, Error> {
        let Some(begun) = self.checkpoints.begin() else {
            return Ok(false);
        };
        self.complete_tables();
        let meta = &mut self.tables.profile.meta;
        meta.wall_ns = self.last_end;
        if self.sampler.is_some() {
            meta.coverage = self.samples.coverage(&mut self.tables.library);
        }
        self.tables.sort();
        self.writer.checkpoint(&self.tables.profile)?;
        self.checkpoints.end(&begun);
        Ok(true)
    }

    /// Gives objects and threads what is known of them only after they got their rows; once more when more is known.
    fn complete_tables(&mut self) {
        let extents = objects::extents(&self.tables.profile.first_touches);
        self.tables.profile.tickets.clear();
        for image in &self.images {
            objects::finish(image, &mut self.tables, &extents);
            image.finish_threads(&mut self.tables, &self.samples);
        }
    }

    /// Completes the tables, writes them and returns them.
    ///
    /// # Errors
    /// The profile cannot be written.
    pub fn finish(mut self) -> Result<Profile, Error> {
        self.complete_tables();
        self.tables.finish();
        self.writer.finish(&self.tables.profile)?;
        Ok(self.tables.profile)
    }

    /// Finds new images, parents before their children.
    fn find_images(&mut self) -> Result<(), Error> {
        let entries = std::fs::read_dir(&self.raw).map_err(|e| Error::raw(&self.raw, &e))?;
        let mut fresh: Vec<(u32, u32, OsString)> = entries
            .flatten()
            .map(|e| e.file_name())
            .filter(|name| !self.known.contains(name))
            .filter_map(|name| image_name(&name.to_string_lossy()).map(|(pid, n)| (pid, n, name)))
            .collect();
        fresh.sort();
        for (pid, _, name) in fresh {
            if self.known.len() < MAX_IMAGES {
                self.images.push(Image::new(self.raw.join(&name), pid));
            }
            self.known.insert(name);
        }
        Ok(())
    }
}

/// Whether any process with a log below `raw` still runs.
pub(crate) fn any_runs(raw: &Path) -> bool {
    let names = std::fs::read_dir(raw).into_iter().flatten().flatten();
    names
        .filter_map(|e| image_name(&e.file_name().to_string_lossy()))
        .any(|(pid, _)| runs(pid))
}

/// Whether a process is running and not a zombie.
fn runs(pid: u32) -> bool {
    let program = Path::new("/proc").join(pid.to_string()).join("exe");
    std::fs::read_link(program).map_or_else(|e| e.kind() != ErrorKind::NotFound, |_| true)
}

/// Parses the name of an image's folder, `<pid>-<sequence>`.
pub(crate) fn image_name(name: &str) -> Option<(u32, u32)> {
    let (pid, sequence) = name.split_once('-')?;
    Some((pid.parse().ok()?, sequence.parse().ok()?))
}

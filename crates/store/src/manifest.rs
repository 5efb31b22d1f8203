//! `manifest.json`: describes a profile and lists the files that belong to it. It is replaced as a whole, so readers
//! see either the old profile or the new one.

use crate::error::{Error, ErrorKind, Result};
use crate::table::{Entry, partial};
use crate::tables::Entries;
use nodewise_input::quoted;
use nodewise_profile::{Coverage, FORMAT_VERSION, Meta, Observer, Sampling};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashSet;
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// File name of the manifest.
pub const FILE: &str = "manifest.json";

/// The manifest in its JSON form.
#[derive(Serialize, Deserialize)]
pub struct Manifest {
    pub format: u32,
    /// Whether the recording ended normally and the profile is complete.
    pub complete: bool,
    #[serde(flatten)]
    pub meta: MetaOnDisk,
    /// Entries of the small tables; empty until the first checkpoint.
    pub tables: Entries,
    /// Files of the access table, one for each group of slices.
    pub accesses: Vec<Group>,
}

/// One file of the access table.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Group {
    #[serde(flatten)]
    pub entry: Entry,
    /// The first slice that the file holds rows of.
    pub first_slice: u32,
}

/// JSON form of [`Meta`], field by field.
#[derive(Serialize, Deserialize)]
pub struct MetaOnDisk {
    observer: String,
    command: Vec<String>,
    started_at: u64,
    wall_ns: u64,
    #[serde(default)]
    cpu_ns: Option<u64>,
    plain_wall_ns: Option<u64>,
    #[serde(default)]
    plain_cpu_ns: Option<u64>,
    #[serde(default)]
    plain_program: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    loop_schedule: Option<String>,
    slicing: String,
    host_cpus: u32,
    host_nodes: u32,
    host_model: String,
    #[serde(default)]
    others: Option<f64>,
    coverage: CoverageOnDisk,
    truncated: Option<String>,
    exit_status: Option<i32>,
    #[serde(default)]
    sampling: Option<SamplingOnDisk>,
    #[serde(default)]
    held_back: Vec<(String, u64)>,
    #[serde(default)]
    kernel_migrations: Option<u64>,
    version: String,
}

#[derive(Serialize, Deserialize)]
struct CoverageOnDisk {
    samples: u64,
    instrumented: f64,
    waiting: f64,
    missed: f64,
    kernel: f64,
    #[serde(default)]
    counting: Option<f64>,
    missed_modules: Vec<(String, f64)>,
}

/// JSON form of [`Sampling`], field by field, with conversions both ways.
macro_rules! sampling {
    ($($field:ident: $type:ty),*) => {
        #[derive(Serialize, Deserialize)]
        struct SamplingOnDisk { $($field: $type),* }

        impl From<&Sampling> for SamplingOnDisk {
            fn from(s: &Sampling) -> Self {
                Self { $($field: s.$field),* }
            }
        }

        impl From<SamplingOnDisk> for Sampling {
            fn from(s: SamplingOnDisk) -> Self {
                Self { $($field: s.$field),* }
            }
        }
    };
}

sampling! {
    samples: u64, first_touches: u64, copies: u64, lost: u64, period: u32, budget: f64, cost: f64,
    sample_ns: f64, minimum_samples: u32, writes: bool, seconds: f64
}

#[derive(Deserialize)]
struct Format {
    format: u64,
}

impl Manifest {
    pub fn new(meta: &Meta) -> Self {
        Self {
            format: FORMAT_VERSION,
            complete: false,
            meta: meta.into(),
            tables: Entries::new(),
            accesses: Vec::new(),
        }
    }

    /// Replaces the manifest in `folder` by this one. `sync`: it must survive a crash of the host, too.
    pub fn write(&self, folder: &Path, sync: bool) -> Result<()> {
        let path = folder.join(FILE);
        let temporary = folder.join(partial(FILE));
        let text = sealed(&serde_json::to_string_pretty(self).expect("a manifest is plain data"));
        let replace = || {
            let mut file = File::create_new(&temporary)?;
            writeln!(file, "{text}")?;
            if sync {
                file.sync_data()?;
            }
            std::fs::rename(&temporary, &path)
        };
        replace().map_err(|e| {
            let _ = std::fs::remove_file(&temporary); // or the next would find it
            Error::io(&path, "write", &e)
        })
    }

    pub fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(FILE);
        let text = nodewise_input::text(&path).map_err(|e| unreadable(folder, &path, &e))?;
        let format: Format = serde_json::from_str(&text).map_err(|e| Error::damaged(&path, e))?;
        if format.format > FORMAT_VERSION.into() {
            return Err(newer(&path, format.format));
        }
        if !is_intact(&text) {
            return Err(Error::damaged(&path, "its checksum differs from what it says"));
        }
        let manifest: Self = serde_json::from_str(&text).map_err(|e| Error::damaged(&path, e))?;
        let entries = manifest
            .tables
            .values()
            .chain(manifest.accesses.iter().map(|g| &g.entry));
        let mut names = HashSet::new();
        let foreign = |f: &&String| !f.ends_with(".parquet") || f.contains(['/', '\0']);
        let mut files = entries.map(|e| &e.file);
        match files.find(|f| foreign(f) || !names.insert(f.as_str())) {
            Some(file) => {
                let what = format!("it lists the file {}, or lists it twice", quoted(file));
                Err(Error::damaged(&path, what))
            }
            None => Ok(manifest),
        }
    }
}

/// The key of the manifest's own checksum.
const CHECKSUM: &str = "crc32";

/// The text of a JSON object with its checksum appended as its last entry.
fn sealed(text: &str) -> String {
    let body = text.trim_end().trim_end_matches('}').trim_end();
    let checksum = checksum(text).map_or(0, |(own, _)| own);
    format!("{body},\n  \"{CHECKSUM}\": {checksum}\n}}")
}

/// Whether the checksum in the text is right. Profiles made before there was a checksum have none, and are accepted.
fn is_intact(text: &str) -> bool {
    checksum(text).is_none_or(|(own, named)| named.is_none_or(|named| named == own))
}

/// CRC-32 of a JSON object without its checksum, independent of its layout, and the checksum that it contains.
fn checksum(text: &str) -> Option<(u32, Option<Value>)> {
    let mut value: Value = serde_json::from_str(text).ok()?;
    let named = value.as_object_mut()?.remove(CHECKSUM);
    Some((crc32fast::hash(value.to_string().as_bytes()), named))
}

fn unreadable(folder: &Path, path: &Path, error: &std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => Error::new(
            ErrorKind::Missing,
            format!(
                "{}: not a profile (no {FILE}); make one with `nodewise record`",
                folder.display()
            ),
        ),
        std::io::ErrorKind::InvalidData | std::io::ErrorKind::InvalidInput => Error::damaged(path, error),
        _ => Error::io(path, "read", error),
    }
}

fn newer(path: &Path, format: u64) -> Error {
    Error::new(
        ErrorKind::Newer,
        format!(
            "{}: written in format {format}, this nodewise reads up to {FORMAT_VERSION}; use a newer nodewise",
            path.display()
        ),
    )
}

impl From<&Meta> for MetaOnDisk {
    fn from(m: &Meta) -> Self {
        let c = &m.coverage;
        Self {
            observer: m.observer.name().to_owned(),
            command: m.command.clone(),
            started_at: m.started_at,
            wall_ns: m.wall_ns,
            cpu_ns: m.cpu_ns,
            plain_wall_ns: m.plain_wall_ns,
            plain_cpu_ns: m.plain_cpu_ns,
            plain_program: m.plain_program.clone(),
            loop_schedule: m.loop_schedule.clone(),
            slicing: m.slicing.clone(),
            host_cpus: m.host_cpus,
            host_nodes: m.host_nodes,
            host_model: m.host_model.clone(),
            others: m.others,
            coverage: CoverageOnDisk {
                samples: c.samples,
                instrumented: c.instrumented,
                waiting: c.waiting,
                missed: c.missed,
                kernel: c.kernel,
                counting: c.counting,
                missed_modules: c.missed_modules.clone(),
            },
            truncated: m.truncated.clone(),
            exit_status: m.exit_status,
            sampling: m.sampling.as_ref().map(SamplingOnDisk::from),
            held_back: m.held_back.clone(),
            kernel_migrations: m.kernel_migrations,
            version: m.version.clone(),
        }
    }
}

impl MetaOnDisk {
    /// Converts to [`Meta`]; the error names an observer that this version does not know.
    pub fn into_meta(self) -> std::result::Result<Meta, String> {
        let c = self.coverage;
        Ok(Meta {
            observer: Observer::from_name(&self.observer)
                .ok_or_else(|| format!("unknown observer `{}`", self.observer))?,
            command: self.command,
            started_at: self.started_at,
            wall_ns: self.wall_ns,
            cpu_ns: self.cpu_ns,
            plain_wall_ns: self.plain_wall_ns,
            plain_cpu_ns: self.plain_cpu_ns,
            plain_program: self.plain_program,
            loop_schedule: self.loop_schedule,
            slicing: self.slicing,
            host_cpus: self.host_cpus,
            host_nodes: self.host_nodes,
            host_model: self.host_model,
            others: self.others,
            coverage: Coverage {
                samples: c.samples,
                instrumented: c.instrumented,
                waiting: c.waiting,
                missed: c.missed,
                kernel: c.kernel,
                counting: c.counting,
                missed_modules: c.missed_modules,
            },
            truncated: self.truncated,
            exit_status: self.exit_status,
            sampling: self.sampling.map(Sampling::from),
            held_back: self.held_back,
            kernel_migrations: self.kernel_migrations,
            version: self.version,
        })
    }
}

//! Memory objects, call sites and code regions.

use crate::{PageNumber, SiteId, ThreadId};
use std::fmt;

/// One source-level frame, after inline expansion. Unknown parts are empty or zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Frame {
    /// Demangled function name, or `module+0x1234` without symbols.
    pub function: String,
    /// Source file as the compiler recorded it.
    pub file: String,
    /// Source line, 0 when unknown.
    pub line: u32,
}

impl Frame {
    /// The file without its folders, so that names are the same in another checkout.
    #[must_use]
    pub fn file_name(&self) -> &str {
        self.file.rsplit('/').next().unwrap_or(&self.file)
    }

    /// `file:line`, without the file's folders.
    #[must_use]
    pub fn place(&self) -> String {
        format!("{}:{}", self.file_name(), self.line)
    }

    /// Whether the frame is in code that came with the compiler or the system, not in the program's own.
    #[must_use]
    pub fn is_library(&self) -> bool {
        ["/usr/include/", "/usr/lib/", "/usr/local/include/"]
            .iter()
            .any(|p| self.file.starts_with(p))
            || self.file.contains("/include/c++/")
    }
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.file.is_empty() {
            write!(f, "{}", self.function)
        } else {
            write!(f, "{} {}:{}", self.function, self.file_name(), self.line)
        }
    }
}

/// A call site: the inline-expanded chain of at most [`Site::DEPTH`] frames, innermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Site {
    /// Call frames, innermost first.
    pub frames: Vec<Frame>,
}

impl Site {
    /// Largest number of frames that are kept of a chain.
    pub const DEPTH: usize = 8;

    /// The innermost frame in the program's own code; if there is none, the innermost one in a library.
    #[must_use]
    pub fn own(&self) -> Option<&Frame> {
        self.frames
            .iter()
            .find(|f| !f.is_library())
            .or(self.frames.first())
    }
}

impl fmt::Display for Site {
    /// `inner file:line < outer file:line`, the form map files use.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, frame) in self.frames.iter().enumerate() {
            if i > 0 {
                f.write_str(" < ")?;
            }
            write!(f, "{frame}")?;
        }
        Ok(())
    }
}

/// What kind of memory an object is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ObjectKind {
    /// Memory that could not be attributed to an object.
    #[default]
    Unknown,
    /// One heap allocation of 64 KiB or more, on pages of its own.
    Heap,
    /// The pool of smaller heap allocations.
    Arena,
    /// A static variable or a module's data section.
    Static,
    /// Thread-local storage of one thread.
    Tls,
    /// The stack of one thread.
    Stack,
    /// An anonymous mapping the program made itself.
    Mapping,
    /// A file mapped into memory.
    File,
    /// Code and read-only data of the program and its libraries.
    Image,
}

impl ObjectKind {
    /// Every kind, in the order of their stable names.
    pub const ALL: [Self; 9] = [
        Self::Unknown,
        Self::Heap,
        Self::Arena,
        Self::Static,
        Self::Tls,
        Self::Stack,
        Self::Mapping,
        Self::File,
        Self::Image,
    ];

    /// The stable lower-case name used in files, maps and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Heap => "heap",
            Self::Arena => "arena",
            Self::Static => "static",
            Self::Tls => "tls",
            Self::Stack => "stack",
            Self::Mapping => "mapping",
            Self::File => "file",
            Self::Image => "image",
        }
    }

    /// The kind with this stable name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|k| k.name() == name)
    }

    /// Whether placement cannot help this kind of memory (Majo & Gross 2.2), so that it is left out of sharing
    /// statistics.
    #[must_use]
    pub fn is_private(self) -> bool {
        matches!(self, Self::Tls | Self::Stack | Self::Image)
    }

    /// Whether a map's rules can place this kind of memory: it has pages of its own, and `run` can identify it again.
    #[must_use]
    pub fn is_mappable(self) -> bool {
        matches!(self, Self::Heap | Self::Static | Self::Mapping)
    }

    /// Whether it is one piece of memory with contents of its own: an array, or a file.
    #[must_use]
    pub fn is_array_or_file(self) -> bool {
        self.is_mappable() || self == Self::File
    }
}

/// A memory object. It is identified across runs by site, allocating thread, and sequence at the site; static and
/// thread-local objects by kind and name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object {
    /// The kind of memory.
    pub kind: ObjectKind,
    /// Its display name: that of the variable if known, else of the allocating function.
    pub name: String,
    /// The site where it was allocated; 0 (unknown) for statics.
    pub site: SiteId,
    /// The thread that allocated the object.
    pub thread: ThreadId,
    /// Number of objects that the thread had allocated at the site before. An object that is freed and allocated again
    /// by the same calls keeps its number.
    pub sequence: u32,
    /// Number of its first base page.
    pub first_page: PageNumber,
    /// Length in base pages.
    pub pages: u64,
    /// Requested size in bytes; the largest one if it was allocated repeatedly. Of a file its size, if one mapping maps all
    /// of it, so that its pages are the file's; else 0.
    pub bytes: u64,
    /// Number of times that it was freed and allocated again.
    pub repeats: u32,
    /// For pools: the call sites with most bytes, each with its bytes, in descending order.
    pub parts: Vec<(SiteId, u64)>,
}

/// What kind of code a region is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RegionKind {
    /// Code outside any parallel region.
    #[default]
    Serial,
    /// The outlined body of an OpenMP construct.
    OpenMp,
}

/// How a parallel construct distributes its work over threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Schedule {
    /// In parts by thread number (`schedule(static)`).
    Static,
    /// In chunks, each to the next thread that requests one (`schedule(dynamic)`).
    Dynamic,
    /// As [`Self::Dynamic`], with chunks of decreasing size (`schedule(guided)`).
    Guided,
    /// Chosen by the runtime (`schedule(auto)`).
    Auto,
    /// Chosen by `OMP_SCHEDULE` (`schedule(runtime)`).
    Runtime,
    /// As tasks or sections, which any thread may execute.
    Tasks,
    /// As [`Self::Dynamic`] or [`Self::Guided`], in a loop with `ordered`, whose iterations wait for each other.
    Ordered,
}

impl Schedule {
    /// All schedules with number and name. The numbers are those of `omp_sched_t`, for schedules that it has.
    pub const ALL: [(Self, u32, &'static str); 7] = [
        (Self::Static, 1, "static"),
        (Self::Dynamic, 2, "dynamic"),
        (Self::Guided, 3, "guided"),
        (Self::Auto, 4, "auto"),
        (Self::Runtime, 5, "runtime"),
        (Self::Tasks, 6, "tasks"),
        (Self::Ordered, 7, "ordered"),
    ];

    /// The number used in files.
    #[must_use]
    pub fn number(self) -> u32 {
        let of = Self::ALL.iter().find(|s| s.0 == self);
        of.map_or(0, |s| s.1)
    }

    /// The schedule with this number.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.iter().find(|s| s.1 == number).map(|s| s.0)
    }

    /// The stable name used in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        let of = Self::ALL.iter().find(|s| s.0 == self);
        of.map_or("", |s| s.2)
    }

    /// Whether the assignment of work to threads depends on which thread requests it first.
    #[must_use]
    pub fn is_dynamic(self) -> bool {
        matches!(self, Self::Dynamic | Self::Guided | Self::Ordered | Self::Tasks)
    }
}

/// A code region: a parallel construct, or all other code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Region {
    /// The kind of construct.
    pub kind: RegionKind,
    /// The function that the region was outlined from, and its location.
    pub frame: Frame,
    /// How the region distributes its work, if the compiler knew it.
    pub schedule: Option<Schedule>,
}

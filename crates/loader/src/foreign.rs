//! Detects programs into which our libraries cannot be preloaded.

use crate::Program;
use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;

/// The reason why a library for glibc and this processor cannot be preloaded into a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// The program has no dynamic loader.
    Static,
    /// The program is for another processor architecture or address width.
    Processor,
    /// The program uses the loader of another C library.
    Loader(PathBuf),
    /// The program contains a sanitizer, whose runtime must be loaded first and lays out memory itself.
    Sanitizer(&'static str),
}

impl Program {
    /// The reason why our libraries cannot be preloaded into the program; `None` if they can.
    #[must_use]
    pub fn foreign(&self) -> Option<Foreign> {
        if !self.is_native() {
            return Some(Foreign::Processor);
        }
        if let Some(loader) = self.interpreter.as_ref().filter(|_| !self.is_glibc()) {
            return Some(Foreign::Loader(loader.clone()));
        }
        if !self.is_dynamic() {
            return Some(Foreign::Static);
        }
        self.sanitizer.map(Foreign::Sanitizer)
    }
}

impl Display for Foreign {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Static => write!(to, "is statically linked"),
            Self::Processor => write!(to, "is made for another processor, or another width of addresses"),
            Self::Loader(loader) => write!(
                to,
                "uses another C library than glibc (its loader is {})",
                loader.display()
            ),
            Self::Sanitizer(name) => write!(to, "is built with {name}, which places memory itself"),
        }
    }
}

//! Detects programs that our libraries cannot be preloaded into.

use crate::Program;
use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;

/// Why a library that is made for glibc and this processor does not go into a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// It has no dynamic loader.
    Static,
    /// Another kind of processor, or another width of addresses.
    Processor,
    /// Another C library's loader.
    Loader(PathBuf),
    /// A sanitizer's runtime has to come first, and places memory itself.
    Sanitizer(&'static str),
}

impl Program {
    /// Why nothing can be preloaded into it; `None` if it can.
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

//! One executable or shared library.

use nodewise_profile::Frame;
use object::Object;
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// Why a module could not be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read symbols of {}: {reason}", path.display())]
pub struct SymbolError {
    path: PathBuf,
    reason: String,
}

/// An executable or shared library with what it says about its source.
pub struct Module {
    path: PathBuf,
    pub(crate) bytes: Vec<u8>,
    pub(crate) lines: addr2line::Loader,
}

impl Module {
    /// Reads an ELF file.
    ///
    /// # Errors
    /// When the file cannot be read or is not ELF. Missing debug information is no error: frames
    /// then have a function from the symbol table, or `module+0x1234`, and no file.
    pub fn open(path: &Path) -> Result<Self, SymbolError> {
        let error = |reason: String| SymbolError {
            path: path.to_owned(),
            reason,
        };
        let bytes = std::fs::read(path).map_err(|e| error(e.to_string()))?;
        object::File::parse(&*bytes).map_err(|e| error(e.to_string()))?;
        let lines = addr2line::Loader::new(path).map_err(|e| error(e.to_string()))?;
        Ok(Self {
            path: path.to_owned(),
            bytes,
            lines,
        })
    }

    /// Where it was read from.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The linker's identification of the build, if it left one.
    #[must_use]
    pub fn build_id(&self) -> Option<Vec<u8>> {
        self.elf().build_id().ok().flatten().map(<[u8]>::to_vec)
    }

    /// The shared libraries it asks for by name.
    #[must_use]
    pub fn needed(&self) -> Vec<String> {
        crate::variables::needed_libraries(&self.bytes).unwrap_or_default()
    }

    /// Whether it is loaded by the dynamic linker; a static executable is not.
    #[must_use]
    pub fn is_dynamic(&self) -> bool {
        !self.needed().is_empty()
    }

    /// The frames at an address, innermost first; never empty. For a return address pass the
    /// address minus one.
    #[must_use]
    pub fn frames(&self, address: u64) -> Vec<Frame> {
        let mut frames = self.inlined_frames(address);
        if frames.is_empty() {
            frames.push(Frame::default());
        }
        let outermost = frames.len() - 1;
        for (i, frame) in frames.iter_mut().enumerate() {
            if frame.function.is_empty() {
                // Only the outermost function has a symbol of its own.
                frame.function = (i == outermost)
                    .then(|| self.symbol(address))
                    .flatten()
                    .unwrap_or_else(|| format!("{}+{address:#x}", self.file_name()));
            }
        }
        frames
    }

    /// The path's last part.
    #[must_use]
    pub fn file_name(&self) -> Cow<'_, str> {
        self.path.file_name().unwrap_or_default().to_string_lossy()
    }

    pub(crate) fn elf(&self) -> object::File<'_> {
        object::File::parse(&*self.bytes).expect("parsed when opened")
    }

    fn inlined_frames(&self, address: u64) -> Vec<Frame> {
        let mut frames = Vec::new();
        let Ok(mut found) = self.lines.find_frames(address) else {
            return frames;
        };
        while let Ok(Some(frame)) = found.next() {
            let function = frame
                .function
                .and_then(|f| f.demangle().ok().map(Cow::into_owned));
            let location = frame.location.as_ref();
            frames.push(Frame {
                function: function.unwrap_or_default(),
                file: location.and_then(|l| l.file).unwrap_or_default().to_owned(),
                line: location.and_then(|l| l.line).unwrap_or(0),
            });
        }
        frames
    }

    fn symbol(&self, address: u64) -> Option<String> {
        let symbol = self.lines.find_symbol(address)?;
        Some(demangled(symbol))
    }
}

/// A symbol as its programmer wrote it.
pub(crate) fn demangled(symbol: &str) -> String {
    addr2line::demangle_auto(Cow::Borrowed(symbol), None).into_owned()
}

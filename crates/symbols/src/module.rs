//! Source frames and symbols of one executable or shared library.

use crate::called::{BODY, CallTargets};
use nodewise_profile::Frame;
use object::{Architecture, Object, ObjectSection, ObjectSegment};
use std::borrow::Cow;
use std::cell::OnceCell;
use std::path::{Path, PathBuf};

/// Largest executable that is read, in bytes; with debug information real ones have a few GiB at most.
const MAX_FILE_BYTES: u64 = 8 << 30;

/// Why a module could not be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read symbols of {}: {reason}", path.display())]
pub struct SymbolError {
    path: PathBuf,
    reason: String,
}

/// An executable or shared library, with its symbols and line tables.
pub struct Module {
    path: PathBuf,
    pub(crate) bytes: Vec<u8>,
    pub(crate) lines: addr2line::Loader,
    /// Found when first asked for.
    pub(crate) called: OnceCell<CallTargets>,
}

impl Module {
    /// Reads an ELF file.
    ///
    /// # Errors
    /// The file cannot be read or is not ELF. Missing debug information is no error: frames then have a function from
    /// the symbol table, or `module+0x1234`, and no file.
    pub fn open(path: &Path) -> Result<Self, SymbolError> {
        let error = |reason: String| SymbolError {
            path: path.to_owned(),
            reason,
        };
        let bytes = nodewise_input::bytes(path, MAX_FILE_BYTES).map_err(|e| error(e.to_string()))?;
        object::File::parse(&*bytes).map_err(|e| error(e.to_string()))?;
        let lines = addr2line::Loader::new(path).map_err(|e| error(e.to_string()))?;
        Ok(Self {
            path: path.to_owned(),
            bytes,
            lines,
            called: OnceCell::new(),
        })
    }

    /// The path it was read from.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The build ID that the linker wrote, if any.
    #[must_use]
    pub fn build_id(&self) -> Option<Vec<u8>> {
        self.elf().build_id().ok().flatten().map(<[u8]>::to_vec)
    }

    /// Whether the file contains line tables.
    #[must_use]
    pub fn has_lines(&self) -> bool {
        self.elf()
            .section_by_name(".debug_line")
            .is_some_and(|s| s.size() > 0)
    }

    /// Demangled name of the symbol at an address.
    #[must_use]
    pub fn symbol(&self, address: u64) -> Option<String> {
        self.lines.find_symbol(address).map(source_name)
    }

    /// The address, as linked, of the byte at a file offset; `None` if that byte is not loaded.
    #[must_use]
    pub fn address_of_file_offset(&self, offset: u64) -> Option<u64> {
        self.elf().segments().find_map(|segment| {
            let (start, bytes) = segment.file_range();
            let inside = offset.checked_sub(start).filter(|o| *o < bytes)?;
            segment.address().checked_add(inside)
        })
    }

    /// Whether the file has 64-bit x86 code.
    #[must_use]
    pub fn is_x86_64(&self) -> bool {
        self.elf().architecture() == Architecture::X86_64 && self.elf().is_64()
    }

    /// The source frames at an address, innermost first; never empty. For a return address pass the address minus one.
    #[must_use]
    pub fn frames(&self, address: u64) -> Vec<Frame> {
        self.frames_with_columns(address)
            .into_iter()
            .map(|f| f.0)
            .collect()
    }

    /// As [`Module::frames`], each with its column: bytes from 1, or 0 if unknown.
    #[must_use]
    pub fn frames_with_columns(&self, address: u64) -> Vec<(Frame, u32)> {
        let mut frames = self.inlined_frames(address);
        if frames.is_empty() {
            frames.push((Frame::default(), 0));
        }
        let outermost = frames.len() - 1;
        for (i, (frame, _)) in frames.iter_mut().enumerate() {
            if frame.function.is_empty() {
                // Only the outermost function has a symbol; the others are inlined.
                frame.function = (i == outermost)
                    .then(|| self.symbol(address))
                    .flatten()
                    .unwrap_or_else(|| format!("{}+{address:#x}", self.file_name()));
            }
        }
        frames
    }

    /// The last component of the path.
    #[must_use]
    pub fn file_name(&self) -> Cow<'_, str> {
        self.path.file_name().unwrap_or_default().to_string_lossy()
    }

    pub(crate) fn elf(&self) -> object::File<'_> {
        object::File::parse(&*self.bytes).expect("parsed when opened")
    }

    /// Whether the function at an address was outlined from another one, as the bodies of OpenMP constructs are.
    #[must_use]
    pub fn is_outlined(&self, address: u64) -> bool {
        self.lines
            .find_symbol(address)
            .is_some_and(|s| outlined_at(s).is_some())
    }

    fn inlined_frames(&self, address: u64) -> Vec<(Frame, u32)> {
        let mut frames: Vec<(Frame, u32)> = Vec::new();
        let Ok(mut found) = self.lines.find_frames(address) else {
            return frames;
        };
        let mut inside = false; // whether the previous frame was the body of an outlined function
        while let Ok(Some(frame)) = found.next() {
            let raw = frame
                .function
                .and_then(|f| f.raw_name().ok().map(Cow::into_owned))
                .unwrap_or_default();
            let function = source_name(&raw);
            // clang wraps the body `f.omp_outlined_debug__` in `f.omp_outlined`: both count as one frame.
            let wrapper = inside && frames.last().is_some_and(|f| f.0.function == function);
            inside = raw.contains(BODY);
            if wrapper {
                continue;
            }
            let location = frame.location.as_ref();
            let frame = Frame {
                function,
                file: location.and_then(|l| l.file).unwrap_or_default().to_owned(),
                line: location.and_then(|l| l.line).unwrap_or(0),
            };
            frames.push((frame, location.and_then(|l| l.column).unwrap_or(0)));
        }
        frames
    }
}

/// The length of the original function's name in the symbol of an outlined function.
fn outlined_at(symbol: &str) -> Option<usize> {
    [".omp_outlined", "._omp_fn."]
        .iter()
        .find_map(|mark| symbol.find(mark))
}

/// The name in the source for a symbol: demangled, and without the suffixes of outlined and cloned functions, which
/// differ between builds.
pub(crate) fn source_name(symbol: &str) -> String {
    const CLONES: [&str; 5] = [".constprop.", ".isra.", ".part.", ".cold", ".llvm."];
    let end = outlined_at(symbol).or_else(|| CLONES.iter().filter_map(|c| symbol.find(c)).min());
    let symbol = &symbol[..end.unwrap_or(symbol.len())];
    // Other symbols are plain names: the demangler would take `a` for a mangled `signed char`.
    if ["_Z", "__Z", "_R"].iter().any(|p| symbol.starts_with(p)) {
        return addr2line::demangle_auto(Cow::Borrowed(symbol), None).into_owned();
    }
    symbol.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_programmers() {
        for (symbol, name) in [
            ("main", "main"),
            ("a", "a"),
            ("main.omp_outlined_debug__.1", "main"),
            ("solve._omp_fn.0", "solve"),
            ("_Z3fooi.omp_outlined", "foo(int)"),
            ("sum.constprop.0.isra.0", "sum"),
            ("_ZN4grid5solveEd", "grid::solve(double)"),
        ] {
            assert_eq!(source_name(symbol), name);
        }
    }
}

//! Finds the code ranges of source frames.

use crate::Module;
use crate::function::base_name;
use crate::module::source_name;
use nodewise_profile::Frame;
use object::{Object, ObjectSection, ObjectSymbol, SectionKind, SymbolKind};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// A range of code in which the inline-expanded frames are the same throughout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeRange {
    /// Addresses as linked. A return address belongs to the range that holds the byte before it.
    pub addresses: Range<u64>,
    /// The frames, innermost first.
    pub frames: Vec<Frame>,
}

impl Module {
    /// The code whose innermost frame is one of `starts`, ascending by address. Files are compared by name without
    /// folders, functions by [`base_name`]; a frame without a file matches the whole function.
    #[must_use]
    pub fn ranges_of(&self, starts: &[Frame]) -> Vec<CodeRange> {
        let (with_line, whole): (Vec<&Frame>, Vec<&Frame>) = starts.iter().partition(|f| !f.file.is_empty());
        let mut ranges = self.line_ranges(&with_line);
        ranges.extend(self.function_ranges(&whole));
        ranges.sort_by_key(|r| (r.addresses.start, r.addresses.end));
        ranges.dedup();
        ranges
    }

    fn line_ranges(&self, starts: &[&Frame]) -> Vec<CodeRange> {
        let mut wanted: HashMap<(&str, u32), HashSet<&str>> = HashMap::new();
        for frame in starts {
            wanted
                .entry((frame.file_name(), frame.line))
                .or_default()
                .insert(base_name(&frame.function));
        }
        let mut ranges: Vec<CodeRange> = Vec::new();
        for section in self
            .elf()
            .sections()
            .filter(|s| s.kind() == SectionKind::Text && !wanted.is_empty())
        {
            let end = section.address() + section.size();
            let Ok(rows) = self.lines.find_location_range(section.address(), end) else {
                continue;
            };
            for (address, length, location) in rows {
                let file = location.file.unwrap_or_default();
                let file = file.rsplit('/').next().unwrap_or(file);
                let Some(functions) = location.line.and_then(|line| wanted.get(&(file, line))) else {
                    continue;
                };
                let frames = self.frames(address);
                if functions.contains(base_name(&frames[0].function)) {
                    append(&mut ranges, address..address + length, frames);
                }
            }
        }
        ranges
    }

    fn function_ranges(&self, functions: &[&Frame]) -> Vec<CodeRange> {
        let wanted: HashSet<&str> = functions.iter().map(|f| base_name(&f.function)).collect();
        if wanted.is_empty() {
            return Vec::new();
        }
        let elf = self.elf();
        elf.symbols()
            .chain(elf.dynamic_symbols())
            .filter(|s| s.kind() == SymbolKind::Text && s.size() > 0)
            .filter_map(|symbol| {
                let function = source_name(symbol.name().ok()?);
                let addresses = symbol.address()..symbol.address() + symbol.size();
                let frames = vec![Frame {
                    function,
                    ..Frame::default()
                }];
                wanted
                    .contains(base_name(&frames[0].function))
                    .then_some(CodeRange { addresses, frames })
            })
            .collect()
    }
}

/// Joins adjacent ranges of the same frames: line tables split one statement into many rows.
fn append(ranges: &mut Vec<CodeRange>, addresses: Range<u64>, frames: Vec<Frame>) {
    match ranges.last_mut() {
        Some(last) if last.addresses.end == addresses.start && last.frames == frames => {
            last.addresses.end = addresses.end;
        }
        _ => ranges.push(CodeRange { addresses, frames }),
    }
}

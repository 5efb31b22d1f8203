//! Functions that a compiler marked by bytes before their first instruction, found without a symbol table.

use crate::Module;
use addr2line::gimli::{BaseAddresses, CieOrFde, EhFrame, LittleEndian, UnwindSection};
use memchr::memmem;
use object::{Object, ObjectSection, ObjectSymbol, SectionKind, SymbolKind};
use std::collections::HashMap;
use std::ops::Range;

impl Module {
    /// Address ranges of the functions directly preceded by the bytes `mark`, ascending. A function ends where its symbol or its
    /// unwind information says, of which `strip` leaves the latter; one with neither is left out.
    #[must_use]
    pub fn marked_functions(&self, mark: &[u8]) -> Vec<Range<u64>> {
        let sections = self.elf();
        let code = sections.sections().filter(|s| s.kind() == SectionKind::Text);
        let mut starts: Vec<u64> = Vec::new();
        for section in code {
            let bytes = section.data().unwrap_or_default();
            let found = memmem::find_iter(bytes, mark);
            starts.extend(found.filter_map(|at| section.address().checked_add((at + mark.len()) as u64)));
        }
        if starts.is_empty() {
            return Vec::new();
        }
        starts.sort_unstable();
        let (unwound, named) = (self.unwound_lengths(), self.symbol_sizes());
        let range = |start: u64| {
            let length = named.get(&start).or_else(|| unwound.get(&start))?;
            Some(start..start.checked_add(*length)?)
        };
        starts.into_iter().filter_map(range).collect()
    }

    /// Sizes of functions by address, from the symbol table, if there is one.
    fn symbol_sizes(&self) -> HashMap<u64, u64> {
        let elf = self.elf();
        let functions = elf
            .symbols()
            .filter(|s| s.kind() == SymbolKind::Text && s.size() > 0);
        functions.map(|s| (s.address(), s.size())).collect()
    }

    /// Lengths of functions by address, from what exceptions are unwound with.
    fn unwound_lengths(&self) -> HashMap<u64, u64> {
        let elf = self.elf();
        let mut lengths = HashMap::new();
        let Some(section) = elf.section_by_name(".eh_frame") else {
            return lengths;
        };
        let text = elf.section_by_name(".text").map_or(0, |s| s.address());
        let bases = BaseAddresses::default()
            .set_eh_frame(section.address())
            .set_text(text);
        let frames = EhFrame::new(section.data().unwrap_or_default(), LittleEndian);
        let mut entries = frames.entries(&bases);
        while let Ok(Some(entry)) = entries.next() {
            let CieOrFde::Fde(partial) = entry else {
                continue;
            };
            if let Ok(function) = partial.parse(EhFrame::cie_from_offset) {
                lengths.insert(function.initial_address(), function.len());
            }
        }
        lengths
    }
}

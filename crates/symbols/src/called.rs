//! What a module's code calls, as far as OpenMP is concerned: functions by name, through stubs and pointers too.

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic};
use object::{Object, ObjectSection, ObjectSymbol, RelocationTarget, SymbolKind};
use std::collections::{HashMap, HashSet};

/// What clang calls a body that it wraps.
pub(crate) const BODY: &str = ".omp_outlined_debug__";
/// Instructions of a stub of the procedure linkage table, at most: `endbr64`, and the jump.
const STUB: usize = 2;
/// Longest function that is read, bytes.
pub(crate) const LONGEST: u64 = 1 << 20;

/// What a module's code calls, and has called.
pub(crate) struct Called {
    /// Names of functions in other modules, by the address of the pointer that the loader fills.
    pointers: HashMap<u64, String>,
    /// The same for functions of this module: wrapped bodies, and the OpenMP runtime's, which may be linked statically.
    own: HashMap<u64, String>,
    /// Addresses of the functions that GCC has its runtime run as tasks.
    pub(crate) tasks: HashSet<u64>,
}

impl Called {
    pub(crate) fn of(elf: &object::File<'_>) -> Self {
        let dynamic: HashMap<usize, &str> = elf
            .dynamic_symbols()
            .filter_map(|s| Some((s.index().0, s.name().ok()?)))
            .collect();
        let relocations = elf.dynamic_relocations().into_iter().flatten();
        let pointers = relocations
            .filter_map(|(at, relocation)| match relocation.target() {
                RelocationTarget::Symbol(symbol) => Some((at, (*dynamic.get(&symbol.0)?).to_owned())),
                _ => None,
            })
            .collect();
        let of_openmp = |name: &str| {
            let prefixes = ["GOMP_", "__kmpc_", "omp_get_"];
            name.contains(BODY) || prefixes.iter().any(|prefix| name.starts_with(prefix))
        };
        let own = elf
            .symbols()
            .filter(|s| s.kind() == SymbolKind::Text && s.address() != 0)
            .filter_map(|s| {
                Some((
                    s.address(),
                    s.name().ok().filter(|name| of_openmp(name))?.to_owned(),
                ))
            })
            .collect();
        let mut called = Self {
            pointers,
            own,
            tasks: HashSet::new(),
        };
        called.tasks = called.find_tasks(elf);
        called
    }

    /// Functions whose address is taken where tasks are made and no team is.
    fn find_tasks(&self, elf: &object::File<'_>) -> HashSet<u64> {
        let mut found = HashSet::new();
        if !self
            .pointers
            .values()
            .chain(self.own.values())
            .any(|name| name == "GOMP_task")
        {
            return found;
        }
        for function in elf.symbols().filter(|s| s.kind() == SymbolKind::Text) {
            let Some(bytes) = code_at(elf, function.address(), function.size().min(LONGEST)) else {
                continue;
            };
            let (mut addresses, mut makes_tasks, mut makes_teams) = (Vec::new(), false, false);
            for instruction in Decoder::with_ip(64, bytes, function.address(), DecoderOptions::NONE) {
                match instruction.mnemonic() {
                    Mnemonic::Lea => addresses.push(instruction.memory_displacement64()),
                    Mnemonic::Mov => addresses.extend(instruction.try_immediate(1)),
                    Mnemonic::Call => match self.name(elf, &instruction) {
                        Some("GOMP_task") => makes_tasks = true,
                        Some(name) if name.starts_with("GOMP_parallel") => makes_teams = true,
                        _ => {}
                    },
                    _ => {}
                }
            }
            if makes_tasks && !makes_teams {
                found.extend(addresses);
            }
        }
        found
    }

    /// What a call or jump goes to, as far as it matters here.
    pub(crate) fn name(&self, elf: &object::File<'_>, call: &Instruction) -> Option<&str> {
        let own = || self.own.get(&call.near_branch_target()).map(String::as_str);
        own().or_else(|| self.imported(elf, call))
    }

    /// The same for functions of another module only, called through a pointer or a stub that jumps through one.
    fn imported(&self, elf: &object::File<'_>, call: &Instruction) -> Option<&str> {
        if call.is_ip_rel_memory_operand() {
            let pointer = self.pointers.get(&call.ip_rel_memory_address());
            return pointer.map(String::as_str);
        }
        match call.near_branch_target() {
            0 => None,
            target => self.through_stub(elf, target),
        }
    }

    fn through_stub(&self, elf: &object::File<'_>, target: u64) -> Option<&str> {
        let bytes = code_at(elf, target, 16)?;
        let stub = Decoder::with_ip(64, bytes, target, DecoderOptions::NONE);
        let mut jumps = stub.into_iter().take(STUB);
        let jump = jumps.find(|i| i.mnemonic() == Mnemonic::Jmp && i.is_ip_rel_memory_operand())?;
        self.pointers
            .get(&jump.ip_rel_memory_address())
            .map(String::as_str)
    }
}

/// Bytes of code, as linked.
pub(crate) fn code_at<'a>(elf: &object::File<'a>, address: u64, bytes: u64) -> Option<&'a [u8]> {
    elf.sections().find_map(|section| {
        let end = section.address().checked_add(section.size())?;
        let bytes = bytes.min(end.checked_sub(address)?);
        section.data_range(address, bytes).ok().flatten()
    })
}

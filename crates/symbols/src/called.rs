//! Finds the names of the functions that a module's code calls, directly or through stubs and pointers, as far as
//! OpenMP needs them.

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic};
use object::{Object, ObjectSection, ObjectSymbol, RelocationTarget, SymbolKind};
use std::collections::{HashMap, HashSet};

/// Part of the symbol of an outlined body for which clang also makes a wrapper.
pub(crate) const BODY: &str = ".omp_outlined_debug__";
/// Largest number of instructions of a stub in the procedure linkage table: `endbr64`, and the jump.
const MAX_STUB_INSTRUCTIONS: usize = 2;
/// Longest function that is read, bytes.
pub(crate) const MAX_FUNCTION_BYTES: u64 = 1 << 20;

/// The functions that a module's code calls, and those that it passes to the OpenMP runtime.
pub(crate) struct CallTargets {
    /// Names of functions in other modules, by the address of the pointer that the loader fills.
    pointers: HashMap<u64, String>,
    /// Names of functions of this module by address: wrapped bodies, and those of a statically linked OpenMP runtime.
    own: HashMap<u64, String>,
    /// Addresses of the functions that GCC's OpenMP runtime runs as tasks.
    pub(crate) tasks: HashSet<u64>,
}

impl CallTargets {
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

    /// Functions whose address is taken in code that creates tasks and no team of threads.
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
            let Some(bytes) = code_at(elf, function.address(), function.size().min(MAX_FUNCTION_BYTES))
            else {
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

    /// The name of the function that a call or jump leads to, if it is known.
    pub(crate) fn name(&self, elf: &object::File<'_>, call: &Instruction) -> Option<&str> {
        let own = || self.own.get(&call.near_branch_target()).map(String::as_str);
        own().or_else(|| self.imported(elf, call))
    }

    /// The name of a function of another module, which is called through a pointer or through a stub that jumps through
    /// one.
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
        let mut jumps = stub.into_iter().take(MAX_STUB_INSTRUCTIONS);
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

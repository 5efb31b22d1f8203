//! Programs and their source.

use crate::folder::own;
use nodewise_loader::{Environment, kind, libraries};
use nodewise_symbols::{
    Module, assigned_member, assigned_variable, base_name, declared_variable, named_at, needs_avx512,
};
use std::path::PathBuf;
use std::sync::LazyLock;

static FILE: LazyLock<PathBuf> = LazyLock::new(|| own("elf").join("module"));

/// Lines of source, and names of functions.
pub fn source(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    for line in text.lines() {
        let _ = (
            [0, 1, line.len() / 2, line.len() + 1]
                .map(|column| named_at(line, column, "Solver::grow", column == 0)),
            assigned_variable(line),
            assigned_member(line, "Solver::grow"),
            declared_variable(line),
            base_name(line).len(),
        );
    }
}

/// An executable, a library or a script: what it asks for, and what debuggers find in it.
pub fn elf(data: &[u8]) {
    std::fs::write(&*FILE, data).unwrap();
    let _ = (
        kind(&FILE).is_ok(),
        libraries(&FILE, &Environment::of([])).is_ok(),
    );
    let _ = needs_avx512(&FILE);
    let Ok(module) = Module::open(&FILE) else { return };
    let _ = (module.build_id(), module.has_lines(), module.file_name().len());
    let marked = module.marked_functions(b"nodewise");
    let variables = module.variables();
    let addresses = marked
        .iter()
        .map(|f| f.start)
        .chain(variables.iter().map(|v| v.address));
    for address in addresses.take(64).chain([0, 0x1000, 0x1139, 0x401136, u64::MAX]) {
        let frames = module.frames(address);
        let _ = (
            module.symbol(address),
            module.is_outlined(address),
            module.schedule(address),
            module.address_of_file_offset(address),
        );
        let _ = module.ranges_of(&frames);
    }
}

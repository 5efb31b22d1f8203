//! Static and thread-local variables of a module.

use crate::Module;
use crate::module::source_name;
use object::{Object, ObjectSymbol, SymbolKind};

/// A variable with static or thread storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Demangled name, without symbol version.
    pub name: String,
    /// Address as linked; for thread-local ones the offset in the module's thread-local storage.
    pub address: u64,
    /// Size in bytes, as the symbol table has it.
    pub size: u64,
    /// Whether it is thread-local.
    pub thread_local: bool,
}

impl Module {
    /// All variables in the symbol table, ascending by address; of a stripped module only the exported ones.
    #[must_use]
    pub fn variables(&self) -> Vec<Variable> {
        let elf = self.elf();
        let mut variables: Vec<Variable> = elf
            .symbols()
            .chain(elf.dynamic_symbols())
            .filter(|s| !s.is_undefined() && s.size() > 0)
            .filter(|s| matches!(s.kind(), SymbolKind::Data | SymbolKind::Tls))
            .filter_map(|s| {
                Some(Variable {
                    name: source_name(without_version(s.name().ok()?)),
                    address: s.address(),
                    size: s.size(),
                    thread_local: s.kind() == SymbolKind::Tls,
                })
            })
            .collect();
        variables
            .sort_by(|a, b| (a.thread_local, a.address, b.size).cmp(&(b.thread_local, b.address, a.size)));
        variables.dedup_by_key(|v| (v.thread_local, v.address));
        variables
    }
}

/// The name without a symbol version: `environ` for `environ@@GLIBC_2.2.5`.
fn without_version(symbol: &str) -> &str {
    symbol.split('@').next().unwrap_or(symbol)
}

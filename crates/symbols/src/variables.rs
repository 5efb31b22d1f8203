//! Static and thread-local variables.

use crate::Module;
use crate::module::source_name;
use object::{Object, ObjectSymbol, SymbolKind};

/// A variable with static or thread storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its demangled name.
    pub name: String,
    /// Address as linked; for thread-local ones the offset in the module's thread storage.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// Whether each thread has its own.
    pub thread_local: bool,
}

impl Module {
    /// All variables the symbol tables name, ascending by address; a stripped module has only those
    /// it exports.
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

/// `environ@@GLIBC_2.2.5` → `environ`.
fn without_version(symbol: &str) -> &str {
    symbol.split('@').next().unwrap_or(symbol)
}

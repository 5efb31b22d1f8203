//! Addresses to source frames and variables, and back: DWARF and ELF symbol tables of a module.

//! Processor architectures with known loaders.

use object::elf::{self, FileClass, Machine};

/// A processor architecture, identified by two fields of the ELF header.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub class: FileClass,
    pub machine: Machine,
    /// Debian's multiarch folder for its libraries.
    pub triplet: &'static str,
    /// Suffix of the names of musl's loader and of its configuration file.
    pub musl: &'static str,
    /// Flags of its libraries in `ld.so.cache`.
    pub cached: i32,
}

const KNOWN: [Target; 3] = [
    Target {
        class: elf::ELFCLASS64,
        machine: elf::EM_X86_64,
        triplet: "x86_64-linux-gnu",
        musl: "x86_64",
        cached: 0x303,
    },
    Target {
        class: elf::ELFCLASS64,
        machine: elf::EM_AARCH64,
        triplet: "aarch64-linux-gnu",
        musl: "aarch64",
        cached: 0xa03,
    },
    Target {
        class: elf::ELFCLASS32,
        machine: elf::EM_386,
        triplet: "i386-linux-gnu",
        musl: "i386",
        cached: 0x3,
    },
];

/// The architecture with these two fields of the ELF header.
pub(crate) fn target(class: FileClass, machine: Machine) -> Option<&'static Target> {
    KNOWN.iter().find(|t| t.class == class && t.machine == machine)
}

/// The architecture that this program was built for.
pub(crate) fn own() -> Option<&'static Target> {
    KNOWN
        .iter()
        .find(|t| t.triplet.starts_with(std::env::consts::ARCH))
}

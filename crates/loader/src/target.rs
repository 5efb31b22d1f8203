//! Processor architectures with known loaders.

use object::elf::{self, FileClass, Machine};

/// A kind of processor, as an ELF file names it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub class: FileClass,
    pub machine: Machine,
    /// Debian's folder for its libraries.
    pub triplet: &'static str,
    /// The end of musl's file name and of its configuration's.
    pub musl: &'static str,
    /// The loader's flags in the cache of libraries.
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

/// That of these two fields of a header.
pub(crate) fn target(class: FileClass, machine: Machine) -> Option<&'static Target> {
    KNOWN.iter().find(|t| t.class == class && t.machine == machine)
}

/// The processor that this program was built for.
pub(crate) fn own() -> Option<&'static Target> {
    KNOWN
        .iter()
        .find(|t| t.triplet.starts_with(std::env::consts::ARCH))
}

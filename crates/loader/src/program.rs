//! Reads one ELF file as the kernel and its loader do.

use crate::target::{self, Target};
use object::elf::{self, FileClass, FileHeader32, FileHeader64, Machine};
use object::read::elf::{Dyn, FileHeader, ProgramHeader};
use object::{Endianness, ReadCache, ReadRef};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// The runtime of programs built by our compiler wrappers, which refuse `-fsanitize`.
pub const RUNTIME: &str = "libnodewise-rt.so";
/// The interface between instrumented code and our runtime: `NW_INTERFACE` of `runtime/layout.h`.
pub const INTERFACE: u32 = 1;
/// What the symbol begins with that such code refers to; its interface follows.
const INTERFACE_SYMBOL: &[u8] = b"nodewise_interface_";
/// The variable that all such code reads.
const THREAD_SYMBOL: &[u8] = b"nw_self";

/// An ELF program or library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    pub(crate) class: FileClass,
    pub(crate) machine: Machine,
    /// Path of the file's dynamic loader; static programs and most libraries have none.
    pub interpreter: Option<PathBuf>,
    /// Names of the libraries that the file needs (`DT_NEEDED`).
    pub needed: Vec<OsString>,
    pub(crate) dynamic: bool,
    pub(crate) own_name: Option<OsString>,
    pub(crate) run_path: Option<OsString>,
    pub(crate) old_run_path: Option<OsString>,
    pub(crate) no_default_folders: bool,
    /// The interface with our runtime that code in the file was built for; 0 if from before code named it, and `None` if
    /// nothing in the file counts.
    pub interface: Option<u32>,
    /// The sanitizer whose runtime the file contains or needs.
    pub(crate) sanitizer: Option<&'static str>,
}

impl Program {
    pub(crate) fn read(head: &[u8], file: File) -> io::Result<Self> {
        let data = ReadCache::new(file);
        let read = match head.get(4).copied() {
            Some(class) if class == elf::ELFCLASS64.0 => parse::<FileHeader64<Endianness>, _>(&data),
            _ => parse::<FileHeader32<Endianness>, _>(&data),
        };
        read.map_err(invalid)
    }

    /// Whether a loader maps libraries for the file. It does not for a position-independent static program, which has a
    /// dynamic section too.
    #[must_use]
    pub fn is_dynamic(&self) -> bool {
        self.dynamic && (self.interpreter.is_some() || !self.needed.is_empty())
    }

    /// Whether the file is linked with our runtime.
    #[must_use]
    pub fn needs_runtime(&self) -> bool {
        self.needed.iter().any(|n| n == RUNTIME)
    }

    /// Whether the file contains x86-64 code.
    #[must_use]
    pub fn is_x86_64(&self) -> bool {
        self.class == elf::ELFCLASS64 && self.machine == elf::EM_X86_64
    }

    /// Whether the file is for the architecture that nodewise was built for.
    #[must_use]
    pub fn is_native(&self) -> bool {
        self.target().is_some() && self.target() == target::own()
    }

    /// Whether the file's loader is musl's.
    #[must_use]
    pub fn is_musl(&self) -> bool {
        self.loader_name().is_some_and(|n| n.starts_with(b"ld-musl-"))
    }

    /// Whether the file's loader is glibc's.
    pub(crate) fn is_glibc(&self) -> bool {
        let names = [&b"ld-linux"[..], b"ld64.so", b"ld.so"];
        self.loader_name()
            .is_some_and(|n| names.iter().any(|known| n.starts_with(known)))
    }

    fn loader_name(&self) -> Option<&[u8]> {
        Some(self.interpreter.as_ref()?.file_name()?.as_bytes())
    }

    pub(crate) fn target(&self) -> Option<&'static Target> {
        target::target(self.class, self.machine)
    }
}

fn invalid(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

fn parse<'d, Elf, R>(data: R) -> Result<Program, object::read::Error>
where
    Elf: FileHeader<Endian = Endianness>,
    R: ReadRef<'d>,
{
    let header = Elf::parse(data)?;
    let endian = header.endian()?;
    let segments = header.program_headers(endian, data)?;
    let interpreter = segments
        .iter()
        .find_map(|s| s.interpreter(endian, data).ok().flatten());
    let mut program = Program {
        class: header.e_ident().class,
        machine: header.e_machine(endian),
        interpreter: interpreter.map(|i| OsStr::from_bytes(i).into()),
        needed: Vec::new(),
        dynamic: false,
        own_name: None,
        run_path: None,
        old_run_path: None,
        no_default_folders: false,
        interface: None,
        sanitizer: None,
    };
    let dynamic = segments
        .iter()
        .find_map(|s| s.dynamic(endian, data).ok().flatten());
    if let Some(entries) = dynamic {
        program.dynamic = true;
        let at = |address: u64, bytes: u64| {
            let found = |s: &Elf::ProgramHeader| s.data_range(endian, data, address, bytes).ok().flatten();
            segments
                .iter()
                .filter(|s| s.p_type(endian) == elf::PT_LOAD)
                .find_map(found)
        };
        program.describe(endian, entries, at);
    }
    Ok(program)
}

impl Program {
    /// Reads the dynamic section; `at` returns the bytes at an address.
    fn describe<'d, D: Dyn<Endian = Endianness>>(
        &mut self,
        endian: Endianness,
        entries: &[D],
        at: impl Fn(u64, u64) -> Option<&'d [u8]>,
    ) {
        let entries = || entries.iter().take_while(|e| e.tag(endian) != elf::DT_NULL);
        let value = |tag| entries().find(|e| e.tag(endian) == tag).map(|e| e.val(endian));
        let strings = value(elf::DT_STRTAB)
            .zip(value(elf::DT_STRSZ))
            .and_then(|(address, bytes)| at(address, bytes))
            .unwrap_or_default();
        let string = |offset: u64| {
            let rest = strings.get(usize::try_from(offset).ok()?..)?;
            let text = rest.split(|b| *b == 0).next()?;
            Some(OsStr::from_bytes(text).to_owned())
        };
        self.needed = entries()
            .filter(|e| e.tag(endian) == elf::DT_NEEDED)
            .filter_map(|e| string(e.val(endian)))
            .collect();
        self.own_name = value(elf::DT_SONAME).and_then(string);
        self.run_path = value(elf::DT_RUNPATH).and_then(string);
        // If both run paths are present, loaders ignore DT_RPATH.
        self.old_run_path = value(elf::DT_RPATH)
            .and_then(string)
            .filter(|_| self.run_path.is_none());
        let flags = value(elf::DT_FLAGS_1).unwrap_or_default();
        self.no_default_folders = flags & elf::DF_1_NODEFLIB.0 != 0;
        self.sanitizer = sanitizer(&self.needed, self.needs_runtime(), strings);
        self.interface = interface(strings);
    }
}

/// The interface of the code that counts in a file, by the names of its dynamic symbols.
fn interface(names: &[u8]) -> Option<u32> {
    let names = || names.split(|b| *b == 0);
    let version = |name: &[u8]| {
        std::str::from_utf8(name.strip_prefix(INTERFACE_SYMBOL)?)
            .ok()?
            .parse()
            .ok()
    };
    names()
        .find_map(version)
        .or_else(|| names().any(|name| name == THREAD_SYMBOL).then_some(0))
}

/// Name of a sanitizer whose runtime replaces `malloc` or lays out the address space. It is recognised by a needed
/// library or, if the runtime is linked statically, by the names that the program exports.
fn sanitizer(needed: &[OsString], built_by_us: bool, strings: &[u8]) -> Option<&'static str> {
    let known = [
        ("asan", "AddressSanitizer"),
        ("hwasan", "HWAddressSanitizer"),
        ("tsan", "ThreadSanitizer"),
        ("msan", "MemorySanitizer"),
        ("lsan", "LeakSanitizer"),
    ];
    let linked = |short: &str| {
        let begins = [format!("lib{short}.so"), format!("libclang_rt.{short}")];
        needed
            .iter()
            .any(|n| begins.iter().any(|b| n.as_bytes().starts_with(b.as_bytes())))
    };
    let exported = |short: &str| {
        let name = format!("__{short}_init");
        !built_by_us && strings.split(|b| *b == 0).any(|s| s == name.as_bytes())
    };
    let found = known.iter().find(|(short, _)| linked(short) || exported(short));
    found.map(|(_, name)| *name)
}

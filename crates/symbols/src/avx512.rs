//! Detects programs that need AVX-512, which QEMU's code generator does not support.

use crate::module::{Module, SymbolError};
use iced_x86::{Code, Decoder, DecoderOptions, Instruction};
use object::{Object, ObjectSection, SectionKind};
use std::path::Path;

/// The first byte of an EVEX-encoded instruction; no other instruction of 64-bit code begins with it.
const EVEX: u8 = 0x62;
/// Prefixes that may precede it: address size and segments.
const PREFIXES: [u8; 3] = [0x67, 0x64, 0x65];
/// Number of such instructions in a file that is taken as proof; data between functions may look like a single one.
const MIN_INSTRUCTIONS: usize = 2;

/// The name of a function that uses AVX-512 instructions, if the x86-64 file has one and contains no code of its own
/// that checks for CPU support.
///
/// # Errors
/// The file cannot be read or is not ELF.
pub fn needs_avx512(file: &Path) -> Result<Option<String>, SymbolError> {
    let module = Module::open(file)?;
    let elf = module.elf();
    if !module.is_x86_64() {
        return Ok(None);
    }
    let (mut found, mut first) = (0, None);
    for section in elf.sections().filter(|s| s.kind() == SectionKind::Text) {
        let Ok(bytes) = section.data() else { continue };
        if !bytes.contains(&EVEX) {
            continue;
        }
        let mut decoder = Decoder::with_ip(64, bytes, section.address(), DecoderOptions::NONE);
        let mut instruction = Instruction::default();
        while decoder.can_decode() {
            let at = decoder.position();
            decoder.decode_out(&mut instruction);
            match instruction.code() {
                Code::INVALID => {}
                // The program chooses code by the CPU: function variants made by a compiler or a library.
                Code::Cpuid | Code::Xgetbv => return Ok(None),
                _ if is_evex(&bytes[at..decoder.position()]) => {
                    found += 1;
                    first = first.or(Some(instruction.ip()));
                }
                _ => {}
            }
        }
    }
    let named = |at: u64| module.symbol(at).unwrap_or_else(|| format!("code at {at:#x}"));
    Ok(first.filter(|_| found >= MIN_INSTRUCTIONS).map(named))
}

fn is_evex(bytes: &[u8]) -> bool {
    bytes.iter().find(|b| !PREFIXES.contains(b)) == Some(&EVEX)
}

//! Markers by which a program tells an emulator where counting starts and stops.
//!
//! Without such an emulator they are a no-op and a load. Mirror of `runtime/emulator/mark.h`; only x86-64 has them.

use std::os::unix::process::CommandExt;
use std::process::Command;

/// The operation is in the low byte of the no-op's displacement.
const MAGIC: u32 = 0x6e77_6100;
const BEGIN: u32 = 5;
const END: u32 = 6;

/// The laboratory starts counting user-mode accesses here; earlier counts are discarded.
pub fn begin() {
    mark::<{ MAGIC + BEGIN }>();
}

/// The laboratory stops counting accesses here.
pub fn end() {
    mark::<{ MAGIC + END }>();
}

/// Starts counting right before `command`'s `exec`; no further pre-exec action may be added after this one.
pub fn before_exec(command: &mut Command) {
    let apply = || {
        begin();
        Ok(())
    };
    // SAFETY: the closure executes a no-op and a load.
    unsafe { command.pre_exec(apply) };
}

#[cfg(target_arch = "x86_64")]
fn mark<const CODE: u32>() {
    let byte = 0u8;
    // SAFETY: a no-op whose address is never formed, and a load of `byte`, which is alive. No-op and
    // load lie on one page, so that the emulator translates them together.
    unsafe {
        std::arch::asm!(
            ".balign 16",
            "nop dword ptr [rax + {code}]",
            "mov al, byte ptr [{address}]",
            code = const CODE,
            address = in(reg) &raw const byte,
            out("rax") _,
            options(nostack, preserves_flags, readonly),
        );
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn mark<const CODE: u32>() {}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value of a `#define` in the header.
    fn defined(name: &str) -> u32 {
        let header = include_str!("../../../runtime/emulator/mark.h");
        let line = header
            .lines()
            .find_map(|l| l.strip_prefix(&format!("#define {name} ")))
            .unwrap();
        let value = line.split_whitespace().next().unwrap();
        match value.strip_prefix("0x") {
            Some(digits) => u32::from_str_radix(digits, 16).unwrap(),
            None => value.parse().unwrap(),
        }
    }

    #[test]
    fn numbers_are_those_of_the_header() {
        assert_eq!(MAGIC, defined("NW_MARK_MAGIC"));
        assert_eq!(BEGIN, defined("NW_MARK_BEGIN"));
        assert_eq!(END, defined("NW_MARK_END"));
    }

    #[test]
    fn a_marked_command_runs_as_if_it_were_not() {
        let mut command = Command::new("/bin/sh");
        before_exec(command.args(["-c", "exit 5"]));
        assert_eq!(command.status().unwrap().code(), Some(5));
        end();
    }
}

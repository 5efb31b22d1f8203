//! Parses the interpreter line of scripts as `execve` does.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Number of bytes of a file that the kernel reads to find the interpreter line.
pub(crate) const LINE_BYTES: u64 = 256;
/// Largest number of nested interpreters (`BINPRM_MAX_RECURSION` in the kernel).
pub const MAX_INTERPRETERS: usize = 4;

/// The interpreter named after `#!` in the first bytes of a file, and its optional single argument.
pub(crate) fn interpreter(head: &[u8]) -> Option<(PathBuf, Option<OsString>)> {
    let line = head.strip_prefix(b"#!")?;
    let line = line.split(|b| *b == b'\n').next().unwrap_or(line).trim_ascii();
    let end = line
        .iter()
        .position(u8::is_ascii_whitespace)
        .unwrap_or(line.len());
    let argument = line[end..].trim_ascii();
    let own = |bytes: &[u8]| OsStr::from_bytes(bytes).to_owned();
    Some((
        own(&line[..end]).into(),
        (!argument.is_empty()).then(|| own(argument)),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interpreter_has_one_argument_at_most() {
        let read = |text: &str| interpreter(text.as_bytes());
        assert_eq!(read("#!/bin/sh\nexit"), Some(("/bin/sh".into(), None)));
        assert_eq!(
            read("#! /usr/bin/env  -S x y \n"),
            Some(("/usr/bin/env".into(), Some("-S x y".into())))
        );
        assert_eq!(
            read("#!/usr/bin/env -S python3 -u\n"),
            Some(("/usr/bin/env".into(), Some("-S python3 -u".into())))
        );
        assert_eq!(read("#!"), Some(("".into(), None)));
        assert_eq!(read("exit"), None);
    }
}

//! Fuzz targets for everything that reads what others wrote. `NODEWISE_FUZZ` names the target; `tests/fuzz/run` builds
//! this and starts it.
//!
//! A target passes its input to a reader as users' files, arguments and requests reach it, and checks what must hold of
//! every answer. Panics, aborts, hangs and memory beyond the fuzzer's limit are findings.
#![no_main]

mod figures;
mod folder;
mod laboratory;
mod machines;
mod pages;
mod profiles;
mod recordings;
mod symbols;
mod texts;

use std::sync::LazyLock;

/// A target's name and what it does with an input.
type Target = (&'static str, fn(&[u8]));

const TARGETS: [Target; 15] = [
    ("manifest", profiles::manifest),
    ("tables", profiles::tables),
    ("figures", figures::figures),
    ("recording", recordings::recording),
    ("map", texts::map),
    ("machine", machines::machine),
    ("sysfs", machines::sysfs),
    ("kernel", texts::kernel),
    ("policy", texts::policy),
    ("rows", laboratory::rows),
    ("control", laboratory::control),
    ("summary", laboratory::summary),
    ("source", symbols::source),
    ("elf", symbols::elf),
    ("request", pages::request),
];

static TARGET: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let asked = std::env::var("NODEWISE_FUZZ").unwrap_or_default();
    if let Some(below) = std::env::var_os("NODEWISE_FUZZ_SEEDS") {
        profiles::seeds(below.as_ref());
    }
    let found = TARGETS.iter().find(|(name, _)| *name == asked);
    let names: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
    found
        .unwrap_or_else(|| panic!("NODEWISE_FUZZ must be one of: {}", names.join(" ")))
        .1
});

/// With `NODEWISE_FUZZ_WHOLE` an input has to be understood: a seed that its reader refuses leads nowhere.
static WHOLE: LazyLock<bool> = LazyLock::new(|| std::env::var_os("NODEWISE_FUZZ_WHOLE").is_some());

/// Says whether a reader took an input.
fn understood(taken: bool) {
    assert!(taken || !*WHOLE, "the input is not read to its end");
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| TARGET(data));

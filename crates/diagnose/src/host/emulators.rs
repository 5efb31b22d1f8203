//! Checks QEMU: its user mode records any binary, its system mode runs the laboratory.

use super::toolchain::library;
use super::{Finding, State};
use nodewise_linux::qemu::Qemu;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub fn findings(beside: &Path) -> Vec<Finding> {
    vec![emulate(beside), machine(beside), kernel()]
}

/// The emulator that an environment variable names, else the one in `PATH`; the error says why it cannot be used.
fn find(variable: &str, program: &str) -> Result<Qemu, String> {
    let chosen = std::env::var_os(variable).filter(|v| !v.is_empty());
    let program = PathBuf::from(chosen.unwrap_or_else(|| program.into()));
    let name = program.display();
    let qemu = Qemu::ask(&program).map_err(|_| format!("no {name} that starts"))?;
    let qemu = qemu.ok_or_else(|| format!("{name} does not say its version"))?;
    if qemu.loads_plugins() {
        Ok(qemu)
    } else {
        Err(format!("{name} {} was built without plugins", qemu.version))
    }
}

fn emulate(beside: &Path) -> Finding {
    let missing = |because: String| Finding::new("observers", "emulate", State::Missing, because);
    match find("NODEWISE_QEMU_USER", "qemu-x86_64") {
        Err(why) => missing(why).with_remedy("apt install qemu-user"),
        Ok(qemu) => match library(
            beside,
            &format!("libnodewise-emulate-{}.so", qemu.interface()),
            "",
        ) {
            None => missing(format!(
                "no plugin for QEMU {} beside {}",
                qemu.version,
                beside.display()
            ))
            .with_remedy("make build"),
            Some(_) => Finding::new(
                "observers",
                "emulate",
                State::Works,
                format!(
                    "exact, any x86-64 binary without AVX-512, under QEMU {}",
                    qemu.version
                ),
            ),
        },
    }
}

fn machine(beside: &Path) -> Finding {
    let missing = |because: String| Finding::new("laboratory", "lab", State::Missing, because);
    let qemu = match find("NODEWISE_QEMU_SYSTEM", "qemu-system-x86_64") {
        Ok(qemu) => qemu,
        Err(why) => return missing(why).with_remedy("apt install qemu-system-x86"),
    };
    let counter = format!("libnodewise-lab-{}.so", qemu.interface());
    for part in [counter.as_str(), "nodewise-lab-init"] {
        if library(beside, part, "").is_none() {
            return missing(format!("no {part} beside {}", beside.display())).with_remedy("make build");
        }
    }
    let text = format!(
        "virtual NUMA machines under QEMU {}, with exact access counters",
        qemu.version
    );
    Finding::new("laboratory", "lab", State::Works, text)
}

/// Checks the guest's kernel: whether it is stored from an earlier experiment or will have to be fetched.
fn kernel() -> Finding {
    if let Some(version) = nodewise_lab::cached_kernel() {
        let text = format!("Linux {version} is kept for the guests");
        return Finding::new("laboratory", "kernel", State::Works, text);
    }
    let package = "linux-image-cloud-amd64";
    let known = Command::new("apt-cache")
        .args(["show", "--quiet", package])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|s| s.success());
    if known {
        let text = format!("none kept yet: the first `lab` fetches {package} with apt and installs nothing");
        return Finding::new("laboratory", "kernel", State::Works, text);
    }
    Finding::new(
        "laboratory",
        "kernel",
        State::Missing,
        format!("none kept, and apt does not know {package}"),
    )
    .with_remedy("apt-get update, or nodewise lab --kernel PATH with a vmlinuz or a linux-image package")
}

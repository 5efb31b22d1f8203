//! Which profile to decide from: the one given, a new one, or the latest of the same program.

use super::Arguments;
use anyhow::{Context, bail};
use nodewise_store::Reader;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The folder of the profile to use, recorded first if need be.
pub fn obtain(arguments: &Arguments) -> anyhow::Result<PathBuf> {
    if let Some(folder) = &arguments.profile {
        return Ok(nodewise_store::latest(folder)?);
    }
    if let Some(instrumented) = &arguments.instrumented {
        return record(instrumented, &arguments.command[1..]);
    }
    let program = Path::new(&arguments.command[0]);
    if is_instrumented(program) {
        eprintln!(
            "nodewise: {} counts its accesses, and is timed with that; for its real times name the plain build, \
             and this one with --instrumented",
            program.display()
        );
        return record(program, &arguments.command[1..]);
    }
    if let Some(folder) = latest_of(program) {
        eprintln!(
            "nodewise: deciding from {}, the latest profile of this program",
            folder.display()
        );
        return Ok(folder);
    }
    bail!(
        "no profile of `{0}` here; build it with nodewise-cc as well and add --instrumented PATH, or name a profile \
         with --profile DIR",
        program.display()
    )
}

fn is_instrumented(program: &Path) -> bool {
    let file = nodewise_observe::find(program.as_os_str(), std::env::var_os("PATH").as_deref());
    file.is_ok_and(|f| nodewise_observe::check_instrumented(&f).is_ok())
}

/// Records the instrumented build with the same arguments.
fn record(instrumented: &Path, arguments: &[String]) -> anyhow::Result<PathBuf> {
    let folder = nodewise_store::unused(Path::new("."));
    eprintln!(
        "nodewise: recording {} into {}",
        instrumented.display(),
        folder.display()
    );
    let own = std::env::current_exe().context("cannot find the nodewise executable")?;
    let mut command = Command::new(own);
    command
        .arg("record")
        .arg("-o")
        .arg(&folder)
        .arg("--")
        .arg(instrumented)
        .args(arguments);
    let done = command
        .stdin(Stdio::null())
        .output()
        .context("cannot start `nodewise record`")?;
    if !done.status.success() {
        let errors = String::from_utf8_lossy(&done.stderr);
        bail!(
            "recording failed ({}): {}",
            done.status,
            errors.lines().last().unwrap_or("no message")
        );
    }
    Ok(folder)
}

/// The latest profile here, if its program has the same file name.
fn latest_of(program: &Path) -> Option<PathBuf> {
    let folder = nodewise_store::latest(Path::new(".")).ok()?;
    let reader = Reader::open(&folder).ok()?;
    let recorded = Path::new(reader.profile().meta.command.first()?)
        .file_name()?
        .to_owned();
    (Some(recorded.as_os_str()) == program.file_name()).then_some(folder)
}

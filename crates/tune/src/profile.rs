//! Chooses the profile to use: the given one, a new recording, or the latest one of the same program.

use crate::event::note;
use crate::{Listener, Options};
use anyhow::{Context, bail};
use nodewise_input::shell_line;
use nodewise_store::Reader;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The folder of the profile to use. If an instrumented build is given, it is recorded first.
pub fn obtain(options: &Options, listener: Listener<'_>) -> anyhow::Result<PathBuf> {
    if let Some(folder) = &options.profile {
        return Ok(nodewise_store::latest(folder)?);
    }
    if let Some(instrumented) = &options.instrumented {
        return record(instrumented, &options.command[1..], listener);
    }
    let program = Path::new(&options.command[0]);
    if is_instrumented(program) {
        note(
            listener,
            format!(
                "{} counts its accesses, and is timed with that; for its real times name the plain build, \
             and this one with --instrumented",
                program.display()
            ),
        );
        return record(program, &options.command[1..], listener);
    }
    if let Some(folder) = latest_of(program) {
        note(
            listener,
            format!(
                "deciding from {}, the latest profile of this program",
                folder.display()
            ),
        );
        return Ok(folder);
    }
    bail!(
        "no profile of `{0}` here; build it with nodewise-cc as well and add --instrumented PATH, or name a profile \
         with --profile DIR",
        program.display()
    )
}

/// Whether times predicted from a profile can be compared with those of this command. They cannot if the profile is of
/// the same program with other arguments (placement rules from it still apply) or of another program (placement rules
/// from it apply only by chance).
pub fn comparable(options: &Options, recorded: &[String], listener: Listener<'_>) -> bool {
    let name = |command: &[String]| {
        let program = command.first().map(Path::new).and_then(Path::file_name);
        program.unwrap_or_default().to_string_lossy().into_owned()
    };
    // A profile stores the command as text.
    let command: Vec<String> = options
        .command
        .iter()
        .map(|w| w.to_string_lossy().into_owned())
        .collect();
    let (of, run) = (name(recorded), name(&command));
    let builds = options.instrumented.is_some() || are_builds_of_one(&of, &run);
    let same = recorded.get(1..) == command.get(1..);
    if !builds {
        note(
            listener,
            format!(
                "the profile is of another program, {of}, not {run}: rules only match what both have, times \
             are not comparable"
            ),
        );
    } else if !same {
        note(
            listener,
            format!(
                "recorded with other arguments ({}): times are not comparable, rules are",
                shell_line(recorded)
            ),
        );
    }
    builds && same
}

/// Whether two file names are those of builds of one program, such as `heat` and `heat.nodewise` or `heat-recorded`.
fn are_builds_of_one(a: &str, b: &str) -> bool {
    let longer = |long: &str, short: &str| {
        long.strip_prefix(short)
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
    };
    longer(a, b) || longer(b, a)
}

fn is_instrumented(program: &Path) -> bool {
    let file = nodewise_observe::find(program.as_os_str(), std::env::var_os("PATH").as_deref());
    file.is_ok_and(|f| nodewise_observe::check_instrumented(&f).is_ok())
}

/// Records the instrumented build with the arguments of the command.
fn record(instrumented: &Path, arguments: &[OsString], listener: Listener<'_>) -> anyhow::Result<PathBuf> {
    let folder = nodewise_store::unused(Path::new("."));
    note(
        listener,
        format!("recording {} into {}", instrumented.display(), folder.display()),
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
        // The program's own last message is more useful than nodewise's message about the profile.
        let errors = String::from_utf8_lossy(&done.stderr);
        let own = errors.lines().rfind(|line| !line.starts_with("nodewise: "));
        bail!(
            "recording failed ({}): {}",
            done.status,
            own.or_else(|| errors.lines().last()).unwrap_or("no message")
        );
    }
    Ok(folder)
}

/// The latest profile in the current folder, if its program has the same file name.
fn latest_of(program: &Path) -> Option<PathBuf> {
    let folder = nodewise_store::latest(Path::new(".")).ok()?;
    let reader = Reader::open(&folder).ok()?;
    let recorded = Path::new(reader.profile().meta.command.first()?)
        .file_name()?
        .to_owned();
    (Some(recorded.as_os_str()) == program.file_name()).then_some(folder)
}

#[cfg(test)]
mod tests {
    use super::are_builds_of_one;

    #[test]
    fn builds_of_one_program_share_their_name_up_to_a_suffix() {
        assert!(are_builds_of_one("heat", "heat") && are_builds_of_one("heat.nodewise", "heat"));
        assert!(are_builds_of_one("heat", "heat-recorded"));
        assert!(!are_builds_of_one("heat", "heater") && !are_builds_of_one("sor", "cg"));
    }
}

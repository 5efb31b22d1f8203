//! Reports errors in the command line, in one line; prints help and version as clap does.

use crate::exit::Outcome;
use crate::output::{printed, say};
use clap::error::{Error, ErrorKind};
use std::ffi::OsStr;
use std::process::ExitCode;

/// Prints an error, help or version; returns the exit status. `subcommand` is the first word of the command line.
pub fn report(error: &Error, subcommand: Option<&OsStr>) -> ExitCode {
    use ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion};
    match error.kind() {
        DisplayHelp | DisplayVersion => crate::exit::code(printed(error.print()).map(|()| Outcome::Done)),
        DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print(); // on standard error
            ExitCode::from(2)
        }
        _ => {
            let name = subcommand.and_then(OsStr::to_str).filter(|s| is_command(s));
            say!("{}", line(&error.render().to_string(), name));
            ExitCode::from(own_status(name))
        }
    }
}

/// The exit status for usage errors: 125 for commands that pass their child's status through.
fn own_status(subcommand: Option<&str>) -> u8 {
    match subcommand {
        Some("record" | "run" | "lab") => 125,
        _ => 2,
    }
}

fn is_command(name: &str) -> bool {
    use clap::CommandFactory;
    crate::Arguments::command().find_subcommand(name).is_some()
}

/// What is wrong, the nearest valid word if there is one, and where to find help.
fn line(rendered: &str, subcommand: Option<&str>) -> String {
    let mut parts = rendered
        .split("\n\n")
        .map(|p| p.split_whitespace().collect::<Vec<_>>().join(" "));
    let what = parts.next().unwrap_or_default();
    let mut out = what.strip_prefix("error: ").unwrap_or(&what).to_owned();
    // Clap's other tip is to escape what looks like an option, but no program is called `--pid`.
    let tips = parts.find(|p| p.starts_with("tip: ")).unwrap_or_default();
    let mut tips = tips.split("tip: ").map(str::trim).filter(|tip| !tip.is_empty());
    if let Some(tip) = tips.find(|tip| !tip.contains("as a value")) {
        out = format!("{out}; {tip}");
    }
    let command = subcommand.map_or_else(String::new, |s| format!(" {s}"));
    format!("{out}; see nodewise{command} --help")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[test]
    fn usage_errors_are_one_line_with_the_remedy() {
        let rendered = "error: unexpected argument '--polcy' found\n\n  \
            tip: a similar argument exists: '--policy'\n\nUsage: nodewise run <CMD>...\n\n\
            For more information, try '--help'.\n";
        assert_eq!(
            line(rendered, Some("run")),
            "unexpected argument '--polcy' found; a similar argument exists: '--policy'; see nodewise run --help"
        );
        let both = crate::Arguments::try_parse_from(["nodewise", "run", "--polcy", "x", "--", "true"]).err();
        let text = line(&both.expect("no such option").render().to_string(), Some("run"));
        assert!(
            text.contains("exists: '--policy'; see") && !text.contains("as a value"),
            "{text}"
        );
        let rendered = "error: the following required arguments were not provided:\n  <CMD>...\n\nUsage: …\n";
        assert_eq!(
            line(rendered, None),
            "the following required arguments were not provided: <CMD>...; see nodewise --help"
        );
    }
}

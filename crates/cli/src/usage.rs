//! Reports errors in the command line, in one line; prints help and version as clap does.

use crate::exit::Outcome;
use crate::output::{printed, say};
use clap::Command;
use clap::error::{Error, ErrorKind};
use std::ffi::OsString;
use std::process::ExitCode;

/// The subcommand that the first word names: in full, or by what no other begins with.
pub fn subcommand<'a>(command: &'a Command, words: &[OsString]) -> Option<&'a Command> {
    let word = words.get(1)?.to_str().filter(|word| !word.is_empty())?;
    let begins = |c: &&Command| c.get_name().starts_with(word);
    let mut begun = command.get_subcommands().filter(begins);
    match (command.find_subcommand(word), begun.next(), begun.next()) {
        (Some(exact), ..) => Some(exact),
        (None, Some(only), None) => Some(only),
        _ => None,
    }
}

/// The words, with the command that `help` is asked of in full: clap takes no shortened one there.
pub fn with_full_help(command: &Command, mut words: Vec<OsString>) -> Vec<OsString> {
    if words.get(1).is_some_and(|word| word == "help") {
        let asked = subcommand(command, &words[1..]).map(|s| s.get_name().into());
        if let (Some(word), Some(asked)) = (words.get_mut(2), asked) {
            *word = asked;
        }
    }
    words
}

/// Prints an error, help or version; returns the exit status.
pub fn report(error: &Error, subcommand: Option<&Command>, words: &[OsString]) -> ExitCode {
    use ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion};
    match error.kind() {
        DisplayHelp | DisplayVersion => crate::exit::code(printed(error.print()).map(|()| Outcome::Done)),
        DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print(); // on standard error
            ExitCode::from(2)
        }
        _ => {
            say!(
                "{}",
                line(&error.render().to_string(), subcommand.map(Command::get_name))
            );
            ExitCode::from(subcommand.map_or(2, |s| own_status(s, words)))
        }
    }
}

/// The exit status for usage errors: 125 where the status of a program is passed through.
fn own_status(subcommand: &Command, words: &[OsString]) -> u8 {
    match subcommand.get_name() {
        "record" | "run" | "lab" => 125,
        "balance" if names_program(words) => 125,
        _ => 2,
    }
}

/// Whether the words of `balance` name a program to start: after `--`, or, where no running one is named, as a word
/// that is no option and does not follow one whose value it could be.
fn names_program(words: &[OsString]) -> bool {
    let words: Vec<_> = words.iter().skip(2).map(|w| w.to_string_lossy()).collect();
    let is_option = |word: &str| word.starts_with('-');
    if let Some(end) = words.iter().position(|w| w == "--") {
        return end + 1 < words.len();
    }
    let running = |w: &str| ["--pi", "--cg"].iter().any(|option| w.starts_with(option));
    let mut pairs = std::iter::once("").chain(words.iter().map(|w| &**w)).zip(&words);
    let free = |(before, word): (&str, &std::borrow::Cow<'_, str>)| {
        !is_option(word) && (!is_option(before) || before.contains('='))
    };
    !words.iter().any(|w| running(w)) && pairs.any(free)
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
    use clap::{CommandFactory, Parser};

    #[test]
    fn a_shortened_command_is_the_one_it_begins_and_has_its_status() {
        let command = crate::Arguments::command();
        let of = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let found = subcommand(&command, &words);
            found.map(|s| (s.get_name().to_owned(), own_status(s, &words)))
        };
        for (line, name, status) in [
            ("nodewise record --foo", "record", 125),
            ("nodewise rec --foo", "record", 125),
            ("nodewise ru --foo", "run", 125),
            ("nodewise top --foo", "top", 2),
            ("nodewise bal --foo", "balance", 2),
            ("nodewise balance --polcy -- true", "balance", 125),
            ("nodewise bal --foo=x true", "balance", 125),
            ("nodewise balance --foo --", "balance", 2),
            ("nodewise balance --interval 7 --foo x", "balance", 2),
            ("nodewise balance --pid 7 8 --foo", "balance", 2),
            ("nodewise balance --cgroup=/x --foo 3 4", "balance", 2),
        ] {
            assert_eq!(of(line), Some((name.to_owned(), status)), "{line}");
        }
        let full = |line: &str| {
            let words = line.split(' ').map(OsString::from).collect();
            with_full_help(&command, words).join(std::ffi::OsStr::new(" "))
        };
        assert_eq!(full("nodewise help rec"), "nodewise help record");
        assert_eq!(full("nodewise help re"), "nodewise help re");
        assert_eq!(full("nodewise help"), "nodewise help");
        for line in [
            "nodewise re --foo",
            "nodewise to",
            "nodewise",
            "nodewise ",
            "nodewise x",
        ] {
            assert_eq!(of(line), None, "{line}");
        }
    }

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

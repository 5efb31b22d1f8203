//! Reads a batch file: many placements and commands for one boot.

use anyhow::{Context, bail};
use nodewise_lab::RunPlacement;
use std::ffi::OsString;
use std::path::Path;

/// Reads a placement and a command from each line; empty lines and lines that begin with `#` are ignored.
pub fn read(file: &Path) -> anyhow::Result<(Vec<RunPlacement>, Vec<Vec<OsString>>)> {
    let text = nodewise_input::text(file).with_context(|| format!("cannot read {}", file.display()))?;
    parse(&text, &file.display().to_string())
}

fn parse(text: &str, name: &str) -> anyhow::Result<(Vec<RunPlacement>, Vec<Vec<OsString>>)> {
    let lines = text
        .lines()
        .enumerate()
        .filter(|(_, l)| !l.trim().is_empty() && !l.starts_with('#'));
    let run = |(number, line): (usize, &str)| {
        let at = || format!("{name}, line {}", number + 1);
        let mut words = line.split_whitespace();
        let under: RunPlacement = words.next().unwrap_or_default().parse().with_context(at)?;
        let command: Vec<OsString> = words.map(OsString::from).collect();
        if command.is_empty() {
            bail!("{}: a command is missing after {under}", at());
        }
        Ok((under, command))
    };
    let runs: Vec<_> = lines.map(run).collect::<anyhow::Result<_>>()?;
    if runs.is_empty() {
        bail!("{name}: no line says what to run; write `first-touch ./app`");
    }
    Ok(runs.into_iter().unzip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_placement_and_a_command() {
        let (under, commands) = parse("# both\nfirst-touch ./app 1\n\nmap:a.map  ./app 2\n", "runs").unwrap();
        assert_eq!(
            under,
            [RunPlacement::FirstTouch, RunPlacement::Map("a.map".into())]
        );
        assert_eq!(commands, [["./app", "1"], ["./app", "2"]]);
    }

    #[test]
    fn a_bad_line_is_named() {
        for (text, expected) in [
            (
                "first-touch ./app\nmagic ./app",
                "runs, line 2: --under magic: known are",
            ),
            ("node:1", "runs, line 1: a command is missing after node:1"),
            ("# nothing\n", "runs: no line says what to run"),
        ] {
            let error = format!("{:#}", parse(text, "runs").unwrap_err());
            assert!(error.starts_with(expected), "{error}");
        }
    }
}

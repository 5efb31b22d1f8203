//! The documentation is true: links lead somewhere, commands parse, documented JSON is real.

mod synthetic;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// README and every page under `docs/`, with its text.
fn pages() -> Vec<(PathBuf, String)> {
    let mut paths = vec![root().join("README.md")];
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "md") {
                paths.push(path);
            }
        }
    }
    paths
        .into_iter()
        .map(|p| {
            let text = std::fs::read_to_string(&p).unwrap();
            (p, text)
        })
        .collect()
}

#[test]
fn every_relative_link_leads_to_a_file() {
    let mut dead = Vec::new();
    for (page, text) in pages() {
        for target in text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split_once(')'))
            .map(|(t, _)| t)
        {
            let file = target.split('#').next().unwrap_or_default();
            if !target.contains("://") && !file.is_empty() && !page.parent().unwrap().join(file).exists() {
                dead.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(dead.is_empty(), "dead links:\n{}", dead.join("\n"));
}

/// `nodewise …` lines of code blocks and of inline code, without comments.
fn commands(text: &str) -> Vec<String> {
    let mut commands = Vec::new();
    for (i, part) in text.split("```").enumerate() {
        if i % 2 == 1 {
            let joined = part.replace("\\\n", " ");
            commands.extend(joined.lines().map(str::to_owned));
        } else {
            commands.extend(part.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    commands
        .iter()
        .flat_map(|c| c.split("&&"))
        .filter_map(invocation)
        .collect()
}

/// From the word `nodewise` on, behind variables set for it, up to a comment or a pipe.
fn invocation(line: &str) -> Option<String> {
    let words = line
        .split_whitespace()
        .skip_while(|w| w.contains('=') || *w == "$");
    let words: Vec<_> = words
        .take_while(|w| !w.starts_with('#') && *w != "|" && *w != "--")
        .collect();
    (words.first() == Some(&"nodewise")).then(|| words.join(" "))
}

fn help(subcommand: &str) -> Option<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_nodewise"))
        .args([subcommand, "--help"])
        .output()
        .unwrap();
    output
        .status
        .success()
        .then(|| String::from_utf8(output.stdout).unwrap())
}

#[test]
fn every_command_in_the_documentation_exists_with_its_flags() {
    let mut helps: BTreeMap<String, Option<String>> = BTreeMap::new();
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for (page, text) in pages() {
        for command in commands(&text) {
            let mut words = command.split_whitespace().skip(1);
            let Some(subcommand) = words
                .next()
                .filter(|w| w.starts_with(|c: char| c.is_ascii_lowercase()))
            else {
                continue;
            };
            let help = helps
                .entry(subcommand.to_owned())
                .or_insert_with(|| help(subcommand));
            let known = |flag: &str| {
                help.as_ref().is_some_and(|h| {
                    h.split(|c: char| !(c.is_alphanumeric() || c == '-'))
                        .any(|w| w == flag)
                })
            };
            let flag = |w: &str| {
                w.trim_matches(|c| "[](),.".contains(c))
                    .split('=')
                    .next()
                    .unwrap_or_default()
                    .to_owned()
            };
            let unknown: Vec<_> = words
                .filter(|w| w.trim_start_matches(['[', '(']).starts_with("--"))
                .map(flag)
                .filter(|f| !known(f))
                .collect();
            if help.is_none() || !unknown.is_empty() {
                wrong.push(format!("{}: `{command}` {unknown:?}", page.display()));
            }
            seen += 1;
        }
    }
    assert!(wrong.is_empty(), "not understood:\n{}", wrong.join("\n"));
    assert!(
        seen > 20,
        "only {seen} commands found: is the search still right?"
    );
}

/// The dotted paths of all leaves; `[]` for any element.
fn leaves(value: &serde_json::Value, path: &str, into: &mut BTreeSet<String>) {
    match value {
        serde_json::Value::Object(fields) => {
            for (key, value) in fields {
                leaves(
                    value,
                    &format!("{path}{}{key}", if path.is_empty() { "" } else { "." }),
                    into,
                );
            }
        }
        serde_json::Value::Array(items) => items.iter().for_each(|v| leaves(v, &format!("{path}[]"), into)),
        _ => {
            into.insert(path.to_owned());
        }
    }
}

#[test]
fn the_json_of_report_has_exactly_the_documented_keys() {
    let page = std::fs::read_to_string(root().join("docs/report.md")).unwrap();
    let table = page.split_once("## JSON").unwrap().1;
    let documented: BTreeSet<String> = table
        .lines()
        .filter_map(|l| l.strip_prefix("| `"))
        .flat_map(|l| {
            l.split(" | ")
                .next()
                .unwrap_or_default()
                .split(", ")
                .map(|k| k.trim_matches(['`', ' ']).to_owned())
                .collect::<Vec<_>>()
        })
        .collect();
    let folder = synthetic::profile("documented-keys");
    let output = Command::new(env!("CARGO_BIN_EXE_nodewise"))
        .args(["report", "--json", "--machine", "xeon-x7550"])
        .arg(&folder)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut real = BTreeSet::new();
    leaves(&serde_json::from_slice(&output.stdout).unwrap(), "", &mut real);
    assert_eq!(
        documented.symmetric_difference(&real).collect::<Vec<_>>(),
        Vec::<&String>::new()
    );
}

//! Tests the documentation: links have targets, commands parse, and documented JSON keys exist.

mod synthetic;

use nodewise_profile::TakenPart;
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

/// The part of a command line from the word `nodewise` up to a comment or a pipe, without preceding variable
/// assignments.
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

/// The help of each subcommand, asked for once.
#[derive(Default)]
struct Helps(BTreeMap<String, Option<String>>);

impl Helps {
    /// The first word of an invocation that the binary does not know; `None` if it knows all.
    fn unknown(&mut self, command: &str) -> Option<String> {
        let mut words = command.split_whitespace().skip(1);
        let subcommand = words
            .next()
            .filter(|w| w.starts_with(|c: char| c.is_ascii_lowercase()) && *w != "help")?;
        let Some(help) = self
            .0
            .entry(subcommand.to_owned())
            .or_insert_with(|| help(subcommand))
        else {
            return Some(format!("no subcommand `{subcommand}`"));
        };
        let known: BTreeSet<&str> = help.split(|c: char| !(c.is_alphanumeric() || c == '-')).collect();
        let flags = words
            .map(|w| w.trim_matches(|c| "[](),.|".contains(c)))
            .filter(|w| w.starts_with("--"));
        let unknown: Vec<_> = flags
            .map(|f| f.split('=').next().unwrap_or_default())
            .filter(|f| !known.contains(f))
            .collect();
        (!unknown.is_empty()).then(|| format!("no {}", unknown.join(", ")))
    }
}

#[test]
fn every_command_in_the_documentation_exists_with_its_flags() {
    let (mut helps, mut wrong, mut seen) = (Helps::default(), Vec::new(), 0);
    for (page, text) in pages() {
        for command in commands(&text) {
            seen += 1;
            if let Some(unknown) = helps.unknown(&command) {
                wrong.push(format!("{}: `{command}`: {unknown}", page.display()));
            }
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
    let mut real = BTreeSet::new();
    let compared = synthetic::profile("documented-keys");
    let taken = [0, 1, 2, 3].map(|thread| TakenPart {
        part: Some(thread),
        by: thread,
        accesses: 9,
        run: 0,
    });
    nodewise_store::set_taken(&compared, &taken).unwrap();
    for folder in [
        compared,
        synthetic::balanced("documented-moves"),
        synthetic::waiting("documented-waiting"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_nodewise"))
            .args(["report", "--json", "--machine", "xeon-x7550"])
            .arg(&folder)
            .output()
            .unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{message}");
        leaves(&serde_json::from_slice(&output.stdout).unwrap(), "", &mut real);
    }
    // A key that is an array in some documents and null in others is documented as an array.
    let arrays: BTreeSet<String> = real
        .iter()
        .filter_map(|k| k.strip_suffix("[]"))
        .map(str::to_owned)
        .collect();
    real.retain(|key| !arrays.contains(key));
    assert_eq!(
        documented.symmetric_difference(&real).collect::<Vec<_>>(),
        Vec::<&String>::new()
    );
}

/// The names of all fields.
fn fields(value: &serde_json::Value, into: &mut BTreeSet<String>) {
    match value {
        serde_json::Value::Object(members) => members.iter().for_each(|(key, value)| {
            into.insert(key.clone());
            fields(value, into);
        }),
        serde_json::Value::Array(items) => items.iter().for_each(|v| fields(v, into)),
        _ => {}
    }
}

#[test]
fn the_json_of_other_commands_has_no_undocumented_key() {
    let folder = synthetic::profile("other-keys");
    let folder = folder.to_str().unwrap();
    for (page, heading, command) in [
        (
            "docs/model.md",
            "## `nodewise simulate --json`",
            vec!["simulate", folder, "--affinity", "asym"],
        ),
        (
            "docs/model.md",
            "## `nodewise simulate DIR DIR … --json`",
            vec!["simulate", folder, folder, "--affinity", "asym"],
        ),
        (
            "docs/model.md",
            "## `nodewise simulate --sweep --json`",
            vec!["simulate", folder, "--sweep", "hot:0"],
        ),
        ("docs/machines.md", "## JSON of `nodewise topo`", vec!["topo"]),
    ] {
        let text = std::fs::read_to_string(root().join(page)).unwrap();
        let section = text.split_once(heading).unwrap().1;
        let section = section.split("\n## ").next().unwrap();
        let documented: BTreeSet<&str> = section
            .split(|c: char| !(c.is_alphanumeric() || c == '_'))
            .collect();
        let output = Command::new(env!("CARGO_BIN_EXE_nodewise"))
            .args(command)
            .args(["--machine", "machine-a", "--json"])
            .output()
            .unwrap();
        let mut real = BTreeSet::new();
        fields(&serde_json::from_slice(&output.stdout).unwrap(), &mut real);
        let missing: Vec<_> = real.iter().filter(|k| !documented.contains(k.as_str())).collect();
        assert!(
            missing.is_empty() && !real.is_empty(),
            "{page}: not documented: {missing:?}"
        );
    }
}

//! Options that were renamed in version 0.1: the old names still work and print the new ones.

use crate::output::say;
use clap::{Arg, Command};
use std::ffi::{OsStr, OsString};

/// An option with a new name.
struct Renamed {
    command: &'static str,
    old: &'static str,
    takes_value: bool,
    /// Options with values that replace it, from the old value (empty if it takes none); `None` if the option is still
    /// valid with this value.
    new: fn(&str) -> Option<Vec<String>>,
}

/// All renamed options. They will be removed in the next version.
const RENAMED: &[Renamed] = &[
    renamed("balance", "observe", |v| option("observe-budget", v)),
    renamed("balance", "budget", |v| option("migrate-budget", v)),
    renamed("balance", "samples", |v| option("minimum-samples", v)),
    renamed("balance", "report", |v| option("summary", v)),
    renamed("balance", "threads", balanced_threads),
    renamed("check", "seconds", |v| option("duration", v)),
    renamed("check", "threshold", per_cent),
    renamed("run", "report", |v| option("summary", v)),
    renamed("record", "budget", |v| {
        option("observe-budget", &format!("{}%", v.trim_end_matches('%')))
    }),
    renamed("record", "scan", |v| option("scan-period", &format!("{v}ms"))),
    renamed("simulate", "budget", |v| option("migrate-budget", v)),
    renamed("simulate", "interval", |v| option("decide-every", v)),
    renamed("simulate", "rest", |v| option("cooldown", v)),
    renamed("simulate", "threads", simulated_threads),
    renamed("simulate", "starts", |v| option("random-starts", v)),
    Renamed {
        takes_value: false,
        ..renamed("simulate", "repeat", |_| Some(vec!["--restart".to_owned()]))
    },
    renamed("map", "threads", |v| option("affinity", v)),
    renamed("report", "threads", |v| option("affinity", v)),
    renamed("tune", "budget", |v| option("time-limit", v)),
    renamed("report", "threads-policy", |v| option("affinity", v)),
    renamed("serve", "threads-policy", |v| option("affinity", v)),
    renamed("top", "threads-policy", |v| option("affinity", v)),
    renamed("map", "threads-policy", |v| option("affinity", v)),
    renamed("simulate", "threads-policy", |v| option("affinity", v)),
];

const fn renamed(command: &'static str, old: &'static str, new: fn(&str) -> Option<Vec<String>>) -> Renamed {
    Renamed {
        command,
        old,
        takes_value: true,
        new,
    }
}

fn option(name: &str, value: &str) -> Option<Vec<String>> {
    Some(vec![format!("--{name}={value}")])
}

/// Per cents that used to be written without their sign: `70`.
fn per_cent(value: &str) -> Option<Vec<String>> {
    let number: f64 = value.parse().ok()?;
    option("threshold", &format!("{value}%")).filter(|_| number > 1.0 && number <= 100.0)
}

/// Splits numbers and a policy, which `--threads` used to combine: `24`, `scatter`, `24,scatter`, `24,16,asym`.
fn split_numbers(value: &str) -> (Vec<&str>, String) {
    let is_number = |part: &&str| part.chars().all(|c| c.is_ascii_digit());
    let parts: Vec<&str> = value.split(',').collect();
    let numbers = parts.iter().take_while(|p| is_number(p)).count();
    (parts[..numbers].to_vec(), parts[numbers..].join(","))
}

fn balanced_threads(value: &str) -> Option<Vec<String>> {
    if value == "off" {
        return option("move-threads", value);
    }
    let (numbers, policy) = split_numbers(value);
    let policy = match policy.as_str() {
        "" => return None,
        nodewise_pipeline::ASYM => "--move-threads".to_owned(),
        policy => format!("--bind={policy}"),
    };
    let count = numbers.first().map(|n| format!("--threads={n}"));
    Some(count.into_iter().chain([policy]).collect())
}

fn simulated_threads(value: &str) -> Option<Vec<String>> {
    let (numbers, policy) = split_numbers(value);
    let counts = (!numbers.is_empty()).then(|| format!("--cpus={}", numbers.join(",")));
    let policy = (!policy.is_empty()).then(|| format!("--affinity={policy}"));
    Some(counts.into_iter().chain(policy).collect())
}

/// Replaces old option names in a command line and reports each. The words of a program to be started are not changed.
pub fn translate(subcommand: &Command, words: &[OsString]) -> Vec<OsString> {
    let mut translated: Vec<OsString> = words.iter().take(2).cloned().collect();
    let mut rest = words.iter().skip(2).cloned();
    while let Some(word) = rest.next() {
        let Some(option) = Written::of(&word) else {
            translated.push(word);
            let program_follows = subcommand.get_positionals().any(Arg::is_trailing_var_arg_set);
            match program_follows || translated.last().is_some_and(|w| w == "--") {
                true => break,
                false => continue,
            }
        };
        let old = RENAMED
            .iter()
            .find(|r| r.command == subcommand.get_name() && r.old == option.name);
        let takes_value = old.map_or_else(|| option.takes_value(subcommand), |old| old.takes_value);
        let value = match (&option.value, takes_value) {
            (Some(value), _) => Some(OsString::from(value)),
            (None, true) => rest.next(),
            (None, false) => None,
        };
        let apart = option.value.is_none();
        // A file name that is not UTF-8 stays as it is.
        let text = match takes_value {
            true => value.as_deref().map(|v| v.to_str().unwrap_or_default()),
            false => Some(""),
        };
        match old.zip(text).and_then(|(old, value)| (old.new)(value)) {
            Some(new) => {
                report(&option.name, text.unwrap_or_default(), &new);
                translated.extend(new.into_iter().map(OsString::from));
            }
            None => {
                translated.push(word);
                translated.extend(value.filter(|_| apart));
            }
        }
    }
    translated.extend(rest);
    translated
}

fn report(old: &str, value: &str, new: &[String]) {
    let new = new.join(" ").replacen('=', " ", new.len());
    let old = format!("--{old} {value}");
    say!(
        "{} is written {new} now; the old name goes with the next version",
        old.trim_end()
    );
}

/// An option as written on a command line.
struct Written {
    name: String,
    value: Option<String>,
    short: bool,
}

impl Written {
    fn of(word: &OsStr) -> Option<Self> {
        let word = word.to_str().filter(|w| *w != "--")?;
        if let Some(long) = word.strip_prefix("--") {
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (long, None),
            };
            let name = name.to_owned();
            return Some(Self {
                name,
                value,
                short: false,
            });
        }
        let short = word.strip_prefix('-')?;
        let (first, rest) = (short.get(..1)?, &short[1..]);
        Some(Self {
            name: first.to_owned(),
            value: (!rest.is_empty()).then(|| rest.to_owned()),
            short: true,
        })
    }

    fn takes_value(&self, command: &Command) -> bool {
        let found = self.find(command);
        found.is_some_and(|arg| arg.get_action().takes_values() && !arg.is_require_equals_set())
    }

    /// The option; a long name may be shortened to what no other begins with.
    fn find<'a>(&self, command: &'a Command) -> Option<&'a Arg> {
        let mut all = command.get_arguments();
        if self.short {
            return all.find(|arg| arg.get_short().is_some_and(|c| self.name.starts_with(c)));
        }
        let begins = |arg: &&Arg| arg.get_long().is_some_and(|long| long.starts_with(&self.name));
        let begun: Vec<&Arg> = all.filter(begins).collect();
        let exact = begun.iter().find(|arg| arg.get_long() == Some(&self.name));
        exact.copied().or_else(|| (begun.len() == 1).then(|| begun[0]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use std::path::{Path, PathBuf};

    fn translated(line: &str) -> String {
        let words: Vec<_> = line.split(' ').map(OsString::from).collect();
        let command = crate::Arguments::command();
        let subcommand = crate::usage::subcommand(&command, &words);
        let words = subcommand.map_or_else(|| words.clone(), |s| translate(s, &words));
        let words: Vec<_> = words.iter().map(|w| w.to_string_lossy()).collect();
        words.join(" ")
    }

    #[test]
    fn old_names_become_new_ones() {
        let lines = [
            (
                "nodewise balance --observe 1% --budget=3% --samples 4 --pid 7",
                "nodewise balance --observe-budget=1% --migrate-budget=3% --minimum-samples=4 --pid 7",
            ),
            (
                "nodewise balance --threads 24,scatter -- x --threads asym",
                "nodewise balance --threads=24 --bind=scatter -- x --threads asym",
            ),
            (
                "nodewise balance --threads asym --pid 7",
                "nodewise balance --move-threads --pid 7",
            ),
            (
                "nodewise balance --threads off --pid 7",
                "nodewise balance --move-threads=off --pid 7",
            ),
            (
                "nodewise simulate a b --threads 24,16,asym",
                "nodewise simulate a b --cpus=24,16 --affinity=asym",
            ),
            (
                "nodewise simulate a b --threads 24,16 --repeat --starts 3",
                "nodewise simulate a b --cpus=24,16 --restart --random-starts=3",
            ),
            (
                "nodewise simulate a --rest 0 --start round-robin",
                "nodewise simulate a --cooldown=0 --start round-robin",
            ),
            (
                "nodewise record --via faults --budget 3 --scan 100 x",
                "nodewise record --via faults --observe-budget=3% --scan-period=100ms x",
            ),
            ("nodewise check --threshold 70", "nodewise check --threshold=70%"),
            (
                "nodewise bal --budget 3% --pid 7",
                "nodewise bal --migrate-budget=3% --pid 7",
            ),
            (
                "nodewise simulat --polic all --threads 4,asym a",
                "nodewise simulat --polic all --cpus=4 --affinity=asym a",
            ),
            (
                "nodewise balance --pol dominant --samples 3 -- x --samples 4",
                "nodewise balance --pol dominant --minimum-samples=3 -- x --samples 4",
            ),
        ];
        for (old, new) in lines {
            assert_eq!(translated(old), new);
        }
    }

    #[test]
    fn names_of_files_need_not_be_utf_8() {
        use std::os::unix::ffi::OsStringExt;
        let file = OsString::from_vec(b"profile-\xff".to_vec());
        let words = ["nodewise", "record", "--observe-budget", "1%", "-o"].map(OsString::from);
        let words: Vec<_> = words.into_iter().chain([file, "x".into()]).collect();
        let command = crate::Arguments::command();
        let record = crate::usage::subcommand(&command, &words).unwrap();
        assert_eq!(translate(record, &words), words);
    }

    #[test]
    fn what_means_the_same_as_ever_and_what_is_the_programs_stays() {
        let lines = [
            "nodewise balance --threads 24 x",
            "nodewise check --threshold 70%",
            "nodewise check --threshold 0.7",
            "nodewise record -o budget ./x --budget 3",
            "nodewise run --bind none x --report y",
            "nodewise run -- --report y",
            "nodewise tune --time-limit 10s -- x",
            "nodewise record --budget",
            "nodewise nothing --budget 3",
            "nodewise re --budget 3",
            "nodewise",
        ];
        for line in lines {
            assert_eq!(translated(line), line);
        }
    }

    #[test]
    fn a_heading_of_some_options_is_not_that_of_those_after_them() {
        let command = crate::Arguments::command();
        let heading = |name: &str, option: &str| {
            let command = command.get_subcommands().find(|c| c.get_name() == name).unwrap();
            let mut options = command.get_arguments();
            let found = options.find(|a| a.get_id() == option).unwrap();
            found.get_help_heading().map(str::to_owned)
        };
        for (name, option) in [
            ("report", "json"),
            ("serve", "port"),
            ("record", "command"),
            ("simulate", "policy"),
        ] {
            assert_eq!(heading(name, option), None, "{name} --{option}");
        }
        assert!(
            heading("record", "observe_budget")
                .unwrap()
                .starts_with("Sampling")
        );
    }

    /// The sources of all crates but the tests, this file apart; the documentation; the benchmarks.
    fn sources() -> Vec<(PathBuf, String)> {
        const FOLDERS: [&str; 5] = ["crates", "docs", "bench", "web/src", "lib"];
        const KINDS: [&str; 6] = ["rs", "md", "py", "ts", "tsx", "h"];
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
        let mut folders: Vec<PathBuf> = FOLDERS.iter().map(|folder| root.join(folder)).collect();
        let mut sources = Vec::new();
        while let Some(folder) = folders.pop() {
            for path in folder.read_dir().unwrap().map(|entry| entry.unwrap().path()) {
                if path.is_dir() && path.file_name().is_some_and(|name| name != "tests") {
                    folders.push(path);
                } else if path
                    .extension()
                    .is_some_and(|e| KINDS.iter().any(|kind| e == *kind))
                    && !path.ends_with("cli/src/renamed.rs")
                {
                    let text = std::fs::read_to_string(&path).unwrap();
                    sources.push((path, text));
                }
            }
        }
        sources
    }

    #[test]
    fn no_message_says_a_name_that_no_command_has_any_more() {
        let command = crate::Arguments::command();
        let valid = |old: &str| {
            let mut arguments = command.get_subcommands().flat_map(Command::get_arguments);
            arguments.any(|arg| arg.get_long() == Some(old))
        };
        for (path, text) in sources() {
            for old in RENAMED.iter().map(|r| r.old).filter(|old| !valid(old)) {
                for (_, rest) in text
                    .match_indices(&format!("--{old}"))
                    .map(|(at, o)| text.split_at(at + o.len()))
                {
                    let goes_on = rest.starts_with(|c: char| c == '-' || c.is_ascii_alphanumeric());
                    assert!(goes_on, "{}: --{old} has another name", path.display());
                }
            }
        }
    }
}

//! Options that had other names until 0.1: they work, and say what to write.

use crate::output::say;
use clap::{Arg, Command};
use std::ffi::{OsStr, OsString};

/// An option that is called otherwise now.
struct Renamed {
    command: &'static str,
    old: &'static str,
    /// What stands for it: options with values, from the old value; `None`: the value means the same as ever.
    new: fn(&str) -> Option<Vec<String>>,
}

/// All of them. They go with the next version.
const RENAMED: &[Renamed] = &[
    plain("balance", "observe", |v| one("observe-budget", v)),
    plain("balance", "budget", |v| one("migrate-budget", v)),
    plain("balance", "samples", |v| one("minimum-samples", v)),
    plain("balance", "report", |v| one("summary", v)),
    plain("balance", "threads", balanced_threads),
    plain("run", "report", |v| one("summary", v)),
    plain("record", "budget", |v| {
        one("observe-budget", &format!("{}%", v.trim_end_matches('%')))
    }),
    plain("record", "scan", |v| one("scan-period", &format!("{v}ms"))),
    plain("simulate", "budget", |v| one("migrate-budget", v)),
    plain("simulate", "interval", |v| one("decide-every", v)),
    plain("simulate", "threads", simulated_threads),
    plain("map", "threads", |v| one("affinity", v)),
    plain("report", "threads", |v| one("affinity", v)),
    plain("tune", "budget", |v| one("time-limit", v)),
    plain("report", "threads-policy", |v| one("affinity", v)),
    plain("serve", "threads-policy", |v| one("affinity", v)),
    plain("top", "threads-policy", |v| one("affinity", v)),
    plain("map", "threads-policy", |v| one("affinity", v)),
    plain("simulate", "threads-policy", |v| one("affinity", v)),
];

const fn plain(command: &'static str, old: &'static str, new: fn(&str) -> Option<Vec<String>>) -> Renamed {
    Renamed { command, old, new }
}

fn one(name: &str, value: &str) -> Option<Vec<String>> {
    Some(vec![format!("--{name}={value}")])
}

/// Numbers and a policy, as `--threads` had both: `24`, `scatter`, `24,scatter`, `24,16,asym`.
fn parted(value: &str) -> (Vec<&str>, String) {
    let is_number = |part: &&str| part.chars().all(|c| c.is_ascii_digit());
    let parts: Vec<&str> = value.split(',').collect();
    let numbers = parts.iter().take_while(|p| is_number(p)).count();
    (parts[..numbers].to_vec(), parts[numbers..].join(","))
}

fn balanced_threads(value: &str) -> Option<Vec<String>> {
    if value == "off" {
        return Some(Vec::new());
    }
    let (numbers, policy) = parted(value);
    let policy = match policy.as_str() {
        "" => return None,
        nodewise_pipeline::ASYM => "--move-threads".to_owned(),
        policy => format!("--bind={policy}"),
    };
    let count = numbers.first().map(|n| format!("--threads={n}"));
    Some(count.into_iter().chain([policy]).collect())
}

fn simulated_threads(value: &str) -> Option<Vec<String>> {
    let (numbers, policy) = parted(value);
    if policy.is_empty() {
        return None;
    }
    let counts = (!numbers.is_empty()).then(|| format!("--threads={}", numbers.join(",")));
    Some(
        counts
            .into_iter()
            .chain([format!("--affinity={policy}")])
            .collect(),
    )
}

/// The command line with today's names; says which were others. What belongs to a program that is started stays as
/// it is.
pub fn translate(command: &Command, words: Vec<OsString>) -> Vec<OsString> {
    let subcommand = words.get(1).and_then(|w| w.to_str());
    let Some(subcommand) = subcommand.and_then(|name| command.find_subcommand(name)) else {
        return words;
    };
    let mut translated: Vec<OsString> = words[..2].to_vec();
    let mut rest = words.into_iter().skip(2);
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
        let takes_value = old.is_some() || option.takes_value(subcommand);
        let value = match (&option.value, takes_value) {
            (Some(value), _) => Some((*value).to_owned()),
            (None, true) => rest.next().and_then(|v| v.into_string().ok()),
            (None, false) => None,
        };
        let apart = option.value.is_none();
        match old
            .zip(value.as_deref())
            .and_then(|(old, value)| (old.new)(value))
        {
            Some(new) => {
                tell(&option.name, value.as_deref().unwrap_or_default(), &new);
                translated.extend(new.into_iter().map(OsString::from));
            }
            None => {
                translated.push(word);
                translated.extend(value.filter(|_| apart).map(OsString::from));
            }
        }
    }
    translated.extend(rest);
    translated
}

fn tell(old: &str, value: &str, new: &[String]) {
    let new = new.join(" ").replacen('=', " ", new.len());
    match new.is_empty() {
        true => say!("--{old} {value} is what happens without it; leave it out"),
        false => say!("--{old} {value} is written {new} now; the old name goes with the next version"),
    }
}

/// An option as it stands on a command line.
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
        let is_this = |arg: &&Arg| match self.short {
            true => arg.get_short().is_some_and(|c| self.name.starts_with(c)),
            false => arg.get_long() == Some(&self.name),
        };
        let found = command.get_arguments().find(is_this);
        found.is_some_and(|arg| arg.get_action().takes_values() && !arg.is_require_equals_set())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn translated(line: &str) -> String {
        let words = line.split(' ').map(OsString::from).collect();
        let words = translate(&crate::Arguments::command(), words);
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
                "nodewise balance --pid 7",
            ),
            (
                "nodewise simulate a b --threads 24,16,asym",
                "nodewise simulate a b --threads=24,16 --affinity=asym",
            ),
            (
                "nodewise record --via faults --budget 3 --scan 100 x",
                "nodewise record --via faults --observe-budget=3% --scan-period=100ms x",
            ),
        ];
        for (old, new) in lines {
            assert_eq!(translated(old), new);
        }
    }

    #[test]
    fn what_means_the_same_as_ever_and_what_is_the_programs_stays() {
        let lines = [
            "nodewise balance --threads 24 x",
            "nodewise simulate --threads 24,16 a b",
            "nodewise record -o budget ./x --budget 3",
            "nodewise run --bind none x --report y",
            "nodewise run -- --report y",
            "nodewise tune --time-limit 10s -- x",
            "nodewise record --budget",
            "nodewise nothing --budget 3",
            "nodewise",
        ];
        for line in lines {
            assert_eq!(translated(line), line);
        }
    }
}

//! A sweep over the parameters of a policy that moves pages: one parameter varies, all others have their chosen values.

use super::moving::Limits;
use super::table::significant;
use crate::Selected;
use anyhow::bail;
use nodewise_placement::migration::{BALANCE, MIGRATION_POLICIES, migration_policy};
use nodewise_placement::page_policy;
use nodewise_placement::policies::Nothing;
use nodewise_report::{SweepPoint, table};
use nodewise_simulation::{Moving, Parameters, Prediction, Simulation, simulate_moving};
use serde::Serialize;

/// The values that are tried for each parameter, in addition to its chosen value.
const PARAMETER_VALUES: &[(&str, &[&str])] = &[
    ("threshold", &["1", "1.25", "1.5", "2", "2.5", "3", "4", "6"]),
    ("window", &["0", "1", "2", "4", "8", "16", "32"]),
    ("weight", &["linear", "uniform"]),
    ("fixed", &["no", "yes"]),
    ("hysteresis", &["0", "0.05", "0.1", "0.25", "0.5", "1", "2"]),
    ("least", &["1", "1.25", "1.5", "2"]),
    ("local", &["0.5", "0.6", "0.7", "0.8", "0.9", "0.95"]),
    ("imbalance", &["0", "0.2", "0.35", "0.5", "1"]),
    ("exclusivity", &["0.5", "0.6", "0.7", "0.8", "0.9", "0.95"]),
];
const HALF_LIVES: [u32; 6] = [0, 1, 2, 4, 8, 16];
const INTERVALS: [u32; 5] = [1, 2, 4, 8, 16];
const COOLDOWNS: [u32; 5] = [0, 1, 2, 4, 8];
/// The name in `PARAMETER_VALUES` of the parameter that is written without its name: `mixed:0.9`.
const UNNAMED_PARAMETER: &str = "exclusivity";

/// One parameter value, and the index of its prediction.
struct Setting {
    parameter: &'static str,
    value: String,
    chosen: bool,
    moving: usize,
}

/// The results of a parameter sweep.
pub struct Sweep {
    simulation: Simulation,
    settings: Vec<Setting>,
    policy: String,
    limits: Limits,
    /// Remarks of policies on their mappings.
    pub notes: Vec<String>,
}

/// Predicts all points of a sweep, in one pass over the accesses.
pub(super) fn sweep(
    text: &str,
    limits: &Limits,
    selected: &Selected,
    parameters: &Parameters,
) -> anyhow::Result<Sweep> {
    let policy = format!("{BALANCE}{}", text.strip_prefix(BALANCE).unwrap_or(text));
    if let Err(unknown) = migration_policy(&policy, &selected.machine) {
        if page_policy(text, &selected.machine, &Nothing).is_ok() {
            bail!(
                "--sweep {text}: a policy that moves pages (balance:out-w), hot:NODES or hot-objects:NODES can be swept"
            );
        }
        return Err(unknown.into());
    }
    let mut settings = Vec::new();
    let mut moving: Vec<Moving> = vec![limits.moving(&policy, selected, parameters)?];
    let mut add = |parameter, value: &str, chosen: bool, text: &str, limits: &Limits| {
        // A policy may refuse a value, for instance a threshold that no count can exceed.
        let made = if chosen {
            Some(None)
        } else {
            limits.moving(text, selected, parameters).ok().map(Some)
        };
        let Some(made) = made else { return };
        let at = made.map_or(0, |m| {
            moving.push(m);
            moving.len() - 1
        });
        settings.push(Setting {
            parameter,
            value: value.to_owned(),
            chosen,
            moving: at,
        });
    };
    for (parameter, chosen) in policy_parameters(&policy) {
        let known = PARAMETER_VALUES.iter().find(|k| k.0 == parameter);
        for (value, is_chosen) in known
            .iter()
            .flat_map(|k| with_chosen(k.1.iter().map(|v| (*v).to_owned()), &chosen))
        {
            add(
                known.map_or("", |k| k.0),
                &value,
                is_chosen,
                &set(&policy, &parameter, &value),
                limits,
            );
        }
    }
    for (parameter, values, chosen, change) in limit_parameters(limits) {
        for (value, is_chosen) in with_chosen(values.iter().map(u32::to_string), &chosen.to_string()) {
            let mut changed = limits.clone();
            change(&mut changed, value.parse().expect("written above"));
            add(parameter, &value, is_chosen, &policy, &changed);
        }
    }
    let (mappings, notes) = selected.mappings(&limits.start)?;
    let simulation = simulate_moving(
        &selected.context(),
        &mappings,
        moving,
        &selected.reader,
        parameters,
    )?;
    Ok(Sweep {
        simulation,
        settings,
        policy,
        limits: limits.clone(),
        notes,
    })
}

/// A parameter that every policy has: name, values, chosen value, and how to set it.
type LimitParameter = (&'static str, &'static [u32], u32, fn(&mut Limits, u32));

fn limit_parameters(limits: &Limits) -> [LimitParameter; 3] {
    [
        ("half-life", &HALF_LIVES, limits.half_life, |l, v| l.half_life = v),
        ("interval", &INTERVALS, limits.interval, |l, v| l.interval = v),
        ("cooldown", &COOLDOWNS, limits.cooldown, |l, v| l.cooldown = v),
    ]
}

/// The names and values of a policy's own parameters.
fn policy_parameters(policy: &str) -> Vec<(String, String)> {
    let written: Vec<&str> = policy.split(':').skip(2).collect();
    let name = policy.split(':').nth(1).unwrap_or_default();
    let kind = MIGRATION_POLICIES.iter().find(|k| k.name == name);
    let defaults = kind
        .map_or("", |k| k.parameters)
        .split(':')
        .filter(|d| !d.is_empty());
    let value = |default: &str| {
        let (key, value) = match default.split_once('=') {
            Some((key, value)) => (key, value),
            None => (UNNAMED_PARAMETER, default),
        };
        let given = written.iter().find_map(|w| match w.split_once('=') {
            Some((k, v)) => (k == key).then_some(v),
            None => (key == UNNAMED_PARAMETER && w.parse::<f64>().is_ok()).then_some(*w),
        });
        (key.to_owned(), given.unwrap_or(value).to_owned())
    };
    // A word without `=` that is not a number is the name of another policy.
    let numeric = |d: &&str| d.contains('=') || d.parse::<f64>().is_ok();
    defaults.filter(numeric).map(value).collect()
}

/// The policy with one parameter set to a value.
fn set(policy: &str, parameter: &str, value: &str) -> String {
    let is = |part: &&str| match part.split_once('=') {
        Some((key, _)) => key == parameter,
        None => parameter == UNNAMED_PARAMETER && part.parse::<f64>().is_ok(),
    };
    let mut parts: Vec<String> = policy.split(':').filter(|p| !is(p)).map(str::to_owned).collect();
    parts.push(match parameter {
        UNNAMED_PARAMETER => value.to_owned(),
        _ => format!("{parameter}={value}"),
    });
    parts.join(":")
}

/// The values including the chosen one, each with whether it is the chosen one; numbers ascend.
fn with_chosen(values: impl Iterator<Item = String>, chosen: &str) -> Vec<(String, bool)> {
    let same = |value: &str| match (value.parse::<f64>(), chosen.parse::<f64>()) {
        (Ok(a), Ok(b)) => a == b,
        _ => value == chosen,
    };
    let mut all: Vec<_> = values.map(|v| (same(&v), v)).map(|(is, v)| (v, is)).collect();
    if !all.iter().any(|v| v.1) {
        all.push((chosen.to_owned(), true));
    }
    let number = |v: &(String, bool)| v.0.parse().unwrap_or(0.0);
    all.sort_by(|a, b| f64::total_cmp(&number(a), &number(b)));
    all
}

/// Results at one parameter value; keys as documented in `docs/model.md`.
#[derive(Serialize)]
struct Point<'a> {
    parameter: &'a str,
    value: &'a str,
    chosen: bool,
    seconds: f64,
    speedup: f64,
    local_fraction: f64,
    migrations: u64,
    ping_pongs: u64,
    multiple: u64,
    incorrect: Option<u64>,
    migration_seconds: f64,
}

#[derive(Serialize)]
struct Document<'a> {
    machine: &'a str,
    estimate: bool,
    policy: &'a str,
    baseline: &'a str,
    points: Vec<Point<'a>>,
}

impl Sweep {
    fn prediction(&self, setting: &Setting) -> &Prediction {
        // The first prediction is the baseline.
        &self.simulation.predictions[1 + setting.moving]
    }

    fn points(&self) -> impl Iterator<Item = Point<'_>> {
        self.settings.iter().map(|s| {
            let p = self.prediction(s);
            let moved = p.moved.clone().unwrap_or_default();
            Point {
                parameter: s.parameter,
                value: &s.value,
                chosen: s.chosen,
                seconds: p.seconds.typical,
                speedup: p.speedup.typical,
                local_fraction: p.local_fraction,
                migrations: moved.ledger.migrations,
                ping_pongs: moved.ledger.ping_pongs,
                multiple: moved.ledger.multiple,
                incorrect: moved
                    .ledger
                    .incorrect
                    .or((moved.ledger.migrations == 0).then_some(0)),
                migration_seconds: moved.seconds,
            }
        })
    }

    /// The document of `simulate --sweep --json` (its keys: `docs/model.md`).
    ///
    /// # Errors
    /// None are expected.
    pub fn json(&self) -> anyhow::Result<String> {
        let document = Document {
            machine: &self.simulation.machine,
            estimate: true,
            policy: &self.policy,
            baseline: &self.simulation.baseline().policy,
            points: self.points().collect(),
        };
        Ok(serde_json::to_string_pretty(&document)? + "\n")
    }

    fn summary(&self) -> String {
        let Limits {
            half_life,
            interval,
            cooldown,
            ..
        } = self.limits;
        format!(
            "{}, from {}; half-life {half_life}, interval {interval}, cooldown {cooldown} unless the panel says otherwise; estimates",
            self.simulation.machine,
            self.simulation.baseline().policy
        )
    }

    /// The sweep as SVG, with one panel per parameter.
    #[must_use]
    pub fn svg(&self) -> String {
        let point = |p: Point<'_>| SweepPoint {
            parameter: p.parameter.to_owned(),
            value: p.value.to_owned(),
            chosen: p.chosen,
            speedup: p.speedup,
            local_fraction: p.local_fraction,
            migrations: p.migrations,
        };
        let points: Vec<_> = self.points().map(point).collect();
        nodewise_report::sweep_svg(&self.policy, &self.summary(), &points)
    }

    /// Formats the sweep for the terminal.
    #[must_use]
    pub fn text(&self) -> String {
        let header = [
            "parameter",
            "value",
            "seconds",
            "speed-up",
            "local",
            "moves",
            "ping-pongs",
            "multiple",
            "incorrect",
            "",
        ];
        let mut last = "";
        let row = |p: Point<'_>| {
            let name = if p.parameter == last { "" } else { p.parameter };
            last = self
                .settings
                .iter()
                .map(|s| s.parameter)
                .find(|s| *s == p.parameter)
                .unwrap_or_default();
            vec![
                name.to_owned(),
                p.value.to_owned(),
                significant(p.seconds),
                significant(p.speedup),
                nodewise_report::percent(p.local_fraction),
                p.migrations.to_string(),
                p.ping_pongs.to_string(),
                p.multiple.to_string(),
                p.incorrect.map_or("?".into(), |n| n.to_string()),
                if p.chosen { "*" } else { "" }.to_owned(),
            ]
        };
        let rows: Vec<_> = self.points().map(row).collect();
        let header = header.map(str::to_owned).into();
        format!(
            "{} on {}\n\n{}\n* as chosen, and what the other rows have. Estimates. Baseline of speed-ups: {}.\n",
            self.policy,
            self.simulation.machine,
            table("lrrrrrrrrl", std::iter::once(header).chain(rows)),
            self.simulation.baseline().policy
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_is_set_where_it_stands_or_added() {
        assert_eq!(
            set("balance:out-w:threshold=3", "threshold", "2"),
            "balance:out-w:threshold=2"
        );
        assert_eq!(set("balance:out-w", "window", "4"), "balance:out-w:window=4");
        assert_eq!(
            set("balance:mixed:0.8", UNNAMED_PARAMETER, "0.9"),
            "balance:mixed:0.9"
        );
    }

    #[test]
    fn what_is_written_goes_before_defaults() {
        let threshold = |policy| {
            policy_parameters(policy)
                .into_iter()
                .find(|o| o.0 == "threshold")
                .unwrap()
                .1
        };
        assert_eq!(threshold("balance:out-w:threshold=1.7"), "1.7");
        assert_eq!(threshold("balance:out-w"), "2");
    }

    #[test]
    fn the_chosen_value_is_always_among_those_tried_and_once() {
        let values = |chosen| with_chosen(["1", "2"].map(str::to_owned).into_iter(), chosen);
        assert_eq!(values("2.0"), [("1".into(), false), ("2".into(), true)]);
        assert_eq!(
            values("1.5"),
            [("1".into(), false), ("1.5".into(), true), ("2".into(), false)]
        );
    }
}

//! Policies that move pages while the program runs: `balance:P`, and `replay` of what was moved.

use crate::Selected;
use anyhow::bail;
use nodewise_control::Settings;
use nodewise_placement::migration::{BALANCE, MIGRATION_POLICIES, migration_policy};
use nodewise_simulation::{Moving, Parameters, migration_seconds_per_gb};

/// What holds for all of them.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Where pages are before any moves, and the baseline of speed-ups: a page policy.
    pub start: String,
    /// Number of slices between decisions.
    pub interval: u32,
    /// Intervals after which counts are halved; 0 never.
    pub half_life: u32,
    /// Largest share of the run time that moving pages may take.
    pub budget: f64,
    /// Seconds per 10⁹ bytes moved, added to the time of the copy.
    pub migration_cost: f64,
    /// Intervals that a page stays after a move, twice as many after each further one.
    pub cooldown: u32,
    /// Accesses from which on a page is judged.
    pub minimum_samples: u32,
}

/// A list of policies, those that move pages apart.
#[derive(Default)]
pub struct Split {
    /// Comma-separated page policies; empty if there are none.
    pub pages: String,
    /// `balance:P` and `replay`, as written, once each.
    pub moving: Vec<String>,
}

/// Tells page policies from those that move pages; `balance:all` is every one of those.
pub fn split(list: &str) -> Split {
    let (moving, pages): (Vec<&str>, Vec<&str>) = list
        .split(',')
        .map(str::trim)
        .partition(|p| *p == "replay" || p.starts_with(BALANCE));
    let mut split = Split {
        pages: pages.join(","),
        moving: Vec::new(),
    };
    for text in moving {
        let texts = match text.strip_prefix(BALANCE) {
            Some("all") => MIGRATION_POLICIES
                .iter()
                .map(|k| format!("{BALANCE}{}", k.name))
                .collect(),
            _ => vec![text.to_owned()],
        };
        for text in texts {
            if !split.moving.contains(&text) {
                split.moving.push(text);
            }
        }
    }
    split
}

impl Default for Limits {
    /// The limits that `simulate` has where nothing else is asked for.
    fn default() -> Self {
        let settings = Settings::default();
        Self {
            start: "first-touch".to_owned(),
            interval: 1,
            half_life: settings.half_life,
            budget: settings.budget,
            migration_cost: Parameters::default().seconds_per_gb,
            cooldown: settings.cooldown,
            minimum_samples: settings.minimum_samples,
        }
    }
}

impl Limits {
    /// The policy that a text names, starting from the first mapping.
    pub fn moving(&self, text: &str, selected: &Selected, parameters: &Parameters) -> anyhow::Result<Moving> {
        if text == "replay" {
            let migrations = &selected.profile().migrations;
            if migrations.is_empty() {
                bail!(
                    "{}: nothing to replay: no page was moved while this profile was recorded",
                    selected.reader.folder().display()
                );
            }
            return Ok(Moving::replay(0, migrations));
        }
        let policy = migration_policy(text, &selected.machine)?;
        let mut moving = Moving::new(text, 0, policy, self.settings(selected, parameters));
        moving.interval = self.interval;
        Ok(moving)
    }

    /// For the controller of a policy.
    pub fn settings(&self, selected: &Selected, parameters: &Parameters) -> Settings {
        Settings {
            budget: self.budget,
            seconds_per_gb: migration_seconds_per_gb(&selected.machine, parameters),
            seconds_per_batch: 0.0,
            minimum_samples: self.minimum_samples,
            half_life: self.half_life,
            cooldown: self.cooldown,
            page_bytes: selected.histogram.page_size(),
            remembered_pages: selected.histogram.len(),
            ..Settings::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_keeps_its_order_and_each_policy_once() {
        let found = split("first-touch, balance:out-u,locality,replay,balance:out-u");
        assert_eq!(found.pages, "first-touch,locality");
        assert_eq!(found.moving, ["balance:out-u", "replay"]);
    }

    #[test]
    fn balance_all_is_every_policy_that_has_a_name() {
        let found = split("balance:dominant,balance:all");
        assert_eq!(found.pages, "");
        assert_eq!(found.moving[0], "balance:dominant");
        assert_eq!(found.moving.len(), MIGRATION_POLICIES.len());
    }
}

//! Policies under which the homes of pages change while the program runs: `balance:P`, `replay`, which repeats the recorded
//! moves, and those that give pages several nodes: `mirror`, `instances`.

use crate::Selected;
use anyhow::bail;
use nodewise_control::Settings;
use nodewise_placement::makes_copies;
use nodewise_placement::migration::{BALANCE, MIGRATION_POLICIES, migration_policy};
use nodewise_simulation::{Moving, Parameters, migration_seconds_per_gb};

/// Parameters of all policies that move pages.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The page policy for the initial placement of pages, which is also the baseline of speed-ups.
    pub start: String,
    /// Number of slices between decisions.
    pub interval: u32,
    /// Number of intervals after which counts are halved; 0 for never.
    pub half_life: u32,
    /// Largest share of the run time that moving pages may take.
    pub budget: f64,
    /// Time per 10⁹ bytes moved, in seconds, in addition to the time of the copy.
    pub migration_cost: f64,
    /// Cooldown of a page after its first move, in intervals; each further move doubles it (exponential back-off).
    pub cooldown: u32,
    /// Number of accesses from which a page is judged.
    pub minimum_samples: u32,
}

/// A list of policies, divided into page policies, policies that move pages, and policies that give pages several nodes.
#[derive(Default)]
pub struct Split {
    /// Comma-separated page policies; empty if there are none.
    pub pages: String,
    /// `balance:P` and `replay`, as written, once each.
    pub moving: Vec<String>,
    /// `mirror…` and `instances`, as written, once each.
    pub copies: Vec<String>,
}

impl Split {
    /// Refuses policies that give pages several nodes, where `what` is asked for.
    pub fn without_copies(self, what: &str) -> anyhow::Result<Self> {
        match self.copies.first() {
            None => Ok(self),
            Some(policy) => bail!("{policy}: copies are not predicted with {what}"),
        }
    }
}

/// Divides a list into the kinds of policies; `balance:all` stands for all that move pages and whose
/// name suffices.
pub fn split(list: &str) -> Split {
    let (moving, others): (Vec<&str>, Vec<&str>) = list
        .split(',')
        .map(str::trim)
        .partition(|p| *p == "replay" || p.starts_with(BALANCE));
    let (copies, pages): (Vec<&str>, Vec<&str>) = others.into_iter().partition(|p| makes_copies(p));
    let mut split = Split {
        pages: pages.join(","),
        ..Split::default()
    };
    for text in copies.into_iter().map(str::to_owned) {
        if !split.copies.contains(&text) {
            split.copies.push(text);
        }
    }
    for text in moving {
        let texts = match text.strip_prefix(BALANCE) {
            Some("all") => MIGRATION_POLICIES
                .iter()
                .filter(|k| k.is_complete())
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
    /// The default limits of `simulate`.
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
    /// The policy with this name, which starts from the first mapping.
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

    /// The settings of the controller of a policy.
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
        let found =
            split("first-touch, balance:out-u,mirror:a,locality,replay,balance:out-u,mirror@0,mirror:a");
        assert_eq!(found.pages, "first-touch,locality");
        assert_eq!(found.moving, ["balance:out-u", "replay"]);
        assert_eq!(found.copies, ["mirror:a", "mirror@0"]);
    }

    #[test]
    fn balance_all_is_every_policy_that_has_a_name() {
        let found = split("balance:dominant,balance:all");
        assert_eq!(found.pages, "");
        assert_eq!(found.moving[0], "balance:dominant");
        let complete = MIGRATION_POLICIES.iter().filter(|k| k.is_complete()).count();
        assert_eq!(found.moving.len(), complete);
    }
}

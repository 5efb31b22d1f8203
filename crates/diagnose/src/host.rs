//! Checks which features of nodewise work on this host, with a remedy for those that do not (`docs/doctor.md`).

mod emulators;
mod kernel;
mod tiers;
mod toolchain;

use nodewise_linux::Host;
use serde::Serialize;
use std::path::Path;

/// The groups of findings, in the order in which they are shown.
pub const GROUPS: [&str; 4] = ["observers", "actuators", "laboratory", "settings"];

/// Availability of a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// The feature can be used on this host.
    Works,
    /// The feature can be used with limits, which the finding describes.
    Limited,
    /// The feature cannot be used on this host; [`Finding::remedy`] says what helps.
    Missing,
}

/// The result of checking one feature.
#[derive(Debug, Serialize)]
pub struct Finding {
    /// The group of the feature, one of [`GROUPS`].
    pub group: &'static str,
    /// Name in JSON, the same in all versions: `hint-faults`.
    pub name: &'static str,
    /// Availability of the feature.
    pub state: State,
    /// What the feature can be used for on this host, or why it cannot be used.
    pub because: String,
    /// The remedy: a command, or a sentence.
    #[serde(rename = "mend")]
    pub remedy: Option<String>,
}

impl Finding {
    fn new(group: &'static str, name: &'static str, state: State, because: impl Into<String>) -> Self {
        Self {
            group,
            name,
            state,
            because: because.into(),
            remedy: None,
        }
    }

    fn with_remedy(self, remedy: impl Into<String>) -> Self {
        Self {
            remedy: Some(remedy.into()),
            ..self
        }
    }
}

/// The result of all checks. `doctor --json` serialises it without changes.
#[derive(Serialize)]
pub struct Diagnosis {
    /// Version of the running nodewise: `0.1.0`.
    pub version: &'static str,
    /// Whether programs can be recorded, which most other commands depend on.
    pub usable: bool,
    /// All findings, in the order of [`GROUPS`].
    pub findings: Vec<Finding>,
}

impl Diagnosis {
    /// Checks `host`, and the files that were installed in or next to `beside`, the folder of the `nodewise`
    /// executable.
    #[must_use]
    pub fn of(host: &Host, beside: &Path) -> Self {
        let mut findings = toolchain::findings(beside);
        findings.extend(emulators::findings(beside));
        findings.extend(kernel::findings(host));
        findings.extend(tiers::finding(host));
        findings.sort_by_key(|f| GROUPS.iter().position(|g| *g == f.group));
        let usable = !findings
            .iter()
            .any(|f| f.name == "instrument" && f.state == State::Missing);
        Self {
            version: env!("CARGO_PKG_VERSION"),
            usable,
            findings,
        }
    }
}

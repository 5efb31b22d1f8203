//! What works on this host, and the remedy for what does not. Described in `docs/doctor.md`.

mod emulators;
mod kernel;
mod toolchain;

use nodewise_linux::Host;
use serde::Serialize;
use std::path::Path;

/// The kinds of findings, in the order they are shown.
pub const GROUPS: [&str; 4] = ["observers", "actuators", "laboratory", "settings"];

/// How it is with one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Usable on this host as it is.
    Works,
    /// Usable in part, or something to know.
    Limited,
    /// Not usable on this host; `remedy` says what helps.
    Missing,
    /// No part of this version.
    Later,
}

/// One thing looked at.
#[derive(Debug, Serialize)]
pub struct Finding {
    /// The kind of finding, one of [`GROUPS`].
    pub group: &'static str,
    /// Name in JSON, the same in all versions: `hint-faults`.
    pub name: &'static str,
    /// Whether it works here, and how far.
    pub state: State,
    /// What it is good for here, or why not.
    pub because: String,
    /// A command, or what else helps.
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

/// Everything that was looked at; serialised as it is by `doctor --json`.
#[derive(Serialize)]
pub struct Diagnosis {
    /// Version of nodewise that looked.
    pub version: &'static str,
    /// Whether programs can be recorded: without that there is nothing to decide from.
    pub usable: bool,
    /// In the order of [`GROUPS`].
    pub findings: Vec<Finding>,
}

impl Diagnosis {
    /// Looks at `host`, and at what was installed in or next to the folder `beside`, where the command lies.
    #[must_use]
    pub fn of(host: &Host, beside: &Path) -> Self {
        let mut findings = toolchain::findings(beside);
        findings.extend(emulators::findings(beside));
        findings.extend(kernel::findings(host));
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

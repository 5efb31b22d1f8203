//! The report as JSON; the keys are those of the model and documented in `docs/report.md`.

use crate::Report;

/// Pretty-printed, ending in a newline.
#[must_use]
pub fn write(report: &Report) -> String {
    let mut text = serde_json::to_string_pretty(report).expect("plain structs serialize");
    text.push('\n');
    text
}

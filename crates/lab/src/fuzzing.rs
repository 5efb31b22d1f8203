//! Entry points for the fuzz targets.

use crate::control::Control;
use crate::rows::Rows;

/// Parses rows of the counter plug-in, cut into two pieces.
pub fn rows(bytes: &[u8]) {
    let mut rows = Rows::default();
    let (first, second) = bytes.split_at(bytes.len() / 3);
    rows.feed(first);
    rows.feed(second);
    let _ = rows.runs.values().filter_map(|run| run.pages()).count();
}

/// Parses the control channel, cut into two pieces.
pub fn control(bytes: &[u8]) {
    let mut control = Control::default();
    let (first, second) = bytes.split_at(bytes.len() / 3);
    let _ = (control.feed(first), control.feed(second));
}

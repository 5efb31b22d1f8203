//! The summary as JSON, where it was asked for.

use super::Arguments;
use crate::output;
use nodewise_live::{Event, Subscriber};
use std::path::PathBuf;
use std::time::Duration;

/// Writes the summary at the end.
pub struct Document {
    /// Whether it goes to standard output (`--json`).
    print: bool,
    /// The file that it goes to as well (`--summary`), if any.
    file: Option<PathBuf>,
}

impl Document {
    /// The documents that the arguments ask for.
    pub fn new(arguments: &Arguments) -> Self {
        Self {
            print: arguments.json,
            file: arguments.summary.clone(),
        }
    }
}

impl Subscriber for Document {
    fn receive(&mut self, _: Duration, event: &Event<'_>) -> Result<(), String> {
        let Event::Ended(status) = event else {
            return Ok(());
        };
        let text = serde_json::to_string_pretty(&status.document()).map_err(|e| e.to_string())? + "\n";
        if let Some(file) = &self.file {
            output::replace_file(file, &text).map_err(|e| format!("{e:#}"))?;
        }
        if self.print {
            output::print(&text).map_err(|e| format!("{e:#}"))?;
        }
        Ok(())
    }
}

//! What is seen while a laboratory runs: progress on a terminal, and the command's output as it comes.

use super::findings;
use indicatif::{ProgressBar, ProgressStyle};
use nodewise_lab::{Event, Under, Virtual};
use std::io::Write;
use std::time::Duration;

pub struct Show {
    bar: ProgressBar,
    /// Standard output is kept for JSON.
    json: bool,
    runs: Vec<String>,
}

impl Show {
    pub fn new(json: bool, runs: &[Under]) -> Self {
        let bar = ProgressBar::new_spinner();
        bar.set_style(ProgressStyle::with_template("{spinner} {msg} {elapsed}").expect("a valid template"));
        bar.enable_steady_tick(Duration::from_millis(120));
        bar.set_message("packing");
        Self {
            bar,
            json,
            runs: runs.iter().map(ToString::to_string).collect(),
        }
    }

    /// A line to standard error, above the spinner.
    fn say(&self, text: &str) {
        self.bar.suspend(|| eprintln!("nodewise: {text}"));
    }

    pub fn booting(&self, machine: &Virtual) {
        let name = &machine.machine.name;
        let scale = findings::scale(machine).unwrap_or("as it is");
        self.say(&format!("{name}, {scale}"));
        self.bar.set_message("booting");
    }

    pub fn event(&self, event: Event<'_>) {
        match event {
            Event::Ready { .. } => self.bar.set_message("ready"),
            Event::Begins { run } => self.begin(run),
            Event::Output(bytes) if self.json => self.pass(bytes, &mut std::io::stderr()),
            Event::Output(bytes) => self.pass(bytes, &mut std::io::stdout()),
            Event::Errors(bytes) => self.pass(bytes, &mut std::io::stderr()),
            Event::Ends { .. } => self.bar.set_message("collecting"),
        }
    }

    fn begin(&self, run: usize) {
        let name = self.runs.get(run).map_or("", String::as_str);
        if self.runs.len() > 1 {
            self.say(&format!("{} of {}: under {name}", run + 1, self.runs.len()));
        }
        self.bar.set_message(format!("running under {name}"));
    }

    /// A reader that has seen enough does not stop the experiment.
    fn pass(&self, bytes: &[u8], to: &mut dyn Write) {
        let mut write = || to.write_all(bytes).and_then(|()| to.flush());
        self.bar.suspend(|| drop(write()));
    }

    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}

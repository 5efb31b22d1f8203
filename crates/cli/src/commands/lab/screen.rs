//! Shows a running laboratory: progress on a terminal, and the output of the command.

use super::findings;
use crate::output::say;
use indicatif::{ProgressBar, ProgressStyle};
use nodewise_analysis::figures::{plural, seconds};
use nodewise_lab::{Event, Under, Virtual};
use std::cell::Cell;
use std::io::Write;
use std::time::{Duration, Instant};

pub struct Show {
    bar: ProgressBar,
    /// Whether standard output is reserved for JSON.
    json: bool,
    runs: Vec<String>,
    /// Whether the command's last line is incomplete: the spinner would erase it.
    open_line: Cell<bool>,
    /// When the first run began.
    begun: Cell<Option<Instant>>,
}

impl Show {
    pub fn new(json: bool, runs: &[Under]) -> Self {
        let bar = ProgressBar::new_spinner();
        bar.set_style(ProgressStyle::with_template("{spinner} {msg} {elapsed}").expect("a valid template"));
        let show = Self {
            bar,
            json,
            runs: runs.iter().map(ToString::to_string).collect(),
            open_line: Cell::new(false),
            begun: Cell::new(None),
        };
        show.progress("packing");
        show
    }

    fn progress(&self, what: &str) {
        if !self.open_line.get() {
            self.bar.reset();
            self.bar.enable_steady_tick(Duration::from_millis(120));
        }
        self.bar.set_message(what.to_owned());
    }

    /// Prints a line to standard error, above the spinner.
    fn say(&self, text: &str) {
        self.bar.suspend(|| say!("{text}"));
    }

    pub fn booting(&self, machine: &Virtual) {
        let name = &machine.machine.name;
        let scale = findings::scale(machine).unwrap_or("as it is");
        self.say(&format!("{name}, {scale}"));
        self.say(&format!(
            "{}: booting takes about 20 s, and a program about a hundred times as long as on a real machine",
            plural(self.runs.len(), "run")
        ));
        self.progress("booting");
    }

    pub fn event(&self, event: Event<'_>) {
        match event {
            Event::Ready { .. } => self.progress("ready"),
            Event::Begins { run } => self.begin(run),
            Event::Output(bytes) if self.json => self.pass(bytes, &mut std::io::stderr()),
            Event::Output(bytes) => self.pass(bytes, &mut std::io::stdout()),
            Event::Errors(bytes) => self.pass(bytes, &mut std::io::stderr()),
            Event::Ends { run } => self.ended(run),
        }
    }

    /// A run has ended: what the others will take, if they take as long.
    fn ended(&self, run: usize) {
        let (done, all) = (run + 1, self.runs.len());
        if let Some(begun) = self.begun.get().filter(|_| done < all) {
            let each = begun.elapsed().as_secs_f64() / done as f64;
            self.say(&format!(
                "{done} of {all} ended; about {} to go, if the others take as long",
                seconds(each * (all - done) as f64)
            ));
        }
        self.progress("collecting");
    }

    fn begin(&self, run: usize) {
        self.begun.set(self.begun.get().or_else(|| Some(Instant::now())));
        let name = self.runs.get(run).map_or("", String::as_str);
        if self.runs.len() > 1 {
            self.say(&format!("{} of {}: under {name}", run + 1, self.runs.len()));
        }
        self.progress(&format!("running under {name}"));
    }

    /// Passes output on. If its reader has gone (such as `head`), the experiment continues.
    fn pass(&self, bytes: &[u8], to: &mut dyn Write) {
        self.hide();
        let _ = to.write_all(bytes).and_then(|()| to.flush());
        self.open_line.set(bytes.last().is_some_and(|b| *b != b'\n'));
    }

    fn hide(&self) {
        self.bar.disable_steady_tick();
        self.bar.finish_and_clear();
    }

    /// Ends the display of progress; what is printed next begins on a new line.
    pub fn end(&self) {
        self.hide();
        let _ = match (self.open_line.get(), self.json) {
            (true, false) => writeln!(std::io::stdout()),
            (true, true) => writeln!(std::io::stderr()),
            _ => Ok(()),
        };
    }
}

//! Progress of timed runs on the terminal, as `tune` and `validate` show it.

use crate::output::say;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use nodewise_tune::Event;

/// A bar that is hidden until runs begin.
pub struct Progress(ProgressBar);

impl Progress {
    /// `what` is being done stands before the bar.
    pub fn new(what: &'static str) -> Self {
        let bar = ProgressBar::hidden();
        if let Ok(style) = ProgressStyle::with_template("{msg} {bar:30} {pos}/{len} runs, {eta} left") {
            bar.set_style(style);
        }
        bar.set_message(what);
        Self(bar)
    }

    /// Shows an event; notes are printed above the bar. Runs may begin several times.
    pub fn show(&self, event: Event) {
        let bar = &self.0;
        match event {
            Event::Note(text) => bar.suspend(|| say!("{text}")),
            Event::Begins(runs) => {
                bar.reset();
                bar.set_draw_target(ProgressDrawTarget::stderr());
                bar.set_length(runs);
            }
            Event::ProgramResult => bar.inc(1),
            Event::Ends => bar.finish_and_clear(),
        }
    }
}

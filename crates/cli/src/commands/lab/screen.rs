//! Shows a running laboratory: progress on a terminal, and the output of the command.

use super::findings;
use crate::output::say;
use indicatif::{ProgressBar, ProgressStyle};
use nodewise_analysis::figures::{plural, seconds};
use nodewise_lab::{Event, RunPlacement, Setup, VirtualMachine};
use std::cell::Cell;
use std::io::Write;
use std::time::{Duration, Instant};

/// How many times as long as on a real CPU emulated code takes, at least and at most (docs/lab.md, *Cost*).
const EMULATION_SLOWDOWN: (f64, f64) = (10.0, 50.0);
/// What counting accesses adds at most, as a factor (likewise).
const COUNTING_SLOWDOWN: f64 = 4.0 / 3.0;

pub struct Show {
    bar: ProgressBar,
    /// Whether standard output is reserved for JSON.
    json: bool,
    runs: Vec<String>,
    /// Whether the command's last line is incomplete: the spinner would erase it.
    open_line: Cell<bool>,
    setup: Setup,
    /// CPU time of a run on a real machine, if the user knows it.
    plain_cpu: Option<Duration>,
    /// When the first run began.
    begun: Cell<Option<Instant>>,
}

impl Show {
    pub fn new(json: bool, runs: &[RunPlacement], setup: Setup, plain_cpu: Option<Duration>) -> Self {
        let bar = ProgressBar::new_spinner();
        bar.set_style(ProgressStyle::with_template("{spinner} {msg} {elapsed}").expect("a valid template"));
        let show = Self {
            bar,
            json,
            runs: runs.iter().map(ToString::to_string).collect(),
            open_line: Cell::new(false),
            setup,
            plain_cpu,
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

    pub fn booting(&self, machine: &VirtualMachine) {
        let name = &machine.machine.name;
        let scale = findings::scale(machine).unwrap_or("as it is");
        self.say(&format!("{name}, {scale}"));
        let host = std::thread::available_parallelism().map_or(1, usize::from);
        self.say(&estimate(
            self.runs.len(),
            (machine.machine.cpus().len(), host),
            &self.setup,
            self.plain_cpu,
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

    /// Prints, after a run, the estimated time of the remaining runs, from the mean of those so far.
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

/// What the job will take, as far as it can be known before it runs. `cpus` is the number of virtual CPUs and that of
/// host CPUs. At best, all virtual CPUs are at work, and those in excess of the host's share them; at worst the program
/// is serial, and one virtual CPU emulates all of it. Without the CPU time of a run, it is a rate.
fn estimate(runs: usize, cpus: (usize, usize), setup: &Setup, plain_cpu: Option<Duration>) -> String {
    let at_once = cpus.0.min(cpus.1).max(1) as f64;
    let counting = if setup.counters { COUNTING_SLOWDOWN } else { 1.0 };
    let limit = setup.time_limit.map_or_else(
        || "no time limit (--time-limit)".to_owned(),
        |limit| format!("the time limit is {}", seconds(limit.as_secs_f64())),
    );
    let emulated = format!(
        "{}, emulated by {} of this host",
        plural(cpus.0, "virtual CPU"),
        plural(cpus.1, "CPU")
    );
    if runs == 0 {
        return format!("{emulated}: a few seconds to boot; {limit}");
    }
    let (each, cpu) = match plain_cpu {
        None => ("each second of CPU time on a real machine".to_owned(), 1.0),
        Some(time) => {
            let cpu = time.as_secs_f64();
            (format!("{} of CPU time a run", seconds(cpu)), cpu)
        }
    };
    let least = EMULATION_SLOWDOWN.0 * cpu * runs as f64 / at_once;
    let most = EMULATION_SLOWDOWN.1 * cpu * counting * runs as f64;
    let short = plain_cpu
        .and(setup.time_limit)
        .is_some_and(|limit| limit.as_secs_f64() < least);
    format!(
        "{} on {emulated}: {} (parallel) to {} (serial) for {each}, and a few seconds to boot; {limit}{}",
        plural(runs, "run"),
        seconds(least),
        seconds(most),
        if short { ", which is too short" } else { "" },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimate_depends_on_runs_cpus_and_limit() {
        let setup = |counters, limit: Option<u64>| Setup {
            kernel: None,
            time_limit: limit.map(Duration::from_secs),
            counters,
            disk: None,
        };
        let text = estimate(2, (8, 2), &setup(true, Some(90)), None);
        assert!(
            text.starts_with("2 runs on 8 virtual CPUs, emulated by 2 CPUs"),
            "{text}"
        );
        let times = |runs, cpus| {
            let text = estimate(runs, cpus, &setup(false, None), None);
            assert!(text.ends_with("no time limit (--time-limit)"), "{text}");
            text.split(": ")
                .nth(1)
                .unwrap()
                .split(" for")
                .next()
                .unwrap()
                .to_owned()
        };
        let written =
            |least: f64, most: f64| format!("{} (parallel) to {} (serial)", seconds(least), seconds(most));
        assert_eq!(times(1, (1, 16)), written(10.0, 50.0));
        assert_eq!(times(2, (8, 2)), written(10.0, 100.0));
        let known = |limit| {
            estimate(
                2,
                (8, 2),
                &setup(false, Some(limit)),
                Some(Duration::from_secs(3)),
            )
        };
        let job = format!("{} for {} of CPU time a run", written(30.0, 300.0), seconds(3.0));
        assert!(known(90).contains(&job), "{}", known(90));
        assert!(known(29).ends_with("too short") && !known(31).contains("too short"));
        assert!(!estimate(0, (8, 2), &setup(true, None), None).contains("run"));
    }
}

//! Runs an experiment in a guest and collects its results.

use crate::attribution::{NodeMaps, attribute};
use crate::calibration::{Calibration, Segment};
use crate::control::{Control, Message};
use crate::guest::{Guest, Stream};
use crate::rows::Rows;
use crate::{GuestRun, Lab, LabError};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Events of a session, as they happen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event<'a> {
    /// The guest is up.
    Ready {
        /// Seconds of the host since QEMU started.
        seconds: f64,
    },
    /// A run starts in the guest.
    Begins {
        /// Index of the run in [`crate::Experiment::runs`].
        run: usize,
    },
    /// The command's standard output.
    Output(&'a [u8]),
    /// The command's standard error.
    Errors(&'a [u8]),
    /// A run has ended.
    Ends {
        /// Index of the run in [`crate::Experiment::runs`].
        run: usize,
    },
}

/// The results of an experiment.
#[derive(Clone, Debug, Default)]
pub struct Session {
    /// Why the guest ended before all runs had ended; the results of earlier runs are kept.
    pub stopped: Option<LabError>,
    /// The result of each run, in order.
    pub outcomes: Vec<GuestRun>,
    /// Time on the host from QEMU's start to the first user instruction in the guest, seconds.
    pub boot_seconds: f64,
    /// Files of the guest's sysfs, by their paths below `/sys`.
    pub capture: Vec<(String, Vec<u8>)>,
    /// Files the runs left, by their absolute paths in the guest.
    pub brought_files: Vec<(String, Vec<u8>)>,
    /// The version of QEMU.
    pub qemu: String,
    /// The version of the guest's kernel.
    pub kernel: String,
}

const NOT_COUNTED: &str =
    "no figures: it was refused or could not be started, or its beginning and end were not seen once each";
const OUT_OF_MEMORY: &str = "the guest ran out of memory: --memory gives it more";
/// Exit status that a shell reports for SIGILL.
const SIGILL_STATUS: u8 = 132;
const NO_SUCH_INSTRUCTION: &str = "ended by an illegal instruction: QEMU has no AVX-512";
/// Time for a guest to come up; long, because the host may be busy.
const BOOT_TIMEOUT: Duration = Duration::from_secs(300);
/// Time for a guest's first output (or a third of the time limit, if that is less). A guest without output by then is
/// started a second time: on busy hosts a start rarely hangs.
const FIRST_OUTPUT_TIMEOUT: Duration = Duration::from_secs(120);

/// Starts of a guest whose kernel meets stale breakpoints.
const MAX_STARTS: u32 = 4;

impl Lab {
    /// Boots the guest, runs the experiment, ends the guest. QEMU does not outlive this call, this process, or this
    /// thread.
    ///
    /// If time runs out or the guest fails after some runs have ended, these are returned, with the reason in
    /// [`Session::stopped`].
    ///
    /// # Errors
    /// If QEMU does not start, the kernel does not come up, or the guest fails or time runs out before a run has ended.
    pub fn run(self, on: &mut dyn FnMut(Event<'_>)) -> Result<Session, LabError> {
        let begun = Instant::now();
        let first_output_limit = self
            .time_limit
            .map_or(FIRST_OUTPUT_TIMEOUT, |limit| FIRST_OUTPUT_TIMEOUT.min(limit / 3));
        let mut limit = first_output_limit;
        for _ in 0..MAX_STARTS {
            match self.attempt(begun, limit, on)? {
                Attempt::Ran(session) => return Ok(*session),
                Attempt::Silent if limit == BOOT_TIMEOUT => {
                    return Err(LabError::own(
                        "the guest did not come up: it said nothing, twice; is this host much too busy?",
                    ));
                }
                Attempt::Silent => limit = BOOT_TIMEOUT,
                Attempt::Tripped => {}
            }
        }
        Err(LabError::own(format!(
            "the guest did not come up: its kernel met a stale breakpoint, {MAX_STARTS} times; a newer QEMU may help"
        )))
    }

    /// Starts the guest once, and waits `first_output_limit` for its first output. The time limit counts from `begun`.
    fn attempt(
        &self,
        begun: Instant,
        first_output_limit: Duration,
        on: &mut dyn FnMut(Event<'_>),
    ) -> Result<Attempt, LabError> {
        let mut guest = Guest::start(self)?;
        let mut state = SessionState::new(self, begun);
        let mut out_of_time = None;
        // Rows are written before the control message that follows them, and are read in the same step.
        while !state.done && state.failed.is_none() {
            out_of_time = state.out_of_time(self);
            if out_of_time.is_some() {
                break;
            }
            if state.is_late(first_output_limit) && guest.is_silent() {
                return Ok(Attempt::Silent);
            }
            if state.is_late(BOOT_TIMEOUT) {
                return Err(guest.failure_reason(false));
            }
            let starting = state.first_run.is_none();
            let open = guest.read(state.pause(self), &mut |stream, bytes| {
                state.receive(stream, bytes, on);
            })?;
            if starting {
                guest.check_files()?;
            }
            if !open {
                break;
            }
        }
        let broken = !state.done && state.failed.is_none() && out_of_time.is_none();
        guest.end(&mut |stream, bytes| state.receive(stream, bytes, on), broken);
        let failed = state.failed.take();
        let failed = failed.map(|text| LabError::own(format!("the guest: {text}")));
        let was_up = state.session.boot_seconds > 0.0;
        if broken && !was_up && guest.has_tripped() {
            return Ok(Attempt::Tripped);
        }
        let silent = || (!state.done).then(|| guest.failure_reason(was_up));
        let stopped = out_of_time.or(failed).or_else(silent);
        if let Some(error) = stopped {
            if !state.session.outcomes.iter().any(|run| run.ended) {
                return Err(error);
            }
            state.stop(error);
        }
        let mut session = state.finish(self)?;
        note_failure_reasons(&mut session.outcomes, guest.ran_out_of_memory());
        Ok(Attempt::Ran(Box::new(session)))
    }
}

/// How a start of the guest went.
enum Attempt {
    /// It came up, and its runs are over.
    Ran(Box<Session>),
    /// It had no output in time.
    Silent,
    /// Its kernel met a breakpoint that it had removed: see [`Guest::has_tripped`].
    Tripped,
}

/// Adds notes on why runs failed, if their exit status or the guest's kernel shows it.
fn note_failure_reasons(outcomes: &mut [GuestRun], out_of_memory: bool) {
    for outcome in outcomes.iter_mut().filter(|o| o.exit_status != 0) {
        if out_of_memory {
            outcome.notes.push(OUT_OF_MEMORY.to_owned());
        }
        if outcome.exit_status == SIGILL_STATUS {
            outcome.notes.push(NO_SUCH_INSTRUCTION.to_owned());
        }
    }
}

/// What was received from the guest so far.
struct SessionState {
    control: Control,
    rows: Rows,
    segments: Vec<Segment>,
    pages: Vec<(u32, u64)>,
    session: Session,
    objects: Vec<String>,
    /// End of each slice of each run, nanoseconds.
    slices: Vec<Vec<u64>>,
    begun: Instant,
    /// Start of this guest.
    started: Instant,
    first_run: Option<Instant>,
    done: bool,
    failed: Option<String>,
}

impl SessionState {
    fn new(lab: &Lab, begun: Instant) -> Self {
        let outcome = |under: &crate::RunPlacement| GuestRun {
            under: under.to_string(),
            ..GuestRun::default()
        };
        Self {
            control: Control::default(),
            rows: Rows::default(),
            segments: Vec::new(),
            pages: Vec::new(),
            session: Session {
                outcomes: lab.runs.iter().map(outcome).collect(),
                qemu: lab.qemu.version.clone(),
                kernel: lab.kernel.version.clone(),
                ..Session::default()
            },
            objects: vec![String::new(); lab.runs.len()],
            slices: vec![Vec::new(); lab.runs.len()],
            begun,
            started: Instant::now(),
            first_run: None,
            done: false,
            failed: None,
        }
    }

    fn pause(&self, lab: &Lab) -> Duration {
        let left = lab.time_limit.map(|l| l.saturating_sub(self.begun.elapsed()));
        left.unwrap_or(Duration::from_secs(1)).min(Duration::from_secs(1))
    }

    /// Whether the guest has not begun its first run although `limit` has passed since its start.
    fn is_late(&self, limit: Duration) -> bool {
        self.first_run.is_none() && self.started.elapsed() > limit
    }

    fn out_of_time(&self, lab: &Lab) -> Option<LabError> {
        let limit = lab.time_limit?;
        let when = match self.first_run {
            Some(_) => "",
            None => ", before the command ran",
        };
        let text = || {
            format!(
                "the time limit of {} s is over{when}; emulated code is 10 to 50 times slower than on a real CPU",
                limit.as_secs_f64()
            )
        };
        (!self.done && self.begun.elapsed() >= limit).then(|| LabError::time(text()))
    }

    /// Ends the session early: runs that have not ended get a note with the reason.
    fn stop(&mut self, why: LabError) {
        for run in self.session.outcomes.iter_mut().filter(|run| !run.ended) {
            run.notes.push(format!("did not run to its end: {why}"));
        }
        self.session.stopped = Some(why);
    }

    /// Marks the first `runs` runs as ended: all their output was received.
    fn end_runs(&mut self, runs: usize) {
        let runs = runs.min(self.session.outcomes.len());
        self.session.outcomes[..runs]
            .iter_mut()
            .for_each(|run| run.ended = true);
    }

    fn receive(&mut self, stream: Stream, bytes: &[u8], on: &mut dyn FnMut(Event<'_>)) {
        match stream {
            Stream::Output => on(Event::Output(bytes)),
            Stream::Errors => on(Event::Errors(bytes)),
            Stream::Rows => self.rows.feed(bytes),
            Stream::Control => {
                for message in self.control.feed(bytes) {
                    self.handle(message, on);
                }
            }
        }
    }

    fn handle(&mut self, message: Message, on: &mut dyn FnMut(Event<'_>)) {
        match message {
            Message::Ready(_) => {
                self.session.boot_seconds = self.started.elapsed().as_secs_f64();
                let seconds = self.session.boot_seconds;
                on(Event::Ready { seconds });
            }
            Message::Segment { node, first, pages } => self.segments.push(Segment { node, first, pages }),
            Message::Page { node, frame } => self.pages.push((node, frame)),
            Message::Begin(run) => {
                self.first_run.get_or_insert_with(Instant::now);
                self.end_runs(run);
                on(Event::Begins { run });
            }
            Message::Capture { path, bytes } => self.session.capture.push((path, bytes)),
            Message::Brought { path, bytes } => self.session.brought_files.push((path, bytes)),
            Message::Failed(text) => self.failed = Some(text),
            Message::Done => {
                self.done = true;
                self.end_runs(usize::MAX);
            }
            of_run => self.handle_run_message(of_run, on),
        }
    }

    fn handle_run_message(&mut self, message: Message, on: &mut dyn FnMut(Event<'_>)) {
        let outcomes = &mut self.session.outcomes;
        match message {
            Message::End {
                run,
                status,
                nanoseconds,
            } if run < outcomes.len() => {
                outcomes[run].exit_status = status;
                outcomes[run].guest_ns = nanoseconds;
                on(Event::Ends { run });
            }
            Message::Slice { run, nanoseconds } if run < outcomes.len() => self.slices[run].push(nanoseconds),
            Message::Counter { run, name, rise } if run < outcomes.len() => {
                outcomes[run].kernel.insert(name, rise);
            }
            Message::File { run, name, bytes } if run < outcomes.len() => {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                match name.as_str() {
                    "objects" => self.objects[run] = text,
                    "report.json" => outcomes[run].placement = Some(text),
                    "balance.json" => outcomes[run].balance = Some(text),
                    _ => {}
                }
            }
            _ => {}
        }
    }

    /// Computes the figures of all runs.
    fn finish(mut self, lab: &Lab) -> Result<Session, LabError> {
        if lab.plugin.is_none() {
            return Ok(self.session);
        }
        if self.rows.damaged > 0 {
            return Err(LabError::own(
                "the counters wrote what means nothing: no figures rather than wrong ones",
            ));
        }
        let samples = Calibration::pair(&self.pages, &self.rows.nodes)?;
        let frames = Calibration::learn(&self.segments, &samples)?;
        let cpus = self.cpus(lab);
        let node_maps = NodeMaps {
            nodes: lab.machine.machine.node_count(),
            frames: &frames,
            cpus: &cpus,
        };
        let ended = |(_, outcome): &(usize, &mut GuestRun)| outcome.ended;
        for (run, outcome) in self.session.outcomes.iter_mut().enumerate().filter(ended) {
            let counted = self.rows.runs.get(&(run as u64));
            match counted.and_then(|counted| Some((counted.pages()?, counted.slices()))) {
                Some((pages, slices)) => {
                    let slices: Vec<_> = self.slices[run].iter().copied().zip(slices).collect();
                    attribute(outcome, &self.objects[run], pages, &slices, &node_maps);
                }
                None => outcome.notes.push(NOT_COUNTED.to_owned()),
            }
        }
        Ok(self.session)
    }

    /// The node of each virtual CPU.
    fn cpus(&self, lab: &Lab) -> HashMap<u32, usize> {
        let nodes: HashMap<u32, usize> = lab
            .machine
            .machine
            .cpus()
            .iter()
            .map(|(c, n)| (c.0, n.index()))
            .collect();
        let place = |(vcpu, cpu): &(u32, u32)| Some((*vcpu, *nodes.get(cpu)?));
        self.rows.cpus.iter().filter_map(place).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn failures_are_explained_and_nothing_else() {
        let status = |exit_status| GuestRun {
            exit_status,
            ..GuestRun::default()
        };
        let mut outcomes = [0, 132, 1].map(status);
        note_failure_reasons(&mut outcomes, false);
        assert_eq!(outcomes.each_ref().map(|o| o.notes.len()), [0, 1, 0]);
        assert!(outcomes[1].notes[0].contains("AVX-512"));
        note_failure_reasons(&mut outcomes, true);
        assert_eq!(outcomes.each_ref().map(|o| o.notes.len()), [0, 3, 1]);
    }
}

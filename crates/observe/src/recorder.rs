//! Records a program that counts its accesses: runs it and ends slices until it ends.

use crate::alive::{CHECK_INTERVAL, CHECKS_TO_END};
use crate::control::Control;
use crate::coverage::SAMPLES_PER_SECOND;
use crate::error::{Error, cannot_start};
use crate::plain::{PlainRun, time_plain};
use crate::recording::{Recording, any_runs};
use crate::slicing::Slicing;
use nodewise_linux::child::{Forwarding, cpu_of_ended, shell_status};
use nodewise_linux::cpu_ticks::HostTime;
use nodewise_linux::perf::Sampler;
use nodewise_linux::{Host, clock};
use nodewise_profile::{Coverage, Meta, Observer, Profile};
use nodewise_store::Writer;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::{Duration, Instant};

/// What to record, and where to write it.
pub struct Options<'a> {
    /// The program, with arguments and environment.
    pub command: Command,
    /// The profile's folder, which is created.
    pub folder: &'a Path,
    /// Whether to replace an existing profile.
    pub force: bool,
    /// What ends a slice: time, a number of accesses, or a region.
    pub slicing: Slicing,
    /// Metadata that is known beforehand: command, host, version.
    pub meta: Meta,
    /// The plain build with the same arguments, timed after the program has ended with status 0; not earlier, because
    /// it may consume the program's input.
    pub plain: Option<Command>,
}

/// Progress of a recording.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Time since the start.
    pub elapsed: Duration,
    /// Accesses counted up to the end of the last slice.
    pub accesses: u64,
    /// Number of slices so far.
    pub slices: usize,
}

/// Result of a recording.
pub struct Recorded {
    /// The profile without its accesses.
    pub profile: Profile,
    /// Exit status of the program, in a shell's form.
    pub status: u8,
    /// Number of accesses counted.
    pub accesses: u64,
    /// Number of accesses that could not be counted.
    pub dropped: u64,
    /// Number of process images that made accesses.
    pub processes: usize,
    /// The plain run, if one was asked for.
    pub plain: Option<PlainRun>,
    /// Whether the kernel permitted sampling of CPU time; without it coverage is unknown.
    pub sampled: bool,
    /// Programs that ran under the emulator without being counted, each once: privileged ones and those of other
    /// architectures.
    pub uncounted: Vec<String>,
    /// Whether any program wrote a log: false if none was built to be recorded.
    pub any_announced: bool,
}

/// Runs the program and records it until it ends in any way. Calls `look` repeatedly, and `plain_look` during the plain run.
///
/// # Errors
/// The program cannot be started, or the profile cannot be written.
pub fn record(
    options: Options<'_>,
    look: impl FnMut(Progress) + Send,
    plain_look: impl FnMut(Duration),
) -> Result<Recorded, Error> {
    let Options {
        mut command,
        folder,
        force,
        slicing,
        meta,
        plain,
    } = options;
    let writer = Writer::create(folder, &meta, force)?;
    let raw = make_raw(folder)?;
    let control = Control::create(&raw, slicing).map_err(|e| Error::raw(&raw, &e))?;
    command.env("NODEWISE_RAW", &raw);

    // Samples of an emulated program would only show the emulator.
    let emulated = meta.observer == Observer::Emulate;
    let sampler = (!emulated)
        .then(|| Sampler::of_children(SAMPLES_PER_SECOND).ok())
        .flatten();
    let mut recording = Recording::new(&raw, writer, sampler);
    recording.profile_mut().meta = meta;
    recording.checkpoint()?; // for `recover`, in case we are killed
    let host = Host::default();
    let (start, before, host_before) = (Instant::now(), cpu_of_ended(), HostTime::now(&host));
    let child = Forwarding::start(&mut command).map_err(|e| {
        let _ = std::fs::remove_dir_all(folder); // the folder is ours and empty
        cannot_start(&command, &e)
    })?;
    let stop = AtomicBool::new(false);
    let (ended, result) = std::thread::scope(|scope| {
        let slicer = scope.spawn(|| {
            let answering = Answering(&control);
            let result = cut_slices(&mut recording, &control, slicing, start, &stop, look);
            if result.is_ok() {
                std::mem::forget(answering); // the last slice is taken when all processes have ended
            }
            result
        });
        let status = child.wait(CHECK_INTERVAL, |_| CHECK_INTERVAL);
        // Before the slicer ends, which may be writing.
        let (wall, used) = (start.elapsed(), cpu_of_ended().since(before));
        let others = HostTime::now(&host).others_since(host_before, used.total().as_secs_f64());
        stop.store(true, Release);
        control.wake();
        let result = slicer.join().expect("the slicer does not panic");
        ((status, wall, used, others), result)
    });
    let (status, wall, used, others) = ended;
    let cpu_ns = clock::nanoseconds(used.total());
    wait_for_processes(&raw);
    control.close();
    let status = shell_status(status.map_err(|e| Error::raw(folder, &e))?);
    let meta = &mut recording.profile_mut().meta;
    (meta.truncated, meta.cpu_ns, meta.others) = (control.truncated(), Some(cpu_ns), others);
    recording.finish_samples(used);
    let plain = plain.map(|plain| timed(plain, status, plain_look)).transpose();
    let recorded = result.and_then(|()| complete(recording, &raw, wall, (status, plain?)));
    recorded.map_err(|e| e.with_counters_left(folder))
}

/// The plain run, if the recorded run ended with status 0.
fn timed(mut plain: Command, status: u8, look: impl FnMut(Duration)) -> Result<PlainRun, Error> {
    match status {
        0 => time_plain(&mut plain, look),
        status => Ok(PlainRun {
            cpu_ns: None,
            wall_ns: 0,
            sampled: false,
            unusable: Some(format!("it was not run, as this run ended with status {status}")),
        }),
    }
}

/// Takes the last slice, writes the tables and removes the raw files.
fn complete(
    mut recording: Recording,
    raw: &Path,
    wall: Duration,
    (status, plain): (u8, Option<PlainRun>),
) -> Result<Recorded, Error> {
    recording.cut(clock::nanoseconds(wall))?;
    let missing = recording.unread().or_else(|| still_running(recording.running()));
    let meta = &mut recording.profile_mut().meta;
    meta.wall_ns = clock::nanoseconds(wall);
    meta.exit_status = Some(i32::from(status));
    let usable = plain.as_ref().filter(|plain| plain.unusable.is_none());
    meta.plain_cpu_ns = usable.and_then(|plain| plain.cpu_ns);
    if meta.observer == Observer::Instrument && meta.coverage.own_samples() < Coverage::FEW {
        meta.plain_cpu_ns = None;
    }
    meta.truncated = meta.truncated.take().or(missing);
    let (accesses, dropped) = (recording.accesses(), recording.dropped());
    let (processes, any_announced) = (recording.processes(), recording.any_announced());
    let sampled = recording.samples_permitted();
    let uncounted = uncounted(raw);
    let profile = recording.finish()?;
    // The profile is complete: the raw files are no longer needed.
    let _ = std::fs::remove_dir_all(raw);
    Ok(Recorded {
        profile,
        status,
        accesses,
        dropped,
        processes,
        plain,
        sampled,
        uncounted,
        any_announced,
    })
}

/// Waits a little for other processes of the command to end.
fn wait_for_processes(raw: &Path) {
    for _ in 0..CHECKS_TO_END {
        if !any_runs(raw) {
            return;
        }
        std::thread::sleep(CHECK_INTERVAL);
    }
}

/// Why the recording is incomplete if this number of processes still runs.
pub(crate) fn still_running(running: usize) -> Option<String> {
    let (running, processes) = match running {
        0 => return None,
        1 => (1, "process"),
        n => (n, "processes"),
    };
    Some(format!(
        "{running} {processes} still ran when the command ended, and what they did after it is not counted"
    ))
}

/// Answers requests for slices. Dropped when it no longer does, so that no process waits for an answer.
struct Answering<'a>(&'a Control);

impl Drop for Answering<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

fn cut_slices(
    recording: &mut Recording,
    control: &Control,
    slicing: Slicing,
    start: Instant,
    stop: &AtomicBool,
    mut look: impl FnMut(Progress),
) -> Result<(), Error> {
    let (mut taken, mut unsaved) = (0, false);
    let mut due = match slicing {
        Slicing::Time(length) => Some(length),
        _ => None,
    };
    while !stop.load(Acquire) {
        let now = start.elapsed();
        let pause = due.map_or(CHECK_INTERVAL, |d| d.saturating_sub(now).min(CHECK_INTERVAL));
        let requested = control.requested(taken, pause);
        let now = start.elapsed();
        let is_due = due.is_some_and(|d| now >= d);
        if requested != taken || is_due {
            recording.cut(clock::nanoseconds(now))?;
            taken = requested;
            control.set_taken(taken);
            unsaved = true;
        }
        if unsaved {
            unsaved = !recording.checkpoint()?; // after the program may go on
        }
        if let (true, Slicing::Time(length)) = (is_due, slicing) {
            // On a slow machine slices get longer, rather than the schedule falling further behind.
            due = Some(
                due.unwrap_or_default()
                    .max(start.elapsed().saturating_sub(length))
                    + length,
            );
        }
        recording.take_samples();
        look(Progress {
            elapsed: now,
            accesses: recording.accesses(),
            slices: recording.slices(),
        });
    }
    Ok(())
}

/// Programs that were not counted: the emulator's plugin writes them to a file, one line each.
fn uncounted(raw: &Path) -> Vec<String> {
    let text = nodewise_input::text(&raw.join("uncounted")).unwrap_or_default();
    let names: BTreeSet<&str> = text.lines().collect();
    names.into_iter().map(str::to_owned).collect()
}

pub(crate) fn make_raw(folder: &Path) -> Result<PathBuf, Error> {
    let raw = folder.join("raw");
    std::fs::create_dir(&raw)
        .and_then(|()| raw.canonicalize())
        .map_err(|e| Error::raw(&raw, &e))
}

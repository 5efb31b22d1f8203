//! The recorder: runs the program and cuts slices until it ends.

use crate::control::Control;
use crate::coverage::FREQUENCY;
use crate::error::{Error, ErrorKind};
use crate::recording::{Recording, any_runs};
use crate::slicing::Slicing;
use nodewise_linux::child::{Forwarding, shell_status};
use nodewise_linux::perf::Sampler;
use nodewise_profile::{Meta, Observer, Profile};
use nodewise_store::Writer;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::{Duration, Instant};

/// How often the recorder looks up, whatever the slices.
pub(crate) const LOOK: Duration = Duration::from_millis(100);

/// How many looks what the command leaves behind has to end in.
pub(crate) const PATIENCE: u32 = 3;

/// What to record and where to.
pub struct Options<'a> {
    /// The program, with arguments and environment.
    pub command: Command,
    /// Where the profile goes; made here.
    pub folder: &'a Path,
    /// Replace a profile that is there.
    pub force: bool,
    /// How slices are cut.
    pub slicing: Slicing,
    /// What is known beforehand: command, host, version.
    pub meta: Meta,
}

/// What a recording is like so far.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Since the start.
    pub elapsed: Duration,
    /// Accesses counted, up to the last slice's end.
    pub accesses: u64,
    /// Slices cut.
    pub slices: usize,
}

/// How a recording ended.
pub struct Recorded {
    /// The profile without its accesses.
    pub profile: Profile,
    /// Exit status of the program as a shell gives it.
    pub status: u8,
    /// Accesses counted.
    pub accesses: u64,
    /// Accesses that could not be counted.
    pub dropped: u64,
    /// Process images that made accesses.
    pub processes: usize,
    /// Whether the kernel let us sample: without, coverage is unknown.
    pub sampled: bool,
    /// The share of the program's CPU time in our runtime, inlined counters not included.
    pub cost: Option<f64>,
    /// Programs that ran under an emulator uncounted: privileged ones and other architectures', each once.
    pub uncounted: Vec<String>,
    /// Whether any program announced itself: false if none was built to be recorded.
    pub heard_of_any: bool,
}

/// Runs the program and records it until it ends, however it ends. `look` is called now and then.
///
/// # Errors
/// The program cannot be started, or the profile not be written.
pub fn record(options: Options<'_>, look: impl FnMut(Progress) + Send) -> Result<Recorded, Error> {
    let Options {
        mut command,
        folder,
        force,
        slicing,
        meta,
    } = options;
    let writer = Writer::create(folder, &meta, force)?;
    let raw = make_raw(folder)?;
    let control = Control::create(&raw, slicing).map_err(|e| Error::raw(&raw, &e))?;
    command.env("NODEWISE_RAW", &raw);

    // Of an emulated program samples would tell where the emulator is.
    let emulated = meta.observer == Observer::Emulate;
    let sampler = (!emulated)
        .then(|| Sampler::of_children(FREQUENCY).ok())
        .flatten();
    let mut recording = Recording::new(&raw, writer, sampler);
    recording.profile_mut().meta = meta;
    recording.checkpoint()?; // what `recover` finds should we be killed
    let start = Instant::now();
    let child = Forwarding::start(&mut command).map_err(|e| {
        let _ = std::fs::remove_dir_all(folder); // ours, and empty
        cannot_start(&command, &e)
    })?;
    let stop = AtomicBool::new(false);
    let (status, result) = std::thread::scope(|scope| {
        let slicer = scope.spawn(|| cut_slices(&mut recording, &control, slicing, start, &stop, look));
        let status = child.wait(LOOK, |_| LOOK);
        stop.store(true, Release);
        control.wake();
        (status, slicer.join().expect("the slicer does not panic"))
    });
    let wall = start.elapsed();
    let_end(&raw);
    control.close();
    let status = shell_status(status.map_err(|e| Error::raw(folder, &e))?);
    recording.profile_mut().meta.truncated = control.truncated();
    let recorded = result.and_then(|()| complete(recording, &raw, wall, status));
    recorded.map_err(|e| e.with_counters_left(folder))
}

/// The last slice, the tables, and away with the raw files.
fn complete(mut recording: Recording, raw: &Path, wall: Duration, status: u8) -> Result<Recorded, Error> {
    recording.cut(nanoseconds(wall))?;
    recording.finish_samples();
    let missing = recording.unread().or_else(|| outlived(recording.running()));
    let meta = &mut recording.profile_mut().meta;
    meta.wall_ns = nanoseconds(wall);
    meta.exit_status = Some(i32::from(status));
    meta.truncated = meta.truncated.take().or(missing);
    let (accesses, dropped) = (recording.accesses(), recording.dropped());
    let (processes, heard_of_any) = (recording.processes(), recording.heard_of_any());
    let (sampled, cost) = (recording.samples_permitted(), recording.cost());
    let uncounted = uncounted(raw);
    let profile = recording.finish()?;
    // The profile is whole: what is left of the raw files is only litter.
    let _ = std::fs::remove_dir_all(raw);
    Ok(Recorded {
        profile,
        status,
        accesses,
        dropped,
        processes,
        sampled,
        cost,
        uncounted,
        heard_of_any,
    })
}

/// Processes of the command may be about to end with it.
fn let_end(raw: &Path) {
    for _ in 0..PATIENCE {
        if !any_runs(raw) {
            return;
        }
        std::thread::sleep(LOOK);
    }
}

/// Why a recording of a command is not whole of which so many processes run on.
pub(crate) fn outlived(running: usize) -> Option<String> {
    let (running, processes) = match running {
        0 => return None,
        1 => (1, "process"),
        n => (n, "processes"),
    };
    Some(format!(
        "{running} {processes} still ran when the command ended, and what they did after it is not counted"
    ))
}

fn cut_slices(
    recording: &mut Recording,
    control: &Control,
    slicing: Slicing,
    start: Instant,
    stop: &AtomicBool,
    mut look: impl FnMut(Progress),
) -> Result<(), Error> {
    let mut taken = 0;
    let mut due = match slicing {
        Slicing::Time(length) => Some(length),
        _ => None,
    };
    while !stop.load(Acquire) {
        let now = start.elapsed();
        let pause = due.map_or(LOOK, |d| d.saturating_sub(now).min(LOOK));
        let requested = control.requested(taken, pause);
        let now = start.elapsed();
        let is_due = due.is_some_and(|d| now >= d);
        if requested != taken || is_due {
            recording.cut(nanoseconds(now))?;
            taken = requested;
            control.taken(taken);
        }
        if let (true, Slicing::Time(length)) = (is_due, slicing) {
            // A slow machine gets longer slices rather than a queue of them.
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

/// The emulator's plugin names them in a file, a line each.
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

pub(crate) fn cannot_start(command: &Command, error: &std::io::Error) -> Error {
    let kind = match error.kind() {
        std::io::ErrorKind::NotFound => ErrorKind::NotFound,
        _ => ErrorKind::NotExecutable,
    };
    Error::new(
        kind,
        format!("cannot run {}: {error}", command.get_program().to_string_lossy()),
    )
}

pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

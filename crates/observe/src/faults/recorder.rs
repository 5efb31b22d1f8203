//! Records samples: watches a program that it starts, or running ones, and ends slices in time.

// Why: docs/decisions/structure.md

use super::traced::Traced;
use super::{Figures, Kind, Sensor, Unavailable, Watch};
use crate::alive::{CHECK_INTERVAL, CHECKS_TO_END};
use crate::control::Control;
use crate::error::cannot_start;
use crate::error::{Error, ErrorKind};
use crate::recorder::{make_raw, still_running};
use crate::slicing::Slicing;
use nodewise_linux::Host;
use nodewise_linux::child::{Forwarding, shell_status};
use nodewise_linux::clock;
use nodewise_linux::scan::{Held, Scan};
use nodewise_linux::signals::{SIGHUP, SIGINT, SIGTERM, Signals};
use nodewise_profile::{Meta, Profile};
use nodewise_store::Writer;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::Duration;

/// A regular task for the caller, such as keeping the kernel from moving the program's pages.
pub type PeriodicTask = Box<dyn FnMut() + Send>;

/// The processes to watch.
pub enum Target {
    /// A program to be started.
    Command {
        /// The command, with arguments and environment.
        command: Box<Command>,
        /// Our libraries to preload where possible: one of them logs allocations.
        preload: Vec<PathBuf>,
        /// Called repeatedly while the program runs.
        periodic_task: Option<PeriodicTask>,
    },
    /// Running processes, watched until they end, a signal arrives, or `duration` is over.
    Processes {
        /// Process identifiers; their children are watched, too.
        pids: Vec<u32>,
        /// The longest time to watch.
        duration: Option<Duration>,
    },
}

/// What to record, and where to write it.
pub struct Options<'a> {
    /// The processes to watch.
    pub target: Target,
    /// The profile's folder, which is created.
    pub folder: &'a Path,
    /// Whether to replace an existing profile.
    pub force: bool,
    /// Length of a slice.
    pub slice: Duration,
    /// Metadata that is known beforehand: command, host, version.
    pub meta: Meta,
    /// The share of the program's CPU time that observation may use.
    pub budget: f64,
    /// Number of samples below which a page is not judged.
    pub minimum_samples: u32,
    /// The period, in milliseconds, at which the kernel scans during the recording; it applies to all processes of the
    /// system.
    pub scan: Option<u32>,
    /// The mechanism that makes accesses fault.
    pub sensor: Sensor,
}

/// Progress of a recording.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Time since the start.
    pub elapsed: Duration,
    /// Samples, up to the last look.
    pub samples: u64,
    /// Number of slices so far.
    pub slices: usize,
}

/// Result of a recording.
pub struct Recorded {
    /// The profile without its accesses.
    pub profile: Profile,
    /// Exit status of the started program, in a shell's form.
    pub status: Option<u8>,
    /// Counts and cost of the observation.
    pub figures: Figures,
    /// Number of processes with samples.
    pub processes: usize,
    /// CPU time that reading the symbols of programs and libraries took, which is outside the budget.
    pub reading: Duration,
}

/// Watches the target and writes a profile. Calls `look` repeatedly.
///
/// # Errors
/// Faults cannot be observed here, the program cannot be started, or the profile cannot be written.
pub fn record(options: Options<'_>, look: impl FnMut(Progress) + Send) -> Result<Recorded, Error> {
    let host = Host::default();
    let Options {
        target,
        folder,
        force,
        slice,
        meta,
        budget,
        minimum_samples,
        scan,
        sensor,
    } = options;
    let mut watch = match &target {
        Target::Command { .. } => Watch::of_command(&host, budget, sensor)?,
        Target::Processes { pids, .. } => Watch::of_pids(&host, pids, budget, sensor)?,
    };
    let held = scan.map(|ms| hold(&host, ms)).transpose()?;
    if let Some(ms) = scan {
        watch.own_scans(ms);
    }
    let writer = Writer::create(folder, &meta, force)?;
    let mut session = Session {
        held,
        watch,
        traced: Traced::new(&host, writer),
        raw: None,
        truncated: None,
        periodic_task: None,
        tend_due: true,
        tended: Duration::ZERO,
        reading: Duration::ZERO,
        slice,
        began: clock::monotonic(),
        budget,
        minimum_samples,
        look,
    };
    session.traced.profile_mut().meta = meta;
    let status = match target {
        Target::Command {
            command,
            preload,
            periodic_task,
        } => {
            session.periodic_task = periodic_task;
            Some(session.run(*command, &preload, folder)?)
        }
        Target::Processes { duration, .. } => {
            session.attend(duration)?;
            None
        }
    };
    session.finish(status)
}

struct Session<L> {
    /// The kernel settings that are restored at the end.
    held: Option<Held>,
    watch: Watch,
    traced: Traced,
    /// The folder of logs, removed at the end.
    raw: Option<PathBuf>,
    /// Why logs are incomplete, if they are.
    truncated: Option<String>,
    periodic_task: Option<PeriodicTask>,
    tend_due: bool,
    tended: Duration,
    reading: Duration,
    slice: Duration,
    began: Duration,
    budget: f64,
    minimum_samples: u32,
    look: L,
}

/// Whether the command has ended; its children get some time to end too.
fn is_over(watch: &Watch, ended: &mut Option<Duration>) -> bool {
    let now = clock::monotonic();
    watch.processes().is_empty() || now - *ended.get_or_insert(now) >= CHECK_INTERVAL * CHECKS_TO_END
}

impl<L: FnMut(Progress) + Send> Session<L> {
    /// Starts a program and records it until it ends.
    fn run(&mut self, mut command: Command, preload: &[PathBuf], folder: &Path) -> Result<u8, Error> {
        let raw = make_raw(folder)?;
        let control = Control::create(&raw, Slicing::Time(self.slice)).map_err(|e| Error::raw(&raw, &e))?;
        command.env("NODEWISE_RAW", &raw);
        if !preload.is_empty() {
            nodewise_linux::companion::preload(&mut command, preload);
        }
        self.traced.log_below(&raw);
        let child = Forwarding::start(&mut command).map_err(|e| {
            let _ = std::fs::remove_dir_all(folder); // the folder is ours and empty
            cannot_start(&command, &e)
        })?;
        self.watch.follow(child.id());
        self.began = clock::monotonic();
        let stop = AtomicBool::new(false);
        let (status, result) = std::thread::scope(|scope| {
            let watcher = scope.spawn(|| {
                let mut ended = None;
                self.until(|watch| stop.load(Acquire) && is_over(watch, &mut ended))
            });
            let status = child.wait(CHECK_INTERVAL, |_| CHECK_INTERVAL);
            stop.store(true, Release);
            (status, watcher.join().expect("the watcher does not panic"))
        });
        control.close();
        self.truncated = control
            .truncated()
            .or_else(|| still_running(self.watch.processes().len()));
        result?;
        self.raw = Some(raw);
        Ok(shell_status(status.map_err(|e| Error::raw(folder, &e))?))
    }

    /// Records until no watched process is left, a signal arrives, or the time is over.
    fn attend(&mut self, duration: Option<Duration>) -> Result<(), Error> {
        let signals = Signals::block(&[SIGINT, SIGTERM, SIGHUP])
            .map_err(|e| Error::new(ErrorKind::Io, e.to_string()))?;
        let began = self.began;
        self.until(|watch| {
            let over = duration.is_some_and(|d| clock::monotonic() - began >= d);
            over || watch.processes().is_empty() || signals.wait(Duration::ZERO).is_some()
        })
    }

    fn until(&mut self, mut over: impl FnMut(&Watch) -> bool) -> Result<(), Error> {
        let mut due = self.slice;
        loop {
            let last = over(&self.watch);
            let wanted = last || self.watch.wait_until_due(CHECK_INTERVAL.min(self.slice));
            if !wanted && clock::monotonic() - self.began < due {
                continue; // looks are rarer than slices while the budget is overdrawn
            }
            self.watch.look(Duration::ZERO);
            let began = clock::own_cpu_time();
            self.traced.take(&self.watch);
            // Not charged to the budget: each file is read once, but a second's reading would use up the budget of a
            // minute.
            let reading = self.traced.take_reading();
            self.reading += reading;
            self.watch
                .charge((clock::own_cpu_time() - began).saturating_sub(reading));
            if let Some(held) = &self.held {
                self.watch.adapt_scans(held);
            }
            self.tend_program();
            let elapsed = clock::monotonic() - self.began;
            if elapsed >= due || last {
                self.cut(elapsed)?;
                // On a slow machine slices get longer, rather than the schedule falling further behind.
                due = due.max(elapsed.saturating_sub(self.slice)) + self.slice;
            }
            (self.look)(Progress {
                elapsed,
                samples: self.traced.samples(),
                slices: self.traced.slices(),
            });
            if last {
                return Ok(());
            }
        }
    }

    /// Calls the regular task after first touches, for at most a second and 2 % of the time: pages that are held late
    /// are sampled late.
    fn tend_program(&mut self) {
        let fresh = self.watch.touches().iter().any(|t| t.kind == Kind::First);
        self.tend_due |= fresh;
        let began = clock::monotonic();
        let allowed = Duration::from_secs(1) + (began - self.began) / 50;
        if let Some(periodic_task) = self
            .periodic_task
            .as_mut()
            .filter(|_| self.tend_due && self.tended < allowed)
        {
            periodic_task();
            let took = clock::monotonic() - began;
            self.watch.charge_upkeep(took);
            self.tended += took;
            self.tend_due = fresh; // pages touched during this look may have come too late for the task
        }
    }

    /// Ends a slice and makes it readable, in case we are killed.
    fn cut(&mut self, elapsed: Duration) -> Result<(), Error> {
        let began = clock::own_cpu_time();
        self.traced.look_at_threads();
        self.traced.cut(clock::nanoseconds(elapsed))?;
        let describe = self.description(elapsed);
        self.traced.checkpoint(describe)?;
        self.watch.charge_upkeep(clock::own_cpu_time() - began);
        Ok(())
    }

    /// The changes to the manifest's metadata so far.
    fn description(&self, wall: Duration) -> impl FnOnce(&mut Meta) + use<L> {
        let figures = self.watch.figures();
        let sampling = figures.sampling(self.budget, self.minimum_samples, wall);
        move |meta| {
            meta.wall_ns = clock::nanoseconds(wall);
            meta.kernel_migrations = figures.kernel_moved;
            meta.sampling = Some(sampling);
        }
    }

    fn finish(mut self, status: Option<u8>) -> Result<Recorded, Error> {
        let figures = self.watch.figures();
        let describe = self.description(clock::monotonic() - self.began);
        let meta = &mut self.traced.profile_mut().meta;
        describe(meta);
        meta.exit_status = status.map(i32::from);
        meta.truncated = self.truncated.take();
        let processes = self.traced.processes();
        let profile = self.traced.finish()?;
        if let Some(raw) = &self.raw {
            // The profile is complete: the logs are no longer needed.
            let _ = std::fs::remove_dir_all(raw);
        }
        Ok(Recorded {
            profile,
            status,
            figures,
            processes,
            reading: self.reading,
        })
    }
}

fn hold(host: &Host, ms: u32) -> Result<Held, Error> {
    Held::take(host, Scan::every(ms)).map_err(|e| {
        let message = format!(
            "the scan period cannot be set ({e}); leave it as it is, or run as root with debugfs mounted on \
             /sys/kernel/debug"
        );
        Error::new(ErrorKind::ScanPeriod, message)
    })
}

impl From<Unavailable> for Error {
    fn from(unavailable: Unavailable) -> Self {
        Self::new(ErrorKind::Unavailable, unavailable.to_string())
    }
}

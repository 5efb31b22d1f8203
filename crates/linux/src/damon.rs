//! DAMON, the kernel's monitor of how often regions of memory are accessed: its settings in sysfs, its findings from its tracepoint.
//!
//! It looks at one page of each region at a time, whether its accessed bit was set since the last check, and splits and merges
//! regions by what it finds. It sees all mapped memory, files that are only read included, and not which thread accesses it.
//! (Kernel documentation, `admin-guide/mm/damon`.)

use crate::perf::ring::{self, Ring};
use crate::tracepoint::Tracepoint;
use crate::{Host, cleanup_process, clock, lock};
use perf_event_open_sys::bindings::{
    PERF_RECORD_SAMPLE, PERF_SAMPLE_RAW, PERF_TYPE_TRACEPOINT, perf_event_attr,
};
use std::collections::BTreeSet;
use std::ffi::CString;
use std::fs::File;
use std::io::{self, PipeWriter, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Processes that are monitored at a time, each by a kernel thread of its own. How many there may be can be changed only while none
/// runs.
pub const MOST_PROCESSES: usize = 16;
/// Access checks of a region in an interval: its largest count.
pub const CHECKS: u32 = 20;
/// Fewest and most regions of a process. Each check of each takes about a microsecond, so a thousand at 20 checks a second take some
/// two per cent of a CPU.
const REGIONS: [u32; 2] = [100, 1000];
/// Intervals between two looks at which addresses are mapped.
const INTERVALS_A_LOOK: u32 = 5;
/// Pages of a buffer, a power of two: room for the regions of some intervals.
const BUFFER_PAGES: [usize; 2] = [64, 16];
/// The kind of monitoring: a process's addresses.
const OPERATIONS: &str = "vaddr";
/// Attempts where the kernel is busy, and the pause between two: a second in all.
const ATTEMPTS: u32 = 100;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(10);
/// Users of DAMON within the kernel that keep others out, by their modules.
const EXCLUSIVE: [&str; 3] = ["damon_stat", "damon_reclaim", "damon_lru_sort"];

/// Accesses to a region of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Address of its first byte.
    pub start: u64,
    /// Address behind its last byte.
    pub end: u64,
    /// In how many of [`CHECKS`] checks a page of it had been accessed since the check before.
    pub accesses: u32,
}

/// Why DAMON cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The kernel has none, or no files in sysfs for it.
    Missing,
    /// Its settings may not be written.
    NotPermitted,
    /// Others use it; their settings would be lost.
    InUse,
    /// Its tracepoint cannot be read.
    NoTracepoint,
    /// Any other answer of the kernel.
    Other(String),
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::PermissionDenied => Self::NotPermitted,
            _ => Self::Other(error.to_string()),
        }
    }
}

fn admin(host: &Host) -> PathBuf {
    host.sys().join("kernel/mm/damon/admin/kdamonds")
}

/// Whether processes can be monitored here.
///
/// # Errors
/// Why they cannot.
pub fn works(host: &Host) -> Result<(), Refusal> {
    let threads = admin(host).join("nr_kdamonds");
    let count = std::fs::read_to_string(&threads).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => Refusal::Missing,
        _ => e.into(),
    })?;
    std::fs::File::options().write(true).open(&threads)?;
    let runs = |module: &&str| {
        let enabled = host.line(&format!("sys/module/{module}/parameters/enabled"));
        enabled.is_some_and(|enabled| enabled.starts_with(['Y', '1']))
    };
    if count.trim() != "0" || EXCLUSIVE.iter().any(runs) {
        return Err(Refusal::InUse);
    }
    tracepoint(host).map(|_| ())
}

fn tracepoint(host: &Host) -> Result<Tracepoint, Refusal> {
    host.tracepoint("damon", "damon_aggregated")
        .ok_or(Refusal::NoTracepoint)
}

/// Monitors processes. When it is dropped, or this process ends in any way, DAMON is off as before.
pub struct Monitor {
    files: Files,
    point: Tracepoint,
    interval: Duration,
    slots: Vec<Option<Slot>>,
    /// Processes that the kernel did not accept.
    refused: BTreeSet<u32>,
    /// A change of the intervals under way.
    change: Option<JoinHandle<()>>,
    /// CPU time of kernel threads that was not told yet, of those that have ended.
    spent: Duration,
    /// Held while DAMON is ours, so that of two of our processes one takes it.
    _lock: File,
    /// A pipe to the process that turns everything off, which the kernel closes when this one ends.
    alive: Option<PipeWriter>,
    cleaner: libc::pid_t,
}

/// A process that is monitored, by a kernel thread of its own.
struct Slot {
    pid: u32,
    /// Process id of the kernel thread.
    thread: u32,
    ring: Ring,
    batch: Batch,
    /// CPU time of the thread that was told.
    told: Duration,
}

impl Monitor {
    /// Takes DAMON, which monitors nothing yet. Regions are reported once an interval.
    ///
    /// # Errors
    /// As [`works`]; another of our processes has it; the kernel cannot monitor the memory of processes; no process can be started.
    pub fn start(host: &Host, interval: Duration) -> Result<Self, Refusal> {
        let lock = File::create(host.run().join("nodewise-damon"))?;
        if !lock::try_exclusive(&lock)? {
            return Err(Refusal::InUse);
        }
        works(host)?;
        let files = Files(admin(host));
        let path = |path: PathBuf| CString::new(path.into_os_string().into_vec()).map_err(io::Error::other);
        let states = (0..MOST_PROCESSES).map(|at| path(files.of(at, "state")));
        let (states, all) = (states.collect::<Result<Vec<_>, _>>()?, path(files.count())?);
        let (reading, mut alive) = io::pipe()?;
        // SAFETY: the closure makes system calls alone, on strings that exist.
        let cleaner = unsafe {
            cleanup_process::start(c"nodewise-damon", &[reading.as_raw_fd()], || {
                wait_and_turn_off(&states, &all);
            })
        }?;
        // From here on it turns off what there is.
        alive.write_all(b"+")?;
        let monitor = Self {
            point: tracepoint(host)?,
            interval,
            slots: (0..MOST_PROCESSES).map(|_| None).collect(),
            refused: BTreeSet::new(),
            change: None,
            spent: Duration::ZERO,
            _lock: lock,
            alive: Some(alive),
            cleaner,
            files,
        };
        patiently(|| std::fs::write(monitor.files.count(), MOST_PROCESSES.to_string()))?;
        monitor.files.write(0, "contexts/nr_contexts", "1")?;
        let kinds = monitor.files.read(0, "contexts/0/avail_operations")?;
        match kinds.lines().any(|kind| kind == OPERATIONS) {
            true => Ok(monitor),
            false => Err(Refusal::Other(
                "this kernel's DAMON does not monitor processes (CONFIG_DAMON_VADDR)".to_owned(),
            )),
        }
    }

    /// Monitors these processes from now on, and no others. Returns those of them that it does not monitor, with the cause, each
    /// once.
    pub fn follow(&mut self, pids: &[u32]) -> Vec<(u32, io::Error)> {
        for at in 0..self.slots.len() {
            if let Some(slot) = self.slots[at].take_if(|slot| !pids.contains(&slot.pid)) {
                self.spent += slot.untold();
                let _ = self.files.write(at, "state", "off"); // it turns itself off where the process has ended
            }
        }
        self.refused.retain(|pid| pids.contains(pid));
        let known = |pid: &u32| {
            self.refused.contains(pid) || self.slots.iter().flatten().any(|slot| slot.pid == *pid)
        };
        let new: Vec<u32> = pids.iter().copied().filter(|pid| !known(pid)).collect();
        let mut failed = Vec::new();
        for pid in new {
            if let Err(error) = self.add(pid) {
                self.refused.insert(pid);
                failed.push((pid, error));
            }
        }
        failed
    }

    fn add(&mut self, pid: u32) -> io::Result<()> {
        let free = self.slots.iter().position(Option::is_none);
        let at = free.ok_or(io::ErrorKind::QuotaExceeded)?;
        let listening = self.files.set_up(at, pid, self.interval).and_then(|()| {
            let thread = self.files.read(at, "pid")?.parse().map_err(io::Error::other)?;
            Ok((thread, listen(&self.point, thread)?))
        });
        let (thread, ring) = listening.inspect_err(|_| {
            let _ = self.files.write(at, "state", "off");
        })?;
        self.slots[at] = Some(Slot {
            pid,
            thread,
            ring,
            batch: Batch::default(),
            told: Duration::ZERO,
        });
        Ok(())
    }

    /// Whether a change of the interval is under way.
    #[must_use]
    pub fn is_changing(&self) -> bool {
        self.change.as_ref().is_some_and(|change| !change.is_finished())
    }

    /// Changes how often regions are checked and reported. Before Linux 6.15 that takes up to an interval, so a thread waits for it; until
    /// then another change has no effect.
    pub fn set_interval(&mut self, interval: Duration) {
        if self.is_changing() {
            return;
        }
        self.interval = interval;
        let used: Vec<usize> = (0..self.slots.len())
            .filter(|at| self.slots[*at].is_some())
            .collect();
        let files = self.files.clone();
        let change = move || {
            for at in used {
                // A process that has ended has no settings to change.
                let _ = files
                    .write_intervals(at, interval)
                    .and_then(|()| files.write(at, "state", "commit"));
            }
        };
        self.change = Builder::new().name("damon".to_owned()).spawn(change).ok();
    }

    /// The last complete interval of each process since the last call: all of its regions, ascending.
    pub fn take(&mut self) -> Vec<(u32, Vec<Region>)> {
        let (mut found, point) = (Vec::new(), &self.point);
        for Slot { pid, ring, batch, .. } in self.slots.iter_mut().flatten() {
            ring.drain(|kind, _, body| {
                if kind == PERF_RECORD_SAMPLE {
                    batch.add(region(point, body));
                }
            });
            found.extend(batch.complete.take().map(|regions| (*pid, regions)));
        }
        found
    }

    /// CPU time of the kernel threads since the last call.
    pub fn take_cpu_time(&mut self) -> Duration {
        let mut spent = std::mem::take(&mut self.spent);
        for slot in self.slots.iter_mut().flatten() {
            let since = slot.untold();
            slot.told += since;
            spent += since;
        }
        spent
    }
}

impl Slot {
    /// CPU time of its thread that was not told.
    fn untold(&self) -> Duration {
        let now = clock::cpu_time(self.thread).unwrap_or(self.told);
        now.saturating_sub(self.told)
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        // A change that is under way ends with the kernel's threads.
        self.slots.clear();
        drop(self.alive.take());
        // SAFETY: our own child, which ends now that the pipe is closed.
        unsafe { libc::waitpid(self.cleaner, std::ptr::null_mut(), 0) };
    }
}

/// The kernel's files of all its threads.
#[derive(Clone, Debug)]
struct Files(PathBuf);

impl Files {
    fn count(&self) -> PathBuf {
        self.0.join("nr_kdamonds")
    }

    fn of(&self, at: usize, below: &str) -> PathBuf {
        self.0.join(at.to_string()).join(below)
    }

    fn write(&self, at: usize, below: &str, value: &str) -> io::Result<()> {
        patiently(|| std::fs::write(self.of(at, below), value))
    }

    fn read(&self, at: usize, below: &str) -> io::Result<String> {
        let text = patiently(|| std::fs::read_to_string(self.of(at, below)))?;
        Ok(text.trim().to_owned())
    }

    /// Writes the settings for a process, and turns the kernel thread on.
    fn set_up(&self, at: usize, pid: u32, interval: Duration) -> io::Result<()> {
        let [least, most] = REGIONS.map(|count| count.to_string());
        self.write(at, "contexts/nr_contexts", "1")?;
        self.write(at, "contexts/0/operations", OPERATIONS)?;
        self.write(at, "contexts/0/targets/nr_targets", "1")?;
        self.write(at, "contexts/0/targets/0/pid_target", &pid.to_string())?;
        self.write(at, "contexts/0/monitoring_attrs/nr_regions/min", &least)?;
        self.write(at, "contexts/0/monitoring_attrs/nr_regions/max", &most)?;
        self.write_intervals(at, interval)?;
        self.write(at, "state", "on")
    }

    fn write_intervals(&self, at: usize, interval: Duration) -> io::Result<()> {
        let micros = [
            ("update_us", interval * INTERVALS_A_LOOK),
            ("aggr_us", interval),
            ("sample_us", interval / CHECKS),
        ];
        for (file, value) in micros {
            let path = format!("contexts/0/monitoring_attrs/intervals/{file}");
            self.write(at, &path, &value.as_micros().to_string())?;
        }
        Ok(())
    }
}

/// Tries again for a while where the kernel is busy: it does not wait for the lock of these files.
fn patiently<T>(attempt: impl Fn() -> io::Result<T>) -> io::Result<T> {
    for _ in 1..ATTEMPTS {
        match attempt() {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => std::thread::sleep(BETWEEN_ATTEMPTS),
            done => return done,
        }
    }
    attempt()
}

/// Waits for the end of the process at the other end of descriptor 0, and turns DAMON off if that process had taken it. System calls
/// alone, as it runs in a forked child.
fn wait_and_turn_off(states: &[CString], all: &CString) {
    let (mut byte, mut taken) = (0_u8, false);
    // SAFETY: reads into a byte of this frame; ends when no writer is left.
    while unsafe { libc::read(0, (&raw mut byte).cast(), 1) } > 0 {
        taken = true;
    }
    let write = |path: &CString, value: &[u8]| {
        for _ in 0..ATTEMPTS {
            // SAFETY: a string with its end, bytes of a constant, and a descriptor that is closed here; the number of this thread's error.
            let busy = unsafe {
                let file = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
                let busy = libc::write(file, value.as_ptr().cast(), value.len()) < 0
                    && *libc::__errno_location() == libc::EBUSY;
                libc::close(file);
                busy
            };
            if !busy {
                break;
            }
            let pause = libc::timespec {
                tv_sec: 0,
                tv_nsec: BETWEEN_ATTEMPTS.as_nanos() as libc::c_long,
            };
            // SAFETY: a time of this frame.
            unsafe { libc::nanosleep(&raw const pause, std::ptr::null_mut()) };
        }
    };
    if taken {
        states.iter().for_each(|path| write(path, b"off"));
        write(all, b"0");
    }
}

/// The reports of one kernel thread.
fn listen(point: &Tracepoint, thread: u32) -> io::Result<Ring> {
    let mut attributes = perf_event_attr {
        type_: PERF_TYPE_TRACEPOINT,
        config: point.id,
        sample_type: u64::from(PERF_SAMPLE_RAW),
        ..perf_event_attr::default()
    };
    attributes.__bindgen_anon_1.sample_period = 1;
    let thread = i32::try_from(thread).map_err(io::Error::other)?;
    Ring::of(ring::open(&mut attributes, thread, -1, 0)?, &BUFFER_PAGES)
}

/// A region of a report, and how many the report has.
fn region(point: &Tracepoint, body: &[u64]) -> Option<(u64, Region)> {
    let raw = ring::raw(body);
    let value = |name| point.value(name, &raw);
    let region = Region {
        start: value("start")?,
        end: value("end")?,
        accesses: value("nr_accesses")? as u32,
    };
    Some((value("nr_regions")?, region))
}

/// The regions of a report as they arrive.
#[derive(Default)]
struct Batch {
    arriving: Vec<Region>,
    complete: Option<Vec<Region>>,
}

impl Batch {
    fn add(&mut self, found: Option<(u64, Region)>) {
        let Some((count, region)) = found else { return };
        if self.arriving.last().is_some_and(|last| last.end > region.start) {
            self.arriving.clear(); // the end of a report was lost
        }
        self.arriving.push(region);
        if self.arriving.len() as u64 == count {
            self.complete = Some(std::mem::take(&mut self.arriving));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const FORMAT: &str = "name: damon_aggregated\nID: 700\nformat:\n\
        \tfield:unsigned long target_id;\toffset:8;\tsize:8;\tsigned:0;\n\
        \tfield:unsigned int nr_regions;\toffset:16;\tsize:4;\tsigned:0;\n\
        \tfield:unsigned long start;\toffset:24;\tsize:8;\tsigned:0;\n\
        \tfield:unsigned long end;\toffset:32;\tsize:8;\tsigned:0;\n\
        \tfield:unsigned int nr_accesses;\toffset:40;\tsize:4;\tsigned:0;\n\
        \tfield:unsigned int age;\toffset:44;\tsize:4;\tsigned:0;\n";

    /// A copy of the kernel's files, as they are once there are kernel threads.
    fn host(name: &str, threads: &str) -> (PathBuf, Host) {
        let root = std::env::temp_dir().join(format!("nodewise-damon-{name}-{}", std::process::id()));
        let admin = root.join("sys/kernel/mm/damon/admin/kdamonds");
        for folder in [
            "targets/0",
            "monitoring_attrs/intervals",
            "monitoring_attrs/nr_regions",
        ] {
            std::fs::create_dir_all(admin.join("0/contexts/0").join(folder)).unwrap();
        }
        std::fs::write(admin.join("0/contexts/0/avail_operations"), "vaddr\npaddr\n").unwrap();
        std::fs::write(admin.join("nr_kdamonds"), threads).unwrap();
        std::fs::create_dir_all(root.join("run")).unwrap();
        let events = root.join("sys/kernel/tracing/events/damon/damon_aggregated");
        std::fs::create_dir_all(&events).unwrap();
        std::fs::write(events.join("format"), FORMAT).unwrap();
        let host = Host::at(&root);
        (root, host)
    }

    #[test]
    fn it_is_taken_only_where_nothing_else_uses_it_and_left_as_it_was() {
        let (root, host) = host("taken", "0\n");
        let count = || std::fs::read_to_string(admin(&host).join("nr_kdamonds")).unwrap();
        let monitor = Monitor::start(&host, Duration::from_secs(1)).unwrap();
        assert_eq!(count(), "16");
        assert_eq!(
            Monitor::start(&host, Duration::from_secs(1)).err(),
            Some(Refusal::InUse)
        );
        drop(monitor);
        // The kernel's file takes what is written as a whole; this one keeps the second digit.
        assert_eq!(&count()[..1], "0");
        std::fs::write(admin(&host).join("nr_kdamonds"), "0\n").unwrap();
        assert_eq!(works(&host), Ok(()));
        std::fs::create_dir_all(root.join("sys/module/damon_stat/parameters")).unwrap();
        std::fs::write(root.join("sys/module/damon_stat/parameters/enabled"), "Y\n").unwrap();
        assert_eq!(
            works(&host),
            Err(Refusal::InUse),
            "the kernel's own user keeps others out"
        );
        std::fs::remove_file(admin(&host).join("nr_kdamonds")).unwrap();
        assert_eq!(works(&host), Err(Refusal::Missing));
        std::fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn a_kernel_that_cannot_monitor_processes_is_left_as_it_was() {
        let (root, host) = host("no-vaddr", "0\n");
        std::fs::write(admin(&host).join("0/contexts/0/avail_operations"), "paddr\n").unwrap();
        let refused = Monitor::start(&host, Duration::from_secs(1)).err();
        assert!(matches!(refused, Some(Refusal::Other(why)) if why.contains("CONFIG_DAMON_VADDR")));
        assert!(
            std::fs::read_to_string(admin(&host).join("nr_kdamonds"))
                .unwrap()
                .starts_with('0')
        );
        std::fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn a_process_is_set_up_with_its_intervals_in_microseconds() {
        let (root, host) = host("set-up", "0\n");
        let monitor = Monitor::start(&host, Duration::from_secs(2)).unwrap();
        monitor.files.set_up(0, 4711, monitor.interval).unwrap();
        let read = |below: &str| monitor.files.read(0, below).unwrap();
        let attributes = "contexts/0/monitoring_attrs";
        let written: BTreeMap<&str, String> = ["sample_us", "aggr_us", "update_us"]
            .map(|file| (file, read(&format!("{attributes}/intervals/{file}"))))
            .into();
        assert_eq!(written["sample_us"], "100000");
        assert_eq!(
            (&*written["aggr_us"], &*written["update_us"]),
            ("2000000", "10000000")
        );
        assert_eq!(
            (read("contexts/0/targets/0/pid_target"), read("state")),
            ("4711".into(), "on".into())
        );
        drop(monitor);
        assert_eq!(
            std::fs::read_to_string(admin(&host).join("0/state")).unwrap(),
            "off"
        );
        std::fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn a_report_counts_once_all_its_regions_are_there() {
        let point = Tracepoint::parse(FORMAT).unwrap();
        let body = |count: u32, start: u64, end: u64, accesses: u32| {
            let mut bytes = vec![0; 12];
            bytes.extend(0_u64.to_le_bytes());
            bytes.extend(u64::from(count).to_le_bytes());
            bytes.extend([start, end].iter().flat_map(|word| word.to_le_bytes()));
            bytes.extend([accesses, 3].iter().flat_map(|word| word.to_le_bytes()));
            bytes.resize(bytes.len().next_multiple_of(8), 0);
            let words = bytes
                .chunks_exact(8)
                .map(|w| u64::from_le_bytes(w.try_into().unwrap()));
            region(&point, &words.collect::<Vec<_>>())
        };
        let mut batch = Batch::default();
        batch.add(body(2, 0x1000, 0x3000, 20));
        assert_eq!(batch.complete, None);
        // The rest of that report was lost.
        batch.add(body(2, 0x1000, 0x2000, 0));
        batch.add(None);
        batch.add(body(2, 0x2000, 0x9000, 7));
        let of = |start, end, accesses| Region { start, end, accesses };
        assert_eq!(
            batch.complete,
            Some(vec![of(0x1000, 0x2000, 0), of(0x2000, 0x9000, 7)])
        );
        assert!(batch.arriving.is_empty());
    }
}

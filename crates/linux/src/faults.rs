//! Reads page faults as they happen, with address, thread, CPU and time: both the faults that automatic NUMA balancing
//! causes by making pages inaccessible for a moment ("hint faults") and ordinary ones.
//!
//! On x86-64 the processor reports a hint fault and the first touch of a page in the same way (error code P = 0); they
//! are told apart by whether the page was present before (`nodewise-observe`). Copying on write has P = 1.

mod cost;
mod read;
#[cfg(test)]
mod tests;

pub use cost::minor_faults;

use crate::perf::ring::{self, Ring, each_cpu};
use crate::tracepoint::Tracepoint;
use crate::{Host, clock};
use perf_event_open_sys::bindings::{
    PERF_COUNT_SW_DUMMY, PERF_COUNT_SW_PAGE_FAULTS, PERF_SAMPLE_ADDR, PERF_SAMPLE_CPU,
    PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_RAW, PERF_SAMPLE_TID, PERF_SAMPLE_TIME, PERF_TYPE_SOFTWARE,
    PERF_TYPE_TRACEPOINT, perf_event_attr,
};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

/// Pages of a CPU's buffer, from the preferred size down to what every user may lock.
const BUFFER_PAGES: [usize; 3] = [256, 64, 16];
const PID_CGROUP: libc::c_ulong = 4; // PERF_FLAG_PID_CGROUP

/// A page fault, as the kernel's tracepoint reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Time of the fault on the monotonic clock, nanoseconds.
    pub time_ns: u64,
    /// Id of the faulting process.
    pub pid: u32,
    /// Id of the faulting thread.
    pub tid: u32,
    /// The CPU that the thread ran on, by the kernel's number.
    pub cpu: u32,
    /// The address that was accessed.
    pub address: u64,
    /// Whether it was a write; `None` when the kernel does not say.
    pub write: Option<bool>,
    /// Whether the page was present and readable, so that only the right to write was missing; `None` if the kernel
    /// does not report it.
    pub protected: Option<bool>,
}

/// A record of the kernel's ring buffers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A page fault of user addresses.
    Fault(Fault),
    /// A thread or, with another `pid` than its parent, a process has begun.
    Began {
        /// Id of the thread's process.
        pid: u32,
        /// Id of the new thread.
        tid: u32,
        /// The process of the thread that started it.
        parent: u32,
    },
    /// A thread has ended.
    Ended {
        /// Id of the thread's process.
        pid: u32,
        /// Id of the thread that ended.
        tid: u32,
    },
    /// A thread got a name; `executed` if that is because the process now runs another program.
    Named {
        /// Id of the thread's process.
        pid: u32,
        /// Id of the named thread.
        tid: u32,
        /// The first 15 bytes.
        name: String,
        /// All mappings are gone.
        executed: bool,
    },
    /// A process mapped memory. If the kernel merged the new mapping with a neighbour, the record covers both.
    Mapped {
        /// Id of the process.
        pid: u32,
        /// Start address of the mapping.
        address: u64,
        /// Length of the mapping, bytes.
        bytes: u64,
        /// The file, or a name in brackets or slashes.
        path: String,
    },
    /// The kernel's balancing moved pages, on this thread's behalf.
    Moved {
        /// Id of the process.
        pid: u32,
        /// Id of the thread.
        tid: u32,
        /// Number of pages moved.
        pages: u64,
    },
    /// Number of records that were lost because a buffer was full.
    Lost(u64),
}

/// The processes whose faults are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All processes; the reader must filter.
    Everybody,
    /// The processes of a control group.
    Group,
    /// Given threads, and the threads and processes that they start.
    Threads,
}

/// Page faults being observed.
pub struct Source {
    rings: Vec<Ring>,
    /// Events without a buffer of their own, which write to another event's.
    further: Vec<OwnedFd>,
    faults: Vec<i32>,
    roles: HashMap<u64, Role>,
    scope: Scope,
    period: u64,
    running: bool,
    /// Number of threads that are not observed, as descriptors ran out.
    missed: usize,
}

/// The meaning of an event's records.
#[derive(Clone, Debug)]
enum Role {
    Fault,
    TracedFault(Tracepoint),
    Moves(Tracepoint),
}

/// The tracepoints that we use, if tracefs can be read.
struct Points {
    user: Option<Tracepoint>,
    kernel: Option<Tracepoint>,
    moves: Option<Tracepoint>,
}

impl Points {
    fn of(host: &Host) -> Self {
        Self {
            user: host.tracepoint("exceptions", "page_fault_user"),
            kernel: host.tracepoint("exceptions", "page_fault_kernel"),
            moves: host.tracepoint("migrate", "mm_migrate_pages"),
        }
    }
}

impl Source {
    /// Reports one of `period` faults of all processes, CPU by CPU. Distinguishes reads from writes if tracefs can be
    /// read.
    ///
    /// # Errors
    /// As the kernel answers: `PermissionDenied` without `CAP_PERFMON` and with `perf_event_paranoid`
    /// above 0.
    pub fn of_everybody(period: u64) -> io::Result<Self> {
        Self::on_cpus(-1, 0, Scope::Everybody, period)
    }

    /// The faults of a control group's processes, by its folder (version 2).
    ///
    /// # Errors
    /// As [`Source::of_everybody`]; no such folder.
    pub fn of_group(folder: &Path, period: u64) -> io::Result<Self> {
        let folder = File::open(folder)?;
        Self::on_cpus(folder.as_raw_fd(), PID_CGROUP, Scope::Group, period)
    }

    /// The faults of programs that the calling thread starts afterwards, and of their descendants, from their `exec`
    /// on.
    ///
    /// # Errors
    /// As the kernel answers: `PermissionDenied` with `perf_event_paranoid` above 2.
    pub fn of_children(period: u64) -> io::Result<Self> {
        let mut source = Self::new(Scope::Threads, period);
        let points = Points::of(&Host::default());
        source.add_thread(0, true, points.user.as_ref())?;
        for role in [
            points.kernel.map(Role::TracedFault),
            points.moves.map(Role::Moves),
        ]
        .into_iter()
        .flatten()
        {
            if source.sees_writes() {
                let mut attributes = inherited(source.traced(&role), true);
                // Without them, faults inside system calls are missed, and moves must be counted by thread.
                let _ = source.join(&mut attributes, 0, 0, &role);
            }
        }
        Ok(source)
    }

    /// The faults of these threads and of the threads and processes that they start. If descriptors do not suffice,
    /// some threads are left out: see [`Source::missed_threads`].
    ///
    /// # Errors
    /// As the kernel answers: `ESRCH` when none of them is left, `PermissionDenied`.
    pub fn of_threads(tids: &[u32], period: u64) -> io::Result<Self> {
        let mut source = Self::new(Scope::Threads, period);
        source.add_threads(tids)?;
        Ok(source)
    }

    /// Adds further threads, and what they start.
    ///
    /// # Errors
    /// As [`Source::of_threads`], when there are no others.
    pub fn add_threads(&mut self, tids: &[u32]) -> io::Result<()> {
        let points = Points::of(&Host::default());
        let mut last = io::Error::from_raw_os_error(libc::ESRCH);
        for (done, tid) in tids.iter().enumerate() {
            match self.add_thread(*tid as i32, false, points.user.as_ref()) {
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(error) if error.raw_os_error() == Some(libc::EMFILE) && !self.rings.is_empty() => {
                    self.missed += tids.len() - done;
                    break;
                }
                Err(error) => last = error,
                Ok(()) => {}
            }
        }
        if self.rings.is_empty() { Err(last) } else { Ok(()) }
    }

    fn new(scope: Scope, period: u64) -> Self {
        Self {
            rings: Vec::new(),
            further: Vec::new(),
            faults: Vec::new(),
            roles: HashMap::new(),
            scope,
            period: period.max(1),
            running: true,
            missed: 0,
        }
    }

    fn on_cpus(pid: i32, flags: libc::c_ulong, scope: Scope, period: u64) -> io::Result<Self> {
        let mut source = Self::new(scope, period);
        let own = || attributes(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY.into(), 1);
        source.rings = each_cpu(|cpu| {
            let event = ring::open(&mut following(own()), pid, cpu, flags)?;
            Ring::of(event, &BUFFER_PAGES)
        })?;
        let points = Points::of(&Host::default());
        let user = points.user.map(Role::TracedFault);
        let traced = user.is_some_and(|role| source.trace(&role, pid, flags).is_ok());
        if !traced {
            let mut faults = attributes(
                PERF_TYPE_SOFTWARE,
                PERF_COUNT_SW_PAGE_FAULTS.into(),
                source.period,
            );
            source.join(&mut faults, pid, flags, &Role::Fault)?;
        } else if let Some(point) = points.kernel {
            source.trace(&Role::TracedFault(point), pid, flags)?;
        }
        if let Some(point) = points.moves {
            // Without it, the kernel's moves are counted by thread, from time to time.
            let _ = source.trace(&Role::Moves(point), pid, flags);
        }
        Ok(source)
    }

    fn trace(&mut self, role: &Role, pid: i32, flags: libc::c_ulong) -> io::Result<()> {
        let mut attributes = self.traced(role);
        self.join(&mut attributes, pid, flags, role)
    }

    fn traced(&self, role: &Role) -> perf_event_attr {
        let (id, period) = match role {
            Role::Fault => {
                return attributes(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS.into(), self.period);
            }
            Role::TracedFault(point) => (point.id, self.period),
            Role::Moves(point) => (point.id, 1),
        };
        let mut attributes = attributes(PERF_TYPE_TRACEPOINT, id, period);
        attributes.sample_type |= u64::from(PERF_SAMPLE_RAW);
        attributes
    }

    /// Opens an event on every CPU that writes into the CPU's buffer.
    fn join(
        &mut self,
        attributes: &mut perf_event_attr,
        pid: i32,
        flags: libc::c_ulong,
        role: &Role,
    ) -> io::Result<()> {
        let mut opened = Vec::new();
        let mut rings = self.rings.iter();
        let roles = &mut self.roles;
        each_cpu(|cpu| {
            let event = ring::open(attributes, pid, cpu, flags)?;
            let Some(ring) = rings.next() else {
                return Ok(()); // a CPU that has just come online
            };
            redirect(&event, ring.event())?;
            roles.insert(identifier(&event)?, role.clone());
            opened.push(event);
            Ok(())
        })?;
        if !matches!(role, Role::Moves(_)) {
            self.faults.extend(opened.iter().map(AsRawFd::as_raw_fd));
        }
        self.further.extend(opened);
        Ok(())
    }

    /// Uses one event per CPU for all purposes, as descriptors are scarce.
    fn add_thread(&mut self, tid: i32, on_exec: bool, point: Option<&Tracepoint>) -> io::Result<()> {
        let with = |source: &Self, role: &Role| {
            let mut attributes = following(inherited(source.traced(role), on_exec));
            each_cpu(|cpu| permitted(&mut attributes, tid, cpu))
        };
        let traced = point.map(|p| Role::TracedFault(p.clone()));
        let traced = traced.and_then(|role| Some((with(self, &role).ok()?, role)));
        let (events, role) = match traced {
            Some(traced) => traced,
            None => (with(self, &Role::Fault)?, Role::Fault),
        };
        let fresh = self.rings.is_empty();
        for (at, event) in events.into_iter().enumerate() {
            self.faults.push(event.as_raw_fd());
            self.roles.insert(identifier(&event)?, role.clone());
            if fresh {
                self.rings.push(Ring::of(event, &BUFFER_PAGES)?);
            } else {
                let ring = self.rings.get(at).ok_or(io::ErrorKind::NotFound)?;
                redirect(&event, ring.event())?;
                self.further.push(event);
            }
        }
        Ok(())
    }

    /// The processes whose faults are reported.
    #[must_use]
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// Whether reads are distinguished from writes, and copies on write from other faults.
    #[must_use]
    pub fn sees_writes(&self) -> bool {
        self.roles.values().any(|r| matches!(r, Role::TracedFault(_)))
    }

    /// Whether the kernel's own moves are reported as they happen.
    #[must_use]
    pub fn sees_moves(&self) -> bool {
        self.roles.values().any(|r| matches!(r, Role::Moves(_)))
    }

    /// Number of threads that are not observed because descriptors ran out.
    #[must_use]
    pub fn missed_threads(&self) -> usize {
        self.missed
    }

    /// One of this number of faults is reported.
    #[must_use]
    pub fn period(&self) -> u64 {
        self.period
    }

    /// From now on, one of `period` faults is reported. Threads that were created after the events were opened keep the
    /// period that was set at their creation.
    pub fn set_period(&mut self, period: u64) {
        const SET_PERIOD: libc::c_ulong = 0x4008_2404; // PERF_EVENT_IOC_PERIOD
        let period = period.max(1);
        if period != self.period {
            for event in &self.faults {
                // SAFETY: the event is open while `self` lives; the argument is a word that is read.
                unsafe { libc::ioctl(*event, SET_PERIOD, &raw const period) };
            }
            self.period = period;
        }
    }

    /// Stops or resumes reporting faults. Other records are reported in any case, except in a source of threads.
    pub fn set_running(&mut self, running: bool) {
        const ENABLE: libc::c_ulong = 0x2400; // PERF_EVENT_IOC_ENABLE
        const DISABLE: libc::c_ulong = 0x2401; // PERF_EVENT_IOC_DISABLE
        if running != self.running {
            for event in &self.faults {
                // SAFETY: the event is open while `self` lives; no argument.
                unsafe { libc::ioctl(*event, if running { ENABLE } else { DISABLE }, 0) };
            }
            self.running = running;
        }
    }

    /// Whether faults are reported at the moment.
    #[must_use]
    pub fn running(&self) -> bool {
        self.running
    }

    /// Waits until a buffer is half full, at most `limit`. Returns whether one is.
    pub fn wait(&self, limit: Duration) -> bool {
        let of = |ring: &Ring| libc::pollfd {
            fd: ring.event().as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        let mut all: Vec<libc::pollfd> = self.rings.iter().map(of).collect();
        let (began, mut left) = (clock::monotonic(), limit);
        // An event whose threads have all ended is always ready; it is excluded, and the wait continues for the others.
        while poll(&mut all, left) && all.iter().all(|p| p.revents & libc::POLLIN == 0) {
            for ended in all.iter_mut().filter(|p| p.revents != 0) {
                (ended.fd, ended.revents) = (-1, 0);
            }
            left = limit.saturating_sub(clock::monotonic() - began);
        }
        all.iter().any(|p| p.revents & libc::POLLIN != 0)
    }

    /// Appends everything since the last call, in the order of time.
    pub fn drain(&mut self, into: &mut Vec<Record>) {
        let mut timed = Vec::new();
        for ring in &self.rings {
            ring.drain(|kind, misc, body| timed.extend(read::record(&self.roles, kind, misc, body)));
        }
        timed.sort_by_key(|(time, _)| *time);
        into.extend(timed.into_iter().map(|(_, record)| record));
    }
}

/// Whether any descriptor is ready before the time is over. An interruption by a signal ends the wait early, as the
/// caller would want.
fn poll(descriptors: &mut [libc::pollfd], limit: Duration) -> bool {
    let limit = libc::timespec {
        tv_sec: limit.as_secs() as libc::time_t,
        tv_nsec: limit.subsec_nanos().into(),
    };
    let count = descriptors.len() as libc::nfds_t;
    // SAFETY: the array has as many entries as is said; the signal mask is unchanged.
    unsafe {
        libc::ppoll(
            descriptors.as_mut_ptr(),
            count,
            &raw const limit,
            std::ptr::null(),
        ) > 0
    }
}

fn attributes(kind: u32, config: u64, period: u64) -> perf_event_attr {
    let mut attributes = perf_event_attr {
        type_: kind,
        config,
        sample_type: u64::from(
            PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_CPU,
        ),
        clockid: libc::CLOCK_MONOTONIC,
        ..perf_event_attr::default()
    };
    attributes.__bindgen_anon_1.sample_period = period;
    attributes.set_use_clockid(1);
    attributes.set_sample_id_all(1);
    attributes.set_watermark(1);
    attributes.__bindgen_anon_2.wakeup_watermark = (BUFFER_PAGES[1] * 4096 / 2) as u32;
    attributes
}

/// The attributes for a thread and the threads and processes that it starts.
fn inherited(mut attributes: perf_event_attr, on_exec: bool) -> perf_event_attr {
    attributes.set_inherit(1);
    attributes.set_disabled(u64::from(on_exec));
    attributes.set_enable_on_exec(u64::from(on_exec));
    attributes
}

/// The attributes of an event that also reports threads, names and mappings.
fn following(mut attributes: perf_event_attr) -> perf_event_attr {
    attributes.set_task(1);
    attributes.set_comm(1);
    attributes.set_comm_exec(1);
    attributes.set_mmap(1);
    attributes.set_mmap_data(1);
    attributes
}

/// Opens an event that includes faults inside system calls if we have the permission.
fn permitted(attributes: &mut perf_event_attr, tid: i32, cpu: i32) -> io::Result<OwnedFd> {
    match ring::open(attributes, tid, cpu, 0) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && attributes.exclude_kernel() == 0 => {
            attributes.set_exclude_kernel(1);
            attributes.set_exclude_hv(1);
            ring::open(attributes, tid, cpu, 0)
        }
        result => result,
    }
}

fn redirect(event: &OwnedFd, to: &OwnedFd) -> io::Result<()> {
    const SET_OUTPUT: libc::c_ulong = 0x2405; // PERF_EVENT_IOC_SET_OUTPUT
    // SAFETY: both descriptors are open events.
    match unsafe { libc::ioctl(event.as_raw_fd(), SET_OUTPUT, to.as_raw_fd()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn identifier(event: &OwnedFd) -> io::Result<u64> {
    const ID: libc::c_ulong = 0x8008_2407; // PERF_EVENT_IOC_ID
    let mut id = 0_u64;
    // SAFETY: the kernel writes one word to where `id` is.
    match unsafe { libc::ioctl(event.as_raw_fd(), ID, &raw mut id) } {
        0 => Ok(id),
        _ => Err(io::Error::last_os_error()),
    }
}

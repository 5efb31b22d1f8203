//! Processes and their threads from `/proc`.

use crate::{Host, ReadError};

/// What `/proc/PID/status` says of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// The first 15 bytes of the executable's name.
    pub name: String,
    /// The process that started it, or took it over; 0 if it lies outside our namespace.
    pub parent: u32,
    /// Real user id of the process.
    pub uid: u32,
    /// Resident memory, bytes; 0 for kernel threads.
    pub resident: u64,
    /// Kernel CPU numbers it may run on.
    pub cpus_allowed: Vec<u32>,
    /// Kernel node numbers it may allocate on.
    pub mems_allowed: Vec<u32>,
    /// Effective capabilities, a bit each.
    pub capabilities: u64,
}

/// A capability's bit in [`Status::capabilities`] (include/uapi/linux/capability.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Capability {
    /// Count as the owner of every file.
    Fowner = 3,
    /// Look into other processes.
    SysPtrace = 19,
    /// Most administrative operations (`CAP_SYS_ADMIN`).
    SysAdmin = 21,
    /// Raise priorities, move other users' pages and threads.
    SysNice = 23,
    /// Performance events beyond `perf_event_paranoid`.
    Perfmon = 38,
}

/// The user as whom this process acts: 0 is root.
#[must_use]
pub fn own_user() -> u32 {
    // SAFETY: takes no argument, cannot fail.
    unsafe { libc::geteuid() }
}

impl Status {
    /// From the text of the file; lines it does not know are skipped, missing ones stay empty.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut status = Self::default();
        for (key, value) in text.lines().filter_map(|l| l.split_once(':')) {
            let (value, first) = (value.trim(), value.split_ascii_whitespace().next().unwrap_or(""));
            match key {
                "Name" => status.name = value.to_owned(),
                "PPid" => status.parent = first.parse().unwrap_or(0),
                "Uid" => status.uid = first.parse().unwrap_or(0),
                "VmRSS" => status.resident = first.parse::<u64>().unwrap_or(0).saturating_mul(1024),
                "Cpus_allowed_list" => status.cpus_allowed = parse_list(value),
                "Mems_allowed_list" => status.mems_allowed = parse_list(value),
                "CapEff" => status.capabilities = u64::from_str_radix(value, 16).unwrap_or(0),
                _ => {}
            }
        }
        status
    }

    /// Whether the process has a capability in effect.
    #[must_use]
    pub fn has(&self, capability: Capability) -> bool {
        self.capabilities >> capability as u32 & 1 == 1
    }
}

/// Kernel list notation; what cannot be read is left out. No host has as many CPUs or nodes as [`MAX_NUMBER`].
pub(crate) fn parse_list(text: &str) -> Vec<u32> {
    let part = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (
            first.trim().parse::<u32>().ok()?,
            last.trim().parse::<u32>().ok()?,
        );
        (last < MAX_NUMBER).then_some(first..=last)
    };
    text.split(',')
        .filter_map(part)
        .flatten()
        .take(MAX_NUMBER as usize)
        .collect()
}

const MAX_NUMBER: u32 = 1 << 20;

/// A thread at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Id of the thread.
    pub tid: u32,
    /// Name of the thread (`comm`).
    pub name: String,
    /// The CPU it runs on, or last ran on.
    pub cpu: u32,
    /// CPU time so far, nanoseconds.
    pub cpu_ns: u64,
    /// Time so far for which it was runnable but had no CPU, nanoseconds; 0 if the kernel does not report it.
    pub waited_ns: u64,
}

impl Task {
    /// From the texts of `stat` and, where the kernel has it, `schedstat`, which counts finer than
    /// clock ticks of 10 ms.
    #[must_use]
    pub fn parse(stat: &str, schedstat: Option<&str>) -> Option<Self> {
        let stat = Stat::parse(stat)?;
        let mut exact = schedstat.into_iter().flat_map(str::split_ascii_whitespace);
        let mut exact = || exact.next()?.parse().ok();
        Some(Self {
            tid: stat.id.parse().ok()?,
            name: stat.name.to_owned(),
            cpu: stat.number(39)?.try_into().ok()?,
            cpu_ns: exact().or_else(|| stat.cpu_ns())?,
            waited_ns: exact().unwrap_or(0),
        })
    }
}

/// What the kernel's NUMA balancing has found out about a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BalancedThread {
    /// The node that it would have the thread run on.
    pub preferred: Option<u32>,
    /// The number of the group of threads that were seen to access the same pages, the thread among them.
    pub group: Option<u32>,
}

impl BalancedThread {
    fn parse(sched: &str) -> Self {
        let after = |name: &str| {
            let (_, rest) = sched.split_once(name)?;
            rest.trim_start_matches([' ', ':'])
                .split_whitespace()
                .next()?
                .parse()
                .ok()
        };
        Self {
            preferred: after("numa_preferred_nid"), // -1 is none
            group: after("numa_group_id=").filter(|id| *id > 0),
        }
    }
}

/// Resources of a process at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Number of its threads.
    pub threads: u64,
    /// CPU time of all its threads so far, nanoseconds, in clock ticks of 10 ms.
    pub cpu_ns: u64,
    /// Base pages that are in memory.
    pub resident: u64,
}

/// The fields of `stat` (proc(5)).
struct Stat<'a> {
    id: &'a str,
    name: &'a str,
    /// The fields from the third one on.
    fields: Vec<&'a str>,
}

impl<'a> Stat<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        // The name stands in parentheses and may hold anything, parentheses too.
        let (head, rest) = text.rsplit_once(')')?;
        let (id, name) = head.split_once(" (")?;
        Some(Self {
            id: id.trim(),
            name,
            fields: rest.split_ascii_whitespace().collect(),
        })
    }

    /// A field by its number in proc(5).
    fn number(&self, field: usize) -> Option<u64> {
        self.fields.get(field - 3)?.parse().ok()
    }

    /// Time in user and in kernel mode.
    fn cpu_ns(&self) -> Option<u64> {
        let ticks = self.number(14)?.saturating_add(self.number(15)?);
        Some(ticks.saturating_mul(10_000_000))
    }
}

impl Host {
    /// All processes, ascending.
    ///
    /// # Errors
    /// `/proc` cannot be listed.
    pub fn pids(&self) -> Result<Vec<u32>, ReadError> {
        let mut pids: Vec<u32> = self
            .names("proc")?
            .iter()
            .filter_map(|n| n.parse().ok())
            .collect();
        pids.sort_unstable();
        Ok(pids)
    }

    /// Name, memory, and what a process is allowed.
    ///
    /// # Errors
    /// No such process.
    pub fn status(&self, pid: u32) -> Result<Status, ReadError> {
        self.read(&format!("proc/{pid}/status"))
            .map(|text| Status::parse(&text))
    }

    /// The values of lines of a process's status, such as `TracerPid`, all read at once; `None` for a line that is not
    /// there, and for all lines if there is no such process.
    #[must_use]
    pub fn status_values<const N: usize>(&self, pid: u32, keys: [&str; N]) -> [Option<String>; N] {
        let text = self.read(&format!("proc/{pid}/status")).unwrap_or_default();
        let value =
            |key: &str, line: &str| Some(line.strip_prefix(key)?.strip_prefix(':')?.trim().to_owned());
        keys.map(|key| text.lines().find_map(|line| value(key, line)))
    }

    /// Our own status: which user we are, what we are allowed.
    ///
    /// # Errors
    /// `/proc` is not mounted.
    pub fn own_status(&self) -> Result<Status, ReadError> {
        self.read("proc/self/status").map(|text| Status::parse(&text))
    }

    /// Threads, CPU time and memory of a process at this moment; `None` where there is no such process.
    #[must_use]
    pub fn usage(&self, pid: u32) -> Option<Usage> {
        let text = self.read(&format!("proc/{pid}/stat")).ok()?;
        let stat = Stat::parse(&text)?;
        Some(Usage {
            threads: stat.number(20)?,
            cpu_ns: stat.cpu_ns()?,
            resident: stat.number(24)?,
        })
    }

    /// Threads of a process at this moment; those that end while being read are left out.
    ///
    /// # Errors
    /// No such process.
    pub fn tasks(&self, pid: u32) -> Result<Vec<Task>, ReadError> {
        let names = self.names(&format!("proc/{pid}/task"))?;
        let task = |tid: &String| {
            let stat = self.read(&format!("proc/{pid}/task/{tid}/stat")).ok()?;
            let schedstat = self.read(&format!("proc/{pid}/task/{tid}/schedstat")).ok();
            Task::parse(&stat, schedstat.as_deref())
        };
        Ok(names.iter().filter_map(task).collect())
    }

    /// What the kernel's NUMA balancing has found out about a thread (`sched_show_numa` in kernel/sched/debug.c); nothing
    /// where it does not report it.
    #[must_use]
    pub fn balanced_thread(&self, pid: u32, tid: u32) -> BalancedThread {
        let text = self
            .read(&format!("proc/{pid}/task/{tid}/sched"))
            .unwrap_or_default();
        BalancedThread::parse(&text)
    }

    /// A figure that the scheduler keeps of a thread (`sched`); `None` where the kernel has no scheduler statistics, or we may
    /// not read those of the thread.
    #[must_use]
    pub fn scheduler_figure(&self, pid: u32, tid: u32, name: &str) -> Option<i64> {
        let text = self.read(&format!("proc/{pid}/task/{tid}/sched")).ok()?;
        let line = text.lines().find(|l| l.starts_with(name))?;
        line.rsplit(':').next()?.trim().parse().ok()
    }

    /// These processes and their present descendants, as far as we may inspect their memory: first the given ones, then
    /// their children.
    #[must_use]
    pub fn with_descendants(&self, pids: &[u32]) -> Vec<u32> {
        let parent = |pid: u32| Some((self.status(pid).ok()?.parent, pid));
        let all: Vec<(u32, u32)> = self
            .pids()
            .unwrap_or_default()
            .into_iter()
            .filter_map(parent)
            .collect();
        let mut family = pids.to_vec();
        let mut next = 0;
        while let Some(of) = family.get(next).copied() {
            let children = all
                .iter()
                .filter(|(parent, _)| *parent == of)
                .map(|(_, pid)| *pid);
            let new: Vec<u32> = children
                .filter(|pid| !family.contains(pid) && self.maps(*pid).is_ok_and(|m| !m.is_empty()))
                .collect();
            family.extend(new);
            next += 1;
        }
        family
    }

    /// Whether a process exists.
    #[must_use]
    pub fn has_process(&self, pid: u32) -> bool {
        self.proc().join(pid.to_string()).is_dir()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_balancing_knows_of_a_thread_is_read() {
        let sched = "numa_pages_migrated    :    120\nnuma_preferred_nid     :      1\ntotal_numa_faults : 900\n\
            current_node=0, numa_group_id=4711\nnuma_faults node=0 task_private=10 task_shared=20\n";
        let known = BalancedThread {
            preferred: Some(1),
            group: Some(4711),
        };
        assert_eq!(BalancedThread::parse(sched), known);
        let new = sched.replace(":      1", ":     -1").replace("4711", "0");
        assert_eq!(BalancedThread::parse(&new), BalancedThread::default());
        assert_eq!(BalancedThread::parse("prio : 120\n"), BalancedThread::default());
    }

    const STAT: &str = "10441 (a) b (c) R 10427 10427 6458 0 -1 4194304 100 0 0 0 7 5 0 0 20 0 1 0 102828 3133440 410 \
        18446744073709551615 1 2 3 0 0 0 0 0 0 0 0 0 17 61 0 0 0 0 0 1 2 3 4 5 6 7 0\n";

    #[test]
    fn a_thread_name_may_hold_parentheses() {
        let task = Task::parse(STAT, None).unwrap();
        assert_eq!((task.tid, task.name.as_str(), task.cpu), (10441, "a) b (c", 61));
        assert_eq!(task.cpu_ns, 120_000_000, "12 ticks");
        let exact = Task::parse(STAT, Some("123456 7 8\n")).unwrap();
        assert_eq!((exact.cpu_ns, exact.waited_ns, task.waited_ns), (123_456, 7, 0));
    }

    #[test]
    fn status_gives_limits_and_capabilities() {
        let text = "Name:\tsolve\nPPid:\t7\nUid:\t1000\t1000\t1000\t1000\nVmRSS:\t    2048 kB\nCapEff:\t0000000000080000\n\
            Cpus_allowed_list:\t0-2,5\nMems_allowed_list:\t1\n";
        let status = Status::parse(text);
        assert_eq!(
            (status.name.as_str(), status.uid, status.resident),
            ("solve", 1000, 2 << 20)
        );
        assert_eq!(status.parent, 7);
        assert_eq!(
            (status.cpus_allowed.as_slice(), status.mems_allowed.as_slice()),
            (&[0, 1, 2, 5][..], &[1][..])
        );
        assert!(status.has(Capability::SysPtrace) && !status.has(Capability::SysNice));
    }

    #[test]
    fn the_live_system_shows_this_process() {
        let host = Host::default();
        let pid = std::process::id();
        assert!(host.has_process(pid) && host.pids().unwrap().contains(&pid));
        let status = host.status(pid).unwrap();
        assert!(status.resident > 0 && !status.cpus_allowed.is_empty());
        assert!(host.tasks(pid).unwrap().iter().any(|t| t.tid == pid));
        assert!(host.status(u32::MAX - 1).is_err());
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics(text in "[ -~\n\t]{0,200}", cut in 0..STAT.len()) {
            let _ = (Status::parse(&text), Task::parse(&text, Some(&text)), Task::parse(&STAT[..cut], None));
        }
    }

    #[test]
    fn a_family_is_whose_memory_may_be_seen() {
        let root = std::env::temp_dir().join(format!("nodewise-family-{}", std::process::id()));
        for (pid, parent, maps) in [
            (10, 1, "1000-2000 rw-p 00000000 00:00 0\n"),
            (11, 10, "1000-2000 rw-p 00000000 00:00 0\n"),
            (12, 11, "1000-2000 rw-p 00000000 00:00 0\n"),
            (13, 10, ""),
            (14, 1, "1000-2000 rw-p 00000000 00:00 0\n"),
        ] {
            let folder = root.join(format!("proc/{pid}"));
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("status"), format!("Name:\tone\nPPid:\t{parent}\n")).unwrap();
            std::fs::write(folder.join("maps"), maps).unwrap();
        }
        let host = Host::at(&root);
        assert_eq!(
            host.with_descendants(&[10]),
            [10, 11, 12],
            "one has ended, one is another's"
        );
        assert_eq!(host.with_descendants(&[12, 11]), [12, 11]);
        std::fs::remove_dir_all(&root).unwrap();
    }
}

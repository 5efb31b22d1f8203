//! Clocks: the monotonic one, and the CPU time of threads and processes; times as numbers.

use std::time::Duration;

/// Monotonic time from an arbitrary origin, unaffected by changes of the time of day.
#[must_use]
pub fn monotonic() -> Duration {
    read(libc::CLOCK_MONOTONIC).unwrap_or_default()
}

/// CPU time of the calling thread.
#[must_use]
pub fn own_cpu_time() -> Duration {
    read(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or_default()
}

/// CPU time of all threads of a process, ended ones included; `None` when the process has ended.
#[must_use]
pub fn cpu_time(pid: u32) -> Option<Duration> {
    const SCHED: i32 = 2; // CPUCLOCK_SCHED, of a process
    read(!(pid as i32) << 3 | SCHED)
}

/// A time in nanoseconds; saturates after 584 years.
#[must_use]
pub fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A time in whole milliseconds; saturates after 49 days.
#[must_use]
pub fn milliseconds(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}

fn read(clock: libc::clockid_t) -> Option<Duration> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes one timespec to where `time` is; an unknown clock is an error.
    let result = unsafe { libc::clock_gettime(clock, &raw mut time) };
    let seconds = u64::try_from(time.tv_sec).ok()?;
    (result == 0).then(|| Duration::new(seconds, time.tv_nsec as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_used_what_its_thread_has() {
        let began = own_cpu_time();
        while own_cpu_time() - began < Duration::from_millis(5) {}
        assert!(cpu_time(std::process::id()).unwrap() >= Duration::from_millis(5));
        assert!(monotonic() > Duration::ZERO);
        assert_eq!(cpu_time(i32::MAX as u32 >> 3), None);
    }
}

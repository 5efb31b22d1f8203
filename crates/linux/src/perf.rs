//! CPU time profiling of processes with the kernel's sampled clock event.

pub(crate) mod ring;

use perf_event_open_sys::bindings::{
    PERF_COUNT_SW_CPU_CLOCK, PERF_RECORD_COMM, PERF_RECORD_FORK, PERF_RECORD_LOST,
    PERF_RECORD_MISC_COMM_EXEC, PERF_RECORD_MMAP, PERF_RECORD_SAMPLE, PERF_SAMPLE_IP, PERF_SAMPLE_TID,
    PERF_TYPE_SOFTWARE, perf_event_attr,
};
use ring::{Ring, each_cpu, text};
use std::io;

/// Pages of one CPU's buffer, a power of two: within what every user may lock.
const BUFFER_PAGES: [usize; 1] = [32];
const KERNEL: u16 = 1;
const USER: u16 = 2;
const CPU_MODE: u16 = 7;

/// A record of the kernel's ring buffers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A thread was running.
    Sample {
        /// Id of the thread's process.
        pid: u32,
        /// Id of the sampled thread.
        tid: u32,
        /// Address of the instruction.
        address: u64,
        /// Whether it was in kernel mode, on the thread's behalf.
        kernel: bool,
    },
    /// A process mapped code.
    Mapped {
        /// Id of the process.
        pid: u32,
        /// Start address of the mapping.
        address: u64,
        /// Length of the mapping, bytes.
        bytes: u64,
        /// Offset of the mapping in the file, bytes.
        offset: u64,
        /// The file, or a name in brackets.
        path: String,
    },
    /// A process was forked; it has its parent's mappings.
    Forked {
        /// Id of the child process.
        pid: u32,
        /// Id of the parent process.
        parent: u32,
    },
    /// A process executed another program; its mappings are gone.
    Executed {
        /// Id of the process.
        pid: u32,
    },
    /// This many records did not fit.
    Lost(u64),
}

/// Samples the CPU time of programs that the calling thread starts, and of their descendants, from their `exec` on.
pub struct Sampler {
    rings: Vec<Ring>,
    sees_kernel: bool,
}

impl Sampler {
    /// Samples `frequency` times per second of CPU time. Call it in the thread that starts the program, before it does
    /// so.
    ///
    /// # Errors
    /// As the kernel answers: `PermissionDenied` by `kernel.perf_event_paranoid`.
    pub fn of_children(frequency: u64) -> io::Result<Self> {
        let with_kernel = Self::open(frequency, true);
        match with_kernel {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Self::open(frequency, false),
            result => result,
        }
    }

    fn open(frequency: u64, kernel: bool) -> io::Result<Self> {
        let mut attributes = attributes(frequency, kernel);
        let rings = each_cpu(|cpu| Ring::of(ring::open(&mut attributes, 0, cpu, 0)?, &BUFFER_PAGES))?;
        Ok(Self {
            rings,
            sees_kernel: kernel,
        })
    }

    /// Whether time in the kernel is sampled too; otherwise it is missing.
    #[must_use]
    pub fn sees_kernel(&self) -> bool {
        self.sees_kernel
    }

    /// Everything since the last call, CPU by CPU.
    pub fn drain(&mut self) -> Vec<Record> {
        let mut records = Vec::new();
        for ring in &self.rings {
            ring.drain(|kind, misc, body| records.extend(record(kind, misc, body)));
        }
        records
    }
}

fn attributes(frequency: u64, kernel: bool) -> perf_event_attr {
    let mut attributes = perf_event_attr {
        type_: PERF_TYPE_SOFTWARE,
        config: u64::from(PERF_COUNT_SW_CPU_CLOCK),
        sample_type: u64::from(PERF_SAMPLE_IP | PERF_SAMPLE_TID),
        ..perf_event_attr::default()
    };
    attributes.__bindgen_anon_1.sample_freq = frequency;
    attributes.set_freq(1);
    attributes.set_disabled(1);
    attributes.set_enable_on_exec(1);
    attributes.set_inherit(1);
    attributes.set_exclude_kernel(u64::from(!kernel));
    attributes.set_exclude_hv(1);
    attributes.set_mmap(1);
    attributes.set_comm(1);
    attributes.set_comm_exec(1);
    attributes.set_task(1);
    attributes
}

/// See perf_event_open(2), "MMAP layout".
fn record(kind: u32, misc: u16, body: &[u64]) -> Option<Record> {
    let (low, high) = (|w: u64| w as u32, |w: u64| (w >> 32) as u32);
    Some(match (kind, body) {
        (PERF_RECORD_SAMPLE, &[address, ids, ..]) if matches!(misc & CPU_MODE, KERNEL | USER) => {
            Record::Sample {
                pid: low(ids),
                tid: high(ids),
                address,
                kernel: misc & CPU_MODE == KERNEL,
            }
        }
        (PERF_RECORD_MMAP, &[ids, address, bytes, offset, ref path @ ..]) => Record::Mapped {
            pid: low(ids),
            address,
            bytes,
            offset,
            path: text(path),
        },
        (PERF_RECORD_FORK, &[ids, tids, ..]) if low(tids) == low(ids) => Record::Forked {
            pid: low(ids),
            parent: high(ids),
        },
        (PERF_RECORD_COMM, &[ids, ..]) if u32::from(misc) & PERF_RECORD_MISC_COMM_EXEC != 0 => {
            Record::Executed { pid: low(ids) }
        }
        (PERF_RECORD_LOST, &[_, lost, ..]) => Record::Lost(lost),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_the_kernel_lays_them_out() {
        let ids = 7 | 8 << 32;
        assert_eq!(
            record(PERF_RECORD_SAMPLE, 2, &[0x1234, ids]),
            Some(Record::Sample {
                pid: 7,
                tid: 8,
                address: 0x1234,
                kernel: false
            })
        );
        let path = u64::from_ne_bytes(*b"/bin/a\0\0");
        assert_eq!(
            record(PERF_RECORD_MMAP, 2, &[ids, 0x1000, 0x2000, 0, path]),
            Some(Record::Mapped {
                pid: 7,
                address: 0x1000,
                bytes: 0x2000,
                offset: 0,
                path: "/bin/a".into()
            })
        );
        assert_eq!(record(PERF_RECORD_SAMPLE, 2, &[0x1234]), None);
        assert_eq!(record(PERF_RECORD_COMM, 0, &[ids, 0]), None);
    }

    #[test]
    fn a_child_is_sampled_where_that_is_permitted() {
        let Ok(mut sampler) = Sampler::of_children(999) else {
            return; // perf_event_paranoid
        };
        let script = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        let mut child = std::process::Command::new("/bin/sh")
            .args(["-c", script])
            .spawn()
            .unwrap();
        child.wait().unwrap();
        let records = sampler.drain();
        let own = records
            .iter()
            .filter(|r| matches!(r, Record::Sample { pid, .. } if *pid == child.id()));
        assert!(own.count() > 0);
        assert!(
            records
                .iter()
                .any(|r| matches!(r, Record::Mapped { path, .. } if path.contains("libc")))
        );
    }
}

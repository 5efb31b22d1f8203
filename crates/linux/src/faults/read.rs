//! The kernel's records, word by word: see perf_event_open(2), "MMAP layout". Samples consist of identifier,
//! ids, time, address, CPU and, of tracepoints, raw bytes; other records end with ids, time, CPU, identifier.

use super::{Fault, Record, Role};
use crate::perf::ring::{raw, text};
use perf_event_open_sys::bindings::{
    PERF_RECORD_COMM, PERF_RECORD_EXIT, PERF_RECORD_FORK, PERF_RECORD_LOST, PERF_RECORD_LOST_SAMPLES,
    PERF_RECORD_MISC_COMM_EXEC, PERF_RECORD_MMAP, PERF_RECORD_SAMPLE,
};
use std::collections::HashMap;

/// Kernel addresses begin here.
const KERNEL_START: u64 = 1 << 47;
/// The processor's error code of a page fault.
const PF_PROT: u64 = 1;
const PF_WRITE: u64 = 2;
/// The value of `enum migrate_reason` for NUMA balancing.
const MR_NUMA_MISPLACED: u64 = 5;
const TRAILER: usize = 4;

/// Parses a record with its time; `None` for records without meaning to us.
pub(super) fn record(
    roles: &HashMap<u64, Role>,
    kind: u32,
    misc: u16,
    body: &[u64],
) -> Option<(u64, Record)> {
    if kind == PERF_RECORD_SAMPLE {
        let &[identifier, ids, time, address, cpu, ref rest @ ..] = body else {
            return None;
        };
        let at = Fault {
            time_ns: time,
            pid: ids as u32,
            tid: (ids >> 32) as u32,
            cpu: cpu as u32,
            address,
            write: None,
            protected: None,
        };
        return Some((time, sample(roles.get(&identifier)?, at, rest)?));
    }
    let (body, trailer) = body.split_at_checked(body.len().checked_sub(TRAILER)?)?;
    Some((trailer[1], other(kind, misc, body)?))
}

fn sample(role: &Role, at: Fault, rest: &[u64]) -> Option<Record> {
    let fault = match role {
        Role::Fault => at,
        Role::TracedFault(point) => {
            let raw = raw(rest);
            let code = point.value("error_code", &raw)?;
            Fault {
                address: point.value("address", &raw)?,
                write: Some(code & PF_WRITE != 0),
                protected: Some(code & PF_PROT != 0),
                ..at
            }
        }
        Role::Moves(point) => {
            let raw = raw(rest);
            if point.value("reason", &raw)? != MR_NUMA_MISPLACED {
                return None;
            }
            let pages = point.value("succeeded", &raw)?;
            let (pid, tid) = (at.pid, at.tid);
            return Some(Record::Moved { pid, tid, pages });
        }
    };
    (fault.address < KERNEL_START && fault.pid != 0).then_some(Record::Fault(fault))
}

fn other(kind: u32, misc: u16, body: &[u64]) -> Option<Record> {
    let (low, high) = (|w: u64| w as u32, |w: u64| (w >> 32) as u32);
    Some(match (kind, body) {
        (PERF_RECORD_FORK, &[ids, tids, ..]) => Record::Began {
            pid: low(ids),
            tid: low(tids),
            parent: high(ids),
        },
        (PERF_RECORD_EXIT, &[ids, tids, ..]) => Record::Ended {
            pid: low(ids),
            tid: low(tids),
        },
        (PERF_RECORD_COMM, &[ids, ref name @ ..]) => Record::Named {
            pid: low(ids),
            tid: high(ids),
            name: text(name),
            executed: u32::from(misc) & PERF_RECORD_MISC_COMM_EXEC != 0,
        },
        (PERF_RECORD_MMAP, &[ids, address, bytes, _, ref path @ ..]) => Record::Mapped {
            pid: low(ids),
            address,
            bytes,
            path: text(path),
        },
        (PERF_RECORD_LOST, &[_, lost, ..]) | (PERF_RECORD_LOST_SAMPLES, &[lost, ..]) => Record::Lost(lost),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tracepoint::Tracepoint;

    const IDS: u64 = 7 | 8 << 32;

    fn traced() -> HashMap<u64, Role> {
        let format = "ID: 190\n\tfield:unsigned long address;\toffset:8;\tsize:8;\tsigned:0;\n\
            \tfield:unsigned long error_code;\toffset:24;\tsize:8;\tsigned:0;\n";
        HashMap::from([
            (1, Role::Fault),
            (2, Role::TracedFault(Tracepoint::parse(format).unwrap())),
        ])
    }

    fn fault(identifier: u64, address: u64, rest: &[u64]) -> Option<Fault> {
        let body = [&[identifier, IDS, 99, address, 3][..], rest].concat();
        match record(&traced(), PERF_RECORD_SAMPLE, 2, &body)? {
            (99, Record::Fault(fault)) => Some(fault),
            _ => None,
        }
    }

    /// `size` bytes behind their length, as the kernel packs them.
    fn packed(fields: [u64; 4]) -> Vec<u64> {
        let mut bytes = 36_u32.to_le_bytes().to_vec();
        bytes.extend(fields.iter().flat_map(|f| f.to_le_bytes()));
        bytes.resize(40, 0);
        bytes
            .chunks(8)
            .map(|c| u64::from_le_bytes(c.try_into().unwrap()))
            .collect()
    }

    #[test]
    fn a_software_event_knows_neither_writes_nor_protection() {
        let seen = fault(1, 0x1234, &[]).unwrap();
        assert_eq!((seen.pid, seen.tid, seen.cpu, seen.address), (7, 8, 3, 0x1234));
        assert_eq!((seen.write, seen.protected), (None, None));
        assert_eq!(fault(1, KERNEL_START, &[]), None, "the kernel's own");
        assert_eq!(fault(3, 0x1234, &[]), None, "of no event of ours");
    }

    #[test]
    fn a_traced_fault_tells_reads_writes_and_copies_apart() {
        for (code, write, protected) in [(4, false, false), (6, true, false), (7, true, true)] {
            let seen = fault(2, 0, &packed([190, 0x5678, 0, code])).unwrap();
            assert_eq!(
                (seen.address, seen.write, seen.protected),
                (0x5678, Some(write), Some(protected))
            );
        }
        assert_eq!(fault(2, 0, &[]), None);
    }

    #[test]
    fn threads_names_and_mappings_are_read_before_the_trailer() {
        let read = |kind, misc, body: &[u64]| {
            let whole = [body, &[IDS, 99, 0, 1]].concat();
            record(&traced(), kind, misc, &whole).map(|(_, record)| record)
        };
        let name = u64::from_ne_bytes(*b"solve\0\0\0");
        assert_eq!(
            read(PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC as u16, &[IDS, name]),
            Some(Record::Named {
                pid: 7,
                tid: 8,
                name: "solve".into(),
                executed: true
            })
        );
        assert_eq!(
            read(PERF_RECORD_FORK, 0, &[9 | 7 << 32, 10 | 8 << 32, 99]),
            Some(Record::Began {
                pid: 9,
                tid: 10,
                parent: 7
            })
        );
        assert_eq!(read(PERF_RECORD_LOST, 0, &[1, 5]), Some(Record::Lost(5)));
        assert_eq!(
            read(PERF_RECORD_MMAP, 0, &[IDS, 0x1000, 0x2000, 0, name]),
            Some(Record::Mapped {
                pid: 7,
                address: 0x1000,
                bytes: 0x2000,
                path: "solve".into()
            })
        );
        assert_eq!(record(&traced(), PERF_RECORD_FORK, 0, &[IDS]), None);
    }
}

//! Records of sampled loads: ids, time, address, CPU, period and the source of the data, a word each
//! (perf_event_open(2), "MMAP layout"; `union perf_mem_data_src`).

use perf_event_open_sys::bindings::PERF_RECORD_SAMPLE;

/// Kernel addresses begin here.
const KERNEL_START: u64 = 1 << 47;

/// `mem_op`: bits 0 to 4.
const LOAD: u64 = 0x02;
/// `mem_lvl`: bits 5 to 18.
const LEVEL: u32 = 5;
const LOCAL_MEMORY: u64 = 0x80;
const REMOTE_MEMORY: u64 = 0x100 | 0x200;
const REMOTE_CACHE: u64 = 0x400 | 0x800;
const LOCAL_CACHE: u64 = 0x08 | 0x10 | 0x20 | 0x40;
const MISSED: u64 = 0x04;
/// `mem_lvl_num`: bits 33 to 36, of newer kernels and processors.
const NUMBER: u32 = 33;
const CACHES: std::ops::RangeInclusive<u64> = 0x01..=0x05;
const LINE_FILL: u64 = 0x0c;
const CXL: u64 = 0x09;
const MEMORY: u64 = 0x0d;
const PERSISTENT: u64 = 0x0e;
/// The bit `mem_remote` of `perf_mem_data_src`.
const REMOTE: u64 = 1 << 37;

/// What served a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// A cache of the same node.
    Cache,
    /// The node's own memory.
    Local,
    /// Another node's memory, or a cache there.
    Remote,
    /// The processor does not say, or it was no load.
    Unknown,
}

/// A load that the processor sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Time of the load on the monotonic clock, nanoseconds.
    pub time_ns: u64,
    /// Id of the loading process.
    pub pid: u32,
    /// Id of the loading thread.
    pub tid: u32,
    /// The CPU that the thread ran on, by the kernel's number.
    pub cpu: u32,
    /// The address that was loaded from.
    pub address: u64,
    /// Number of events that the sample stands for.
    pub weight: u64,
    /// The level of the memory hierarchy that served it.
    pub served: Served,
}

/// A sample of user memory; `None` for all other records.
pub(super) fn record(kind: u32, body: &[u64]) -> Option<Load> {
    let &[ids, time_ns, address, cpu, weight, source] = body else {
        return None;
    };
    let sampled = kind == PERF_RECORD_SAMPLE && address != 0 && address < KERNEL_START;
    sampled.then_some(Load {
        time_ns,
        pid: ids as u32,
        tid: (ids >> 32) as u32,
        cpu: cpu as u32,
        address,
        weight,
        served: served(source),
    })
}

fn served(source: u64) -> Served {
    if source & 0x1f & LOAD == 0 {
        return Served::Unknown;
    }
    let (level, number) = (source >> LEVEL & 0x3fff, source >> NUMBER & 0xf);
    let away = source & REMOTE != 0;
    match () {
        () if level & (REMOTE_MEMORY | REMOTE_CACHE) != 0 => Served::Remote,
        () if level & LOCAL_MEMORY != 0 || [MEMORY, PERSISTENT, CXL].contains(&number) => match away {
            true => Served::Remote,
            false => Served::Local,
        },
        () if away => Served::Remote,
        () if level & MISSED != 0 => Served::Unknown,
        () if level & LOCAL_CACHE != 0 || CACHES.contains(&number) || number == LINE_FILL => Served::Cache,
        () => Served::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `PERF_MEM_S` packs them: operation, level, number of the level, remote.
    fn source(operation: u64, level: u64, number: u64, remote: bool) -> u64 {
        operation | level << LEVEL | number << NUMBER | if remote { REMOTE } else { 0 }
    }

    #[test]
    fn what_served_a_load_is_known_in_both_codings() {
        const HIT: u64 = 0x02;
        let cases = [
            // Intel's table of PEBS data sources, as the kernel translates it (arch/x86/events/intel/ds.c).
            (source(LOAD, HIT | 0x08, 1, false), Served::Cache),
            (source(LOAD, HIT | 0x40, 3, false), Served::Cache),
            (source(LOAD, HIT | LOCAL_MEMORY, MEMORY, false), Served::Local),
            (source(LOAD, HIT | 0x100, MEMORY, true), Served::Remote),
            (source(LOAD, HIT | 0x400, 0, true), Served::Remote),
            (source(LOAD, MISSED | 0x40, 3, false), Served::Unknown),
            // AMD's, which leaves out the older coding on newer processors.
            (source(LOAD, 0, MEMORY, false), Served::Local),
            (source(LOAD, 0, MEMORY, true), Served::Remote),
            (source(LOAD, 0, CXL, true), Served::Remote),
            (source(LOAD, 0, 0x0b, true), Served::Remote),
            (source(LOAD, 0, LINE_FILL, false), Served::Cache),
            (source(LOAD, 0x01, 0x0f, false), Served::Unknown),
            (source(0x04, HIT | 0x100, MEMORY, true), Served::Unknown),
            (source(0x01, 0x01, 0, false), Served::Unknown),
        ];
        for (source, expected) in cases {
            assert_eq!(served(source), expected, "{source:#x}");
        }
    }

    #[test]
    fn a_record_is_six_words_of_user_memory() {
        let body = [
            7 | 8 << 32,
            99,
            0x7f00_1000,
            3,
            4096,
            source(LOAD, 0, MEMORY, true),
        ];
        let load = record(PERF_RECORD_SAMPLE, &body).unwrap();
        assert_eq!((load.pid, load.tid, load.cpu, load.time_ns), (7, 8, 3, 99));
        assert_eq!(
            (load.address, load.weight, load.served),
            (0x7f00_1000, 4096, Served::Remote)
        );
        let with_address = |address| [&body[..2], &[address], &body[3..]].concat();
        assert_eq!(record(PERF_RECORD_SAMPLE, &with_address(0)), None, "not known");
        assert_eq!(
            record(PERF_RECORD_SAMPLE, &with_address(KERNEL_START)),
            None,
            "the kernel's"
        );
        assert_eq!(record(PERF_RECORD_SAMPLE + 1, &body), None);
        assert_eq!(record(PERF_RECORD_SAMPLE, &body[..5]), None);
    }
}

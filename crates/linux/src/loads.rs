//! Samples loads by the processor, with their address and the level that served them: Intel's load latency (PEBS) and
//! AMD's instruction-based sampling (IBS), through the kernel's events for them.
//!
//! Never run on such hardware. Parsing of sysfs and of records follows the kernel's documentation (perf_event_open(2),
//! `Documentation/ABI/testing/sysfs-bus-event_source-devices-format`) and is tested on texts and records of that form;
//! opening events and reading their buffer is tested with a software event of this kernel.

mod decode;

pub use decode::{Load, Served};

use crate::Host;
use crate::perf::ring::{self, Ring};
use perf_event_open_sys::bindings::{
    PERF_SAMPLE_ADDR, PERF_SAMPLE_CPU, PERF_SAMPLE_DATA_SRC, PERF_SAMPLE_PERIOD, PERF_SAMPLE_TID,
    PERF_SAMPLE_TIME, perf_event_attr,
};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// Loads that take fewer cycles than this were served by nearby caches and are not sampled.
const CYCLES: u64 = 60;
/// Samples per second and thread.
const RATE: u64 = 500;
/// Pages of a thread's buffer: the preferred number, and the number that every user may lock for several threads.
const BUFFER_PAGES: [usize; 2] = [16, 2];
const DEVICES: &str = "sys/bus/event_source/devices";

/// An event that samples loads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sampler {
    /// Name of the event: `cpu/mem-loads/`, `ibs_op//`.
    pub name: String,
    kind: u32,
    config: u64,
    config1: u64,
    precise: u64,
    /// The event that has to lead its group, on processors that need one.
    leader: Option<u64>,
}

impl Host {
    /// How this processor samples loads; `None` if it does not, or is not allowed to show it (virtual machines).
    #[must_use]
    pub fn load_sampler(&self) -> Option<Sampler> {
        ["cpu", "cpu_core"]
            .into_iter()
            .find_map(|device| self.load_latency(device))
            .or_else(|| self.instruction_based())
    }

    fn load_latency(&self, device: &str) -> Option<Sampler> {
        let event = |name: &str| self.read(&format!("{DEVICES}/{device}/events/{name}")).ok();
        let [config, config1] = self.terms(device, event("mem-loads")?.trim())?;
        // The smallest threshold that the kernel permits would include loads served by caches; use a larger one.
        let threshold = self.field(device, "ldlat")?;
        let leader = event("mem-loads-aux").and_then(|text| self.terms(device, text.trim()));
        Some(Sampler {
            name: format!("{device}/mem-loads/"),
            kind: self.kind(device)?,
            config,
            config1: threshold.put(threshold.put([config, config1], 0), CYCLES)[1],
            precise: 2,
            leader: leader.map(|[config, _]| config),
        })
    }

    fn instruction_based(&self) -> Option<Sampler> {
        let count_micro_operations = self.field("ibs_op", "cnt_ctl");
        Some(Sampler {
            name: "ibs_op//".to_owned(),
            kind: self.kind("ibs_op")?,
            config: count_micro_operations.map_or(0, |f| f.put([0, 0], 1)[0]),
            config1: 0,
            precise: 0,
            leader: None,
        })
    }

    fn kind(&self, device: &str) -> Option<u32> {
        let text = self.read(&format!("{DEVICES}/{device}/type")).ok()?;
        text.trim().parse().ok()
    }

    /// Encodes `event=0xcd,umask=0x1,ldlat=3` as configuration words, by the device's formats.
    fn terms(&self, device: &str, text: &str) -> Option<[u64; 2]> {
        let mut words = [0, 0];
        for term in text.split(',') {
            let (name, value) = term.split_once('=').unwrap_or((term, "1"));
            let value = match value.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16).ok()?,
                None => value.parse().ok()?,
            };
            words = self.field(device, name)?.put(words, value);
        }
        Some(words)
    }

    fn field(&self, device: &str, name: &str) -> Option<Field> {
        Field::parse(&self.read(&format!("{DEVICES}/{device}/format/{name}")).ok()?)
    }
}

/// The bits that hold a term's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Field {
    /// 0: `config`; 1: `config1`.
    word: usize,
    first: u32,
    last: u32,
}

impl Field {
    /// Parses the bits of an event's field: `config1:0-15`, `config:19`.
    fn parse(text: &str) -> Option<Self> {
        let (word, bits) = text.trim().split_once(':')?;
        let word = ["config", "config1"].iter().position(|w| *w == word)?;
        let (first, last) = bits.split_once('-').unwrap_or((bits, bits));
        let (first, last) = (first.parse().ok()?, last.parse().ok()?);
        (first <= last && last < 64).then_some(Self { word, first, last })
    }

    /// The configuration words with this value in the field's bits.
    fn put(self, mut words: [u64; 2], value: u64) -> [u64; 2] {
        let mask = u64::MAX >> (63 - (self.last - self.first)) << self.first;
        words[self.word] = words[self.word] & !mask | value << self.first & mask;
        words
    }
}

/// The loads of one thread, being sampled.
pub struct Loads {
    ring: Ring,
    _leader: Option<OwnedFd>,
}

impl Loads {
    /// Samples the loads of a thread from now on, wherever it runs.
    ///
    /// # Errors
    /// As the kernel answers: `ESRCH` when it has ended, `PermissionDenied`, `EMFILE`.
    pub fn of_thread(sampler: &Sampler, tid: u32) -> io::Result<Self> {
        let tid = i32::try_from(tid).map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))?;
        let leader = sampler.leader.map(|config| {
            let mut attributes = perf_event_attr {
                type_: sampler.kind,
                config,
                ..perf_event_attr::default()
            };
            permitted(&mut attributes, tid, None)
        });
        let leader = leader.transpose()?;
        let event = permitted(&mut sampler.attributes(), tid, leader.as_ref())?;
        Ok(Self {
            ring: Ring::of(event, &BUFFER_PAGES)?,
            _leader: leader,
        })
    }

    /// Appends the loads since the last call.
    pub fn drain(&self, into: &mut Vec<Load>) {
        self.ring
            .drain(|kind, _, body| into.extend(decode::record(kind, body)));
    }
}

impl Sampler {
    fn attributes(&self) -> perf_event_attr {
        let mut attributes = perf_event_attr {
            type_: self.kind,
            config: self.config,
            sample_type: u64::from(
                PERF_SAMPLE_TID
                    | PERF_SAMPLE_TIME
                    | PERF_SAMPLE_ADDR
                    | PERF_SAMPLE_CPU
                    | PERF_SAMPLE_PERIOD
                    | PERF_SAMPLE_DATA_SRC,
            ),
            clockid: libc::CLOCK_MONOTONIC,
            ..perf_event_attr::default()
        };
        attributes.__bindgen_anon_1.sample_freq = RATE;
        attributes.__bindgen_anon_3.config1 = self.config1;
        attributes.set_freq(1);
        attributes.set_use_clockid(1);
        attributes.set_precise_ip(self.precise);
        attributes
    }
}

/// Opens an event that excludes the kernel's own loads if we may not see them. IBS cannot exclude them, and needs root.
fn permitted(attributes: &mut perf_event_attr, tid: i32, leader: Option<&OwnedFd>) -> io::Result<OwnedFd> {
    let leader = leader.map_or(-1, AsRawFd::as_raw_fd);
    match ring::open_in_group(attributes, tid, -1, leader, 0) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            attributes.set_exclude_kernel(1);
            attributes.set_exclude_hv(1);
            ring::open_in_group(attributes, tid, -1, leader, 0)
        }
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use perf_event_open_sys::bindings::{PERF_COUNT_SW_PAGE_FAULTS, PERF_TYPE_SOFTWARE};
    use std::path::PathBuf;

    /// A host whose event sources say this: files below [`DEVICES`].
    fn host(name: &str, files: &[(&str, &str)]) -> (Host, PathBuf) {
        let root = std::env::temp_dir().join(format!("nodewise-loads-{name}-{}", std::process::id()));
        for (file, text) in files {
            let path = root.join(DEVICES).join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, format!("{text}\n")).unwrap();
        }
        (Host::at(&root), root)
    }

    #[test]
    fn load_latency_is_put_together_as_sysfs_says() {
        let formats = [
            ("cpu/type", "4"),
            ("cpu/format/event", "config:0-7"),
            ("cpu/format/umask", "config:8-15"),
            ("cpu/format/ldlat", "config1:0-15"),
            ("cpu/events/mem-loads", "event=0xcd,umask=0x1,ldlat=3"),
        ];
        let (plain, root) = host("pebs", &formats);
        let sampler = plain.load_sampler().unwrap();
        assert_eq!(
            (sampler.kind, sampler.config, sampler.config1),
            (4, 0x1cd, CYCLES)
        );
        assert_eq!((sampler.precise, sampler.leader), (2, None));
        std::fs::remove_dir_all(root).unwrap();
        // Sapphire Rapids and later want a leader.
        let aux = [("cpu/events/mem-loads-aux", "event=0x03,umask=0x82")];
        let (later, root) = host("aux", &[&formats[..], &aux].concat());
        assert_eq!(later.load_sampler().unwrap().leader, Some(0x8203));
        std::fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn instruction_based_sampling_counts_micro_operations() {
        let (amd, root) = host(
            "ibs",
            &[
                ("cpu/type", "4"),
                ("ibs_op/type", "9"),
                ("ibs_op/format/cnt_ctl", "config:19"),
            ],
        );
        let sampler = amd.load_sampler().unwrap();
        assert_eq!((sampler.kind, sampler.config, sampler.precise), (9, 1 << 19, 0));
        assert_eq!(sampler.name, "ibs_op//");
        std::fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_host_without_such_events_has_no_sampler() {
        let (virtual_machine, root) = host(
            "none",
            &[("cpu/type", "4"), ("cpu/events/cpu-cycles", "event=0x3c")],
        );
        assert_eq!(virtual_machine.load_sampler(), None);
        std::fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn values_stay_in_their_field() {
        assert_eq!(
            Field::parse("config:0-63").unwrap().put([0, 7], u64::MAX),
            [u64::MAX, 7]
        );
        assert_eq!(
            Field::parse("config1:4-7\n").unwrap().put([0, 0xfff], 0x12),
            [0, 0xf2f]
        );
        for wrong in [
            "config",
            "config2:0",
            "config:7-4",
            "config:64",
            "config:0-64",
            "config:x",
        ] {
            assert_eq!(Field::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_threads_samples_come_through_the_buffer() {
        let faults = Sampler {
            name: "page-faults".to_owned(),
            kind: PERF_TYPE_SOFTWARE,
            config: PERF_COUNT_SW_PAGE_FAULTS.into(),
            config1: 0,
            precise: 0,
            leader: None,
        };
        // SAFETY: a plain query.
        let tid = unsafe { libc::gettid() } as u32;
        let loads = match Loads::of_thread(&faults, tid) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                eprintln!("skipped: {error}");
                return;
            }
            loads => loads.unwrap(),
        };
        let memory = vec![1u8; 64 << 20];
        let (first, end) = (
            memory.as_ptr() as u64,
            memory.as_ptr() as u64 + memory.len() as u64,
        );
        let mut all = Vec::new();
        loads.drain(&mut all);
        let ours: Vec<&Load> = all.iter().filter(|l| (first..end).contains(&l.address)).collect();
        assert!(!ours.is_empty(), "{} samples", all.len());
        assert!(
            ours.iter()
                .all(|l| l.tid == tid && l.pid == std::process::id() && l.weight > 0)
        );
        assert!(
            ours.iter().all(|l| l.served == Served::Unknown),
            "faults say nothing of that"
        );
        assert!(ours.windows(2).all(|w| w[0].time_ns <= w[1].time_ns));
    }
}

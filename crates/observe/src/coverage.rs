//! Computes coverage: the share of CPU time spent in code that counts its accesses.

use crate::code::Library;
use nodewise_linux::child::CpuTime;
use nodewise_linux::clock::nanoseconds;
use nodewise_linux::perf::{Record, Sampler};
use nodewise_loader::RUNTIME;
use nodewise_profile::Coverage;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// Samples per second of CPU time; a prime, so that it does not coincide with a program's timers.
pub const SAMPLES_PER_SECOND: u64 = 997;
/// The bytes that the compiler pass places before functions it has processed: `NW_FUNCTION_MARK`.
const MARK: &[u8] = b"nodewise:counted";
/// The column that the pass gives to instructions it has inserted: `NW_COUNTING_COLUMN`.
const COUNTING_COLUMN: u32 = 65535;
/// Share of the counted samples that may lack line information before what counting took is called unknown.
const MAX_SHARE_WITHOUT_LINES: f64 = 0.02;
/// Modules in which time counts as waiting and scheduling.
const THREADING: [&str; 4] = ["libomp.so", "libgomp.so", "libiomp5.so", "libpthread.so"];
/// Functions of libc in which time counts as waiting.
const WAITING: [&str; 8] = [
    "sched_yield",
    "pthread_",
    "sem_",
    "cnd_",
    "mtx_",
    "nanosleep",
    "clock_nanosleep",
    "__lll_",
];

/// Samples by code location.
#[derive(Default)]
pub struct Samples {
    maps: HashMap<u32, BTreeMap<u64, Mapping>>,
    places: HashMap<(usize, u64), u64>,
    threads: HashMap<(u32, u32), u64>,
    kernel: u64,
    nowhere: u64,
    /// CPU time of all threads once sampling has ended, nanoseconds: as sampled, and as it is.
    sampled_ns: u64,
    total_ns: u64,
}

#[derive(Clone)]
struct Mapping {
    end: u64,
    offset: u64,
    file: usize,
}

impl Samples {
    /// Counts the samples that the sampler has collected.
    pub fn take(&mut self, sampler: &mut Sampler, library: &mut Library) {
        let records = sampler.drain();
        // Records come CPU by CPU, so a sample may come before the mapping that it lies in.
        for record in &records {
            self.follow(record, library);
        }
        for record in &records {
            if let Record::Sample {
                pid,
                tid,
                address,
                kernel,
            } = *record
            {
                *self.threads.entry((pid, tid)).or_default() += 1;
                self.count(pid, address, kernel);
            }
        }
    }

    fn follow(&mut self, record: &Record, library: &mut Library) {
        match record {
            Record::Executed { pid } => {
                self.maps.remove(pid);
            }
            Record::Forked { pid, parent } => {
                let inherited = self.maps.get(parent).cloned().unwrap_or_default();
                self.maps.entry(*pid).or_insert(inherited);
            }
            Record::Mapped {
                pid,
                address,
                bytes,
                offset,
                path,
            } => {
                let mapping = Mapping {
                    end: address + bytes,
                    offset: *offset,
                    file: library.file(path),
                };
                self.maps.entry(*pid).or_default().insert(*address, mapping);
            }
            Record::Sample { .. } | Record::Lost(_) => {}
        }
    }

    fn count(&mut self, pid: u32, address: u64, kernel: bool) {
        if kernel {
            self.kernel += 1;
            return;
        }
        let mapping = self.maps.get(&pid).and_then(|m| m.range(..=address).next_back());
        let Some((start, mapping)) = mapping.filter(|(_, m)| address < m.end) else {
            self.nowhere += 1;
            return;
        };
        let place = (mapping.file, address - start + mapping.offset);
        *self.places.entry(place).or_default() += 1;
    }

    /// Ends sampling of processes that used so much CPU time by the kernel's account, which is exact also of threads that
    /// live for less than a sampling period, but lacks processes that outlive the command: the larger of the two is taken.
    pub fn end(&mut self, account: CpuTime) {
        self.sampled_ns = sampled_ns(self.threads.values().sum());
        self.total_ns = self.sampled_ns.max(nanoseconds(account.total()));
    }

    /// CPU time of all threads, once sampling has ended; nanoseconds.
    pub fn total_ns(&self) -> u64 {
        self.total_ns
    }

    /// CPU time of a thread in nanoseconds: its share of the samples in the time of all.
    pub fn cpu_time(&self, pid: u32, tid: u32) -> u64 {
        let sampled = self.threads.get(&(pid, tid)).map_or(0, |n| sampled_ns(*n));
        match self.sampled_ns {
            0 => sampled,
            all => (u128::from(sampled) * u128::from(self.total_ns) / u128::from(all)) as u64,
        }
    }

    /// The coverage according to the samples.
    pub fn coverage(&self, library: &mut Library) -> Coverage {
        let (mut instrumented, mut waiting, mut missed) = (0, 0, BTreeMap::<String, u64>::new());
        let (mut counting, mut unlined) = (0, 0);
        let mut lists = HashMap::new();
        for (&(file, offset), &count) in &self.places {
            match classify(library, &mut lists, file, offset) {
                Class::Runtime => {
                    instrumented += count;
                    counting += count;
                }
                Class::Instrumented(address) => {
                    instrumented += count;
                    match is_counting(library, file, address) {
                        Some(true) => counting += count,
                        Some(false) => {}
                        None => unlined += count,
                    }
                }
                Class::Waiting => waiting += count,
                Class::Missed => *missed.entry(library.name(file).to_owned()).or_default() += count,
            }
        }
        if self.nowhere > 0 {
            missed.insert("unknown code".to_owned(), self.nowhere);
        }
        let missed_count: u64 = missed.values().sum();
        let samples = instrumented + waiting + missed_count + self.kernel;
        let share = |count: u64| {
            if samples == 0 {
                0.0
            } else {
                count as f64 / samples as f64
            }
        };
        let mut missed_modules: Vec<(String, f64)> = missed.into_iter().map(|(m, n)| (m, share(n))).collect();
        missed_modules.sort_by(|a, b| b.1.total_cmp(&a.1));
        Coverage {
            samples,
            instrumented: share(instrumented),
            waiting: share(waiting),
            missed: share(missed_count),
            kernel: share(self.kernel),
            counting: (unlined as f64 <= MAX_SHARE_WITHOUT_LINES * instrumented as f64)
                .then(|| share(counting)),
            missed_modules,
        }
    }
}

/// CPU time of this many samples, nanoseconds.
fn sampled_ns(samples: u64) -> u64 {
    samples * 1_000_000_000 / SAMPLES_PER_SECOND
}

/// Whether an instruction of a counted function was inserted to count; `None` if the module does not say.
fn is_counting(library: &mut Library, file: usize, address: u64) -> Option<bool> {
    let module = library.module(file)?;
    let frames = module.frames_with_columns(address);
    let (frame, column) = frames.first()?;
    (*column == COUNTING_COLUMN || !frame.file.is_empty()).then_some(*column == COUNTING_COLUMN)
}

enum Class {
    /// In our runtime, which does nothing but count.
    Runtime,
    /// In a function that counts, at this address as linked.
    Instrumented(u64),
    Waiting,
    Missed,
}

type Lists = HashMap<usize, Vec<Range<u64>>>;

fn classify(library: &mut Library, lists: &mut Lists, file: usize, offset: u64) -> Class {
    let name = library.name(file);
    if name == RUNTIME {
        return Class::Runtime;
    }
    if THREADING.iter().any(|t| name.starts_with(t)) {
        return Class::Waiting;
    }
    let libc = name.starts_with("libc.so");
    let Some(module) = library.module(file) else {
        return Class::Missed;
    };
    let Some(address) = module.address_of_file_offset(offset) else {
        return Class::Missed;
    };
    if libc {
        let symbol = module.symbol(address).unwrap_or_default();
        return if WAITING.iter().any(|w| symbol.starts_with(w)) {
            Class::Waiting
        } else {
            Class::Missed
        };
    }
    let listed = lists.entry(file).or_insert_with(|| module.marked_functions(MARK));
    let before = listed.partition_point(|f| f.start <= address);
    let inside = before > 0 && listed[before - 1].contains(&address);
    if inside {
        Class::Instrumented(address)
    } else {
        Class::Missed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn sampled(account_ms: u64) -> Samples {
        let mut samples = Samples {
            threads: [((1, 10), 3), ((1, 11), 1)].into(),
            ..Samples::default()
        };
        samples.end(CpuTime {
            user: Duration::from_millis(account_ms),
            system: Duration::ZERO,
        });
        samples
    }

    #[test]
    fn threads_share_what_the_kernel_accounts_as_they_share_samples() {
        // Four samples are 4 ms; a hundred threads too short to be sampled made the rest.
        let samples = sampled(80);
        let times = [10, 11].map(|tid| samples.cpu_time(1, tid));
        assert_eq!(times.map(|t| t.div_ceil(1_000_000)), [60, 20]);
        assert_eq!(samples.cpu_time(1, 12), 0);
    }

    #[test]
    fn an_account_without_processes_that_outlive_the_command_is_not_used() {
        assert_eq!(sampled(1).cpu_time(1, 11), sampled_ns(1));
        assert_eq!(Samples::default().cpu_time(1, 1), 0);
    }
}

//! The uncertain quantities of the model, with their ranges.

/// A quantity that is not known exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Range {
    /// Smallest plausible value of the quantity.
    pub min: f64,
    /// The most plausible value, used where only one can be shown.
    pub typical: f64,
    /// Largest plausible value of the quantity.
    pub max: f64,
}

impl Range {
    /// A range; callers keep `min <= typical <= max`.
    #[must_use]
    pub const fn new(min: f64, typical: f64, max: f64) -> Self {
        Self { min, typical, max }
    }

    /// A range of a single value, for a quantity that is known.
    #[must_use]
    pub const fn exactly(value: f64) -> Self {
        Self::new(value, value, value)
    }

    /// The range spanned by values, the first of which is the typical one.
    #[must_use]
    pub fn spanning(values: &[f64]) -> Self {
        let fold = |f: fn(f64, f64) -> f64| values.iter().copied().reduce(f).unwrap_or(0.0);
        Self::new(
            fold(f64::min),
            values.first().copied().unwrap_or(0.0),
            fold(f64::max),
        )
    }
}

/// Which of the recorded accesses reach memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Traffic {
    /// The profile's `lines`, 64 bytes each, less what a shared cache catches.
    #[default]
    Lines,
    /// Every access, 8 bytes each: for machines that do not cache remote memory (ARS's PCs, whose memory is joined by
    /// SCI), and as an upper bound of the effect of placement.
    Accesses,
}

impl Traffic {
    /// Bytes that each of them moves.
    pub(crate) fn bytes(self) -> f64 {
        match self {
            Self::Lines => 64.0,
            Self::Accesses => 8.0,
        }
    }
}

/// The parameters of the model. Uncertain ones are varied alone while the others stay typical, and all at once for verdicts.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    /// Memory-level parallelism: the average number of misses that one CPU has in flight, from dependent loads (2) to a
    /// streaming core that fills its line buffers (12).
    pub parallelism: Range,
    /// The share of the profile's `lines` that reach memory: a shared cache catches the rest.
    pub miss: Range,
    /// `s` of the loaded-latency formula, nanoseconds: 13–71 over fifteen published curves, median 25.
    pub queue_ns: Range,
    /// `c` of the same formula: capacity of the queue relative to the measured peak; 1.15–1.3.
    pub headroom: f64,
    /// CPU time of the recorded run over that of the plain run. `None`: the value measured by a plain run, else the
    /// bounds that follow from the recording itself; see [`crate::Calibration`].
    pub recording_cost: Option<Range>,
    /// Compute per access where no time was recorded (under an emulator), nanoseconds: from four accesses a cycle of a
    /// fast core to code that computes a transcendental function for each.
    pub assumed_ns: Range,
    /// CPU time of a plain run of the same work, nanoseconds, if it was measured. Then the cost of recording is not
    /// assumed.
    pub plain_cpu_ns: Option<f64>,
    /// The model's own error, as a share of a gain (its logarithm). It is needed because all other parameters cancel
    /// from the ratio where bandwidth limits both placements.
    pub gain_error: f64,
    /// Which accesses reach memory on the simulated machine; the recording host is always assumed to have caches.
    pub traffic: Traffic,
    /// What policies that move pages count: all accesses, or lines as a monitor behind the caches would.
    pub counted: Traffic,
    /// Seconds per 10⁹ bytes moved, added to the time of the copy: for page tables and TLB flushes. The default is
    /// AsymSched's 0.3, which already includes a copy, so the cost is overestimated.
    pub seconds_per_gb: f64,
    /// Idle latency of the host that recorded, nanoseconds: subtracted to find compute time.
    pub host_latency_ns: f64,
    /// Compute time on the machine's cores over that on the recording host's. Waiting for memory is not scaled. Exactly 1 by
    /// default; [`UNKNOWN_CORES`] where the machine is another one.
    pub core_factor: Range,
    /// Factor on the bandwidths that the machine's file marks as assumed. Published measurements of one kind of memory
    /// or link are 50 to 90 % of the nominal bandwidth; the files assume 60 to 80 %.
    pub assumed_bandwidth: Range,
    /// Factor on what other nodes' memory takes longer than a node's own, where the machine's file marks its latencies as assumed
    /// (or the kernel's distances stand for them). Measured latencies that `machines/*.toml` have sources of are 0.36 (EPYC, in
    /// a socket) to 0.92 times (Sapphire Rapids) what the published distance tables say, and across sockets 0.7 (Skylake) to
    /// 3.8 times (Xeon 6980P in SNC3) what "twice the local latency" would be.
    pub assumed_latency: Range,
    /// How often lines displace each other in memory-side caches, 0 to 1 (`docs/machines.md`). Which pages share places depends on
    /// the physical memory that the kernel allocates, and no recording shows it.
    pub cache_conflicts: Range,
}

/// Compute time on another machine's cores over that on the recording host's, where nothing is known. By clocks and
/// SPECint2000 per GHz (`bench/judge/cores.csv`) the cores of the shipped machines need 1.3 to 2.7 times as long as a core of
/// 2006 at 3 GHz (a Pentium III apart), and the cores of today are assumed to be up to three times as fast as that one: 8 in
/// all. Where an older host recorded, the machine's may be faster; twice is assumed.
pub const UNKNOWN_CORES: Range = Range::new(0.5, 1.0, 8.0);

impl Default for Parameters {
    fn default() -> Self {
        Self {
            parallelism: Range::new(2.0, 5.0, 12.0),
            miss: Range::new(0.4, 0.8, 1.0),
            queue_ns: Range::new(13.0, 25.0, 71.0),
            headroom: 1.25,
            recording_cost: None,
            assumed_ns: Range::new(0.05, 0.5, 20.0),
            plain_cpu_ns: None,
            gain_error: 0.1,
            traffic: Traffic::Lines,
            counted: Traffic::Accesses,
            seconds_per_gb: 0.3,
            host_latency_ns: 95.0,
            core_factor: Range::exactly(1.0),
            assumed_bandwidth: Range::new(2.0 / 3.0, 1.0, 1.5),
            assumed_latency: Range::new(0.35, 1.0, 3.8),
            cache_conflicts: Range::new(0.0, 0.5, 1.0),
        }
    }
}

/// The uncertain quantity that a scenario sets to an end of its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Varied {
    /// No single one: all parameters are typical, or all are at ends of their ranges.
    Nothing,
    /// Number of misses in flight: [`Parameters::parallelism`].
    Parallelism,
    /// The share of lines that reaches memory: [`Parameters::miss`].
    Miss,
    /// Delay at a loaded controller or link: [`Parameters::queue_ns`].
    Queue,
    /// The cost of recording, if no plain run was measured.
    RecordingCost,
    /// Compute per access, where no time was recorded: [`Parameters::assumed_ns`].
    Compute,
    /// Bandwidths that no source states: [`Parameters::assumed_bandwidth`].
    Bandwidth,
    /// Distances of memory that no source states: [`Parameters::assumed_latency`].
    Latency,
    /// How often lines displace each other in memory-side caches: [`Parameters::cache_conflicts`].
    CacheConflicts,
    /// How many threads outside OpenMP run at a time: as many as while recording, or all. Varied where other processes
    /// may have kept the recorded ones waiting.
    Concurrency,
    /// How fast the machine's cores compute: [`Parameters::core_factor`].
    Cores,
}

impl Varied {
    /// The name of the quantity, as in the parameters of `simulate --json`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "typical",
            Self::Parallelism => "parallelism",
            Self::Miss => "miss",
            Self::Queue => "queue_ns",
            Self::RecordingCost => "recording_cost",
            Self::Compute => "assumed_ns",
            Self::Bandwidth => "assumed_bandwidth",
            Self::Latency => "assumed_latency",
            Self::CacheConflicts => "cache_conflicts",
            Self::Concurrency => "concurrency",
            Self::Cores => "core_factor",
        }
    }

    /// Whether timing the plain program once would replace the range by a measured value.
    #[must_use]
    pub fn is_known_by_a_plain_run(self) -> bool {
        matches!(self, Self::RecordingCost | Self::Compute)
    }

    /// Whether `nodewise topo --measure` on the machine would replace the range by measured values.
    #[must_use]
    pub fn is_known_by_measuring_the_machine(self) -> bool {
        matches!(self, Self::Bandwidth | Self::Latency)
    }
}

/// One value of every parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scenario {
    /// The parameter that differs from the typical scenario.
    pub varied: Varied,
    /// Lines in flight per CPU; see [`Parameters::parallelism`].
    pub parallelism: f64,
    /// Share of recorded lines that reach memory; see [`Parameters::miss`].
    pub miss: f64,
    /// Queueing delay at full load, nanoseconds; see [`Parameters::queue_ns`].
    pub queue_ns: f64,
    /// Slow-down by recording; see [`Parameters::recording_cost`].
    pub recording_cost: f64,
    /// Compute per access where no time was recorded, nanoseconds.
    pub assumed_ns: f64,
    /// Factor on the machine's assumed bandwidths.
    pub bandwidth: f64,
    /// Factor on what remote memory takes longer than local, where the machine's latencies are assumed.
    pub latency: f64,
    /// How often lines displace each other in memory-side caches, 0 to 1.
    pub cache_conflicts: f64,
    /// Factor on the number of threads outside OpenMP that were seen to run at a time: 1, or infinity where all may.
    pub concurrency: f64,
    /// Compute time on the machine's cores over that on the recording host's.
    pub core_factor: f64,
}

impl Scenario {
    /// The value of the parameter that is varied; none in the typical scenario.
    #[must_use]
    pub fn value(&self) -> Option<f64> {
        match self.varied {
            Varied::Nothing => None,
            Varied::Parallelism => Some(self.parallelism),
            Varied::Miss => Some(self.miss),
            Varied::Queue => Some(self.queue_ns),
            Varied::RecordingCost => Some(self.recording_cost),
            Varied::Compute => Some(self.assumed_ns),
            Varied::Bandwidth => Some(self.bandwidth),
            Varied::Latency => Some(self.latency),
            Varied::CacheConflicts => Some(self.cache_conflicts),
            Varied::Concurrency => Some(self.concurrency),
            Varied::Cores => Some(self.core_factor),
        }
    }
}

/// A quantity with its range, and how to set it. The range begins at the end at which memory weighs least.
struct Quantity {
    varied: Varied,
    least: f64,
    most: f64,
    set: fn(&mut Scenario, f64),
}

/// What is not known of a recording and a machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unknown {
    pub recording_cost: Range,
    /// Whether a time was recorded.
    pub is_timed: bool,
    /// Whether bandwidths of the machine are assumed.
    pub bandwidth: bool,
    /// Whether latencies of the machine are assumed.
    pub latency: bool,
    /// Whether the machine has memory-side caches.
    pub caches: bool,
    /// Whether more threads may run at a time than were seen to.
    pub concurrency: bool,
}

impl Parameters {
    /// The scenario in which every quantity has its most plausible value.
    pub(crate) fn typical(&self, recording_cost: Range) -> Scenario {
        Scenario {
            varied: Varied::Nothing,
            parallelism: self.parallelism.typical,
            miss: self.miss.typical,
            queue_ns: self.queue_ns.typical,
            recording_cost: recording_cost.typical,
            assumed_ns: self.assumed_ns.typical,
            bandwidth: self.assumed_bandwidth.typical,
            latency: self.assumed_latency.typical,
            cache_conflicts: self.cache_conflicts.typical,
            concurrency: 1.0,
            core_factor: self.core_factor.typical,
        }
    }

    /// The quantities that are not known, but for misses in flight: more of these may make memory weigh less or, as
    /// they fill a controller, more.
    fn quantities(&self, unknown: &Unknown) -> Vec<Quantity> {
        let quantity = |varied, least, most, set| Quantity {
            varied,
            least,
            most,
            set,
        };
        let mut all = vec![
            quantity(Varied::Miss, self.miss.min, self.miss.max, |s, v| s.miss = v),
            quantity(Varied::Queue, self.queue_ns.min, self.queue_ns.max, |s, v| {
                s.queue_ns = v;
            }),
        ];
        all.push(match unknown.is_timed {
            true => quantity(
                Varied::RecordingCost,
                unknown.recording_cost.min,
                unknown.recording_cost.max,
                |s, v| {
                    s.recording_cost = v;
                },
            ),
            false => quantity(
                Varied::Compute,
                self.assumed_ns.max,
                self.assumed_ns.min,
                |s, v| {
                    s.assumed_ns = v;
                },
            ),
        });
        let cores = self.core_factor;
        // Without a recorded time the range of computing contains that of cores.
        if unknown.is_timed {
            all.push(quantity(Varied::Cores, cores.max, cores.min, |s, v| {
                s.core_factor = v;
            }));
        }
        if unknown.bandwidth {
            let range = self.assumed_bandwidth;
            all.push(quantity(Varied::Bandwidth, range.max, range.min, |s, v| {
                s.bandwidth = v;
            }));
        }
        if unknown.latency {
            let range = self.assumed_latency;
            all.push(quantity(Varied::Latency, range.min, range.max, |s, v| {
                s.latency = v;
            }));
        }
        if unknown.caches {
            let range = self.cache_conflicts;
            all.push(quantity(Varied::CacheConflicts, range.min, range.max, |s, v| {
                s.cache_conflicts = v;
            }));
        }
        if unknown.concurrency {
            all.push(quantity(Varied::Concurrency, 1.0, f64::INFINITY, |s, v| {
                s.concurrency = v;
            }));
        }
        all
    }

    /// The typical scenario, then scenarios with one uncertain parameter each at an end of its range.
    pub(crate) fn scenarios(&self, unknown: &Unknown) -> Vec<Scenario> {
        let typical = self.typical(unknown.recording_cost);
        let mut all = vec![typical];
        let mut vary = |varied, value, set: fn(&mut Scenario, f64)| {
            let mut scenario = typical;
            set(&mut scenario, value);
            if scenario != typical {
                all.push(Scenario { varied, ..scenario });
            }
        };
        for value in [self.parallelism.min, self.parallelism.max] {
            vary(Varied::Parallelism, value, |s, v| s.parallelism = v);
        }
        for quantity in self.quantities(unknown) {
            let (a, b) = (quantity.least, quantity.most);
            vary(quantity.varied, a.min(b), quantity.set);
            vary(quantity.varied, a.max(b), quantity.set);
        }
        all
    }

    /// Scenarios with all uncertain parameters at ends of their ranges: at those at which memory weighs least, and at
    /// which it weighs most, each with few and with many misses in flight.
    pub(crate) fn jointly(&self, unknown: &Unknown) -> Vec<Scenario> {
        let quantities = self.quantities(unknown);
        let corner = |end: fn(&Quantity) -> f64, parallelism| {
            let mut scenario = Scenario {
                parallelism,
                ..self.typical(unknown.recording_cost)
            };
            quantities.iter().for_each(|q| (q.set)(&mut scenario, end(q)));
            scenario
        };
        let ends = [self.parallelism.min, self.parallelism.max];
        let with = |end: fn(&Quantity) -> f64| ends.map(|parallelism| corner(end, parallelism));
        [with(|q| q.least), with(|q| q.most)].concat()
    }
}

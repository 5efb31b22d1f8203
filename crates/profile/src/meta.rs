//! How, when and on what a profile was made.

use crate::Sampling;

/// The version of the on-disk format this code reads and writes.
pub const FORMAT_VERSION: u32 = 1;

/// Where the counts came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Observer {
    /// Compiler instrumentation: exact.
    #[default]
    Instrument,
    /// An emulator that ran the plain program: exact, libraries included; times mean nothing.
    Emulate,
    /// Hinting page faults of the kernel's balancing: samples of pages, not counts of accesses.
    Faults,
    /// A program, not a recording: tests, benchmarks.
    Synthetic,
}

impl Observer {
    /// The stable name used in files and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Instrument => "instrument",
            Self::Emulate => "emulate",
            Self::Faults => "faults",
            Self::Synthetic => "synthetic",
        }
    }

    /// The observer with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Instrument, Self::Emulate, Self::Faults, Self::Synthetic]
            .into_iter()
            .find(|o| o.name() == name)
    }

    /// Whether counts are samples: which nodes use a page is known within an interval, how intensely is not.
    #[must_use]
    pub fn is_sampled(self) -> bool {
        self == Self::Faults
    }
}

/// The share of CPU time that ran where accesses are counted; all shares sum to 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Coverage {
    /// Samples the shares rest on; 0 means sampling was not permitted and the shares mean nothing.
    pub samples: u64,
    /// Instrumented code, with its inlined counters and our runtime.
    pub instrumented: f64,
    /// Threading runtimes: waiting and scheduling.
    pub waiting: f64,
    /// Code that is not instrumented: accesses there are missed.
    pub missed: f64,
    /// The kernel on behalf of the program.
    pub kernel: f64,
    /// The largest contributors to `missed`: module name and share.
    pub missed_modules: Vec<(String, f64)>,
}

impl Coverage {
    /// Samples of the program's own code below which a share would be a guess.
    pub const FEW: f64 = 20.0;

    /// The share of the program's own user-mode work (waiting and kernel apart) that was counted:
    /// the one figure to print. `None` when sampling was not permitted, or the run was too short.
    #[must_use]
    pub fn share(&self) -> Option<f64> {
        let own = self.instrumented + self.missed;
        (self.own_samples() >= Self::FEW).then(|| self.instrumented / own)
    }

    /// Samples that fell into the program's own code, counted or not.
    #[must_use]
    pub fn own_samples(&self) -> f64 {
        (self.instrumented + self.missed) * self.samples as f64
    }
}

#[cfg(test)]
mod tests {
    use super::Coverage;

    #[test]
    fn few_samples_are_no_share() {
        let of = |samples| Coverage {
            samples,
            instrumented: 0.25,
            missed: 0.25,
            waiting: 0.5,
            ..Coverage::default()
        };
        assert_eq!(of(0).share(), None);
        assert_eq!(of(39).share(), None);
        assert_eq!(of(40).share(), Some(0.5));
    }
}

/// The manifest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Meta {
    /// Where the counts came from.
    pub observer: Observer,
    /// The command and its arguments.
    pub command: Vec<String>,
    /// Unix time of the start, seconds.
    pub started_at: u64,
    /// Wall time of the recorded run, nanoseconds.
    pub wall_ns: u64,
    /// Wall time of the plain build on the same host when somebody measured it, nanoseconds.
    pub plain_wall_ns: Option<u64>,
    /// How slices were cut, as given: `1s`, `accesses:1000000`, `region`.
    pub slicing: String,
    /// CPUs the recorded run could use.
    pub host_cpus: u32,
    /// Memory nodes of the host.
    pub host_nodes: u32,
    /// The CPU's model name.
    pub host_model: String,
    /// What share of the run was seen.
    pub coverage: Coverage,
    /// Why the profile is cut short, if it is.
    pub truncated: Option<String>,
    /// Exit status of the program as a shell would give it (128 + signal for a signal).
    pub exit_status: Option<i32>,
    /// What the counts rest on, when they are samples.
    pub sampling: Option<Sampling>,
    /// Pages that policies wanted to move but the controller held back, by cause.
    pub held_back: Vec<(String, u64)>,
    /// Pages the kernel's own balancing moved, as it counted them itself; `None` when nobody asked.
    pub kernel_migrations: Option<u64>,
    /// The version of nodewise that wrote it.
    pub version: String,
}

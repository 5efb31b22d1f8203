//! The description of an experiment: commands, placements, options.

use crate::LabError;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// Who decides where pages lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Under {
    /// The kernel's default; no page moves later.
    FirstTouch,
    /// By virtual page number.
    Interleave,
    /// In the order of faults.
    RoundRobin,
    /// One node while it has room.
    Node(u32),
    /// First touch, and the kernel's automatic balancing on top.
    AutoNuma,
    /// The rules of a map.
    Map(PathBuf),
    /// First touch, and `nodewise balance` with this policy on top.
    Balance(String),
}

impl Under {
    /// Whether pages are placed from within the program; otherwise the kernel does it.
    pub(crate) fn takes_preload(&self) -> bool {
        matches!(self, Self::Interleave | Self::Map(_))
    }

    /// Whether the kernel's hint faults are on: to balance by itself, or for `nodewise balance` to see.
    pub(crate) fn takes_hints(&self) -> bool {
        matches!(self, Self::AutoNuma | Self::Balance(_))
    }
}

impl FromStr for Under {
    type Err = LabError;

    fn from_str(text: &str) -> Result<Self, LabError> {
        const KNOWN: [&str; 7] = [
            "first-touch",
            "interleave",
            "round-robin",
            "node",
            "autonuma",
            "map",
            "balance",
        ];
        let unknown = |hint: String| {
            LabError::usage(format!(
                "--under {text}{hint}: known are first-touch, interleave, round-robin, node:N, autonuma, map:FILE, balance:P"
            ))
        };
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        match (
            nodewise_input::resolve(name, KNOWN.into_iter()).map_err(unknown)?,
            rest,
        ) {
            ("first-touch", "") => Ok(Self::FirstTouch),
            ("interleave", "") => Ok(Self::Interleave),
            ("round-robin", "") => Ok(Self::RoundRobin),
            ("autonuma", "") => Ok(Self::AutoNuma),
            ("map", "") => Err(LabError::usage("--under map: needs a file: map:FILE")),
            ("map", file) => Ok(Self::Map(file.into())),
            ("node", number) => number
                .parse()
                .map(Self::Node)
                .map_err(|_| LabError::usage(format!("--under {text}: not a node number"))),
            ("balance", "") => Err(LabError::usage(format!(
                "--under {text} needs a policy: balance:out-w; `autonuma` is the kernel's own"
            ))),
            ("balance", policy) => Ok(Self::Balance(policy.to_owned())),
            _ => Err(unknown(String::new())),
        }
    }
}

impl fmt::Display for Under {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FirstTouch => f.write_str("first-touch"),
            Self::Interleave => f.write_str("interleave"),
            Self::RoundRobin => f.write_str("round-robin"),
            Self::Node(node) => write!(f, "node:{node}"),
            Self::AutoNuma => f.write_str("autonuma"),
            Self::Map(file) => write!(f, "map:{}", file.display()),
            Self::Balance(policy) => write!(f, "balance:{policy}"),
        }
    }
}

/// The guest kernel's `transparent_hugepage`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HugePages {
    /// Wherever they fit: the default of most distributions' kernels.
    #[default]
    Always,
    /// Where the program asks.
    Madvise,
    /// Transparent huge pages are off.
    Never,
}

impl HugePages {
    /// As on the kernel's command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::Madvise => "madvise",
            Self::Never => "never",
        }
    }
}

/// One command, run once under each placement in one boot; or each run with a command of its own.
#[derive(Clone, Debug, Default)]
pub struct Experiment {
    /// The program and its arguments; none with [`Experiment::capture`] alone.
    pub command: Vec<OsString>,
    /// Where it runs: made in the guest, what lies in it is packed only by `with`.
    pub cwd: PathBuf,
    /// Its environment. OpenMP's waiting is made passive whatever it says.
    pub environment: Vec<(OsString, OsString)>,
    /// A file for its standard input; none: empty.
    pub stdin: Option<PathBuf>,
    /// Files and folders it needs, kept at their absolute paths.
    pub with: Vec<PathBuf>,
    /// The placements, in order.
    pub runs: Vec<Under>,
    /// What each run runs instead of `command`: as many as runs, or none.
    pub commands: Vec<Vec<OsString>>,
    /// How threads are bound: `nodewise run --bind`.
    pub bind: String,
    /// Further options of `nodewise balance`, for runs under [`Under::Balance`].
    pub balancer: Vec<OsString>,
    /// Number of threads: `nodewise run --threads`.
    pub threads: Option<u32>,
    /// The guest kernel's `transparent_hugepage` setting.
    pub huge_pages: HugePages,
    /// Length of the slices that counts are reported for; none: the whole run alone.
    pub slice: Option<Duration>,
    /// Whether to bring the guest's sysfs home.
    pub capture: bool,
    /// Files and folders that the runs left in the guest, to be brought home.
    pub bring: Vec<PathBuf>,
}

impl Experiment {
    /// The program of a run and its arguments.
    #[must_use]
    pub fn command(&self, run: usize) -> &[OsString] {
        self.commands.get(run).unwrap_or(&self.command)
    }
}

/// What to run it with.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// A `vmlinuz` or a kernel's `.deb`; none: the distribution's, fetched once and cached.
    pub kernel: Option<PathBuf>,
    /// For the boot and all runs together.
    pub time_limit: Option<Duration>,
    /// Whether accesses are counted.
    pub counters: bool,
}

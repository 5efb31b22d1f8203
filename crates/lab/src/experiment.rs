//! The description of an experiment: commands, placements, options.

use crate::LabError;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// The placement of a run: what decides on which node pages are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunPlacement {
    /// The kernel's default; no page moves later.
    FirstTouch,
    /// Pages are assigned to nodes in turn, by virtual page number.
    Interleave,
    /// Pages are assigned to nodes in turn, in the order of page faults.
    RoundRobin,
    /// All pages on one node, as long as it has free memory.
    Node(u32),
    /// First touch, with the kernel's automatic NUMA balancing.
    AutoNuma,
    /// The rules of a map file.
    Map(PathBuf),
    /// First touch, with `nodewise balance` under this policy.
    Balance(String),
}

impl RunPlacement {
    /// Whether pages are placed by a preload in the program, and not by the kernel.
    pub(crate) fn takes_preload(&self) -> bool {
        matches!(self, Self::Interleave | Self::Map(_))
    }

    /// Whether the kernel's hint faults are enabled, for its own balancing or for `nodewise balance`.
    pub(crate) fn takes_hints(&self) -> bool {
        matches!(self, Self::AutoNuma | Self::Balance(_))
    }
}

impl FromStr for RunPlacement {
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

impl fmt::Display for RunPlacement {
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
    /// In every suitable range: the default of most distributions' kernels.
    #[default]
    Always,
    /// Only where the program asks for huge pages.
    Madvise,
    /// Transparent huge pages are off.
    Never,
}

impl HugePages {
    /// The value on the kernel's command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::Madvise => "madvise",
            Self::Never => "never",
        }
    }
}

/// A command that is run once under each placement, all in one boot. Each run may have its own command.
#[derive(Clone, Debug, Default)]
pub struct Experiment {
    /// The program and its arguments; empty if there is only [`Experiment::capture`] to do.
    pub command: Vec<OsString>,
    /// Its working directory. The guest creates it; files in it are packed only if `with` names them.
    pub cwd: PathBuf,
    /// Its environment, in which OpenMP's waiting is always set to passive.
    pub environment: Vec<(OsString, OsString)>,
    /// A file for its standard input; empty input if `None`.
    pub stdin: Option<PathBuf>,
    /// Files and folders that the command needs; they keep their absolute paths in the guest.
    pub with: Vec<PathBuf>,
    /// The placements, in order.
    pub runs: Vec<RunPlacement>,
    /// A command for each run in place of `command`; empty if all runs use `command`.
    pub commands: Vec<Vec<OsString>>,
    /// How threads are bound: `nodewise run --bind`.
    pub bind: String,
    /// Further options of `nodewise balance`, for runs under [`RunPlacement::Balance`].
    pub balancer: Vec<OsString>,
    /// Number of threads: `nodewise run --threads`.
    pub threads: Option<u32>,
    /// The guest kernel's `transparent_hugepage` setting.
    pub huge_pages: HugePages,
    /// Length of the slices for which counts are reported; `None` for the whole run only.
    pub slice: Option<Duration>,
    /// Whether to copy the guest's sysfs to the host.
    pub capture: bool,
    /// Files and folders in the guest to be copied to the host after the runs.
    pub bring: Vec<PathBuf>,
}

impl Experiment {
    /// The program and arguments of a run.
    #[must_use]
    pub fn command(&self, run: usize) -> &[OsString] {
        self.commands.get(run).unwrap_or(&self.command)
    }
}

/// Settings of a boot.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// A `vmlinuz` or a kernel's `.deb`; `None` for the distribution's kernel, which is fetched once and cached.
    pub kernel: Option<PathBuf>,
    /// Time limit for the boot and all runs together.
    pub time_limit: Option<Duration>,
    /// Whether accesses are counted.
    pub counters: bool,
    /// Size of a disk with an empty file system that the guest has at `/disk`, bytes; `None` for none.
    pub disk: Option<u64>,
}

//! The registry of page policies; each policy is a file and has a line here.

mod balanced;
mod bind_block;
mod custom;
mod dealt;
mod decide;
mod first_touch;
mod frequency;
mod interleave;
mod locality;
mod map;
mod mixed;
mod node;
mod random;
mod readers;
mod round_robin;
mod tiered;
mod weighted;

pub use balanced::Balanced;
pub use bind_block::BindBlock;
pub use custom::Custom;
pub use dealt::{Cyclic, Prime, Skew};
pub use first_touch::FirstTouch;
pub use frequency::Frequency;
pub use interleave::Interleave;
pub use locality::Locality;
pub use map::Map;
pub use mixed::Mixed;
pub use node::Node;
pub use random::Random;
pub use readers::Readers;
pub(crate) use readers::rounds;
pub use round_robin::RoundRobin;
pub use tiered::{Filling, Order, Tiered};
pub(crate) use weighted::round as weighted_round;
pub use weighted::{Weighted, weights};

use crate::copies::Copies;
use crate::instances::{INSTANCES, instances};
use crate::mirror::{MIRROR_USAGE, Mirror, is_mirror};
use crate::{Context, PagePolicy, PolicyError};
use nodewise_analysis::LastWrites;
use nodewise_machine::Machine;

type Policy = Box<dyn PagePolicy>;

/// One line of the registry.
#[derive(Clone, Copy)]
pub struct PolicyKind {
    /// The word before the colon.
    pub name: &'static str,
    /// How it is written: `mixed[:MIN_EXCLUSIVITY]`.
    pub usage: &'static str,
    /// What it does, in a clause.
    pub summary: &'static str,
    /// Whether `all` includes it.
    pub compared: bool,
    make: fn(&Request<'_>) -> Result<Policy, PolicyError>,
}

/// The input from which a registry entry creates its policy.
struct Request<'a> {
    /// The policy as written, parameter included.
    text: &'a str,
    /// What follows the colon.
    parameter: Option<&'a str>,
    machine: &'a Machine,
    outside: &'a dyn Outside,
}

/// Access to what is outside this pure crate: map files and shared libraries.
pub trait Outside {
    /// The text of a map file.
    ///
    /// # Errors
    /// One line.
    fn read(&self, path: &str) -> Result<String, String>;

    /// The policy in a shared library.
    ///
    /// # Errors
    /// One line.
    fn plugin(&self, path: &str) -> Result<Box<dyn PagePolicy>, String>;
}

/// An [`Outside`] without files and libraries.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nothing;

impl Outside for Nothing {
    fn read(&self, path: &str) -> Result<String, String> {
        Err(format!("{path}: files cannot be read here"))
    }

    fn plugin(&self, path: &str) -> Result<Box<dyn PagePolicy>, String> {
        Err(format!("{path}: shared libraries cannot be loaded here"))
    }
}

macro_rules! registry {
    ($($name:literal $usage:literal $compared:literal $summary:literal => $make:expr;)*) => {
        /// Every policy that has a name, in the order reports list them.
        pub const POLICIES: &[PolicyKind] = &[$(PolicyKind {
            name: $name, usage: $usage, summary: $summary, compared: $compared, make: $make,
        }),*];
    };
}

registry! {
    "first-touch" "first-touch" true "the kernel's default: where the first thread to touch a page runs"
        => |r| r.plain(FirstTouch);
    "random" "random[:SEED]" true "any node, by a seeded hash of the page" => random::make;
    "interleave" "interleave" true "page number mod nodes" => |r| r.plain(Interleave);
    "round-robin" "round-robin" true "in the order of first touches, as numactl -i deals" => |r| r.plain(RoundRobin);
    "locality" "locality" true "the node with the most accesses" => |r| r.plain(Locality);
    "balanced" "balanced" true "the node with the most accesses that is not overloaded" => |r| r.plain(Balanced);
    "mixed" "mixed[:MIN_EXCLUSIVITY]" true "locality for exclusive pages, interleave for shared ones" => mixed::make;
    "frequency" "frequency" true "the processor that accesses the page most; ties and private pages by first touch"
        => |r| r.plain(Frequency);
    "weighted" "weighted[:readers]" true
        "interleave in proportion to controller bandwidth; with `readers`, each object by what its readers wait for"
        => readers::make;
    "cyclic" "cyclic" false "each array's pages in turn, from its first page on (MAI)" => |r| r.plain(Cyclic);
    "skew" "skew" false "each array in turn, each round of pages one node further on (MAI)" => |r| r.plain(Skew);
    "prime" "prime[:P]" false "each array in turn over a prime number of virtual nodes (MAI)" => dealt::prime;
    "bind-block" "bind-block" false "each array in equal parts, one to each thread's node (MAI)"
        => |r| r.plain(BindBlock);
    "hot" "hot:NODES[@SIZE]" false "the hottest pages on scarce fast nodes, up to SIZE; the rest on the others" => |r| tiered::make(r, Filling::Hot);
    "hot-objects" "hot-objects:NODES[@SIZE]" false "the hottest objects, whole, on scarce fast nodes" => |r| tiered::make(r, Filling::HotObjects);
    "fill" "fill:NODES[@SIZE]" false "first touch on these nodes, up to SIZE, then on the others" => |r| tiered::make(r, Filling::FirstTouch);
    "node" "node:N" false "all pages on one node" => node::make;
    "map" "map:FILE" false "the rules of a map file" => map::make;
}

impl Request<'_> {
    fn plain(&self, policy: impl PagePolicy + 'static) -> Result<Policy, PolicyError> {
        match self.parameter {
            None => Ok(Box::new(policy)),
            Some(_) => Err(PolicyError(format!(
                "policy `{}` takes no parameter: write `{}`",
                self.text,
                policy.name()
            ))),
        }
    }
}

/// The policies in a comma-separated list: `all`, names from the registry, `mixed:0.8..0.99` for one policy per
/// percent, and paths of shared libraries (`./my-policy.so`).
///
/// ```
/// # use nodewise_analysis::Histogram;
/// # use nodewise_machine::Machine;
/// # use nodewise_placement::policies::Nothing;
/// # use nodewise_placement::{Context, page_policies, thread_policy};
/// # use nodewise_profile::{Access, FirstTouch, InMemory, Object, ObjectId, ObjectKind, PageNumber, Profile, Thread, ThreadId};
/// // Thread 0 touches all eight pages first; then each of four threads reads two of them.
/// # let grid = Object { kind: ObjectKind::Heap, name: "grid".into(), pages: 8, bytes: 32_768, ..Object::default() };
/// # let first = FirstTouch { len: 8, object: ObjectId(1), ..FirstTouch::default() };
/// # let profile = Profile {
/// #     objects: vec![Object::default(), grid],
/// #     threads: vec![Thread::default(); 4],
/// #     first_touches: vec![first],
/// #     ..Profile::default()
/// # };
/// # let row = |t: u32| Access {
/// #     object: ObjectId(1),
/// #     thread: ThreadId(t),
/// #     page: PageNumber(u64::from(2 * t)),
/// #     len: 2,
/// #     reads: 4_000_000,
/// #     lines: 500_000,
/// #     ..Access::default()
/// # };
/// # let accesses = InMemory::new((0..4).map(row).collect());
/// let machine = Machine::named("nehalem-2s")?;
/// let histogram = Histogram::build(&accesses, 4, 0)?;
/// let affinity = thread_policy("scatter", &profile, &histogram, &machine, &Nothing)?;
/// let context = Context { profile: &profile, histogram: &histogram, affinity: &affinity, machine: &machine };
/// let policies = page_policies("first-touch,locality", &machine, &Nothing)?;
/// let nodes = |i: usize| policies[i].place(&context).nodes.iter().map(|n| n.0).collect::<Vec<_>>();
/// assert_eq!(nodes(0), [0; 8]);
/// assert_eq!(nodes(1), [0, 0, 1, 1, 0, 0, 1, 1], "where the threads are that read them");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
/// # Errors
/// One line: the unknown name with the known ones, or what is wrong with a parameter.
pub fn page_policies(
    list: &str,
    machine: &Machine,
    outside: &dyn Outside,
) -> Result<Vec<Box<dyn PagePolicy>>, PolicyError> {
    let mut policies: Vec<Policy> = Vec::new();
    for text in list.split(',').map(str::trim) {
        let more = match text {
            "all" => POLICIES
                .iter()
                .filter(|k| k.compared)
                .map(|k| page_policy(k.name, machine, outside))
                .collect(),
            _ => match text.strip_prefix("mixed:").and_then(|p| p.split_once("..")) {
                Some((from, to)) => mixed::sweep(from, to),
                None => page_policy(text, machine, outside).map(|p| vec![p]),
            },
        };
        for policy in more? {
            if policies.iter().all(|p| p.name() != policy.name()) {
                policies.push(policy);
            }
        }
    }
    Ok(policies)
}

/// The single policy with this name.
///
/// # Errors
/// One line: the unknown name with the known ones, or what is wrong with a parameter.
pub fn page_policy(
    text: &str,
    machine: &Machine,
    outside: &dyn Outside,
) -> Result<Box<dyn PagePolicy>, PolicyError> {
    if text.contains('/') && !text.starts_with("map:") {
        return outside.plugin(text).map_err(PolicyError);
    }
    if makes_copies(text) {
        return Err(PolicyError(not_a_placement(text)));
    }
    let (name, parameter) = text.split_once(':').map_or((text, None), |(n, p)| (n, Some(p)));
    let known = nodewise_input::resolve(name, POLICIES.iter().map(|k| k.name)).map_err(|hint| {
        let known: Vec<_> = POLICIES.iter().map(|k| k.usage).collect();
        PolicyError(format!(
            "unknown policy `{text}`{hint}; known: {}, {MIRROR_USAGE} and {INSTANCES} (simulate, report), ./LIBRARY.so",
            known.join(", ")
        ))
    })?;
    let kind = POLICIES.iter().find(|k| k.name == known);
    let kind = kind.ok_or_else(|| PolicyError(format!("unknown policy `{text}`")))?;
    let text = parameter.map_or(known.to_owned(), |p| format!("{known}:{p}"));
    (kind.make)(&Request {
        text: &text,
        parameter,
        machine,
        outside,
    })
}

/// Whether a policy gives pages several nodes: a [`Mirror`], or `instances`.
#[must_use]
pub fn makes_copies(text: &str) -> bool {
    text == INSTANCES || is_mirror(text)
}

/// What a policy that [makes copies](makes_copies) copies.
///
/// # Errors
/// One line, if it is none, or copies do not suit what it names.
pub fn plan_copies(text: &str, context: &Context<'_>, writes: &LastWrites) -> Result<Copies, PolicyError> {
    match text {
        INSTANCES => instances(context),
        _ => Mirror::parse(text, context.machine)?.plan(context, writes),
    }
}

/// Why a policy that makes copies is refused where placements are asked for.
#[must_use]
pub fn not_a_placement(policy: &str) -> String {
    let why = match policy {
        INSTANCES => "starts the program once a node, which is yours to do (`numactl -N NODE -m NODE`)",
        _ => "makes copies, which only the program itself can read (nw_replicate of libnodewise)",
    };
    format!("`{policy}` {why}; `nodewise simulate` and `nodewise report` predict what that gains")
}

#[cfg(test)]
mod properties;

//! The names of thread policies.

use crate::PolicyError;

/// The thread policies with their descriptions, in the order of reports.
pub const THREAD_POLICIES: &[(&str, &str)] = &[
    ("compact", "node by node"),
    ("identity", "thread i on CPU i, as the machine numbers them"),
    ("scatter", "dealt over the nodes in turn"),
    (
        "sharing-aware",
        "threads that share pages on one node, all nodes equally loaded",
    ),
    (
        "asym",
        "sharing-aware on as few nodes as threads fill, those with the most bandwidth between them",
    ),
    ("recorded", "each on the node it was sampled on"),
    (
        "cpus:LIST",
        "these CPUs by the kernel's numbers, as likwid-pin -p and hwloc-calc print them: cpus:0,4-7",
    ),
    (
        "likwid:EXPR",
        "CPUs by hand, as likwid-pin writes them: M0:0-3@M1:0-3",
    ),
    (
        "hwloc:EXPR",
        "CPUs by hand, as hwloc-calc writes them: numa:0-1.core:0-3",
    ),
    ("file:FILE", "as a TOML or CSV file says"),
];

/// The full name, with its parameter.
pub(super) fn full_name(text: &str) -> Result<String, PolicyError> {
    let (name, parameter) = text.split_once(':').map_or((text, None), |(n, p)| (n, Some(p)));
    let full = nodewise_input::resolve(name, heads().chain(["auto"])).map_err(|hint| unknown(text, &hint))?;
    Ok(parameter.map_or(full.to_owned(), |p| format!("{full}:{p}")))
}

/// The names of thread policies without their parameters.
pub(super) fn heads() -> impl Iterator<Item = &'static str> + Clone {
    let head = |(name, _): &(&'static str, _)| name.split_once(':').map_or(*name, |(head, _)| head);
    THREAD_POLICIES.iter().map(head)
}

/// The error for an unknown name; `hint` as from [`nodewise_input::resolve`].
pub(super) fn unknown(text: &str, hint: &str) -> PolicyError {
    let known: Vec<_> = THREAD_POLICIES.iter().map(|p| p.0).collect();
    PolicyError(format!(
        "unknown affinity `{text}`{hint}; known: {}",
        known.join(", ")
    ))
}

//! Text output of `files` that shows where memory lies.

use crate::output::{Screen, command_line};
use nodewise_files::Kind;
use nodewise_files::entry::{Entry, Source};
use nodewise_files::guests::Guest;
use nodewise_files::nodes::NodeUse;
use nodewise_files::residence::Residence;
use nodewise_files::survey::{Subject, Survey};
use nodewise_input::one_line;
use nodewise_report::{and_more, bytes, plural, spread, table, whole_percent};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// From this share of it on, memory on one node is called one-sided.
const ONE_SIDED: f64 = 0.8;
/// Smaller objects need no remedy.
const WORTH_BYTES: u64 = 16 << 20;

/// The objects, one line each, or everything on one.
pub fn survey(survey: &Survey, subject: &Subject, top: usize, screen: Screen) -> String {
    let mut out = String::new();
    if *subject == Subject::Host {
        out.push_str(&nodes(&survey.nodes));
        out.push('\n');
    }
    match &survey.objects[..] {
        [] => out.push_str(none(subject)),
        [one] if matches!(subject, Subject::Paths(_) | Subject::Memory(_)) => {
            out.push_str(&whole(one, survey.unreadable, screen));
        }
        objects => out.push_str(&list(objects, survey.nodes.len() > 1, top)),
    }
    for guest in &survey.guests {
        out.push_str(&guest_text(guest, screen));
    }
    out.push_str(&remarks(survey, subject, screen));
    if let Some(next) = next(survey) {
        let _ = write!(out, "\nnext: {next}\n");
    }
    out
}

fn none(subject: &Subject) -> &'static str {
    match subject {
        Subject::Host => "no process of yours maps a file or shared memory that is in memory\n",
        Subject::Processes(_) => "no file or shared memory that these processes map is in memory\n",
        Subject::Paths(_) => "no file here has anything in it\n",
        Subject::Memory(_) => "nothing of it is in memory, or its owner and root alone may look\n",
    }
}

/// What each node's memory is used for.
fn nodes(nodes: &[NodeUse]) -> String {
    let huge = nodes.iter().any(|n| n.huge_pool > 0);
    let mut header = vec![
        "node",
        "memory",
        "free",
        "page cache",
        "inactive",
        "shared memory",
    ];
    if huge {
        header.extend(["huge pages", "of them free"]);
    }
    let row = |n: &NodeUse| {
        let files = n.file_pages.saturating_sub(n.shared_memory);
        let mut row = vec![n.node.to_string()];
        row.extend([n.total, n.free, files, n.inactive_file, n.shared_memory].map(bytes));
        if huge {
            row.extend([n.huge_pool, n.huge_free].map(bytes));
        }
        row
    };
    let header = header.into_iter().map(str::to_owned).collect();
    table("rrrrrrrr", std::iter::once(header).chain(nodes.iter().map(row)))
}

fn list(objects: &[Entry], several_nodes: bool, top: usize) -> String {
    let knows_cold = objects.iter().any(|o| o.residence.knows_cold);
    let mut header = vec!["in memory", "of", "on"];
    if knows_cold {
        header.push("cold");
    }
    if several_nodes {
        header.push("local");
    }
    header.extend(["mapped by", "what"]);
    let row = |object: &Entry| {
        let residence = &object.residence;
        let mut row = vec![
            about(object).to_owned() + &bytes(residence.in_memory()),
            bytes(residence.size),
            on_nodes(residence),
        ];
        if knows_cold {
            row.push(residence.cold().map_or_else(String::new, bytes));
        }
        if several_nodes {
            row.push(object.expected_local.map_or_else(String::new, whole_percent));
        }
        row.extend([mapped_by(object), title(object)]);
        row
    };
    let header = header.into_iter().map(str::to_owned).collect();
    let right = usize::from(knows_cold) + usize::from(several_nodes);
    let columns = format!("rrl{}ll", "r".repeat(right));
    let mut out = table(
        &columns,
        std::iter::once(header).chain(objects.iter().take(top).map(row)),
    );
    let left = objects.len().saturating_sub(top);
    if left > 0 {
        let rest: u64 = objects[top..].iter().map(|o| o.residence.in_memory()).sum();
        let more = and_more(left, "object", "--top N, --json");
        let _ = writeln!(out, "{}: {}", more.trim_start(), bytes(rest));
    }
    out
}

/// What a figure is that is not exact: `~` an estimate, `≥` a lower bound.
fn about(object: &Entry) -> &'static str {
    match object.source {
        Source::Mapping => "≥",
        Source::File if object.residence.looked_at < 1.0 => "~",
        Source::File => "",
    }
}

pub fn on_nodes(residence: &Residence) -> String {
    spread(residence.nodes.iter().map(|(node, on)| (*node, on.bytes)))
}

/// What an object is called, in one line whatever its name.
fn title(object: &Entry) -> String {
    let deleted = if object.deleted && object.kind == Kind::File {
        " (deleted)"
    } else {
        ""
    };
    one_line(&object.title()) + deleted
}

/// `postgres ×14`, `llama-server, cat`.
fn mapped_by(object: &Entry) -> String {
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    object
        .mapped_by
        .iter()
        .for_each(|m| *names.entry(&m.name).or_default() += 1);
    let mut names: Vec<(&str, usize)> = names.into_iter().collect();
    names.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let name = |(name, count): &(&str, usize)| match count {
        1 => one_line(name),
        _ => format!("{} ×{count}", one_line(name)),
    };
    let shown: Vec<String> = names.iter().take(2).map(name).collect();
    match names.len().saturating_sub(2) {
        0 => shown.join(", "),
        left => format!("{}, {} (--json)", shown.join(", "), plural(left, "more name")),
    }
}

/// Everything on one object.
fn whole(object: &Entry, unreadable: usize, screen: Screen) -> String {
    let residence = &object.residence;
    let there = residence.in_memory();
    let mut out = format!(
        "{}: {} of {} in memory ({})\n",
        title(object),
        bytes(there),
        bytes(residence.size),
        whole_percent((there as f64 / residence.size.max(1) as f64).min(1.0))
    );
    if there > 0 {
        let mut header = vec!["node", "in memory", "share"];
        if residence.knows_use {
            header.push("mapped");
        }
        if residence.knows_cold {
            header.push("cold");
        }
        header.push("CPU time of those who map it");
        let used = |node: &u32| object.cpu_share.get(node).copied().unwrap_or(0.0);
        let mut all: Vec<u32> = residence
            .nodes
            .keys()
            .chain(object.cpu_share.keys())
            .copied()
            .collect();
        all.sort_unstable();
        all.dedup();
        let row = |node: &u32| {
            let on = residence.nodes.get(node).copied().unwrap_or_default();
            let mut row = vec![
                node.to_string(),
                bytes(on.bytes),
                whole_percent(on.bytes as f64 / there as f64),
            ];
            if residence.knows_use {
                row.push(bytes(on.mapped));
            }
            if residence.knows_cold {
                row.push(bytes(on.cold));
            }
            row.push(if object.cpu_share.is_empty() {
                String::new()
            } else {
                whole_percent(used(node))
            });
            row
        };
        let header = header.into_iter().map(str::to_owned).collect();
        let rows = std::iter::once(header).chain(all.iter().map(row));
        table("rrrrrr", rows).lines().for_each(|line| {
            let _ = writeln!(out, "  {line}");
        });
    }
    let who = match object.mapped_by.len() {
        0 if residence.nodes.values().any(|on| on.mapped > 0) => {
            "mapped by a process that cannot be found: through another file system (overlay), or it may not be looked into"
                .to_owned()
        }
        0 if unreadable > 0 => "no process that may be looked into maps it".to_owned(),
        0 => "no process maps it now".to_owned(),
        _ => {
            let pids: Vec<String> = object
                .mapped_by
                .iter()
                .take(8)
                .map(|m| m.pid.to_string())
                .collect();
            let more = and_more(object.mapped_by.len().saturating_sub(8), "process", "--json");
            format!("mapped by {} ({}{more})", mapped_by(object), pids.join(", "))
        }
    };
    let local = object.expected_local.map(|local| {
        format!(
            "; if their threads use all of it alike, {} of the accesses are local",
            whole_percent(local)
        )
    });
    out.push_str(&screen.wrap("  ", (who + &local.unwrap_or_default()).split(' ')));
    out
}

fn guest_text(guest: &Guest, screen: Screen) -> String {
    let mut running: BTreeMap<u32, u64> = BTreeMap::new();
    for node in guest.cpus.iter().filter_map(|cpu| cpu.node) {
        *running.entry(node).or_default() += 1;
    }
    let held = guest.cpus.iter().filter(|cpu| cpu.allowed.len() == 1).count();
    let memory = match (&guest.memory, guest.expected_local()) {
        (Some(memory), Some(local)) => format!(
            "{} of memory on {}; if they use all of it alike, {} of the accesses are local",
            bytes(memory.values().sum()),
            spread(memory.clone()),
            whole_percent(local)
        ),
        _ => "its memory may not be looked into by this user".to_owned(),
    };
    let text = format!(
        "process {}: {} on {}, {held} of them allowed on one node only; {memory}",
        guest.pid,
        plural(guest.cpus.len(), "virtual CPU"),
        spread(running),
    );
    "\n".to_owned() + &screen.wrap(&format!("guest {}: ", one_line(&guest.name)), text.split(' '))
}

fn remarks(survey: &Survey, subject: &Subject, screen: Screen) -> String {
    let mut lines = Vec::new();
    if survey.objects.iter().any(|o| o.residence.looked_at < 1.0) {
        lines.push(
            "~: of objects above 1 GiB a sample was looked at; `nodewise files PATH` looks at all of it"
                .to_owned(),
        );
    }
    if survey.objects.iter().any(|o| o.source == Source::Mapping) {
        lines.push(
            "≥: only what one process has mapped of it is known, as it is in huge pages, or its file cannot be opened \
             by this user"
                .to_owned(),
        );
    }
    if survey.unreadable > 0 && !matches!(subject, Subject::Paths(_)) {
        lines.push(format!(
            "{} may not be looked into: what only they map is missing",
            plural(survey.unreadable, "process")
        ));
    }
    if let [first, rest @ ..] = &survey.failed[..] {
        lines.push(format!(
            "left out: {}{}",
            one_line(first),
            and_more(rest.len(), "path", "--json")
        ));
    }
    lines
        .iter()
        .map(|line| screen.wrap("", line.split(' ')))
        .collect()
}

/// What spreads the largest object that lies on one of several nodes.
fn next(survey: &Survey) -> Option<String> {
    if survey.nodes.len() < 2 {
        return None;
    }
    let one_sided = |o: &&Entry| {
        named(o).is_some()
            && o.residence.in_memory() >= WORTH_BYTES
            && o.residence.shares().values().any(|share| *share >= ONE_SIDED)
            && o.expected_local.is_none_or(|local| local < ONE_SIDED)
    };
    let object = survey.objects.iter().find(one_sided)?;
    let command = command_line(
        "nodewise files --policy interleave --dry-run",
        Path::new(&named(object)?),
    );
    Some(format!("{command}  (what it takes to spread it over the nodes)"))
}

/// What names an object on the command line so that its pages can be put elsewhere; `None` if they cannot. Shared anonymous memory
/// is named by a process that maps it, as it has no name.
fn named(object: &Entry) -> Option<String> {
    match object.kind {
        Kind::Hugetlb | Kind::Dax => None,
        Kind::File | Kind::Shm if object.deleted => None,
        Kind::File => Some(object.name.clone()),
        Kind::Shm => Some(format!("/dev/shm/{}", object.name)),
        Kind::Memfd => Some(format!("memfd:{}", object.name)),
        Kind::Sysv => Some(format!("sysv:{}", object.inode)),
        Kind::Shared => object.mapped_by.first().map(|m| m.pid.to_string()),
    }
}

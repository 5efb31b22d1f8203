//! Text output of `files`.

use crate::output::{Screen, command_line};
use nodewise_files::Kind;
use nodewise_files::guests::Guest;
use nodewise_files::nodes::NodeUse;
use nodewise_files::placing::{Cause, Placed};
use nodewise_files::request::{FilePlaced, Request};
use nodewise_files::residence::Residence;
use nodewise_files::survey::{Entry, Source, Subject, Survey};
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
        [one] if matches!(subject, Subject::Paths(_)) => out.push_str(&whole(one, screen)),
        objects => out.push_str(&list(objects, survey.nodes.len() > 1, top)),
    }
    for guest in &survey.guests {
        out.push_str(&guest_text(guest, screen));
    }
    out.push_str(&remarks(survey, screen));
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
            about(residence).to_owned() + &bytes(residence.in_memory()),
            bytes(residence.size),
            on_nodes(residence),
        ];
        if knows_cold {
            row.push(residence.cold().map_or_else(String::new, bytes));
        }
        if several_nodes {
            row.push(object.expected_local.map_or_else(String::new, whole_percent));
        }
        row.extend([mapped_by(object), nodewise_input::one_line(&object.title())]);
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

/// `~` before a figure that is an estimate.
fn about(residence: &Residence) -> &'static str {
    if residence.looked_at < 1.0 { "~" } else { "" }
}

fn on_nodes(residence: &Residence) -> String {
    spread(residence.nodes.iter().map(|(node, on)| (*node, on.bytes)))
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
        1 => (*name).to_owned(),
        _ => format!("{name} ×{count}"),
    };
    let shown: Vec<String> = names.iter().take(2).map(name).collect();
    match names.len().saturating_sub(2) {
        0 => shown.join(", "),
        left => format!("{}, {left} more", shown.join(", ")),
    }
}

/// Everything on one object.
fn whole(object: &Entry, screen: Screen) -> String {
    let residence = &object.residence;
    let there = residence.in_memory();
    let mut out = format!(
        "{}: {} of {} in memory ({})\n",
        nodewise_input::one_line(&object.title()),
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
    let running: Vec<(u32, u64)> = {
        let mut count: BTreeMap<u32, u64> = BTreeMap::new();
        guest
            .cpus
            .iter()
            .filter_map(|cpu| cpu.node)
            .for_each(|node| *count.entry(node).or_default() += 1);
        count.into_iter().collect()
    };
    let held = guest.cpus.iter().filter(|cpu| cpu.allowed.len() == 1).count();
    let text = format!(
        "process {}: {} on {}, {} of them held to one node; {} of memory on {}; if they use all of it alike, {} of the \
         accesses are local",
        guest.pid,
        plural(guest.cpus.len(), "virtual CPU"),
        spread(running),
        held,
        bytes(guest.memory.values().sum()),
        spread(guest.memory.clone()),
        whole_percent(guest.expected_local())
    );
    "\n".to_owned() + &screen.wrap(&format!("guest {}: ", guest.name), text.split(' '))
}

fn remarks(survey: &Survey, screen: Screen) -> String {
    let mut lines = Vec::new();
    if survey.objects.iter().any(|o| o.residence.looked_at < 1.0) {
        lines.push(
            "~: of objects above 1 GiB a sample was looked at; `nodewise files PATH` looks at all of it"
                .to_owned(),
        );
    }
    let seen = |o: &&Entry| o.source == Source::Mapping && o.kind != Kind::Hugetlb;
    let by_mapping = survey.objects.iter().filter(seen).count();
    if by_mapping > 0 {
        lines.push(format!(
            "of {} only what a process has mapped is known: their files cannot be opened from here (root can)",
            plural(by_mapping, "object")
        ));
    }
    if survey.unreadable > 0 {
        lines.push(format!(
            "{} may not be looked into: what only they map is missing",
            plural(survey.unreadable, "process")
        ));
    }
    if !survey.failed.is_empty() {
        lines.push(failures(&survey.failed));
    }
    lines
        .iter()
        .map(|line| screen.wrap("", line.split(' ')))
        .collect()
}

fn failures(failed: &[String]) -> String {
    format!(
        "{} could not be looked at: {}{}",
        plural(failed.len(), "file"),
        failed[0],
        and_more(failed.len() - 1, "file", "--json")
    )
}

/// What spreads the largest file that lies on one of several nodes.
fn next(survey: &Survey) -> Option<String> {
    if survey.nodes.len() < 2 {
        return None;
    }
    let one_sided = |o: &&Entry| {
        matches!(o.kind, Kind::File | Kind::Shm)
            && !o.deleted
            && o.residence.in_memory() >= WORTH_BYTES
            && o.residence.shares().values().any(|share| *share >= ONE_SIDED)
            && o.expected_local.is_none_or(|local| local < ONE_SIDED)
    };
    let object = survey.objects.iter().find(one_sided)?;
    let path = match object.kind {
        Kind::Shm => format!("/dev/shm/{}", object.name),
        _ => object.name.clone(),
    };
    let command = command_line("nodewise files --policy interleave --dry-run", Path::new(&path));
    Some(format!("{command}  (what it takes to spread it over the nodes)"))
}

/// What became of files that were placed or dropped.
pub fn placed(
    files: &[FilePlaced],
    request: &Request,
    failed: &[String],
    top: usize,
    screen: Screen,
) -> String {
    let mut out = String::new();
    for file in files.iter().take(top) {
        out.push_str(&screen.wrap("", one(file, request).split(' ')));
    }
    let more = and_more(files.len().saturating_sub(top), "file", "--top N, --json");
    if !more.is_empty() {
        let _ = writeln!(out, "{}", more.trim_start());
    }
    if !failed.is_empty() {
        out.push_str(&screen.wrap("", failures(failed).split(' ')));
    }
    if files.len() > 1 {
        let sum = |of: fn(&Placed) -> u64| {
            files
                .iter()
                .filter_map(|f| f.placed.as_ref())
                .map(of)
                .sum::<u64>()
        };
        let _ = writeln!(
            out,
            "{}: {} moved, {} loaded",
            plural(files.len(), "file"),
            bytes(sum(|p| p.moved)),
            bytes(sum(|p| p.loaded))
        );
    }
    out
}

fn one(file: &FilePlaced, request: &Request) -> String {
    let would = |done: &str, to_do: &str| if request.dry_run { to_do } else { done }.to_owned();
    let mut parts = vec![match file.before.in_memory() {
        0 => "nothing in memory".to_owned(),
        there => format!("{} on {}", bytes(there), on_nodes(&file.before)),
    }];
    if let Some(left) = file.after_drop {
        let dropped = file.before.in_memory().saturating_sub(left);
        let unknown = request.dry_run && !file.before.knows_use;
        let amount = if unknown {
            format!("up to {}", bytes(dropped))
        } else {
            bytes(dropped)
        };
        parts.push(would(
            &format!("{amount} dropped"),
            &format!("{amount} to be dropped"),
        ));
        if left > 0 {
            parts.push(format!(
                "{} cannot be dropped: a process maps or writes it",
                bytes(left)
            ));
        }
    }
    let Some(placed) = &file.placed else {
        return format!("{}: {}", shown(&file.path), parts.join("; "));
    };
    let change = |amount: u64, done: &str, to_do: &str| {
        (amount > 0).then(|| format!("{} {}", bytes(amount), would(done, to_do)))
    };
    parts.extend(change(placed.moved, "moved", "to be moved"));
    parts.extend(change(placed.loaded, "loaded", "to be loaded"));
    if placed.moved + placed.loaded == 0 {
        parts.push(would("nothing moved", "nothing to be moved"));
    }
    for (cause, amount) in &placed.stayed {
        parts.push(format!("{} stay: {}", bytes(*amount), why(*cause)));
    }
    if !request.dry_run {
        let there: u64 = placed.nodes.values().sum();
        parts.push(format!(
            "now {} on {}, {} of it where it was wanted",
            bytes(there),
            spread(placed.nodes.clone()),
            whole_percent(placed.in_place as f64 / there.max(1) as f64)
        ));
    } else {
        parts.push(format!("wanted on {}", spread(placed.wanted.clone())));
    }
    if placed.absent > 0 && !placed.policy_kept {
        parts.push(format!(
            "{} not in memory (--load reads it)",
            bytes(placed.absent)
        ));
    }
    if placed.policy_kept {
        parts.push("pages to come will be placed likewise".to_owned());
    }
    format!("{}: {}", shown(&file.path), parts.join("; "))
}

/// A path in one line, whatever its name.
fn shown(path: &Path) -> String {
    nodewise_input::one_line(&path.display().to_string())
}

fn why(cause: Cause) -> String {
    match cause {
        Cause::Shared => "other processes map them, and moving those needs root (CAP_SYS_NICE)",
        Cause::NoRoom => "their node is full",
        Cause::Busy => "they were in use by the kernel; run it again",
        Cause::Gone => "they were dropped from memory or cut off meanwhile",
        Cause::Refused => "the kernel cannot move pages of this file system; --drop --load places them anew",
    }
    .to_owned()
}

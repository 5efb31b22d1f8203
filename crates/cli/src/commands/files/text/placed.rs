//! Text output of `files` that says what became of files.

use super::survey::on_nodes;
use nodewise_files::pieces::Policy;
use nodewise_files::placing::Placed;
use nodewise_files::request::{FilePlaced, Request};
use nodewise_input::one_line;
use nodewise_report::{and_more, bytes, plural, spread, whole_percent};
use std::fmt::Write;

/// A line for each file, and their sum. Lines are not wrapped, so that tools can read them.
pub fn placed(files: &[FilePlaced], request: &Request, top: usize) -> String {
    let mut out = String::new();
    for file in files.iter().take(top) {
        let path = one_line(&file.path.display().to_string());
        let _ = writeln!(out, "{path}: {}", parts(file, request).join("; "));
    }
    let more = and_more(files.len().saturating_sub(top), "file", "--top N, --json");
    if !more.is_empty() {
        let _ = writeln!(out, "{}", more.trim_start());
    }
    if files.len() > 1 {
        let _ = writeln!(out, "{}: {}", plural(files.len(), "file"), sum(files, request));
    }
    out
}

fn sum(files: &[FilePlaced], request: &Request) -> String {
    let placed = |of: fn(&Placed) -> u64| files.iter().filter_map(|f| f.placed.as_ref()).map(of).sum();
    let dropped = files
        .iter()
        .filter_map(|file| Some(dropped(file, file.after_drop?)))
        .sum();
    let amounts: [(u64, &str); 3] = [
        (dropped, "dropped"),
        (placed(|p| p.moved), "moved"),
        (placed(|p| p.loaded), "loaded"),
    ];
    let said: Vec<String> = amounts
        .iter()
        .filter_map(|(amount, what)| change(*amount, what, request.dry_run))
        .collect();
    match said.is_empty() {
        true => "nothing to do".to_owned(),
        false => said.join(", "),
    }
}

fn dropped(file: &FilePlaced, left: u64) -> u64 {
    file.before.in_memory().saturating_sub(left)
}

/// `3 MiB moved`, in a dry run `3 MiB to be moved`.
fn change(amount: u64, what: &str, dry_run: bool) -> Option<String> {
    let to_be = if dry_run { "to be " } else { "" };
    (amount > 0).then(|| format!("{} {to_be}{what}", bytes(amount)))
}

/// What is said of a file: what was, what was done, what stays, what is now.
fn parts(file: &FilePlaced, request: &Request) -> Vec<String> {
    let mut parts = vec![match file.before.in_memory() {
        0 => "nothing in memory".to_owned(),
        there => format!("{} on {}", bytes(there), on_nodes(&file.before)),
    }];
    if let Some(left) = file.after_drop {
        let unknown = request.dry_run && !file.before.knows_use;
        let done = change(dropped(file, left), "dropped", request.dry_run);
        parts.extend(done.map(|done| if unknown { format!("up to {done}") } else { done }));
        if left > 0 {
            parts.push(format!(
                "{} cannot be dropped: a process maps or writes it",
                bytes(left)
            ));
        }
    }
    let Some(placed) = &file.placed else {
        return parts;
    };
    if request.policy == Some(Policy::FirstTouch) {
        parts.push("pages to come go where they are first touched".to_owned());
        return parts;
    }
    parts.extend(change(placed.moved, "moved", request.dry_run));
    parts.extend(change(placed.loaded, "loaded", request.dry_run));
    let there: u64 = placed.nodes.values().sum();
    if placed.moved + placed.loaded == 0 && there > 0 {
        let moved = if placed.stayed.is_empty() {
            "nothing to be moved"
        } else {
            "nothing moved"
        };
        parts.push(moved.to_owned());
    }
    for (cause, amount) in &placed.stayed {
        parts.push(format!("{} not where wanted: {}", bytes(*amount), cause.why()));
    }
    if !request.dry_run && there > 0 {
        parts.push(format!(
            "now {} on {}, {} of it where it was wanted",
            bytes(there),
            spread(placed.nodes.clone()),
            whole_percent(placed.in_place as f64 / there as f64)
        ));
    }
    parts.extend(to_come(placed, request, there));
    parts
}

/// What is said of pages that are not in memory.
fn to_come(placed: &Placed, request: &Request, there: u64) -> Option<String> {
    let absent = bytes(placed.absent);
    match placed {
        Placed {
            policy_kept: true, ..
        } => Some("pages to come will be placed likewise".to_owned()),
        Placed { absent: 0, .. } => None,
        _ if request.load && request.dry_run => None,
        _ if request.load => Some(format!("{absent} could not be kept in memory")),
        _ if there == 0 => Some(format!("--load reads its {absent}")),
        _ => Some(format!("{absent} not in memory (--load reads it)")),
    }
}

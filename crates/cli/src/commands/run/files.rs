//! Files that rules name, put on nodes before the program starts.

use indicatif::{ProgressBar, ProgressStyle};
use nodewise_enforce::{FilesOfRule, Plan};
use nodewise_files::request::FilePlaced;
use nodewise_report::{bytes, percent, plural};

/// What became of each file that a rule names: its rule, and the placed file or why it was not.
pub type Placed = Vec<(usize, Result<FilePlaced, String>)>;

/// Places them. Nothing that fails here keeps the program from starting.
pub fn place(plan: &Plan) -> Placed {
    let total: u64 = plan.files.iter().map(FilesOfRule::bytes).sum();
    let bar = ProgressBar::new(total);
    bar.set_style(
        ProgressStyle::with_template(
            "{bar:40} {bytes} of {total_bytes} of the files, {bytes_per_sec}, {eta} left",
        )
        .expect("a valid template"),
    );
    let of_rule = |files: &FilesOfRule| {
        let rule = files.rule;
        let placed = files.place(&|done| bar.inc(done));
        placed.into_iter().map(move |one| (rule, one)).collect::<Vec<_>>()
    };
    let placed = plan.files.iter().flat_map(of_rule).collect();
    bar.finish_and_clear();
    placed
}

/// Files with a line of their own.
const SHOWN: usize = 20;

/// A line for each file that was placed, a warning for each that was not and for each rule without a file.
pub fn lines(plan: &Plan, placed: &Placed) -> Vec<String> {
    let without = plan.files.iter().filter(|files| files.found.is_empty());
    let warning = |files: &FilesOfRule| {
        let rule = super::label::label(&plan.rules[files.rule]);
        format!("warning: no file on a disk is called so now: {rule}")
    };
    // Warnings first: they are not among those left out.
    let (done, failed): (Vec<_>, Vec<_>) = placed.iter().map(|(_, one)| one).partition(|one| one.is_ok());
    let each: Vec<String> = failed.into_iter().chain(done).map(line).collect();
    let left = each.len().saturating_sub(SHOWN);
    let more = (left > 0).then(|| format!("{} (--json, --summary)", plural(left, "more file")));
    let shown = each.into_iter().take(SHOWN);
    without.map(warning).chain(shown).chain(more).collect()
}

fn line(one: &Result<FilePlaced, String>) -> String {
    let file = match one {
        Ok(file) => file,
        Err(why) => return format!("warning: {why}"),
    };
    let path = file.path.display();
    let Some(placed) = &file.placed else {
        return format!("{path}: as it is");
    };
    let in_memory: u64 = placed.nodes.values().sum();
    if in_memory == 0 {
        return format!("{path}: nothing of it in memory");
    }
    let nodes: Vec<String> = placed
        .nodes
        .iter()
        .map(|(node, size)| format!("{node}:{}", bytes(*size)))
        .collect();
    let stayed: Vec<String> = placed
        .stayed
        .iter()
        .map(|(cause, size)| format!(", {} not there: {}", bytes(*size), cause.why()))
        .collect();
    format!(
        "{path}: {} of {} where it was wanted ({}; moved {}, loaded {}){}",
        percent(placed.in_place as f64 / in_memory as f64),
        bytes(in_memory),
        nodes.join(" "),
        bytes(placed.moved),
        bytes(placed.loaded),
        stayed.concat()
    )
}

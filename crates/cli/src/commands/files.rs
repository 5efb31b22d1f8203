//! `nodewise files`: on which nodes files and shared memory lie, and putting them there. Its terms: `docs/files.md`.

mod text;

use crate::arguments::bytes;
use crate::exit::Outcome;
use crate::output::{self, Screen};
use anyhow::{Context, bail};
use indicatif::{ProgressBar, ProgressStyle};
use nodewise_enforce::Host as AllowedNodes;
use nodewise_files::pieces::{POLICIES, Policy};
use nodewise_files::request::{FilePlaced, Request};
use nodewise_files::survey::{Subject, Survey, files_at};
use nodewise_linux::Host;
use nodewise_machine::parse_list;
use serde::Serialize;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Arguments {
    /// Files and folders to look at, or numbers of processes [default: what all processes map]
    #[arg(value_name = "PATH|PID")]
    subjects: Vec<PathBuf>,
    /// Processes whose files and shared memory to look at
    #[arg(long, value_name = "N", value_delimiter = ',', conflicts_with_all = ["subjects", "policy", "drop"])]
    pid: Vec<u32>,
    #[arg(long, value_name = "P", help = format!("Put the files' pages on nodes: {POLICIES}"))]
    policy: Option<String>,
    /// Nodes to use, by the kernel's numbers, such as 0-1,4 [default: all that are allowed]
    #[arg(long, value_name = "LIST", requires = "policy")]
    nodes: Option<String>,
    /// Size of the pieces that are dealt to nodes [default: 4K to 2M, by the size of the file]
    #[arg(long, value_name = "SIZE", requires = "policy", value_parser = piece)]
    piece: Option<u64>,
    /// Also read what is not in memory, each piece on its node
    #[arg(long, requires = "policy")]
    load: bool,
    /// First drop the files' pages from memory, those that no process maps; written ones reach the disk before
    #[arg(long, requires = "subjects")]
    drop: bool,
    /// Say what would be moved, loaded and dropped, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Print JSON: every figure, stable keys
    #[arg(long)]
    json: bool,
    /// Objects to show; JSON has all
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,
    /// Read proc and sys below another root than /
    #[arg(long, value_name = "DIR", hide = true)]
    root: Option<PathBuf>,
}

/// A size of whole pages, in pages.
fn piece(text: &str) -> Result<u64, String> {
    let pages = bytes(text)?;
    match pages.is_multiple_of(4096) {
        true => Ok(pages / 4096),
        false => Err(format!("`{text}` is no multiple of 4K")),
    }
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    if arguments.policy.is_some() || arguments.drop {
        return place(arguments);
    }
    if arguments.dry_run {
        bail!("--dry-run says what --policy or --drop would do; name one of them, or leave it out");
    }
    let host = arguments.root.as_deref().map_or_else(Host::default, Host::at);
    let subject = subject(arguments)?;
    let bar = ProgressBar::new(0);
    bar.set_style(
        ProgressStyle::with_template("{bar:40} {pos} of {len} looked at").expect("a valid template"),
    );
    let survey = Survey::of(&host, &subject, &|done, count| {
        bar.set_length(count as u64);
        bar.set_position(done as u64);
    });
    bar.finish_and_clear();
    let survey = survey?;
    output::print(&if arguments.json {
        serde_json::to_string_pretty(&survey)? + "\n"
    } else {
        text::survey(&survey, &subject, arguments.top, Screen::of_stdout())
    })?;
    Ok(Outcome::Done)
}

/// What the words of the command line ask for: numbers are processes, others are paths.
fn subject(arguments: &Arguments) -> anyhow::Result<Subject> {
    let number = |path: &PathBuf| path.to_str()?.parse::<u32>().ok();
    let numbers: Vec<u32> = arguments.subjects.iter().filter_map(number).collect();
    match (arguments.subjects.len(), numbers.len()) {
        (0, _) if arguments.pid.is_empty() => Ok(Subject::Host),
        (0, _) => Ok(Subject::Processes(arguments.pid.clone())),
        (_, 0) => Ok(Subject::Paths(arguments.subjects.clone())),
        (all, numbers_given) if all == numbers_given => Ok(Subject::Processes(numbers)),
        _ => bail!(
            "name paths or processes, not both; a file whose name is a number is written ./{}",
            numbers[0]
        ),
    }
}

/// What was placed, as JSON.
#[derive(Serialize)]
struct Document<'a> {
    dry_run: bool,
    nodes: &'a [u32],
    files: &'a [FilePlaced],
    failed: &'a [String],
}

fn place(arguments: &Arguments) -> anyhow::Result<Outcome> {
    if arguments.subjects.is_empty() {
        bail!("--policy: which files? name them, or folders: nodewise files --policy interleave PATH");
    }
    let policy = arguments.policy.as_deref().map(Policy::parse).transpose()?;
    let wanted = match arguments.nodes.as_deref() {
        Some(list) => parse_list(list).with_context(|| format!("--nodes {list}: not a list like 0-1,4"))?,
        None => Vec::new(),
    };
    let nodes: Vec<u32> = AllowedNodes::this(&wanted)?
        .nodes
        .iter()
        .map(|n| n.os_index)
        .collect();
    let request = Request {
        policy,
        nodes,
        piece: arguments.piece,
        drop: arguments.drop,
        load: arguments.load,
        dry_run: arguments.dry_run,
    };
    // A policy that does not fit is refused before any file is changed.
    if let Some(policy) = &request.policy {
        request.pieces(policy, 0)?;
    }
    let (files, mut failed) = files_at(&arguments.subjects)?;
    let whole: u64 = files.iter().map(|(_, size)| size).sum();
    let bar = ProgressBar::new(whole);
    bar.set_style(
        ProgressStyle::with_template("{bar:40} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left")
            .expect("a valid template"),
    );
    let mut placed = Vec::new();
    for (path, _) in &files {
        match request.carry_out(path, &|bytes| bar.inc(bytes)) {
            Ok(file) => placed.push(file),
            Err(error) if arguments.subjects.contains(path) => {
                bar.finish_and_clear();
                return Err(error);
            }
            Err(error) => failed.push(format!("{error:#}")),
        }
    }
    bar.finish_and_clear();
    let document = Document {
        dry_run: request.dry_run,
        nodes: &request.nodes,
        files: &placed,
        failed: &failed,
    };
    output::print(&if arguments.json {
        serde_json::to_string_pretty(&document)? + "\n"
    } else {
        text::placed(&placed, &request, &failed, arguments.top, Screen::of_stdout())
    })?;
    Ok(Outcome::Done)
}

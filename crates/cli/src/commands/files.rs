//! `nodewise files`: on which nodes files and shared memory lie, and putting them there. Its terms: `docs/files.md`.

mod text;

use crate::arguments::bytes;
use crate::exit::Outcome;
use crate::output::{self, Screen, say};
use anyhow::{Context, bail};
use indicatif::{ProgressBar, ProgressStyle};
use nodewise_enforce::Host as AllowedNodes;
use nodewise_files::pieces::{POLICIES, Policy};
use nodewise_files::request::{FilePlaced, Request};
use nodewise_files::survey::{Subject, Survey};
use nodewise_files::{SharedMemory, gather};
use nodewise_linux::Host;
use nodewise_machine::parse_list;
use nodewise_report::and_more;
use serde::Serialize;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
pub struct Arguments {
    /// Files and folders, numbers of processes, or shared memory by its name: shm:NAME, memfd:NAME, sysv:ID, shared
    /// [default: what all processes map]
    #[arg(value_name = "PATH|PID|NAME")]
    subjects: Vec<PathBuf>,
    /// Processes whose files and shared memory to look at
    #[arg(long, value_name = "N", num_args = 1.., value_delimiter = ',', conflicts_with_all = ["subjects", "policy", "drop"])]
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
    #[arg(long)]
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

const LOAD_WHERE: &str = "--load needs to know where to: add --policy interleave, or another";

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
    if arguments.load {
        bail!("{LOAD_WHERE}");
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
    let numbers: Vec<u32> = arguments
        .subjects
        .iter()
        .filter_map(|path| number(path))
        .collect();
    let named: Vec<SharedMemory> = arguments
        .subjects
        .iter()
        .filter(|path| number(path).is_none())
        .filter_map(|path| shared_memory(path))
        .collect();
    if !named.is_empty() && named.len() == arguments.subjects.len() {
        return Ok(Subject::Memory(named));
    }
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

/// What is no file, but the name of shared memory or the number of a process.
fn shared_memory(path: &Path) -> Option<SharedMemory> {
    match path.exists() && number(path).is_none() {
        true => None,
        false => SharedMemory::parse(path.to_str()?),
    }
}

fn number(path: &Path) -> Option<u32> {
    path.to_str()?.parse().ok()
}

/// What was placed, as JSON.
#[derive(Serialize)]
struct Document<'a> {
    dry_run: bool,
    nodes: &'a [u32],
    files: &'a [FilePlaced],
    failed: &'a [String],
}

/// What the options ask for, checked before any file is changed.
fn request(arguments: &Arguments) -> anyhow::Result<Request> {
    if arguments.subjects.is_empty() {
        bail!("--policy: which files? name them, or folders: nodewise files --policy interleave PATH");
    }
    let policy = arguments.policy.as_deref().map(Policy::parse).transpose()?;
    if arguments.load && policy.is_none() {
        bail!("{LOAD_WHERE}");
    }
    let wanted = match arguments.nodes.as_deref() {
        Some(list) => parse_list(list)
            .filter(|nodes| !nodes.is_empty())
            .with_context(|| format!("--nodes {list}: not a list like 0-1,4"))?,
        None => Vec::new(),
    };
    let nodes = AllowedNodes::this(&wanted)?.nodes;
    let request = Request {
        policy,
        nodes: nodes.iter().map(|node| node.os_index).collect(),
        piece: arguments.piece,
        drop: arguments.drop,
        load: arguments.load,
        dry_run: arguments.dry_run,
    };
    if let Some(policy) = request.policy.as_ref().filter(|p| **p != Policy::FirstTouch) {
        request.pieces(policy, 0, None)?;
    }
    Ok(request)
}

fn place(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let request = request(arguments)?;
    let mut left_out = Vec::new();
    let (memory, paths): (Vec<_>, Vec<_>) = arguments
        .subjects
        .iter()
        .map(|path| (path, shared_memory(path)))
        .partition(|(_, memory)| memory.is_some());
    let paths: Vec<PathBuf> = paths.into_iter().map(|(path, _)| path.clone()).collect();
    let mut files = gather(&paths, &mut left_out)?;
    for memory in memory.into_iter().filter_map(|(_, memory)| memory) {
        files.extend(memory.find(&Host::default())?);
    }
    let bar = ProgressBar::new(files.iter().map(|file| file.size).sum());
    bar.set_style(
        ProgressStyle::with_template("{bar:40} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left")
            .expect("a valid template"),
    );
    let (mut placed, mut failed) = (Vec::new(), Vec::new());
    for file in &files {
        match request.carry_out(file, &|bytes| bar.inc(bytes)) {
            Ok(done) => placed.push(done),
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
        text::placed(&placed, &request, arguments.top)
    })?;
    left_out.iter().for_each(|path| say!("left out: {path}"));
    // What was done is printed before; what was not done makes it an error.
    match &failed[..] {
        [] => Ok(Outcome::Done),
        [first, rest @ ..] => bail!("{first}{}", and_more(rest.len(), "file", "--json")),
    }
}

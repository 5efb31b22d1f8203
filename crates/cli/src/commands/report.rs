//! `nodewise report`.

use crate::exit::Outcome;
use crate::selection::{Selected, Selection};
use anyhow::{Context as _, bail};
use nodewise_advise::{Usage, advise};
use nodewise_analysis::Timeline;
use nodewise_placement::Mapping;
use nodewise_profile::AccessSource;
use nodewise_report::text::Screen;
use nodewise_report::{Findings, Report, html, json, text};
use nodewise_simulation::{Parameters, simulate};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Columns where nobody says how wide the screen is: files and pipes.
const WIDTH: usize = 100;

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    selection: Selection,
    /// Policies to compare with first-touch, separated by commas
    #[arg(long, value_name = "P,…", default_value = "all")]
    policy: String,
    /// Print JSON: every figure, stable keys
    #[arg(long, conflicts_with = "html")]
    json: bool,
    /// Write one self-contained page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Overwrite FILE
    #[arg(long, requires = "html")]
    force: bool,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    if let Some(file) = arguments
        .html
        .as_deref()
        .filter(|f| f.exists() && !arguments.force)
    {
        bail!(
            "{}: exists already; choose another name or add --force",
            file.display()
        );
    }
    let report = report(&arguments.selection.open()?, &arguments.policy)?;
    match &arguments.html {
        Some(file) => {
            replace(file, &html::write(&report))
                .with_context(|| format!("cannot write {}", file.display()))?;
            eprintln!("nodewise: wrote {}", file.display());
        }
        None if arguments.json => print(&json::write(&report))?,
        None => print(&text::write(&report, screen()))?,
    }
    Ok(Outcome::Done)
}

fn report(selected: &Selected, policies: &str) -> anyhow::Result<Report> {
    let (context, reader) = (selected.context(), &selected.reader);
    let mappings = with_baseline(selected, selected.mappings(policies)?);
    let simulation = simulate(&context, &mappings, reader, &Parameters::default())?;
    let mut usage = Usage::default();
    reader.visit(&mut |rows| usage.add(rows))?;
    let advice = advise(&context, &simulation, &mappings[0], &usage);
    let (homes, nodes) = (&mappings[0].nodes, selected.machine.node_count());
    let timeline = Timeline::of(
        reader,
        context.profile,
        context.histogram,
        context.affinity,
        homes,
        nodes,
    )?;
    Ok(Report::new(&Findings {
        context: &context,
        mappings: &mappings,
        simulation: &simulation,
        advice: &advice,
        timeline: &timeline,
    }))
}

/// First-touch comes first, asked for or not: everything is compared with it.
fn with_baseline(selected: &Selected, mut mappings: Vec<Mapping>) -> Vec<Mapping> {
    mappings.retain(|m| m.policy != "first-touch");
    mappings.insert(
        0,
        Mapping {
            policy: "first-touch".into(),
            nodes: selected.first_touch(),
        },
    );
    mappings
}

fn screen() -> Screen {
    let terminal = std::io::stdout().is_terminal();
    let width = terminal_size::terminal_size()
        .filter(|_| terminal)
        .map_or(WIDTH, |(w, _)| w.0.into());
    Screen {
        width,
        colour: terminal && std::env::var_os("NO_COLOR").is_none(),
    }
}

/// A reader that has seen enough, such as `head`, is no error.
fn print(text: &str) -> anyhow::Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => bail!("cannot write to standard output: {e}"),
        _ => Ok(()),
    }
}

/// Nobody ever sees half a file.
fn replace(file: &Path, text: &str) -> std::io::Result<()> {
    let mut partial = file.as_os_str().to_owned();
    partial.push(".partial");
    std::fs::write(&partial, text)?;
    std::fs::rename(&partial, file).inspect_err(|_| drop(std::fs::remove_file(&partial)))
}

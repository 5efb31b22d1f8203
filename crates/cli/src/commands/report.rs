//! `nodewise report`.

use crate::exit::Outcome;
use crate::output;
use crate::selection::{Selected, Selection};
use nodewise_advise::{Asked, Matched, advise};
use nodewise_analysis::{Timeline, Usage};
use nodewise_placement::{Context, Mapping};
use nodewise_report::text::Screen;
use nodewise_report::{Findings, Report, html, json, text};
use nodewise_simulation::{Moving, Parameters, simulate_moving};
use std::path::PathBuf;

#[derive(clap::Args)]
#[command(mut_arg("affinity", |a| a.visible_alias("threads")))]
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
    let report = report(&arguments.selection, &arguments.policy)?;
    match &arguments.html {
        Some(file) => output::write_file(file, &html::write(&report), arguments.force)?,
        None if arguments.json => output::print(&json::write(&report))?,
        None => output::print(&text::write(&report, screen()))?,
    }
    Ok(Outcome::Done)
}

fn report(selection: &Selection, policies: &str) -> anyhow::Result<Report> {
    let selected = &selection.open()?;
    let (context, reader) = (selected.context(), &selected.reader);
    let mappings = with_baseline(selected, selected.mappings(policies)?);
    let simulation = simulate_moving(&context, &mappings, replayed(&context), reader, &Parameters::default())?;
    let usage = Usage::of(reader, context.profile, context.histogram)?;
    let matched = Matched::predict(&context, &usage, &simulation, &mappings, reader)?;
    let asked = asked(selection, selected);
    let advice = advise(&context, &simulation, &mappings[0], &usage, matched.as_ref(), &asked);
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

/// What was moved while it ran, where it is known which nodes threads were on.
fn replayed(context: &Context<'_>) -> Vec<Moving> {
    let migrations = &context.profile.migrations;
    match context.affinity.name == "recorded" && !migrations.is_empty() {
        true => vec![Moving::replay(0, migrations)],
        false => Vec::new(),
    }
}

/// What whoever copies the next command would ask with.
fn asked(selection: &Selection, selected: &Selected) -> Asked {
    Asked {
        profile: selected.reader.folder().display().to_string(),
        machine: selection.machine.clone(),
    }
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
    let output::Screen { width, colour } = output::Screen::of_stdout();
    Screen { width, colour }
}

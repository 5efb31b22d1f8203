//! `nodewise report`: prints the analysis of a profile, or writes it as a page.

use crate::exit::Outcome;
use crate::limits::Limits;
use crate::output;
use crate::selection::{self, print_notes};
use nodewise_page::{SessionDocuments, file};
use nodewise_pipeline::{Analysed, Selection};
use nodewise_report::text::Screen;
use nodewise_report::{json, text};
use std::path::PathBuf;
use std::sync::Arc;

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    selection: selection::Arguments,
    /// Policies to compare with first-touch, separated by commas; one `balance:P` shows the moves it would make,
    /// `mirror[:OBJECTS][@NODES]` what copies of what is only read would gain
    #[arg(long, value_name = "P,…", default_value = "all")]
    policy: String,
    #[command(flatten)]
    limits: Limits,
    /// Path of the plain build, used in the suggested next command
    #[arg(long, value_name = "PATH")]
    plain: Option<PathBuf>,
    /// Print JSON: every figure, stable keys
    #[arg(long, conflicts_with = "html")]
    json: bool,
    /// Write one self-contained page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// A second profile for the page to compare with
    #[arg(long, value_name = "DIR", requires = "html")]
    against: Option<PathBuf>,
    /// Overwrite FILE
    #[arg(long, requires = "html")]
    force: bool,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let selection = Selection {
        plain: arguments.plain.clone(),
        ..arguments.selection.selection()
    };
    if let Some(file) = &arguments.html {
        output::check_new([file], arguments.force)?;
        output::write_file(file, &page(arguments, selection)?, arguments.force)?;
        return Ok(Outcome::Done);
    }
    let analysed = Analysed::of(&selection, &arguments.policy, &arguments.limits.of())?;
    print_notes(&analysed.notes);
    match arguments.json {
        true => output::print(&json::write(&analysed.report))?,
        false => output::print(&text::write(&analysed.report, screen()))?,
    }
    Ok(Outcome::Done)
}

/// The profile, and the one it is compared with, as one page.
fn page(arguments: &Arguments, first: Selection) -> anyhow::Result<String> {
    let second = arguments.against.as_ref().map(|against| Selection {
        profile: Some(against.clone()),
        plain_cpu: None,
        ..first.clone()
    });
    let mut views = Vec::new();
    for selection in std::iter::once(first).chain(second) {
        let (view, notes) = Analysed::view(&selection, &arguments.policy, &arguments.limits.of())?;
        print_notes(&notes);
        views.push(Arc::new(view));
    }
    Ok(file::write(&SessionDocuments::new(views, false, 0, None)))
}

fn screen() -> Screen {
    let output::Screen { width, colour } = output::Screen::of_stdout();
    Screen { width, colour }
}

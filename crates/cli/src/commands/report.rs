//! `nodewise report`.

use crate::exit::Outcome;
use crate::output;
use crate::selection::{self, tell};
use nodewise_page::{Book, file};
use nodewise_pipeline::Analysed;
use nodewise_report::text::Screen;
use nodewise_report::{json, text};
use std::path::PathBuf;
use std::sync::Arc;

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    selection: selection::Arguments,
    /// Policies to compare with first-touch, separated by commas
    #[arg(long, value_name = "P,…", default_value = "all")]
    policy: String,
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
    let analysed = Analysed::of(&arguments.selection.selection(), &arguments.policy)?;
    tell(&analysed.notes);
    match &arguments.html {
        Some(file) => output::write_file(file, &page(arguments, analysed)?, arguments.force)?,
        None if arguments.json => output::print(&json::write(&analysed.report))?,
        None => output::print(&text::write(&analysed.report, screen()))?,
    }
    Ok(Outcome::Done)
}

/// The profile, and what it is compared with, as one page.
fn page(arguments: &Arguments, first: Analysed) -> anyhow::Result<String> {
    let mut views = vec![Arc::new(first.view()?)];
    if let Some(against) = &arguments.against {
        let mut selection = arguments.selection.selection();
        selection.profile = Some(against.clone());
        let second = Analysed::of(&selection, &arguments.policy)?;
        tell(&second.notes);
        views.push(Arc::new(second.view()?));
    }
    Ok(file::write(&Book::new(views, false, 0, None)))
}

fn screen() -> Screen {
    let output::Screen { width, colour } = output::Screen::of_stdout();
    Screen { width, colour }
}

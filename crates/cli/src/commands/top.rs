//! `nodewise top`: a live terminal screen. What it shows: `docs/top.md`.

mod draw;
mod figures;
mod matrix;
mod objects;
mod recorder;
mod screen;
mod show;

use crate::exit::Outcome;
use crate::selection;
use anyhow::bail;
use figures::Figures;
use nodewise_pipeline::compare::Limits;
use nodewise_pipeline::{Analysed, Followed, Selection};
use nodewise_placement::migration::BALANCE;
use recorder::Recorder;
use std::io::IsTerminal;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    selection: selection::Arguments,
    /// Path of the plain build, used in the suggested next command
    #[arg(long, value_name = "PATH")]
    plain: Option<PathBuf>,
    /// Running processes: sampled as long as they are looked at, as `record --via faults` does
    #[arg(long, value_name = "N", num_args = 1.., value_delimiter = ',', conflicts_with = "profile")]
    pid: Vec<u32>,
    /// Policies to compare with first-touch, separated by commas
    #[arg(long, value_name = "P,…", default_value = "all")]
    policy: String,
    /// Print one screen as text
    #[arg(long)]
    once: bool,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    if !(arguments.once || terminal) {
        bail!("top needs a terminal; --once prints one screen as text, `nodewise report` prints everything");
    }
    let policies = arguments.policy.clone();
    if policies.split(',').any(|p| p.trim().starts_with(BALANCE)) {
        bail!("top shows what was recorded; `nodewise report` shows the moves that a policy would make");
    }
    let read = move |s: &Selection| Ok(Figures::of(&Analysed::of(s, &policies, &Limits::default())?));
    let attach = (!arguments.pid.is_empty()).then(|| Recorder::start(&arguments.pid));
    let recorder = attach.transpose()?;
    let selection = Selection {
        plain: arguments.plain.clone(),
        ..arguments.selection.selection()
    };
    let profile = match &recorder {
        Some(recorder) => Followed::beginning(&selection, recorder.profile(), read),
        None => Followed::new(&selection, read)?,
    };
    match arguments.once {
        true => show::once(profile, recorder)?,
        false => show::live(profile, recorder)?,
    }
    Ok(Outcome::Done)
}

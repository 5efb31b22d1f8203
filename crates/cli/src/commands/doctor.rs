//! `nodewise doctor`: which features work on this host, and how to enable the others. See `docs/doctor.md`.

use crate::exit::Outcome;
use crate::output::{self, Screen};
use nodewise_diagnose::host::{Diagnosis, State};
use nodewise_linux::Host;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
pub struct Arguments {
    /// Print JSON: stable keys
    #[arg(long)]
    json: bool,
    /// Read proc and sys below another root than /; asks the running kernel nothing
    #[arg(long, value_name = "DIR", hide = true)]
    root: Option<PathBuf>,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let host = arguments.root.as_deref().map_or_else(Host::default, Host::at);
    let own = std::env::current_exe().unwrap_or_default();
    let diagnosis = Diagnosis::of(&host, own.parent().unwrap_or(Path::new("/")));
    if arguments.json {
        output::print(&(serde_json::to_string_pretty(&diagnosis)? + "\n"))?;
    } else {
        output::print(&text(&diagnosis, Screen::of_stdout()))?;
    }
    Ok(if diagnosis.usable {
        Outcome::Done
    } else {
        Outcome::CheckFailed
    })
}

fn text(diagnosis: &Diagnosis, screen: Screen) -> String {
    let mut out = String::new();
    let mut group = "";
    for finding in &diagnosis.findings {
        if finding.group != group {
            group = finding.group;
            out.push_str(&format!(
                "{}{}\n",
                if out.is_empty() { "" } else { "\n" },
                screen.paint(1, group)
            ));
        }
        let (word, colour) = match finding.state {
            State::Works => ("works", 32),
            State::Limited => ("limited", 33),
            State::Missing => ("missing", 31),
        };
        let head = format!("  {word:8}{:16}", finding.name);
        let line = screen.wrap(&head, finding.because.split(' '));
        out.push_str(&line.replacen(word, &screen.paint(colour, word), 1));
        if let Some(remedy) = &finding.remedy {
            out.push_str(&screen.wrap(&format!("{:26}remedy: ", ""), remedy.split(' ')));
        }
    }
    let verdict = if diagnosis.usable {
        "Programs can be recorded here: nodewise-cc, then `nodewise record`."
    } else {
        "Programs cannot be recorded here until `instrument` works."
    };
    out + "\n" + verdict + "\n"
}

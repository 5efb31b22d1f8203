//! `nodewise check`: a score of how well running processes are placed, with its reasons. Its definition:
//! `docs/check.md`.

mod text;

use crate::arguments::{share, watch};
use crate::exit::Outcome;
use crate::output::{self, Screen};
use nodewise_diagnose::process::Check;
use nodewise_linux::Host;
use std::path::PathBuf;
use std::time::Duration;

#[derive(clap::Args)]
pub struct Arguments {
    /// The processes to look at, worst first [default: your largest]
    #[arg(long, value_name = "N", num_args = 1.., value_delimiter = ',')]
    pid: Vec<u32>,
    /// Print JSON: every figure, stable keys
    #[arg(long)]
    json: bool,
    /// Exit with status 1 if a process's score is below this share
    #[arg(long, value_name = "SHARE", default_value = "70%", value_parser = share)]
    threshold: f64,
    /// How long to watch threads; 0 takes their CPU time since they started
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = watch)]
    duration: Duration,
    /// Take latencies from this machine instead of the kernel's distances: a name or a machine file
    #[arg(long, value_name = "M", default_value = "this")]
    machine: String,
    /// Read proc and sys below another root than /
    #[arg(long, value_name = "DIR", hide = true)]
    root: Option<PathBuf>,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let host = arguments.root.as_deref().map_or_else(Host::default, Host::at);
    let Arguments {
        machine,
        pid,
        duration,
        threshold,
        ..
    } = arguments;
    let check = Check::of(&host, machine, pid, *duration, *threshold)?;
    output::print(&written(&check, arguments)?)?;
    Ok(if check.passed {
        Outcome::Done
    } else {
        Outcome::CheckFailed
    })
}

fn written(check: &Check, arguments: &Arguments) -> anyhow::Result<String> {
    let screen = Screen::of_stdout();
    Ok(match arguments.pid.len() {
        _ if arguments.json => serde_json::to_string_pretty(check)? + "\n",
        1 => text::one(check, screen),
        _ => text::several(check, screen),
    })
}

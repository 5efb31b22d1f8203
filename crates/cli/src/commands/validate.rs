//! `nodewise validate`: records, predicts and runs a built-in set of programs on this machine, and compares the times.

mod text;

use super::topo::measure;
use super::tune::progress::Progress;
use crate::arguments::duration;
use crate::exit::Outcome;
use crate::output::{self, say};
use anyhow::{anyhow, bail};
use nodewise_machine::Machine;
use nodewise_validate::{DescribedMachine, Options, Validation, chosen};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Divisor of the time limit: a fifth of it is for measuring the machine.
const MEASURING_DIVISOR: u32 = 5;

#[derive(clap::Args)]
pub struct Arguments {
    /// The file to write [default: validation-MACHINE.json, named after the processor]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Programs to run, of sor, cg, mg, is, kmedian [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    programs: Vec<String>,
    /// Timed runs of each placement
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// For everything; sizes follow it, and no further round starts after it: 90s, 10m, 1h
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = duration)]
    time_limit: Duration,
    /// A file that describes this machine, in place of measuring it
    #[arg(long, value_name = "FILE")]
    machine: Option<String>,
    /// Memory of a program's arrays, in place of the rule's: to try the procedure out
    #[arg(long, value_name = "SIZE", value_parser = crate::arguments::working_set)]
    array_memory: Option<u64>,
    /// Iterations of every program, in place of the rule's: likewise
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    iterations: Option<u64>,
    /// Show what would be run, and how large, and stop
    #[arg(long)]
    dry_run: bool,
    /// Print the file's JSON instead of tables
    #[arg(long)]
    json: bool,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let began = Instant::now();
    let validation = Validation::new(Options {
        programs: chosen(&arguments.programs).map_err(|e| anyhow!("--programs: {e}"))?,
        runs: arguments.runs,
        time_limit: arguments.time_limit,
        array_memory: arguments.array_memory,
        iterations: arguments.iterations,
    })?;
    let file = arguments.output.clone();
    let file = file.unwrap_or_else(|| format!("validation-{}.json", validation.site.name()).into());
    output::check_named(
        "--output",
        Some(&file),
        "the file is to be sent; --json prints it",
    )?;
    if arguments.dry_run {
        if arguments.json {
            bail!("--json prints what was measured; leave out --dry-run");
        }
        if let Some(file) = &arguments.machine {
            validation.check_machine(&Machine::load(file)?)?;
        }
        output::print(&text::plan(&validation, &file))?;
        return Ok(Outcome::Done);
    }
    output::check_new([&file], arguments.force)?;
    validation.check()?;
    validation.remarks().iter().for_each(|remark| say!("{remark}"));
    say!("{}", text::rule(&validation));
    let (machine, described) = machine(arguments, &validation)?;
    let progress = Progress::new("running");
    let date = measure::today();
    let mut listener = |event| progress.show(event);
    let document = validation.run(&machine, described, date, began, &mut listener)?;
    let json = serde_json::to_string_pretty(&document)? + "\n";
    output::replace_file(&file, &json)?;
    let printed = output::print(&if arguments.json {
        json
    } else {
        text::text(&document)
    });
    say!("{}", text::sending(&document, &file));
    printed?;
    Ok(Outcome::Done)
}

/// The machine, from its file or measured. Its name and title contain the processor model and nothing that identifies
/// its owner.
fn machine(arguments: &Arguments, validation: &Validation) -> anyhow::Result<(Machine, DescribedMachine)> {
    let (mut machine, how, cut_short) = match &arguments.machine {
        Some(file) => (Machine::load(file)?, "file", false),
        None => {
            let (machine, cut_short) = measure::quickly(arguments.time_limit / MEASURING_DIVISOR)?;
            (machine, "measured", cut_short)
        }
    };
    validation.check_machine(&machine)?;
    let site = &validation.site;
    machine.name = site.name();
    machine.title = format!("{}, {} nodes", site.cpu, site.nodes);
    if site.virtual_machine.is_some() {
        machine.title += ", inside a virtual machine";
    }
    let described = DescribedMachine {
        name: machine.name.clone(),
        how,
        toml: machine.to_toml(),
        cut_short,
    };
    Ok((machine, described))
}

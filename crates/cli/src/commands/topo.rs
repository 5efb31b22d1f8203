//! `nodewise topo`: describes a machine.

mod flows;
mod graph;
mod json;
pub(super) mod measure;
mod text;

use crate::exit::Outcome;
use crate::output::{self, Screen, write_file};
use anyhow::bail;
use nodewise_machine::Machine;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
pub struct Arguments {
    /// A shipped machine's name, a machine file, or `this`
    #[arg(long, value_name = "M", default_value = "this")]
    machine: String,
    /// List the shipped machines
    #[arg(long, conflicts_with_all = ["json", "svg", "output"])]
    list: bool,
    /// Print JSON: every figure, stable keys
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    measure: measure::Measure,
    /// Bandwidth of concurrent flows: 2>3 (memory node > reading node), 0-1 (both directions), 0-1-4 (every pair);
    /// separated by commas
    #[arg(long, value_name = "FLOWS", conflicts_with_all = ["list", "output"])]
    flows: Option<String>,
    /// Draw a picture
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write a machine file, to look at this machine from another
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite FILE
    #[arg(long)]
    force: bool,
    /// Read `this` below another root than /
    #[arg(long, value_name = "DIR", hide = true)]
    root: Option<PathBuf>,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    if arguments.list {
        return list();
    }
    arguments.check_files()?;
    if arguments.measure.is_wanted() {
        return measure::run(arguments);
    }
    let machine = load(&arguments.machine, arguments.root.as_deref())?;
    if let Some(list) = &arguments.flows {
        return together(&machine, list, arguments);
    }
    arguments.write_files(&machine)?;
    if arguments.json {
        output::print(&(serde_json::to_string_pretty(&json::Topology::of(&machine))? + "\n"))?;
    } else if arguments.svg.is_none() && arguments.output.is_none() {
        output::print(&text::write(&machine, Screen::of_stdout()))?;
    }
    Ok(Outcome::Done)
}

impl Arguments {
    /// Checks that both output files can be written, as far as possible before the work is done.
    fn check_files(&self) -> anyhow::Result<()> {
        let files: Vec<&PathBuf> = [&self.svg, &self.output].into_iter().flatten().collect();
        output::check_new(files.iter().copied(), self.force)?;
        if let [svg, output] = files[..]
            && svg == output
        {
            bail!(
                "{}: is asked for as a picture and as a machine file; name two files",
                svg.display()
            );
        }
        Ok(())
    }

    /// Writes the picture and the machine file that were asked for; tries both even if one fails.
    fn write_files(&self, machine: &Machine) -> anyhow::Result<()> {
        let write = |file: &Option<PathBuf>, text: &dyn Fn() -> String| match file {
            Some(file) => write_file(file, &text(), self.force),
            None => Ok(()),
        };
        let drawn = write(&self.svg, &|| nodewise_report::topology_svg(machine));
        write(&self.output, &|| machine.to_toml()).and(drawn)
    }
}

/// The max-min fair rates of flows, as text, JSON or on the picture of the links.
fn together(machine: &Machine, list: &str, arguments: &Arguments) -> anyhow::Result<Outcome> {
    let together = flows::Together::of(machine, list)?;
    if let Some(file) = &arguments.svg {
        write_file(
            file,
            &nodewise_report::links_svg(machine, Some(&together.load)),
            arguments.force,
        )?;
    }
    if arguments.json {
        output::print(&(serde_json::to_string_pretty(&together)? + "\n"))?;
    } else if arguments.svg.is_none() {
        output::print(&together.text())?;
    }
    Ok(Outcome::Done)
}

/// Loads a machine by name; `this` may be read below another root directory.
fn load(name: &str, root: Option<&Path>) -> anyhow::Result<Machine> {
    Ok(match root {
        Some(root) if name.eq_ignore_ascii_case("this") => Machine::from_sysfs(&root.join("sys"), "this")?,
        _ => Machine::load(name)?,
    })
}

fn list() -> anyhow::Result<Outcome> {
    let names = Machine::names();
    let width = names.iter().map(|n| n.len()).max().unwrap_or(0);
    let mut text = format!("{:width$}  this host, as its kernel shows it\n", "this");
    for name in names {
        text += &format!("{name:width$}  {}\n", Machine::named(name)?.title);
    }
    output::print(&text)?;
    Ok(Outcome::Done)
}

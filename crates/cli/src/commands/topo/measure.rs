//! `nodewise topo --measure`: measures latency and bandwidth of this host, and infers its links.

mod json;
mod text;

use super::Arguments;
use crate::exit::Outcome;
use crate::output::say;
use crate::output::{self, Screen};
use indicatif::{ProgressBar, ProgressStyle};
use nodewise_linux::Host;
use nodewise_machine::Machine;
use nodewise_observe::hardware::{self, Measured, Settings};
use std::path::Path;
use std::time::Duration;

#[derive(clap::Args)]
pub struct Measure {
    /// Measure this host: latency, read and write bandwidth between all nodes, alone and together
    #[arg(long, conflicts_with_all = ["machine", "list", "flows", "root"])]
    measure: bool,
    /// Within a twentieth instead of a hundredth, in a minute instead of ten
    #[arg(long, requires = "measure")]
    quick: bool,
    /// Begin no further measurement after this time: 90, 90s, 10m, 1h
    #[arg(long, value_name = "TIME", requires = "measure", value_parser = crate::arguments::duration)]
    time_limit: Option<Duration>,
    /// Memory to measure with on each node, as 512M [default: four times the caches that reach it]
    #[arg(long, value_name = "SIZE", requires = "measure", value_parser = crate::arguments::working_set)]
    buffer: Option<u64>,
}

impl Measure {
    pub fn is_wanted(&self) -> bool {
        self.measure
    }

    fn settings(&self) -> Settings {
        let settings = if self.quick {
            Settings::quick()
        } else {
            Settings::thorough()
        };
        Settings {
            limit: self.time_limit.unwrap_or(settings.limit),
            memory: self.buffer,
            ..settings
        }
    }
}

/// The measurements, and the host they were made on.
struct MeasuredMachine {
    machine: Machine,
    measured: Measured,
    /// Date of the measurement, as `2026-11-22`.
    date: String,
    kernel: String,
    /// The evidence that this is a virtual machine, if it is one.
    virtual_machine: Option<String>,
}

/// Measures, prints, and then writes the file: if that fails, ten minutes of measurements are not lost.
pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let found = measured(&arguments.measure, arguments.output.as_deref())?;
    let printed = output::print(&if arguments.json {
        found.json()?
    } else {
        found.text(Screen::of_stdout())
    });
    arguments.write_files(&found.machine)?;
    printed?;
    Ok(Outcome::Done)
}

/// This host measured as `--quick` does, for other commands, and whether time was up before all was measured.
pub fn quickly(limit: Duration) -> anyhow::Result<(Machine, bool)> {
    let arguments = Measure {
        measure: true,
        quick: true,
        time_limit: Some(limit),
        buffer: None,
    };
    let found = measured(&arguments, None)?;
    Ok((found.machine, found.measured.cut_short))
}

fn measured(arguments: &Measure, file: Option<&Path>) -> anyhow::Result<MeasuredMachine> {
    let host = Host::default();
    let base = Machine::load("this")?;
    let virtual_machine = hardware::virtual_machine(&host);
    if let Some(why) = &virtual_machine {
        say!(
            "this is a virtual machine ({why}): what it measures need not be what the hardware gives, \
             and under an emulator means nothing"
        );
    }
    let measured = with_bar(|progress| hardware::measure(&host, &base, &arguments.settings(), progress))?;
    for note in &measured.notes {
        say!("{note}");
    }
    if measured.cut_short {
        say!("time was up before everything was measured as well as asked for; give it more by --time-limit");
    }
    let (date, kernel) = (today(), host.kernel_release().unwrap_or_else(|| "?".to_owned()));
    let mut machine = measured.describe(base, &format!("on {date}, with Linux {kernel}"));
    if virtual_machine.is_some() {
        machine.title += " inside a virtual machine";
    }
    if let Some(stem) = file.and_then(Path::file_stem) {
        machine.name = stem.to_string_lossy().into_owned();
    }
    Ok(MeasuredMachine {
        machine,
        measured,
        date,
        kernel,
        virtual_machine,
    })
}

/// Shows a progress bar on a terminal while measuring.
fn with_bar<T>(run: impl FnOnce(&mut dyn FnMut(hardware::Progress)) -> T) -> T {
    let bar = ProgressBar::new(0);
    bar.set_style(
        ProgressStyle::with_template("{msg:16} {bar:40} {pos} of {len}, {elapsed}")
            .expect("a valid template"),
    );
    let done = run(&mut |progress| {
        bar.set_message(progress.what);
        bar.set_length(progress.of as u64);
        bar.set_position(progress.done as u64);
    });
    bar.finish_and_clear();
    done
}

/// Today's date in UTC.
pub fn today() -> String {
    jiff::Timestamp::now().strftime("%F").to_string()
}

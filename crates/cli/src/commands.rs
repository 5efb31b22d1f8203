//! The list of subcommands; each is a module with its arguments and `run`.

// Declared here and not in the macro below, so that rustfmt finds the files.
mod balance;
mod check;
mod doctor;
mod generate;
mod lab;
mod map;
mod migrate;
mod record;
mod report;
mod run;
mod serve;
mod simulate;
mod top;
mod topo;
mod tune;

use crate::exit::Outcome;
use clap::Subcommand;

macro_rules! commands {
    ($($(#[$doc:meta])* $variant:ident = $module:ident),* $(,)?) => {
        #[derive(Subcommand)]
        pub enum Command {
            $($(#[$doc])* $variant($module::Arguments),)*
        }

        impl Command {
            pub fn run(self) -> anyhow::Result<Outcome> {
                match self {
                    $(Self::$variant(arguments) => $module::run(&arguments),)*
                }
            }
        }
    };
}

// In the order of the tutorial: observe, look, decide, prove, enforce.
commands! {
    /// Record, rank, run the best candidates for real, keep the winner or leave it alone
    Tune = tune,
    /// Say in two seconds how well placed a running process is
    Check = check,
    /// Say which observers and actuators work here, and the mend for each that does not
    Doctor = doctor,
    /// Run a program, count its accesses and write a profile
    Record = record,
    /// Show what a profile means: verdict, metrics, objects, advice
    Report = report,
    /// Serve the page of a profile, live while it is written
    Serve = serve,
    /// Show in a terminal who accesses which node, live
    Top = top,
    /// Write the rules of a placement
    Map = map,
    /// Predict the cost of each policy side by side
    Simulate = simulate,
    /// Run an unmodified program under a placement
    Run = run,
    /// Observe running programs and move their pages to who uses them
    Balance = balance,
    /// Move a running process's pages between nodes, in parallel
    Migrate = migrate,
    /// Run a program on a virtual NUMA machine and count exactly who accesses which node
    Lab = lab,
    /// Show a machine
    Topo = topo,
    /// Write shell completions or man pages
    Generate = generate,
}

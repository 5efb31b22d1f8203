//! The list of subcommands; each is a module with its arguments and `run`.

// Declared here and not in the macro below, so that rustfmt finds the files.
mod balance;
mod check;
mod doctor;
mod files;
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
mod validate;

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

// In the order of the tutorial: observe, inspect, decide, verify, enforce.
commands! {
    /// Rank the policies, measure the best candidates, and print the fastest placement
    Tune = tune,
    /// Say in two seconds how well placed a running process is
    Check = check,
    /// Show on which nodes files and shared memory lie, and put them there
    Files = files,
    /// Check which features work on this host, and how to enable those that do not
    Doctor = doctor,
    /// Run a program, count its accesses and write a profile
    Record = record,
    /// Show what a profile means: verdict, metrics, objects, advice
    Report = report,
    /// Serve the page of a profile, live while it is written
    Serve = serve,
    /// Show live which node's threads access which node's memory
    Top = top,
    /// Write the rules of a placement
    Map = map,
    /// Predict the cost of each policy side by side
    Simulate = simulate,
    /// Run an unmodified program under a placement
    Run = run,
    /// Sample running programs and migrate their pages to the nodes that use them
    Balance = balance,
    /// Move a running process's pages between nodes, in parallel
    Migrate = migrate,
    /// Run a program on a virtual NUMA machine and count accesses by CPU node and memory node
    Lab = lab,
    /// Show a machine
    Topo = topo,
    /// Hold predictions against measurements on this machine, and write a file to send to us
    Validate = validate,
    /// Write shell completions or man pages
    Generate = generate,
}

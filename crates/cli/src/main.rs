//! The `nodewise` command: parses arguments, prints results, and sets the exit status. All other work is in the
//! libraries.
#![forbid(unsafe_code)]
// `println!` and `eprintln!` panic if they cannot write; use `output::print` and `output::say`.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod arguments;
mod commands;
mod exit;
mod launch;
mod limits;
mod output;
mod renamed;
mod selection;
mod usage;

use clap::{CommandFactory, Parser};
use std::process::ExitCode;

/// Places threads and memory pages on NUMA machines.
#[derive(Parser)]
#[command(name = "nodewise", version, propagate_version = true, max_term_width = 100)]
#[command(infer_subcommands = true, infer_long_args = true)]
struct Arguments {
    #[command(subcommand)]
    command: commands::Command,
}

fn main() -> ExitCode {
    nodewise_linux::signals::survive_file_limit();
    let (command, words) = (Arguments::command(), std::env::args_os().collect::<Vec<_>>());
    let subcommand = usage::subcommand(&command, &words);
    let words = subcommand.map_or_else(|| words.clone(), |s| renamed::translate(s, &words));
    let words = usage::with_full_help(&command, words);
    match Arguments::try_parse_from(&words) {
        Ok(arguments) => exit::code(arguments.command.run()),
        Err(error) => usage::report(&error, subcommand, &words),
    }
}

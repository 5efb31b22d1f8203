//! `nodewise generate`: shell completions and man pages from the one argument definition.

use crate::exit::Outcome;
use anyhow::Context;
use clap::CommandFactory;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Shell completions on standard output
    Completions {
        /// The shell to write for
        shell: clap_complete::Shell,
    },
    /// One man page per subcommand, into a folder
    Man {
        /// The folder, created if missing
        folder: PathBuf,
    },
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let mut command = crate::Arguments::command();
    match &arguments.what {
        What::Completions { shell } => {
            clap_complete::generate(*shell, &mut command, "nodewise", &mut std::io::stdout());
        }
        What::Man { folder } => {
            std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
            clap_mangen::generate_to(command, folder)
                .with_context(|| format!("cannot write man pages to {}", folder.display()))?;
        }
    }
    Ok(Outcome::Done)
}

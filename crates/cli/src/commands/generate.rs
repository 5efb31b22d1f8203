//! `nodewise generate`: makes shell completions and man pages from the definition of the arguments.

use crate::exit::Outcome;
use crate::output;
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
            // Into memory first: clap_complete panics if it cannot write.
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut command, "nodewise", &mut script);
            output::print(&String::from_utf8_lossy(&script))?;
        }
        What::Man { folder } => {
            std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
            clap_mangen::generate_to(command, folder)
                .with_context(|| format!("cannot write man pages to {}", folder.display()))?;
        }
    }
    Ok(Outcome::Done)
}

//! `nodewise check`.

use crate::exit::Outcome;

#[derive(clap::Args)]
pub struct Arguments {}

pub fn run(_arguments: &Arguments) -> anyhow::Result<Outcome> {
    anyhow::bail!("check: under construction")
}

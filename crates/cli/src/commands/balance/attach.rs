//! Balances running processes until they end or a signal arrives.

use super::{Arguments, settings, start};
use crate::exit::Outcome;
use anyhow::{Context, bail};
use nodewise_linux::mempolicy::decline_balancing;
use nodewise_linux::privileges;
use nodewise_linux::signals::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, Signals};
use nodewise_live::{Session, Target};
use std::time::Duration;

pub fn run(arguments: &Arguments, target: &Target) -> anyhow::Result<Outcome> {
    let own_niceness = privileges::niceness();
    privileges::set_niceness(start::UNTIL_HELD);
    settings::check_files(arguments)?;
    let topology = settings::topology(arguments)?;
    settings::check_policy(arguments, &topology)?;
    if topology.single() {
        bail!("one memory node here: there is nothing to balance; `nodewise lab` has machines with more");
    }
    settings::check_privileges(arguments)?;
    let signals =
        Signals::block(&[SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2]).context("cannot wait for signals")?;
    let mut options = settings::options(arguments);
    options.niceness_while_held = Some(own_niceness);
    let mut session = Session::new(&options, target, topology, None).map_err(start::named)?;
    start::subscribe(&mut session, arguments, &options, target)?;
    decline_balancing();
    let lasting = matches!(target, Target::Group(folder) if folder.exists());
    loop {
        if !session.holds_threads() {
            privileges::set_niceness(start::NICENESS);
        }
        match signals.wait(Duration::ZERO).map(|s| s.number) {
            Some(SIGUSR1) => session.pause(),
            Some(SIGUSR2) => session.resume(),
            Some(_) => break,
            None => session.turn(),
        }
        let group_is_gone = matches!(target, Target::Group(folder) if !folder.exists());
        if (session.processes().is_empty() && !lasting) || group_is_gone {
            break;
        }
    }
    session.finish(None)?;
    Ok(Outcome::Done)
}

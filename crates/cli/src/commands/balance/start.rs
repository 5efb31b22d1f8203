//! What `balance` starts with, for running processes and for a command alike: niceness, and the subscribers of the session.

use super::{Arguments, document, page, terminal};
use crate::output::say;
use nodewise_live::{LiveError, Metrics, Options, Recording, Session, Target};
use std::path::Path;

/// Niceness of the live loop. At the programs' priority, a further thread would make the kernel's load balancing push
/// their threads to other nodes, which the loop is meant to undo. When all CPUs are busy, this niceness still gives a
/// tenth of a CPU, which is enough for the permitted cost of observation.
pub const NICENESS: i32 = 10;
/// Niceness until the threads of running processes are held on their nodes; it gives a quarter of a CPU. The kernel
/// balances load across nodes from an imbalance of 25 % on; one such thread beside two of the usual priority makes 16 %.
/// While threads are held they cannot be pushed: the niceness is the one that nodewise was started with.
pub const UNTIL_HELD: i32 = 5;

/// Adds the name of the relevant option to an error of the session.
pub fn named(error: LiveError) -> anyhow::Error {
    let about_scans = error.is_about_scan_period();
    let error = anyhow::Error::from(error);
    if about_scans {
        error.context("--scan-period")
    } else {
        error
    }
}

/// Subscribes the requested outputs to the session.
pub fn subscribe(
    session: &mut Session,
    arguments: &Arguments,
    options: &Options,
    target: &Target,
) -> anyhow::Result<()> {
    // The page shows the session's profile while it is written, so it needs one.
    let unnamed = arguments.page.map(|_| nodewise_store::unused(Path::new("")));
    let recording = arguments.output.clone().or(unnamed);
    let recording = recording.map(|folder| Recording::new(options, target, &folder, arguments.force));
    let recording = recording.transpose()?;
    let shown = arguments.page.zip(recording.as_ref());
    let page = shown
        .map(|(port, recording)| page::Page::start(arguments.machine.as_deref(), port, recording.folder()));
    recording.into_iter().for_each(|r| session.subscribe(r));
    match page {
        Some(Ok(page)) => session.subscribe(page),
        Some(Err(error)) => say!("no page: {error:#}"),
        None => {}
    }
    session.subscribe(terminal::Terminal {
        verbose: arguments.verbose,
    });
    if let Some(file) = &arguments.metrics {
        session.subscribe(Metrics::new(file, target));
    }
    session.subscribe(document::Document::new(arguments));
    session.begin();
    Ok(())
}

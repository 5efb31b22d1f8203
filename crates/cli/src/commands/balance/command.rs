//! Starts a program, forwards signals and its exit status, and balances it from its first page on.

use super::document::Document;
use super::{Arguments, settings, start};
use crate::exit::Outcome;
use crate::launch::{cannot_start, empty, failure, own_failure, preload};
use crate::output::say;
use nodewise_enforce::{Binding, Holder, Host, Options, PageSize, Plan, Request, Roles, RunFolder};
use nodewise_linux::child::{self, Forwarding, shell_status};
use nodewise_linux::clock;
use nodewise_linux::mark;
use nodewise_linux::mempolicy::decline_balancing;
use nodewise_linux::privileges;
use nodewise_linux::signals::{SIGUSR1, SIGUSR2};
use nodewise_live::{Event, Session, Status, Subscriber, Target, Topology};
use std::ffi::OsString;
use std::process::Command;
use std::time::Duration;

/// Longest time until the end of the child is noticed.
const CHILD_POLL_INTERVAL: Duration = Duration::from_millis(1);
/// The interval between inspections while an emulator counts accesses: longer than any run, because our own accesses
/// would be counted.
const NO_INSPECTION: Duration = Duration::from_secs(1 << 30);

pub fn run(arguments: &Arguments, words: Vec<OsString>) -> anyhow::Result<Outcome> {
    settings::check_files(arguments).map_err(|e| session_failure(&e))?;
    let topology = settings::topology(arguments).map_err(|e| session_failure(&e))?;
    settings::check_policy(arguments, &topology).map_err(|e| session_failure(&e))?;
    settings::check_privileges(arguments).map_err(|e| session_failure(&e))?;
    let mut plan = plan(arguments, &words).map_err(own_failure)?;
    plan.objects = arguments.objects.as_deref().map(empty).transpose()?;
    if topology.single() {
        say!("one memory node here: there is nothing to balance, the program runs as it is");
        if arguments.output.is_some() || arguments.page.is_some() || arguments.metrics.is_some() {
            say!("no profile, page or metrics file is written: nothing is observed");
        }
        return run_unbalanced(arguments, &topology, &plan, &words);
    }
    let holder = holder(arguments, &mut plan);
    let folder = RunFolder::new(&plan).map_err(own_failure)?;
    let mut command = command(&plan, &words, &folder)?;
    if let Some(holder) = &holder {
        holder.prepare(&mut command);
    }
    if plan.objects.is_some() {
        mark::before_exec(&mut command);
    }
    let mut session = session(arguments, words, topology, holder).map_err(|e| session_failure(&e))?;
    let mut child = Forwarding::start(&mut command).map_err(|e| cannot_start(command.get_program(), &e))?;
    session.follow(child.id());
    // Not earlier, because the child would have inherited it.
    privileges::set_niceness(start::NICENESS);
    decline_balancing();
    let status = loop {
        match child.next(CHILD_POLL_INTERVAL, &[SIGUSR1, SIGUSR2])? {
            child::Event::Ended(status) => break status,
            child::Event::Kept(SIGUSR1) => session.pause(),
            child::Event::Kept(_) => session.resume(),
            child::Event::Nothing => session.turn(),
        }
    };
    if plan.objects.is_some() {
        mark::end();
    }
    let status = shell_status(status);
    session
        .finish(Some(status))
        .map_err(|e| session_failure(&e.into()))?;
    Ok(Outcome::Child(status))
}

fn session(
    arguments: &Arguments,
    words: Vec<OsString>,
    topology: Topology,
    holder: Option<Holder>,
) -> anyhow::Result<Session> {
    let (options, target) = (settings::options(arguments), Target::Command(words));
    let mut session = Session::new(&options, &target, topology, holder).map_err(start::named)?;
    start::subscribe(&mut session, arguments, &options, &target)?;
    Ok(session)
}

/// The plan with which `run` would start the program: first-touch, with threads bound as requested.
fn plan(arguments: &Arguments, words: &[OsString]) -> Result<Plan, nodewise_enforce::EnforceError> {
    let options = Options {
        binding: arguments.bind.clone(),
        threads: arguments.threads.map(|n| n as usize),
        page_size: PageSize::Auto,
        roles: Roles::Number,
        places: Vec::new(),
        schedule: None,
    };
    let mut plan = Plan::new(&Request::FirstTouch, &Host::this(&[])?, words, &options)?;
    if options.binding == Binding::None {
        plan.table = None;
    }
    Ok(plan)
}

/// If a policy was chosen, it is to decide alone: prevents automatic NUMA balancing from moving the program's pages, if
/// possible. Does nothing in a dry run, which changes nothing.
fn holder(arguments: &Arguments, plan: &mut Plan) -> Option<Holder> {
    if arguments.dry_run || arguments.policy.is_none() {
        return None;
    }
    match Holder::new() {
        Ok(holder) => {
            plan.companion = true;
            Some(holder)
        }
        Err(error) => {
            say!("the kernel's own balancing is not kept away: {error}; its moves are counted apart");
            None
        }
    }
}

fn command(plan: &Plan, words: &[OsString], folder: &RunFolder) -> anyhow::Result<Command> {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    let preload = plan.preloads().then(preload).transpose()?.unwrap_or_default();
    plan.prepare(&mut command, &preload, folder.path());
    Ok(command)
}

/// Runs the program without balancing, where there is nothing to balance.
fn run_unbalanced(
    arguments: &Arguments,
    topology: &Topology,
    plan: &Plan,
    words: &[OsString],
) -> anyhow::Result<Outcome> {
    let began = clock::monotonic();
    let folder = RunFolder::new(plan).map_err(own_failure)?;
    let mut command = command(plan, words, &folder)?;
    let child = Forwarding::start(&mut command).map_err(|e| cannot_start(&words[0], &e))?;
    let status = child
        .wait(NO_INSPECTION, |_| NO_INSPECTION)
        .map_err(|e| failure(125, e.to_string()))?;
    let status = shell_status(status);
    let time = clock::monotonic() - began;
    let figures = Status::unbalanced(&settings::options(arguments), topology, time, status);
    Document::new(arguments)
        .receive(time, &Event::Ended(&figures))
        .map_err(|e| failure(125, e))?;
    Ok(Outcome::Child(status))
}

/// Wraps an error of the session with the exit status of our own failures.
fn session_failure(error: &anyhow::Error) -> anyhow::Error {
    failure(125, format!("{error:#}"))
}

//! `nodewise serve`: serves the page of a profile while it is written. Access control: `docs/serve.md`.

use crate::exit::Outcome;
use crate::limits::Limits;
use crate::output::{self, command_line, say};
use crate::selection;
use anyhow::{Context, anyhow};
use nodewise_linux::privileges;
use nodewise_linux::signals::{SIGHUP, SIGINT, SIGTERM, Signals};
use nodewise_page::View;
use nodewise_page::server::{DocumentStore, Server};
use nodewise_pipeline::{Analysed, Followed, LiveDocuments, Selection};
use std::io::{BufRead, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

/// Time between two checks for the end of a session; signals are noticed at once.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    selection: selection::Arguments,
    /// Path of the plain build, used in the suggested next command
    #[arg(long, value_name = "PATH")]
    plain: Option<PathBuf>,
    /// A second profile, to compare with
    #[arg(long, value_name = "DIR")]
    against: Option<PathBuf>,
    /// Policies to compare with first-touch, separated by commas; one `balance:P` shows the moves it would make
    #[arg(long, value_name = "P,…", default_value = "all")]
    policy: String,
    #[command(flatten)]
    limits: Limits,
    /// The port; 0: any that is free
    #[arg(long, value_name = "N", default_value_t = 0)]
    port: u16,
    /// The address of this host to listen at; others than 127.0.0.1 and ::1 can be reached from elsewhere
    #[arg(long, value_name = "ADDR", default_value_t = Ipv4Addr::LOCALHOST.into())]
    listen: IpAddr,
    /// Show the page in a browser
    #[arg(long)]
    open: bool,
    /// A session writes the profile: a line an interval comes on standard input, whose end is soon ours
    #[arg(long, hide = true)]
    session: bool,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    if arguments.session {
        privileges::give_up().context("cannot give up privileges")?;
        privileges::run_when_idle();
    }
    let signals = Signals::block(&[SIGINT, SIGTERM, SIGHUP]).context("cannot wait for signals")?;
    let live_documents = LiveDocuments::open(profiles(arguments)?, arguments.session, |message| {
        say!("{message}");
    })?;
    let store = live_documents.store();
    let address = SocketAddr::new(arguments.listen, arguments.port);
    let server = Server::bind(address, store.clone()).map_err(|e| cannot_listen(address, &e))?;
    warn(arguments);
    let url = server.url();
    output::print(&format!("{url}\n"))?;
    if arguments.open {
        show(&url);
    }
    let (session, ended) = mpsc::channel();
    let running = [
        std::thread::spawn(move || serve(server)),
        std::thread::spawn(move || {
            live_documents.follow(&ended, |folder| command_line("nodewise serve", folder));
        }),
    ];
    if arguments.session {
        std::thread::spawn(move || feed(&store, session));
    }
    while signals.wait(POLL_INTERVAL).is_none() && !running.iter().any(JoinHandle::is_finished) {}
    Ok(Outcome::Done)
}

/// The profiles to show: the selected one, and the one it is compared with.
fn profiles(arguments: &Arguments) -> anyhow::Result<Vec<Followed<View>>> {
    let first = Selection {
        plain: arguments.plain.clone(),
        ..arguments.selection.selection()
    };
    let second = arguments.against.as_ref().map(|folder| Selection {
        profile: Some(folder.clone()),
        other_runs: Vec::new(),
        plain_cpu: None,
        ..first.clone()
    });
    let followed = |selection: &Selection| {
        let (policies, limits) = (arguments.policy.clone(), arguments.limits.of());
        let read = move |s: &Selection| Ok(Analysed::view(s, &policies, &limits)?.0);
        match (&selection.profile, arguments.session) {
            (Some(folder), true) => Ok(Followed::beginning(selection, folder.clone(), read)),
            _ => Followed::new(selection, read),
        }
    };
    std::iter::once(&first).chain(&second).map(followed).collect()
}

fn cannot_listen(address: SocketAddr, error: &std::io::Error) -> anyhow::Error {
    match error.kind() {
        ErrorKind::AddrInUse => anyhow!("{address} is in use; without --port a free one is taken"),
        ErrorKind::AddrNotAvailable => anyhow!("--listen {}: no address of this host", address.ip()),
        ErrorKind::PermissionDenied => {
            anyhow!("port {} needs privileges; take one from 1024 on", address.port())
        }
        _ => anyhow!("cannot listen at {address}: {error}"),
    }
}

fn warn(arguments: &Arguments) {
    if !arguments.listen.is_loopback() {
        say!(
            "whoever reaches this host at {} and learns the address below sees all of the profile, \
             names and source lines included; nothing is encrypted",
            arguments.listen
        );
    }
}

fn serve(server: Server) {
    if let Err(error) = server.run() {
        say!("cannot serve any longer: {error}");
    }
}

/// Reads the session's intervals from standard input until it ends; `session` is then dropped.
fn feed(store: &DocumentStore, session: mpsc::Sender<()>) {
    let is_json = |line: &String| serde_json::from_str::<serde_json::Value>(line).is_ok();
    let lines = std::io::stdin().lock().lines().map_while(Result::ok);
    lines.filter(is_json).for_each(|line| store.interval(&line));
    drop(session);
}

/// Asks the desktop to open the page; reports only that `xdg-open` is missing.
fn show(url: &str) {
    let mut opener = Command::new("xdg-open");
    opener
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    match opener.spawn() {
        Ok(mut opener) => drop(std::thread::spawn(move || opener.wait())),
        Err(error) => say!("cannot open a browser (xdg-open: {error}); the address is above"),
    }
}

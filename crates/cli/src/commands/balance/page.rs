//! The page of a session. A process that may move other users' pages must not accept connections, so a separate process
//! serves the page; it has no privileges, runs at the lowest priority, and ends with this one.

use crate::output::command_line;
use anyhow::Context;
use nodewise_linux::{Host, child};
use nodewise_live::{Event, Status, Subscriber};
use std::io::{self, ErrorKind, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Longest time that the server gets to publish the end of the session, and the interval at which it is polled.
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(2);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The process that serves the page.
pub struct Page {
    server: Child,
    pipe: UnixStream,
    /// The rest of a line that did not fit.
    unsent: Vec<u8>,
    /// Time until which this process waits for the server at its end.
    publish_deadline: Instant,
    /// Folder of the profile that is shown.
    folder: PathBuf,
    /// The command that shows the page again, once the session has ended.
    again: Option<String>,
}

impl Page {
    /// Starts the server; it prints the address on this process's standard error, like all messages.
    pub fn start(machine: Option<&str>, port: u16, folder: &Path) -> anyhow::Result<Self> {
        let (pipe, theirs) = UnixStream::pair()?;
        pipe.set_nonblocking(true)?;
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("serve").arg(folder).arg("--session");
        command.args(["--port", &port.to_string()]);
        if let Some(machine) = machine {
            command.args(["--machine", machine]);
        }
        command.env("RAYON_NUM_THREADS", "1"); // it takes little from the program
        command.stdin(OwnedFd::from(theirs)).stdout(io::stderr());
        as_the_user(&mut command);
        let server = child::depend(&mut command, Vec::new()).spawn();
        Ok(Self {
            server: server.context("cannot start `nodewise serve`")?,
            pipe,
            unsent: Vec::new(),
            publish_deadline: Instant::now(),
            folder: folder.to_owned(),
            again: None,
        })
    }

    /// Sends a line after each interval. A slow server does not delay the session: lines for which it has no room are
    /// dropped.
    fn send_status(&mut self, status: &Status) -> io::Result<()> {
        if self.server.try_wait()?.is_some() {
            return Err(ErrorKind::BrokenPipe.into());
        }
        if self.unsent.is_empty() {
            self.unsent = serde_json::to_vec(&status.document())?;
            self.unsent.push(b'\n');
        }
        while !self.unsent.is_empty() {
            match self.pipe.write(&self.unsent) {
                Ok(written) => drop(self.unsent.drain(..written)),
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Tells the server that the profile is complete. Dropping this then waits briefly until it has published the end.
    fn end(&mut self) {
        self.publish_deadline = Instant::now() + PUBLISH_TIMEOUT;
        let _ = self.pipe.shutdown(Shutdown::Write);
        self.again = Some(format!(
            "the page again: {}",
            command_line("nodewise serve", &self.folder)
        ));
    }
}

impl Subscriber for Page {
    fn receive(&mut self, _: Duration, event: &Event<'_>) -> Result<(), String> {
        match event {
            Event::Updated(status) => self
                .send_status(status)
                .map_err(|e| format!("the page has ended ({e}); all else goes on"))?,
            Event::Ended(_) => self.end(),
            _ => {}
        }
        Ok(())
    }

    fn take_notice(&mut self) -> Option<String> {
        self.again.take()
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        while Instant::now() < self.publish_deadline && matches!(self.server.try_wait(), Ok(None)) {
            std::thread::sleep(POLL_INTERVAL);
        }
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Under `sudo`, makes the server run as the user who called it: it only needs to read the profile, which the user may
/// read.
fn as_the_user(command: &mut Command) {
    let is_root = Host::default()
        .status(std::process::id())
        .is_ok_and(|status| status.uid == 0);
    let number = |name| std::env::var(name).ok()?.parse::<u32>().ok();
    if let (true, Some(user), Some(group)) = (is_root, number("SUDO_UID"), number("SUDO_GID")) {
        command.uid(user).gid(group);
    }
}

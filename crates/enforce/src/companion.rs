//! Requests to companions: threads in programs that set memory policies for us. Mirror of
//! `runtime/preload/companion.h`.

use nodewise_linux::{Host, memfd, peer};
use std::io::{self, ErrorKind, Read, Write};
use std::ops::Range;
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::{Duration, Instant};

/// The environment variable with the name of the socket.
pub(crate) const VARIABLE: &str = "NODEWISE_BALANCE";
/// Number of requests sent before their answers are read; requests and answers fit into the socket's buffers.
const BATCH: usize = 64;
/// A companion that has not answered after this time belongs to a stopped program; it is asked again later.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(500);
/// Instead of a node: the pages are not moved.
const STAY: u32 = u32::MAX;
/// Largest number of ancestors of a process that are examined.
const GENERATIONS: u32 = 64;
/// Largest number of socket names that are tried.
const NAMES_TRIED: u32 = 64;

/// A request to a companion: keep pages where they are, or first move them, and still report who accesses them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The node that the pages' policy allows.
    pub home: u32,
    /// The node that the pages are moved to before.
    pub to: Option<u32>,
}

impl Request {
    /// Keep the pages where they are, by a policy that allows this node.
    #[must_use]
    pub fn hold(home: u32) -> Self {
        Self { home, to: None }
    }
}

/// A companion's answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Done, by a policy that prefers the node.
    Done,
    /// Done, by a policy that allows no other node (before Linux 6.9).
    DoneStrictly,
    /// Refused, with the error number: for example, the node is short of memory or the program has set a policy.
    Refused(i32),
    /// No answer: there is no companion, or its program is stopped or has ended.
    Missing,
}

/// The socket that companions connect to, and the connections of those that did.
#[derive(Debug)]
pub struct Companions {
    listener: UnixListener,
    name: String,
    connected: Vec<Companion>,
}

#[derive(Debug)]
struct Companion {
    pid: u32,
    channel: UnixStream,
    /// Bytes of late answers that are yet to arrive, and will be discarded.
    late_bytes: usize,
}

impl Companions {
    /// Listens at an abstract socket name, which disappears with this process.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn listen() -> io::Result<Self> {
        let taken = |e: &io::Error| e.kind() == ErrorKind::AddrInUse;
        let mut result = Err(io::Error::from(ErrorKind::AddrInUse));
        for number in 0..NAMES_TRIED {
            let name = format!("nodewise-{}-{number}", std::process::id());
            let address = SocketAddr::from_abstract_name(&name)?;
            result = UnixListener::bind_addr(&address).map(|listener| (name, listener));
            if !result.as_ref().is_err_and(taken) {
                break;
            }
        }
        let (name, listener) = result?;
        listener.set_nonblocking(true)?;
        Ok(Self {
            listener,
            name,
            connected: Vec::new(),
        })
    }

    /// The name of the socket, passed to programs in the environment.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Accepts new companions and drops those that have ended; returns the processes that have one.
    pub fn accept(&mut self) -> Vec<u32> {
        self.connected.retain_mut(Companion::drain_late);
        while let Ok((channel, _)) = self.listener.accept() {
            let pid = peer::of(&channel).ok().filter(is_ours).map_or(0, |p| p.pid);
            if pid != 0 && channel.set_nonblocking(true).is_ok() {
                self.connected.retain(|c| c.pid != pid);
                let late_bytes = 0;
                self.connected.push(Companion {
                    pid,
                    channel,
                    late_bytes,
                });
            }
        }
        self.connected.iter().map(|c| c.pid).collect()
    }

    /// Sends requests to a process's companion and returns the answers in their order. Ranges are in base pages.
    pub fn ask(&mut self, pid: u32, requests: &[(Range<u64>, Request)]) -> Vec<Answer> {
        let companion = self.connected.iter_mut().find(|c| c.pid == pid);
        let mut answers = companion.map_or_else(Vec::new, |c| c.ask(requests));
        answers.resize(requests.len(), Answer::Missing);
        answers
    }
}

/// Whether the peer is a process of our user, or one that we started and that has changed its user. The check is needed
/// because any process can connect to an abstract socket name.
fn is_ours(peer: &peer::Peer) -> bool {
    let Ok(us) = peer::own() else {
        return false;
    };
    peer.uid == us.uid || descends(&Host::default(), peer.pid, us.pid)
}

/// Whether a process is a descendant of another.
fn descends(host: &Host, mut pid: u32, from: u32) -> bool {
    for _ in 0..GENERATIONS {
        match host.status(pid) {
            Ok(status) if status.parent == from => return true,
            Ok(status) if status.parent > 1 => pid = status.parent,
            _ => return false,
        }
    }
    false
}

impl Companion {
    /// Discards late answers; returns whether the companion is still connected.
    fn drain_late(&mut self) -> bool {
        let mut late = [0; 4 * BATCH];
        loop {
            match self.channel.read(&mut late) {
                Ok(0) => return false,
                Ok(bytes) => self.late_bytes = self.late_bytes.saturating_sub(bytes),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
    }

    fn ask(&mut self, requests: &[(Range<u64>, Request)]) -> Vec<Answer> {
        let mut answers = Vec::with_capacity(requests.len());
        for batch in requests.chunks(BATCH) {
            if !self.drain_late() || self.late_bytes > 0 {
                break;
            }
            let bytes: Vec<u8> = batch.iter().flat_map(encode).collect();
            if self.channel.write_all(&bytes).is_err() {
                break;
            }
            let heard = self.listen(4 * batch.len());
            self.late_bytes = 4 * batch.len() - heard.len();
            answers.extend(heard.chunks_exact(4).map(decode));
        }
        answers
    }

    fn listen(&mut self, bytes: usize) -> Vec<u8> {
        let (mut heard, mut have) = (vec![0; bytes], 0);
        let until = Instant::now() + ANSWER_TIMEOUT;
        while have < bytes {
            match self.channel.read(&mut heard[have..]) {
                Ok(0) => break,
                Ok(more) => have += more,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() || memfd::wait_readable(&[self.channel.as_fd()], left).is_err() {
                        break;
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        heard.truncate(have);
        heard
    }
}

/// An `nw_request` (`runtime/preload/companion.h`) as bytes.
fn encode((pages, request): &(Range<u64>, Request)) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(24);
    bytes.extend(pages.start.to_le_bytes());
    bytes.extend((pages.end - pages.start).to_le_bytes());
    bytes.extend(request.home.to_le_bytes());
    bytes.extend(request.to.unwrap_or(STAY).to_le_bytes());
    bytes
}

fn decode(bytes: &[u8]) -> Answer {
    match bytes.try_into().map_or(0, i32::from_le_bytes) {
        0 => Answer::Done,
        1 => Answer::DoneStrictly,
        error => Answer::Refused(-error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connected(companions: &mut Companions) -> UnixStream {
        let address = SocketAddr::from_abstract_name(companions.name()).unwrap();
        let other = UnixStream::connect_addr(&address).unwrap();
        assert_eq!(companions.accept(), [std::process::id()]);
        other
    }

    #[test]
    fn only_our_user_and_what_we_started_are_let_in() {
        let own = peer::own().unwrap();
        let other = |pid| peer::Peer {
            pid,
            uid: own.uid + 1,
        };
        assert!(is_ours(&own) && !is_ours(&other(1)) && !is_ours(&other(own.pid)));
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        assert!(is_ours(&other(child.id())));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn requests_are_answered_in_order() {
        let mut companions = Companions::listen().unwrap();
        let mut other = connected(&mut companions);
        let thread = std::thread::spawn(move || {
            let mut requests = [0; 72];
            other.read_exact(&mut requests).unwrap();
            for status in [0i32, 1, -12] {
                other.write_all(&status.to_le_bytes()).unwrap();
            }
            (requests, other)
        });
        let requests = [
            (16..18, Request { home: 3, to: Some(1) }),
            (20..21, Request::hold(0)),
            (0..1, Request::hold(0)),
        ];
        let answers = companions.ask(std::process::id(), &requests);
        assert_eq!(answers, [Answer::Done, Answer::DoneStrictly, Answer::Refused(12)]);
        let (bytes, _other) = thread.join().unwrap();
        assert_eq!(
            bytes[..24],
            [
                16, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0
            ]
        );
        assert_eq!(bytes[40..48], [0, 0, 0, 0, 255, 255, 255, 255]);
    }

    #[test]
    fn a_stopped_program_is_not_waited_for_twice_and_its_late_answers_are_not_taken_for_others() {
        let mut companions = Companions::listen().unwrap();
        let mut other = connected(&mut companions);
        let pid = std::process::id();
        assert_eq!(
            companions.ask(pid, &[(0..1, Request::hold(0))]),
            [Answer::Missing]
        );
        other.write_all(&(-5i32).to_le_bytes()).unwrap();
        let thread = std::thread::spawn(move || {
            other.read_exact(&mut [0; 48]).unwrap();
            other.write_all(&0i32.to_le_bytes()).unwrap();
            other
        });
        assert_eq!(companions.ask(pid, &[(0..1, Request::hold(0))]), [Answer::Done]);
        drop(thread.join().unwrap());
        assert!(companions.accept().is_empty());
        assert_eq!(
            companions.ask(pid, &[(0..1, Request::hold(0))]),
            [Answer::Missing]
        );
    }
}

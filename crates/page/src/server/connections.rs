//! The table of open connections, bounded in number.
//!
//! When the table is full, a new connection evicts another one. Connections without a request that had the token are
//! evicted before authenticated ones; among them, the oldest connection of the address that has most of them.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// State of one connection, shared by its stream, its requests and the table.
#[derive(Debug)]
pub struct Connection {
    peer: IpAddr,
    /// Whether one of its requests had the token.
    authenticated: AtomicBool,
    /// Whether a request was received completely since the last call of [`Connection::take_completed`].
    request_completed: AtomicBool,
    /// Whether it was evicted: the stream then fails at its next poll.
    closed: AtomicBool,
    /// Waker of the task that last polled the stream; eviction wakes it.
    waker: Mutex<Option<Waker>>,
}

impl Connection {
    /// Records that a request was received completely; `authenticated` says whether it had the token.
    pub fn request_completed(&self, authenticated: bool) {
        self.request_completed.store(true, Ordering::Relaxed);
        self.authenticated.fetch_or(authenticated, Ordering::Relaxed);
    }

    /// Whether a request was completed since the last call; clears the flag.
    pub fn take_completed(&self) -> bool {
        self.request_completed.swap(false, Ordering::Relaxed)
    }

    /// Whether the connection was evicted; otherwise registers `waker` for eviction.
    pub fn poll_closed(&self, waker: &Waker) -> bool {
        *guarded(&self.waker) = Some(waker.clone());
        self.closed.load(Ordering::Acquire)
    }

    fn close(&self) {
        self.closed.store(true, Ordering::Release);
        if let Some(waker) = guarded(&self.waker).take() {
            waker.wake();
        }
    }
}

/// All open connections, in the order in which they were accepted.
#[derive(Clone, Debug)]
pub struct Connections {
    most: usize,
    connections: Arc<Mutex<Vec<Arc<Connection>>>>,
}

impl Connections {
    pub fn new(most: usize) -> Self {
        Self {
            most,
            connections: Arc::default(),
        }
    }

    /// Adds a connection, evicting another one if the table is full.
    pub fn open(&self, peer: IpAddr) -> Arc<Connection> {
        let mut connections = guarded(&self.connections);
        if connections.len() >= self.most {
            let place = evicted(&connections);
            connections.remove(place).close();
        }
        let connection = Arc::new(Connection {
            peer,
            authenticated: AtomicBool::new(false),
            request_completed: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            waker: Mutex::new(None),
        });
        connections.push(Arc::clone(&connection));
        connection
    }

    /// Removes a connection that was closed.
    pub fn remove(&self, connection: &Arc<Connection>) {
        guarded(&self.connections).retain(|g| !Arc::ptr_eq(g, connection));
    }
}

/// Index of the connection to evict: unauthenticated ones first, and of these the oldest one of the address that has
/// most of them.
fn evicted(connections: &[Arc<Connection>]) -> usize {
    let unauthenticated = |g: &&Arc<Connection>| !g.authenticated.load(Ordering::Relaxed);
    let unauthenticated_from = |peer: IpAddr| {
        connections
            .iter()
            .filter(unauthenticated)
            .filter(|g| g.peer == peer)
            .count()
    };
    let candidates = connections.iter().enumerate().filter(|(_, g)| unauthenticated(g));
    let place = candidates.rev().max_by_key(|(_, g)| unauthenticated_from(g.peer));
    place.map_or(0, |(place, _)| place)
}

/// Ignores poisoning: no code panics between two writes under these locks.
fn guarded<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(n: u8) -> IpAddr {
        [10, 0, 0, n].into()
    }

    fn gone(connection: &Connection) -> bool {
        connection.poll_closed(Waker::noop())
    }

    #[test]
    fn the_oldest_unauthenticated_makes_room() {
        let table = Connections::new(3);
        let connections = [(); 3].map(|()| table.open(host(1)));
        connections[0].request_completed(true);
        let fourth = table.open(host(1));
        assert_eq!(connections.each_ref().map(|g| gone(g)), [false, true, false]);
        table.remove(&fourth);
        drop(table.open(host(1)));
        assert!(!gone(&connections[2]), "there was room");
    }

    #[test]
    fn the_host_with_most_candidates_makes_room() {
        let table = Connections::new(3);
        let (alone, many) = (table.open(host(1)), [(); 2].map(|()| table.open(host(2))));
        table.open(host(3));
        assert_eq!(
            [gone(&alone), gone(&many[0]), gone(&many[1])],
            [false, true, false]
        );
    }

    #[test]
    fn where_all_are_known_the_oldest_goes() {
        let table = Connections::new(2);
        let connections = [(); 2].map(|()| table.open(host(1)));
        connections.iter().for_each(|g| g.request_completed(true));
        table.open(host(1));
        assert!(gone(&connections[0]) && !gone(&connections[1]));
    }
}

//! The page, served live: to this host, and to nobody else unless told.
//!
//! **Purpose.** A [`Shelf`] holds the documents of the moment, [`Server`] hands them out, and says when there are
//! others.
//!
//! **Constraints.** All addresses lie below a secret one ([`Token`]), and what was not asked for from the page itself
//! gets nothing ([`gate`](self)). No file is named by a request. Connections, the time that each may idle, and who
//! listens for events are bounded.

mod answer;
mod crowd;
mod events;
mod gate;
mod listener;
mod shelf;
#[cfg(test)]
mod tests;
mod token;

use axum::Router;
use gate::Gate;
use listener::{Bounded, Visitor};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use tokio::sync::Semaphore;

pub use shelf::Shelf;
pub use token::Token;

/// Documents are made by so many threads at most.
const MAKERS: usize = 4;
/// So many pages may be open.
const LISTENERS: usize = 16;

/// What requests are answered from.
struct Site {
    token: Token,
    gate: Gate,
    shelf: Shelf,
    listeners: Arc<Semaphore>,
}

/// A server that is reachable already and answers when it runs.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    token: Token,
    shelf: Shelf,
}

impl Server {
    /// Takes an address; port 0 is any free one.
    ///
    /// # Errors
    /// The address is in use or not this host's, or the system has no random bytes.
    pub fn bind(address: SocketAddr, shelf: Shelf) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Self {
            address: listener.local_addr()?,
            listener,
            token: Token::random()?,
            shelf,
        })
    }

    /// Where the page is; whoever knows it may look. Of all addresses of this host, its own for itself.
    #[must_use]
    pub fn url(&self) -> String {
        let mut address = self.address;
        match address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
            IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
            _ => {}
        }
        format!("http://{address}/{}/", self.token)
    }

    /// Answers for good.
    ///
    /// # Errors
    /// As the kernel answers; a connection that fails is none.
    pub fn run(self) -> io::Result<()> {
        let site = Arc::new(Site {
            gate: Gate::new(self.address),
            token: self.token,
            shelf: self.shelf,
            listeners: Arc::new(Semaphore::new(LISTENERS)),
        });
        let router = Router::new().fallback(answer::answer).with_state(site);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .max_blocking_threads(MAKERS)
            .build()?;
        runtime.block_on(async {
            let listener = Bounded::new(tokio::net::TcpListener::from_std(self.listener)?);
            axum::serve(listener, router.into_make_service_with_connect_info::<Visitor>()).await
        })
    }
}

//! The HTTP server of the page, for loopback unless another address is given.
//!
//! **Purpose.** A [`DocumentStore`] holds the current documents; [`Server`] serves them, and notifies open pages when
//! they are replaced.
//!
//! **Constraints.** All paths begin with a secret [`Token`]; requests of foreign hosts or origins are refused
//! (`origin`). Paths name documents, never files. The numbers of connections and event streams, and the idle time of a
//! connection, are bounded.

mod connections;
mod events;
mod listener;
mod origin;
mod response;
mod store;
#[cfg(test)]
mod tests;
mod token;

use axum::Router;
use listener::{BoundedListener, Client};
use origin::OriginPolicy;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use tokio::sync::Semaphore;

pub use store::DocumentStore;
pub use token::Token;

/// Number of threads that make documents.
const WORKERS: usize = 4;
/// Largest number of event streams, one for each open page.
const MAX_EVENT_STREAMS: usize = 16;

/// State that all requests share.
struct Site {
    token: Token,
    origin: OriginPolicy,
    store: DocumentStore,
    listeners: Arc<Semaphore>,
}

/// A server that is bound to its address; [`Server::run`] serves requests.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    token: Token,
    store: DocumentStore,
}

impl Server {
    /// Binds an address; port 0 picks a free one.
    ///
    /// # Errors
    /// If the address is in use or not this host's, or the system provides no random bytes.
    pub fn bind(address: SocketAddr, store: DocumentStore) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Self {
            address: listener.local_addr()?,
            listener,
            token: Token::random()?,
            store,
        })
    }

    /// The URL of the page, including the token. For the unspecified address it is a loopback URL.
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

    /// Serves requests until an error.
    ///
    /// # Errors
    /// If the runtime or the listener cannot be set up; a failing connection is not an error.
    pub fn run(self) -> io::Result<()> {
        let site = Arc::new(Site {
            origin: OriginPolicy::new(self.address),
            token: self.token,
            store: self.store,
            listeners: Arc::new(Semaphore::new(MAX_EVENT_STREAMS)),
        });
        let router = Router::new().fallback(response::respond).with_state(site);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .max_blocking_threads(WORKERS)
            .build()?;
        runtime.block_on(async {
            let listener = BoundedListener::new(tokio::net::TcpListener::from_std(self.listener)?);
            axum::serve(listener, router.into_make_service_with_connect_info::<Client>()).await
        })
    }
}

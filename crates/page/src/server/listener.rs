//! A TCP listener whose connections are bounded in number and in idle time.

use super::connections::{Connection, Connections};
use axum::extract::connect_info::Connected;
use axum::serve::IncomingStream;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, Sleep, sleep};

/// Largest number of open connections; one more evicts another.
pub const MAX_CONNECTIONS: usize = 128;
/// Time limit for the first request to be received completely.
const FIRST_REQUEST_TIMEOUT: Duration = Duration::from_millis(if cfg!(test) { 1_000 } else { 2_000 });
/// A connection to which nothing was sent for this long is closed: one that idles, sends a later request very slowly,
/// or does not read. Longer than the interval of event heartbeats, and than the time to make a document.
const IDLE_TIMEOUT: Duration = Duration::from_millis(if cfg!(test) { 1_500 } else { 30_000 });
/// Delay before `accept` is tried again after a failure (for example, when no descriptor is left).
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Accepts every connection, evicting another one when [`MAX_CONNECTIONS`] are open.
pub struct BoundedListener {
    listener: TcpListener,
    connections: Connections,
}

impl BoundedListener {
    pub fn new(listener: TcpListener) -> Self {
        Self {
            listener,
            connections: Connections::new(MAX_CONNECTIONS),
        }
    }
}

impl axum::serve::Listener for BoundedListener {
    type Io = TimedStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (TimedStream, SocketAddr) {
        loop {
            match self.listener.accept().await {
                Ok((stream, peer)) => {
                    return (TimedStream::new(stream, peer, self.connections.clone()), peer);
                }
                Err(_) => tokio::time::sleep(ACCEPT_RETRY_DELAY).await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// The connection that a request came in on, as an axum extension.
#[derive(Clone)]
pub struct Client(pub Arc<Connection>);

impl Connected<IncomingStream<'_, BoundedListener>> for Client {
    fn connect_info(stream: IncomingStream<'_, BoundedListener>) -> Self {
        Self(Arc::clone(&stream.io().connection))
    }
}

/// A stream that fails with `TimedOut` if nothing was sent on it for [`IDLE_TIMEOUT`] ([`FIRST_REQUEST_TIMEOUT`] until
/// the first request is complete), and with `ConnectionAborted` if it is evicted.
pub struct TimedStream {
    stream: TcpStream,
    until: Pin<Box<Sleep>>,
    connection: Arc<Connection>,
    connections: Connections,
}

impl Drop for TimedStream {
    fn drop(&mut self) {
        self.connections.remove(&self.connection);
    }
}

impl TimedStream {
    fn new(stream: TcpStream, peer: SocketAddr, connections: Connections) -> Self {
        // An optimisation only, so failure is ignored.
        let _ = stream.set_nodelay(true);
        Self {
            stream,
            until: Box::pin(sleep(FIRST_REQUEST_TIMEOUT)),
            connection: connections.open(peer.ip()),
            connections,
        }
    }

    fn within<T>(&mut self, context: &mut Context<'_>, poll: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if self.connection.poll_closed(context.waker()) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        if self.connection.take_completed() {
            self.until.as_mut().reset(Instant::now() + IDLE_TIMEOUT);
        }
        match self.until.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => poll,
        }
    }
}

impl AsyncRead for TimedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.within(context, read)
    }
}

impl AsyncWrite for TimedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        if matches!(written, Poll::Ready(Ok(_))) {
            self.until.as_mut().reset(Instant::now() + IDLE_TIMEOUT);
        }
        self.within(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

//! Connections, bounded in number and in patience.

use super::crowd::{Crowd, Guest};
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

/// Connections at once; for another one, one is closed.
pub const MOST: usize = 128;
/// Time for a first request to be whole.
const FIRST: Duration = Duration::from_millis(if cfg!(test) { 1_000 } else { 2_000 });
/// A connection that took nothing from us for so long is closed: one that idles, sends a later request word by word, or
/// does not read. Longer than the time between two heartbeats of events, and time to make a document.
const IDLE: Duration = Duration::from_millis(if cfg!(test) { 1_500 } else { 30_000 });
/// Until the next try where the kernel has no descriptor for another connection.
const NO_ROOM: Duration = Duration::from_millis(100);

/// Keeps no more than a few connections, and accepts at all times.
pub struct Bounded {
    listener: TcpListener,
    crowd: Crowd,
}

impl Bounded {
    pub fn new(listener: TcpListener) -> Self {
        Self {
            listener,
            crowd: Crowd::new(MOST),
        }
    }
}

impl axum::serve::Listener for Bounded {
    type Io = Patient;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Patient, SocketAddr) {
        loop {
            match self.listener.accept().await {
                Ok((stream, from)) => return (Patient::new(stream, from, self.crowd.clone()), from),
                Err(_) => tokio::time::sleep(NO_ROOM).await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// Whose request it is.
#[derive(Clone)]
pub struct Visitor(pub Arc<Guest>);

impl Connected<IncomingStream<'_, Bounded>> for Visitor {
    fn connect_info(stream: IncomingStream<'_, Bounded>) -> Self {
        Self(Arc::clone(&stream.io().guest))
    }
}

/// A connection whose peer must take something now and then, and goes when others come.
pub struct Patient {
    stream: TcpStream,
    until: Pin<Box<Sleep>>,
    guest: Arc<Guest>,
    crowd: Crowd,
}

impl Drop for Patient {
    fn drop(&mut self) {
        self.crowd.leave(&self.guest);
    }
}

impl Patient {
    fn new(stream: TcpStream, from: SocketAddr, crowd: Crowd) -> Self {
        // Slower without, and otherwise the same.
        let _ = stream.set_nodelay(true);
        Self {
            stream,
            until: Box::pin(sleep(FIRST)),
            guest: crowd.enter(from.ip()),
            crowd,
        }
    }

    fn within<T>(&mut self, context: &mut Context<'_>, poll: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if self.guest.must_go(context.waker()) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        if self.guest.was_heard() {
            self.until.as_mut().reset(Instant::now() + IDLE);
        }
        match self.until.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => poll,
        }
    }
}

impl AsyncRead for Patient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.within(context, read)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        if matches!(written, Poll::Ready(Ok(_))) {
            self.until.as_mut().reset(Instant::now() + IDLE);
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

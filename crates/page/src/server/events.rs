//! Server-sent events: notify the open page of new documents and of live intervals.

use super::Site;
use super::store::Snapshot;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, watch};

const HEARTBEAT: Duration = Duration::from_millis(if cfg!(test) { 200 } else { 15_000 });

/// State of one event stream.
struct Listener {
    store: watch::Receiver<Snapshot>,
    /// Generation and interval number that were sent last.
    sent: (u64, u64),
    due: VecDeque<Event>,
    _permit: OwnedSemaphorePermit,
}

/// A stream that sends the current state, then each change; `None` if [`super::MAX_EVENT_STREAMS`] streams are open
/// already.
pub fn events(site: &Site) -> Option<Response> {
    let mut listener = Listener {
        store: site.store.watch(),
        sent: (0, 0),
        due: VecDeque::new(),
        _permit: Arc::clone(&site.listeners).try_acquire_owned().ok()?,
    };
    listener.look();
    let events = stream::unfold(listener, |mut listener| async {
        let event = listener.next().await?;
        Some((Ok::<_, Infallible>(event), listener))
    });
    Some(
        Sse::new(events)
            .keep_alive(KeepAlive::new().interval(HEARTBEAT))
            .into_response(),
    )
}

impl Listener {
    /// The next event; `None` once the store is dropped.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.due.pop_front() {
                return Some(event);
            }
            self.store.changed().await.ok()?;
            self.look();
        }
    }

    fn look(&mut self) {
        let snapshot = self.store.borrow_and_update().clone();
        let count = snapshot.interval.as_ref().map_or(0, |(count, _)| *count);
        if snapshot.generation != self.sent.0 {
            let session = snapshot.documents.document("session.json").unwrap_or_default();
            let event = event("session", &String::from_utf8_lossy(&session));
            self.due.push_back(event.id(snapshot.generation.to_string()));
        }
        if let Some((_, line)) = snapshot.interval.filter(|(count, _)| *count != self.sent.1) {
            self.due.push_back(event("interval", &line));
        }
        self.sent = (snapshot.generation, count);
    }
}

/// An event. Its data is JSON, in which a carriage return is only white space: events cannot contain one.
fn event(name: &str, data: &str) -> Event {
    Event::default().event(name).data(data.replace('\r', " "))
}

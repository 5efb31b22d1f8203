//! What the page is told while it is open.

use super::Site;
use super::shelf::Edition;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, watch};

const HEARTBEAT: Duration = Duration::from_millis(if cfg!(test) { 200 } else { 15_000 });

/// One page that listens.
struct Listener {
    shelf: watch::Receiver<Edition>,
    /// What it was told last.
    told: (u64, u64),
    due: VecDeque<Event>,
    _permit: OwnedSemaphorePermit,
}

/// Tells of what there is, then of each change; `None` if too many listen already.
pub fn events(site: &Site) -> Option<Response> {
    let mut listener = Listener {
        shelf: site.shelf.watch(),
        told: (0, 0),
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
    /// `None` when nothing will ever change again.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.due.pop_front() {
                return Some(event);
            }
            self.shelf.changed().await.ok()?;
            self.look();
        }
    }

    fn look(&mut self) {
        let edition = self.shelf.borrow_and_update().clone();
        let count = edition.interval.as_ref().map_or(0, |(count, _)| *count);
        if edition.generation != self.told.0 {
            let session = edition.documents.document("session.json").unwrap_or_default();
            let event = event("session", &String::from_utf8_lossy(&session));
            self.due.push_back(event.id(edition.generation.to_string()));
        }
        if let Some((_, line)) = edition.interval.filter(|(count, _)| *count != self.told.1) {
            self.due.push_back(event("interval", &line));
        }
        self.told = (edition.generation, count);
    }
}

/// The data is JSON, so that a carriage return, which events cannot carry, is only space.
fn event(name: &str, data: &str) -> Event {
    Event::default().event(name).data(data.replace('\r', " "))
}

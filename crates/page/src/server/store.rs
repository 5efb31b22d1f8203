//! The current documents, and notification of their replacement.

use crate::Documents;
use std::sync::Arc;
use tokio::sync::watch;

/// Holds the current documents until they are replaced; clones share the same documents.
#[derive(Clone)]
pub struct DocumentStore(watch::Sender<Snapshot>);

/// The documents at a point in time.
#[derive(Clone)]
pub(super) struct Snapshot {
    /// Incremented when the documents are replaced.
    pub generation: u64,
    pub documents: Arc<dyn Documents>,
    /// The last interval of a live session (JSON), and the number of intervals so far.
    pub interval: Option<(u64, Arc<str>)>,
}

impl DocumentStore {
    /// A store with these documents as generation 1.
    #[must_use]
    pub fn new(documents: Arc<dyn Documents>) -> Self {
        Self(watch::Sender::new(Snapshot {
            generation: 1,
            documents,
            interval: None,
        }))
    }

    /// The generation of the current documents, from 1.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.0.borrow().generation
    }

    /// Replaces the documents, and increments the generation. Readers of the old documents keep these until they are
    /// done.
    pub fn replace(&self, documents: Arc<dyn Documents>) {
        self.0.send_modify(|snapshot| {
            snapshot.generation += 1;
            snapshot.documents = documents;
        });
    }

    /// Publishes an interval of a live session, one JSON document. A slow subscriber gets only the last one.
    pub fn interval(&self, line: &str) {
        self.0.send_modify(|snapshot| {
            let before = snapshot.interval.as_ref().map_or(0, |(count, _)| *count);
            snapshot.interval = Some((before + 1, line.into()));
        });
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        self.0.borrow().clone()
    }

    pub(super) fn watch(&self) -> watch::Receiver<Snapshot> {
        self.0.subscribe()
    }
}

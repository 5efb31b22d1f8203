//! The documents of the moment.

use crate::Documents;
use std::sync::Arc;
use tokio::sync::watch;

/// Holds documents until others take their place; clones hold the same.
#[derive(Clone)]
pub struct Shelf(watch::Sender<Edition>);

/// What there was to see at some time.
#[derive(Clone)]
pub(super) struct Edition {
    /// Grows with every change of the documents.
    pub generation: u64,
    pub documents: Arc<dyn Documents>,
    /// The last line of a live session, and how many there were.
    pub interval: Option<(u64, Arc<str>)>,
}

impl Shelf {
    /// The first documents, of generation 1.
    #[must_use]
    pub fn new(documents: Arc<dyn Documents>) -> Self {
        Self(watch::Sender::new(Edition {
            generation: 1,
            documents,
            interval: None,
        }))
    }

    /// The generation of what is there now.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.0.borrow().generation
    }

    /// Others take their place, as the next generation. Whoever is reading the old ones reads on.
    pub fn replace(&self, documents: Arc<dyn Documents>) {
        self.0.send_modify(|edition| {
            edition.generation += 1;
            edition.documents = documents;
        });
    }

    /// A live session says how it is: one JSON document. Whoever looks gets the last one at least.
    pub fn interval(&self, line: &str) {
        self.0.send_modify(|edition| {
            let before = edition.interval.as_ref().map_or(0, |(count, _)| *count);
            edition.interval = Some((before + 1, line.into()));
        });
    }

    pub(super) fn edition(&self) -> Edition {
        self.0.borrow().clone()
    }

    pub(super) fn watch(&self) -> watch::Receiver<Edition> {
        self.0.subscribe()
    }
}

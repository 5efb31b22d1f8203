//! All documents of a page: a session, and the profiles it shows.

use crate::view::json_of;
use crate::{Documents, View};
use serde::Serialize;
use std::borrow::Cow;
use std::sync::Arc;

/// Profiles looked at together, as they are at one moment.
#[derive(Clone, Debug)]
pub struct Book {
    views: Vec<Arc<View>>,
    session: Vec<u8>,
}

#[derive(Serialize)]
struct Session {
    version: &'static str,
    generation: u64,
    live: bool,
    message: Option<String>,
    profiles: Vec<Shown>,
}

#[derive(Serialize)]
struct Shown {
    name: String,
    folder: String,
}

impl Book {
    /// `live`: whether another may follow; `generation` then grows. `message`: a sentence that belongs above everything.
    #[must_use]
    pub fn new(views: Vec<Arc<View>>, live: bool, generation: u64, message: Option<String>) -> Self {
        let shown = |view: &Arc<View>| Shown {
            name: view.title(),
            folder: view.folder().to_owned(),
        };
        let session = json_of(&Session {
            version: env!("CARGO_PKG_VERSION"),
            generation,
            live,
            message,
            profiles: views.iter().map(shown).collect(),
        });
        Self { views, session }
    }

    /// The profiles.
    #[must_use]
    pub fn views(&self) -> &[Arc<View>] {
        &self.views
    }
}

impl Documents for Book {
    fn document(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        if name == "session.json" {
            return Some(Cow::Borrowed(&self.session));
        }
        let (index, rest) = name.strip_prefix("p/")?.split_once('/')?;
        let index = crate::view::number(index)?;
        self.views.get(index)?.document(rest)
    }
}

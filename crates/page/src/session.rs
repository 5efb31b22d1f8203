//! All documents of a page: `session.json`, and those of profile N below `p/N/`.

use crate::view::json_of;
use crate::{Documents, View};
use serde::Serialize;
use std::borrow::Cow;
use std::sync::Arc;

/// The documents of several profiles shown together.
#[derive(Clone, Debug)]
pub struct SessionDocuments {
    views: Vec<Arc<View>>,
    session: Vec<u8>,
}

#[derive(Serialize)]
struct Session {
    version: &'static str,
    generation: u64,
    live: bool,
    message: Option<String>,
    profiles: Vec<ProfileEntry>,
}

#[derive(Serialize)]
struct ProfileEntry {
    name: String,
    folder: String,
}

impl SessionDocuments {
    /// The documents of these profiles. If `live`, the profiles may still change, with an increasing `generation`.
    /// `message` is a sentence to show above everything else.
    #[must_use]
    pub fn new(views: Vec<Arc<View>>, live: bool, generation: u64, message: Option<String>) -> Self {
        let entry = |view: &Arc<View>| ProfileEntry {
            name: view.title(),
            folder: view.folder().to_owned(),
        };
        let session = json_of(&Session {
            version: env!("CARGO_PKG_VERSION"),
            generation,
            live,
            message,
            profiles: views.iter().map(entry).collect(),
        });
        Self { views, session }
    }

    /// The profiles, in the order of their numbers.
    #[must_use]
    pub fn views(&self) -> &[Arc<View>] {
        &self.views
    }
}

impl Documents for SessionDocuments {
    fn document(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        if name == "session.json" {
            return Some(Cow::Borrowed(&self.session));
        }
        let (index, rest) = name.strip_prefix("p/")?.split_once('/')?;
        let index = crate::view::number(index)?;
        self.views.get(index)?.document(rest)
    }
}

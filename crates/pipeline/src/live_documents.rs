//! Publishes profiles to the server's document store, again whenever they change.

use crate::followed::{Followed, Look, PAUSE, pause_after};
use anyhow::bail;
use nodewise_page::server::DocumentStore;
use nodewise_page::{SessionDocuments, View};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Time for clients to receive the last message before the server stops.
const LAST_MESSAGE: Duration = Duration::from_millis(500);

/// The profiles that are served, and the store from which the server serves them.
pub struct LiveDocuments {
    shown: Vec<Shown>,
    /// Whether a session writes the profiles.
    session: bool,
    live: bool,
    /// The message that the session has ended, once it has.
    ended: Option<String>,
    store: DocumentStore,
    listener: Listener,
}

/// Receives messages for the user, a line each.
type Listener = Box<dyn FnMut(&str) + Send>;

struct Shown {
    profile: Followed<View>,
    view: Option<Arc<View>>,
    message: Option<String>,
}

impl LiveDocuments {
    /// Reads the profiles, or waits until they can be read; a profile of a session may have any state. `listener` is told
    /// why one cannot be read (any more).
    ///
    /// # Errors
    /// A profile cannot be read, and no session writes it.
    pub fn open(
        profiles: Vec<Followed<View>>,
        session: bool,
        mut listener: impl FnMut(&str) + Send + 'static,
    ) -> anyhow::Result<Self> {
        let mut shown = Vec::with_capacity(profiles.len());
        for mut profile in profiles {
            let (view, message) = match profile.look() {
                Look::New(view) => (Some(Arc::new(view)), None),
                Look::Same => (None, None),
                Look::Waits(why) if session || profile.live() => (None, Some(why)),
                Look::Failed(error) if session => (None, Some(in_one_line(&error))),
                Look::Waits(why) => bail!("{why}"),
                Look::Failed(error) => return Err(error),
            };
            shown.push(Shown {
                profile,
                view,
                message,
            });
        }
        let live = session || shown.iter().any(|s| s.profile.live());
        if !session {
            shown
                .iter()
                .filter_map(|s| s.message.as_deref())
                .for_each(&mut listener);
        }
        Ok(Self {
            store: DocumentStore::new(Arc::new(documents(&shown, live, 1, None))),
            shown,
            session,
            live,
            ended: None,
            listener: Box::new(listener),
        })
    }

    /// The store of the published documents.
    #[must_use]
    pub fn store(&self) -> DocumentStore {
        self.store.clone()
    }

    /// Publishes changes until the other end of `session` is dropped; then publishes the final state, with the command
    /// that shows a profile's folder again.
    pub fn follow(mut self, session: &Receiver<()>, again: impl FnOnce(&Path) -> String) {
        let mut pause = PAUSE;
        while session.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
            let began = Instant::now();
            self.look();
            pause = pause_after(began);
        }
        let again = again(self.shown[0].profile.folder());
        self.end(&again);
    }

    /// Announces the end at once: the process may be stopped before the last state of a large profile is read.
    fn end(&mut self, again: &str) {
        self.ended = Some(format!("the session has ended; {again} shows it again"));
        self.live = false;
        self.publish();
        self.look();
        std::thread::sleep(LAST_MESSAGE);
    }

    fn look(&mut self) {
        let mut changed = false;
        for shown in &mut self.shown {
            changed |= shown.look(&mut self.listener);
        }
        let live = self.ended.is_none() && (self.session || self.shown.iter().any(|s| s.profile.live()));
        changed |= live != self.live;
        self.live = live;
        if changed {
            self.publish();
        }
    }

    fn publish(&self) {
        let generation = self.store.generation() + 1;
        let documents = documents(&self.shown, self.live, generation, self.ended.as_deref());
        self.store.replace(Arc::new(documents));
    }
}

impl Shown {
    /// Reads the profile; returns whether anything changed. If it can no longer be read, the last view stays.
    fn look(&mut self, listener: &mut Listener) -> bool {
        let message = match self.profile.look() {
            Look::Same => return false,
            Look::New(view) => {
                self.view = Some(Arc::new(view));
                None
            }
            Look::Waits(why) => Some(why),
            Look::Failed(error) => Some(in_one_line(&error)),
        };
        let same = message.is_some() && message == self.message;
        self.message = message;
        if let (Some(message), false) = (&self.message, same) {
            listener(message);
        }
        !same
    }
}

fn documents(shown: &[Shown], live: bool, generation: u64, ended: Option<&str>) -> SessionDocuments {
    let views = shown.iter().filter_map(|s| s.view.clone()).collect();
    let messages: Vec<&str> = shown
        .iter()
        .filter_map(|s| s.message.as_deref())
        .chain(ended)
        .collect();
    let message = (!messages.is_empty()).then(|| messages.join("; "));
    SessionDocuments::new(views, live, generation, message)
}

fn in_one_line(error: &anyhow::Error) -> String {
    nodewise_input::one_line(&format!("{error:#}"))
}

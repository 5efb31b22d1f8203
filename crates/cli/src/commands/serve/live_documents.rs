//! Publishes profiles to the server's document store, again whenever they change.

use crate::output::command_line;
use crate::output::say;
use anyhow::bail;
use nodewise_page::server::DocumentStore;
use nodewise_page::{SessionDocuments, View};
use nodewise_pipeline::{self as followed, Followed, Look};
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
}

struct Shown {
    profile: Followed<View>,
    view: Option<Arc<View>>,
    message: Option<String>,
}

impl LiveDocuments {
    /// Reads the profiles, or waits until they can be read; a profile of a session may have any state.
    pub fn open(profiles: Vec<Followed<View>>, session: bool) -> anyhow::Result<Self> {
        let mut shown = Vec::with_capacity(profiles.len());
        for mut profile in profiles {
            let (view, message) = match profile.look() {
                Look::New(view) => (Some(Arc::new(view)), None),
                Look::Same => (None, None),
                Look::Waits(why) if session || profile.live() => (None, Some(why)),
                Look::Failed(error) if session => (None, Some(one_line(&error))),
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
            shown.iter().for_each(Shown::print_message);
        }
        Ok(Self {
            store: DocumentStore::new(Arc::new(documents(&shown, live, 1, None))),
            shown,
            session,
            live,
            ended: None,
        })
    }

    /// The store of the published documents.
    pub fn store(&self) -> DocumentStore {
        self.store.clone()
    }

    /// Publishes changes until the other end of `session` is dropped; then publishes the final state.
    pub fn follow(mut self, session: &Receiver<()>) {
        let mut pause = followed::PAUSE;
        while session.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
            let began = Instant::now();
            self.look();
            pause = followed::pause_after(began);
        }
        self.end();
    }

    /// Announces the end at once: the process may be stopped before the last state of a large profile is read.
    fn end(&mut self) {
        let again = command_line("nodewise serve", self.shown[0].profile.folder());
        self.ended = Some(format!("the session has ended; {again} shows it again"));
        self.live = false;
        self.publish();
        self.look();
        std::thread::sleep(LAST_MESSAGE);
    }

    fn look(&mut self) {
        let mut changed = false;
        for shown in &mut self.shown {
            changed |= shown.look();
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
    fn look(&mut self) -> bool {
        let message = match self.profile.look() {
            Look::Same => return false,
            Look::New(view) => {
                self.view = Some(Arc::new(view));
                None
            }
            Look::Waits(why) => Some(why),
            Look::Failed(error) => Some(one_line(&error)),
        };
        let same = message.is_some() && message == self.message;
        self.message = message;
        if !same {
            self.print_message();
        }
        !same
    }

    fn print_message(&self) {
        if let Some(message) = &self.message {
            say!("{message}");
        }
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

fn one_line(error: &anyhow::Error) -> String {
    format!("{error:#}").replace('\n', " ")
}

//! What is on show: profiles as they are now, shown anew when they change.

use crate::output::command_line;
use crate::output::say;
use anyhow::bail;
use nodewise_page::server::DocumentStore;
use nodewise_page::{SessionDocuments, View};
use nodewise_pipeline::{self as followed, Followed, Look};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// So long the last word may take to those who listen.
const FAREWELL: Duration = Duration::from_millis(500);

/// Profiles and where they are shown.
pub struct Exhibition {
    shown: Vec<Shown>,
    /// A session writes them.
    session: bool,
    live: bool,
    /// The session's end, as people are told of it.
    ended: Option<String>,
    shelf: DocumentStore,
}

struct Shown {
    profile: Followed<View>,
    view: Option<Arc<View>>,
    message: Option<String>,
}

impl Exhibition {
    /// Reads the profiles, or waits for those to come; of a session whatever there will be.
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
            shown.iter().for_each(Shown::tell);
        }
        Ok(Self {
            shelf: DocumentStore::new(Arc::new(book(&shown, live, 1, None))),
            shown,
            session,
            live,
            ended: None,
        })
    }

    /// Where it is shown.
    pub fn shelf(&self) -> DocumentStore {
        self.shelf.clone()
    }

    /// Keeps it as the profiles are, until nobody holds the other end of `session`; then shows the last of them.
    pub fn follow(mut self, session: &Receiver<()>) {
        let mut pause = followed::PAUSE;
        while session.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
            let began = Instant::now();
            self.look();
            pause = followed::rest(began);
        }
        self.end();
    }

    /// The end is said at once: we may be gone before the last of a large profile is read.
    fn end(&mut self) {
        let again = command_line("nodewise serve", self.shown[0].profile.folder());
        self.ended = Some(format!("the session has ended; {again} shows it again"));
        self.live = false;
        self.publish();
        self.look();
        std::thread::sleep(FAREWELL);
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
        let generation = self.shelf.generation() + 1;
        let book = book(&self.shown, self.live, generation, self.ended.as_deref());
        self.shelf.replace(Arc::new(book));
    }
}

impl Shown {
    /// Whether there is something else to see now. What cannot be read any more stays as it was.
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
            self.tell();
        }
        !same
    }

    fn tell(&self) {
        if let Some(message) = &self.message {
            say!("{message}");
        }
    }
}

fn book(shown: &[Shown], live: bool, generation: u64, ended: Option<&str>) -> SessionDocuments {
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

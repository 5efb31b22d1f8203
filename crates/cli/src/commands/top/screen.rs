//! What is on the screen, and what keys do to it.

use super::figures::{Figures, Object};
use ratatui::crossterm::event::KeyCode;

/// What the matrix shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shown {
    #[default]
    Accesses,
    Remote,
    Pages,
}

/// What objects are ordered by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Accesses from other nodes: what is misplaced and hot.
    #[default]
    Remote,
    RemoteShare,
    Accesses,
    Pages,
    Name,
}

/// What covers the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Over {
    #[default]
    Nothing,
    Help,
    Details,
}

/// All that drawing needs.
#[derive(Default)]
pub struct Screen {
    pub figures: Option<Figures>,
    /// Newer ones, while it is paused.
    pub held: Option<Figures>,
    /// A sentence above everything.
    pub message: Option<String>,
    /// More is to be expected.
    pub live: bool,
    pub paused: bool,
    /// Whether there may be colours.
    pub colour: bool,
    /// On paper there are no keys.
    pub printed: bool,
    pub over: Over,
    pub shown: Shown,
    pub order: Order,
    pub selected: usize,
}

impl Screen {
    /// Newer figures.
    pub fn take(&mut self, figures: Figures) {
        match self.paused {
            true => self.held = Some(figures),
            false => self.figures = Some(figures),
        }
        self.message = None;
    }

    /// Objects as ordered.
    pub fn objects(&self) -> Vec<&Object> {
        let mut objects: Vec<&Object> = self.figures.iter().flat_map(|f| &f.objects).collect();
        match self.order {
            Order::Remote => objects.sort_by(|a, b| b.remote().total_cmp(&a.remote())),
            Order::RemoteShare => objects.sort_by(|a, b| b.remote_share.total_cmp(&a.remote_share)),
            Order::Accesses => objects.sort_by_key(|o| std::cmp::Reverse(o.accesses)),
            Order::Pages => objects.sort_by_key(|o| std::cmp::Reverse(o.pages)),
            Order::Name => objects.sort_by(|a, b| a.name.cmp(&b.name)),
        }
        objects
    }

    /// The object that the cursor is on.
    pub fn object(&self) -> Option<&Object> {
        self.objects().get(self.cursor()).copied()
    }

    /// Its row.
    pub fn cursor(&self) -> usize {
        let rows = self.figures.as_ref().map_or(0, |f| f.objects.len());
        self.selected.min(rows.saturating_sub(1))
    }

    /// Whether it is time to go.
    pub fn press(&mut self, key: KeyCode) -> bool {
        match key {
            KeyCode::Char('q') => return true,
            KeyCode::Esc if self.over == Over::Nothing => return true,
            KeyCode::Esc => self.over = Over::Nothing,
            KeyCode::Char('?' | 'h') => self.cover(Over::Help),
            KeyCode::Enter => self.cover(Over::Details),
            KeyCode::Char('p' | ' ') => self.pause(),
            KeyCode::Char('s') => (self.order, self.selected) = (self.order.next(), 0),
            KeyCode::Char('m') => self.shown = self.shown.next(),
            KeyCode::Up | KeyCode::Char('k') => self.selected = self.cursor().saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.selected = self.cursor() + 1,
            KeyCode::PageUp => self.selected = self.cursor().saturating_sub(10),
            KeyCode::PageDown => self.selected = self.cursor() + 10,
            KeyCode::Home => self.selected = 0,
            KeyCode::End => self.selected = usize::MAX,
            _ => {}
        }
        false
    }

    /// Over the rest, or away again.
    fn cover(&mut self, with: Over) {
        self.over = if self.over == with { Over::Nothing } else { with };
    }

    fn pause(&mut self) {
        self.paused = !self.paused;
        if let (false, Some(held)) = (self.paused, self.held.take()) {
            self.figures = Some(held);
        }
    }
}

impl Shown {
    pub fn name(self) -> &'static str {
        match self {
            Self::Accesses => "accesses",
            Self::Remote => "remote accesses",
            Self::Pages => "pages",
        }
    }

    fn next(self) -> Self {
        match self {
            Self::Accesses => Self::Remote,
            Self::Remote => Self::Pages,
            Self::Pages => Self::Accesses,
        }
    }
}

impl Order {
    pub fn name(self) -> &'static str {
        match self {
            Self::Remote => "remote accesses",
            Self::RemoteShare => "remote share",
            Self::Accesses => "accesses",
            Self::Pages => "pages",
            Self::Name => "name",
        }
    }

    fn next(self) -> Self {
        match self {
            Self::Remote => Self::RemoteShare,
            Self::RemoteShare => Self::Accesses,
            Self::Accesses => Self::Pages,
            Self::Pages => Self::Name,
            Self::Name => Self::Remote,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn screen() -> Screen {
        let object = |name: &str, accesses, remote_share| Object {
            name: name.into(),
            accesses,
            remote_share,
            ..Object::default()
        };
        let objects = vec![
            object("b", 100, 0.9),
            object("a", 1000, 0.5),
            object("c", 10, 1.0),
        ];
        Screen {
            figures: Some(Figures {
                objects,
                ..Figures::default()
            }),
            ..Screen::default()
        }
    }

    fn names(screen: &Screen) -> String {
        screen.objects().iter().map(|o| o.name.as_str()).collect()
    }

    #[test]
    fn objects_are_in_the_order_asked_for_and_the_cursor_stays_on_one() {
        let mut screen = screen();
        assert_eq!(names(&screen), "abc");
        screen.press(KeyCode::End);
        assert_eq!(screen.object().unwrap().name, "c");
        screen.press(KeyCode::Down);
        assert_eq!(screen.cursor(), 2);
        screen.press(KeyCode::Up);
        assert_eq!(screen.object().unwrap().name, "b");
        screen.press(KeyCode::Char('s'));
        assert_eq!((names(&screen).as_str(), screen.cursor()), ("cba", 0));
    }

    #[test]
    fn a_pause_holds_what_is_shown_and_its_end_shows_the_latest() {
        let mut screen = screen();
        screen.press(KeyCode::Char('p'));
        let later = Figures {
            program: "later".into(),
            ..Figures::default()
        };
        screen.take(later);
        assert_eq!(screen.figures.as_ref().unwrap().program, "");
        screen.press(KeyCode::Char('p'));
        assert_eq!(screen.figures.as_ref().unwrap().program, "later");
        assert_eq!((screen.cursor(), screen.object().map(|o| &o.name)), (0, None));
    }

    #[test]
    fn escape_uncovers_first_and_then_leaves() {
        let mut screen = screen();
        assert!(!screen.press(KeyCode::Char('?')) && screen.over == Over::Help);
        assert!(!screen.press(KeyCode::Enter) && screen.over == Over::Details);
        assert!(!screen.press(KeyCode::Esc) && screen.over == Over::Nothing);
        assert!(screen.press(KeyCode::Esc) && screen.press(KeyCode::Char('q')));
    }
}

//! The state of the screen, and how keys change it.

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

/// The order of objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// By number of remote accesses: hot, misplaced objects first.
    #[default]
    Remote,
    RemoteShare,
    Accesses,
    Pages,
    Name,
}

/// The box drawn over the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overlay {
    #[default]
    Nothing,
    Help,
    Details,
}

/// Everything needed to draw the screen.
#[derive(Default)]
pub struct Screen {
    pub figures: Option<Figures>,
    /// Newer figures that arrived while the screen is paused.
    pub pending: Option<Figures>,
    /// A message shown in place of the title.
    pub message: Option<String>,
    /// Whether further figures may arrive.
    pub live: bool,
    pub paused: bool,
    /// Whether the terminal supports colours.
    pub colour: bool,
    /// Whether the screen is printed once as text, without the line of keys.
    pub printed: bool,
    pub over: Overlay,
    pub shown: Shown,
    pub order: Order,
    pub selected: usize,
}

impl Screen {
    /// Shows new figures, or keeps them until the screen is no longer paused.
    pub fn update(&mut self, figures: Figures) {
        match self.paused {
            true => self.pending = Some(figures),
            false => self.figures = Some(figures),
        }
        self.message = None;
    }

    /// The objects in the chosen order.
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

    /// The object in the selected row, in the current order; `None` while there are none.
    pub fn object(&self) -> Option<&Object> {
        self.objects().get(self.cursor()).copied()
    }

    /// Row of the selected object.
    pub fn cursor(&self) -> usize {
        let rows = self.figures.as_ref().map_or(0, |f| f.objects.len());
        self.selected.min(rows.saturating_sub(1))
    }

    /// Handles a key; returns whether to quit.
    pub fn press(&mut self, key: KeyCode) -> bool {
        match key {
            KeyCode::Char('q') => return true,
            KeyCode::Esc if self.over == Overlay::Nothing => return true,
            KeyCode::Esc => self.over = Overlay::Nothing,
            KeyCode::Char('?' | 'h') => self.toggle(Overlay::Help),
            KeyCode::Enter => self.toggle(Overlay::Details),
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

    /// Opens a box, or closes it if it is open.
    fn toggle(&mut self, with: Overlay) {
        self.over = if self.over == with { Overlay::Nothing } else { with };
    }

    fn pause(&mut self) {
        self.paused = !self.paused;
        if let (false, Some(pending)) = (self.paused, self.pending.take()) {
            self.figures = Some(pending);
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
        screen.update(later);
        assert_eq!(screen.figures.as_ref().unwrap().program, "");
        screen.press(KeyCode::Char('p'));
        assert_eq!(screen.figures.as_ref().unwrap().program, "later");
        assert_eq!((screen.cursor(), screen.object().map(|o| &o.name)), (0, None));
    }

    #[test]
    fn escape_uncovers_first_and_then_leaves() {
        let mut screen = screen();
        assert!(!screen.press(KeyCode::Char('?')) && screen.over == Overlay::Help);
        assert!(!screen.press(KeyCode::Enter) && screen.over == Overlay::Details);
        assert!(!screen.press(KeyCode::Esc) && screen.over == Overlay::Nothing);
        assert!(screen.press(KeyCode::Esc) && screen.press(KeyCode::Char('q')));
    }
}

//! Draws the screen of `top`: the head, the objects or the matrix, and the box above them, if one is open.

use super::figures::{Figures, Rate};
use super::screen::{Overlay, Screen};
use super::{matrix, objects};
use nodewise_report::percent;
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Block, Clear, Paragraph, Wrap};

/// Blue and orange, which people with any colour vision can tell apart.
pub const LOCAL: Color = Color::Indexed(33);
pub const REMOTE: Color = Color::Indexed(208);
/// Lines reserved for the objects, however many nodes there are.
const OBJECTS: u16 = 5;

const HELP: &str = "\
q, Escape     quit
p, Space      pause: what is shown stays; the recording goes on
s             order of objects: remote accesses, remote share, accesses, pages, name
m             matrix: accesses, remote accesses, pages
up, down      choose an object (also j, k, Page Up, Page Down, Home, End)
Enter         where it was allocated, who uses it how, what to do
?             this

Matrix: a row is the node whose threads access, a column the node that the page lies on;
the diagonal is local. Of accesses, cells are per cent of all; of pages, their number, under
the node that accesses them most.
Objects: `remote` counts accesses from other nodes than the page's: what is misplaced and hot
comes first.";

pub fn draw(frame: &mut Frame<'_>, screen: &Screen) {
    let area = frame.area();
    let Some(figures) = &screen.figures else {
        let waiting = screen.message.as_deref().unwrap_or("reading the profile");
        frame.render_widget(Paragraph::new(waiting).wrap(Wrap { trim: true }), area);
        return;
    };
    let verdict = lines(&figures.verdict, area.width).min(4);
    let matrix = matrix::height(figures.nodes()).min(area.height.saturating_sub(verdict + OBJECTS + 4));
    let heights = [1, verdict, 1, u16::from(figures.moves.is_some()), matrix].map(Constraint::Length);
    let rest = [Constraint::Min(1), Constraint::Length(u16::from(!screen.printed))];
    let parts = Layout::vertical(heights.into_iter().chain(rest)).split(area);
    frame.render_widget(title(screen, figures), parts[0]);
    frame.render_widget(
        Paragraph::new(figures.verdict.as_str()).wrap(Wrap { trim: true }),
        parts[1],
    );
    frame.render_widget(share(screen, figures, area.width), parts[2]);
    frame.render_widget(figures.moves.map(moves).unwrap_or_default(), parts[3]);
    frame.render_widget(matrix::matrix(screen, figures, parts[4]), parts[4]);
    objects::draw(frame, screen, parts[5]);
    frame.render_widget(keys(screen), parts[6]);
    match screen.over {
        Overlay::Nothing => {}
        Overlay::Help => draw_box(frame, "help", Text::raw(HELP)),
        Overlay::Details => draw_box(frame, "object", objects::details(screen)),
    }
}

/// Number of lines that a text takes if it is broken at any character.
fn lines(text: &str, width: u16) -> u16 {
    let width = usize::from(width.max(20)) - 8;
    u16::try_from(Span::raw(text).width().div_ceil(width)).unwrap_or(u16::MAX)
}

/// The title, or a message in its place.
fn title(screen: &Screen, figures: &Figures) -> Line<'static> {
    let state = match (screen.paused, screen.live, &figures.truncated) {
        (true, ..) => "paused".to_owned(),
        (_, true, _) => "live".to_owned(),
        (_, _, Some(why)) => format!("cut short: {why}"),
        _ => "finished".to_owned(),
    };
    let counts = if figures.exact { "counted" } else { "sampled" };
    let facts = format!(" · {:.1} s · {counts} · {state}", figures.seconds);
    let message = screen.message.as_ref().map(|m| format!(" · {m}"));
    let bold = Style::new().add_modifier(Modifier::BOLD);
    Line::from(vec![
        Span::styled(figures.program.clone(), bold),
        Span::raw(message.unwrap_or(facts)),
    ])
}

/// The share of local accesses, `local 62.3 % ██████░░░░`; for samples the bar shows the lower bound of the share.
fn share(screen: &Screen, figures: &Figures, width: u16) -> Line<'static> {
    let (local, text) = match figures.local_range {
        Some([low, high]) => (low, nodewise_report::between([low, high], 0.0)),
        None => (figures.local, percent(figures.local)),
    };
    let head = format!("local {text:<8} ");
    let room = usize::from(width).saturating_sub(head.len() + 1).min(60);
    let filled = (local.clamp(0.0, 1.0) * room as f64).round() as usize;
    let (blue, orange) = match screen.colour {
        true => (Style::new().fg(LOCAL), Style::new().fg(REMOTE)),
        false => Default::default(),
    };
    Line::from(vec![
        Span::raw(head),
        Span::styled("█".repeat(filled), blue),
        Span::styled("░".repeat(room - filled), orange),
    ])
}

fn moves(rate: Rate) -> Line<'static> {
    let others = match rate.others {
        0 => String::new(),
        n => format!(", {n} by others"),
    };
    Line::raw(format!(
        "moved {:.0} pages/s by us, {:.0} by the kernel; in all {} and {}{others}, {} ping-pongs",
        rate.ours_a_second, rate.kernel_a_second, rate.ours, rate.kernel, rate.ping_pongs
    ))
}

fn keys(screen: &Screen) -> Line<'static> {
    let pause = if screen.paused { "go on" } else { "pause" };
    let (order, shown) = (screen.order.name(), screen.shown.name());
    let text =
        format!("q quit  ? help  p {pause}  Enter details  ↑↓ choose  s sort: {order}  m matrix: {shown}");
    Line::styled(text, Style::new().add_modifier(Modifier::DIM))
}

/// Draws a box over the middle of the screen.
fn draw_box(frame: &mut Frame<'_>, title: &str, text: Text<'_>) {
    let area = frame.area();
    // Height with room for lines that are broken.
    let height = u16::try_from(2 * text.height() + 2).unwrap_or(u16::MAX);
    let (width, height) = (area.width.min(100), area.height.min(height));
    let over = Rect::new(
        (area.width - width) / 2,
        (area.height - height) / 2,
        width,
        height,
    );
    let block = Block::bordered().title(format!(" {title} "));
    frame.render_widget(Clear, over);
    frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: false }).block(block), over);
}

/// The content of a screen as lines of text.
pub fn text(buffer: &Buffer) -> String {
    let mut out = String::new();
    for row in buffer.content.chunks(usize::from(buffer.area.width.max(1))) {
        let (mut line, mut covered) = (String::new(), 0);
        for cell in row {
            if covered == 0 {
                line += cell.symbol();
                covered = Span::raw(cell.symbol()).width().max(1);
            }
            covered -= 1;
        }
        out += line.trim_end();
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    out + "\n"
}

#[cfg(test)]
mod tests {
    use super::super::figures::{Object, plain};
    use super::super::screen::Shown;
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::crossterm::event::KeyCode;

    fn figures(nodes: usize) -> Figures {
        let object = |name: &str, accesses, remote_share| Object {
            name: plain(name),
            pages: 512,
            accesses,
            remote_share,
            advice: "Initialise it where it is used.".into(),
            details: vec![("allocated at", "main solve.c:31".into())],
            snippet: vec!["#pragma omp parallel for".into()],
        };
        let matrix = |own, other| {
            let cell = move |row, column| if row == column { own } else { other };
            (0..nodes)
                .map(|r| (0..nodes).map(|c| cell(r, c)).collect())
                .collect()
        };
        Figures {
            program: "solve".into(),
            seconds: 2.5,
            exact: true,
            verdict: "Place it: 40 % of its accesses are remote.".into(),
            local: 0.6,
            local_range: None,
            accesses: matrix(3_000_000, 1_000_000),
            pages: matrix(7, 5),
            threads: vec![2; nodes],
            objects: vec![object("grid", 1_000_000, 0.1), object("rhs", 5_000, 0.9)],
            ..Figures::default()
        }
    }

    fn shown(screen: &Screen, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, screen)).unwrap();
        text(terminal.backend().buffer())
    }

    fn screen(figures: Figures) -> Screen {
        Screen {
            figures: Some(figures),
            ..Screen::default()
        }
    }

    #[test]
    fn a_wide_screen_says_everything() {
        let text = shown(&screen(figures(4)), 140, 40);
        for part in [
            "solve · 2.5 s · counted · finished",
            "Place it: 40 %",
            "local 60.0 %",
            "12.5",
            " 4.2",
            "2 threads",
            "grid",
            "Initialise it",
            "q quit",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(text.find("grid") < text.find("rhs"), "{text}");
    }

    #[test]
    fn any_size_can_be_drawn_and_a_narrow_one_keeps_the_essential() {
        for (width, height) in [(1, 1), (10, 3), (40, 24), (80, 8), (300, 100)] {
            for nodes in [0, 1, 2, 8, 64] {
                for over in [Overlay::Nothing, Overlay::Help, Overlay::Details] {
                    let screen = Screen {
                        over,
                        ..screen(figures(nodes))
                    };
                    shown(&screen, width, height);
                }
            }
        }
        let text = shown(&screen(figures(8)), 40, 30);
        assert!(
            text.contains("local 60.0 %") && text.contains("grid") && text.contains("10.0 %"),
            "{text}"
        );
        assert!(text.lines().all(|l| l.chars().count() <= 40), "{text}");
    }

    #[test]
    fn keys_change_what_is_seen() {
        let mut screen = screen(figures(2));
        screen.press(KeyCode::Char('m'));
        assert!(screen.shown == Shown::Remote && shown(&screen, 100, 30).contains("50.0"));
        screen.press(KeyCode::Char('m'));
        assert!(shown(&screen, 100, 30).contains("     7"));
        screen.press(KeyCode::Enter);
        let text = shown(&screen, 100, 30);
        assert!(
            text.contains("main solve.c:31") && text.contains("#pragma omp"),
            "{text}"
        );
        screen.press(KeyCode::Char('?'));
        assert!(shown(&screen, 100, 30).contains("the diagonal is local"));
    }

    #[test]
    fn samples_moves_and_what_was_cut_short_are_said() {
        let text = shown(
            &screen(Figures {
                exact: false,
                truncated: Some("the recorder was stopped".into()),
                moves: Some(Rate {
                    ours_a_second: 144.0,
                    ours: 1440,
                    ..Rate::default()
                }),
                ..figures(4)
            }),
            140,
            40,
        );
        assert!(
            text.contains("sampled · cut short: the recorder was stopped"),
            "{text}"
        );
        assert!(text.contains("moved 144 pages/s by us"), "{text}");
    }

    #[test]
    fn nothing_to_show_is_said() {
        let waiting = Screen {
            message: Some("nothing was recorded yet".into()),
            ..Screen::default()
        };
        assert_eq!(shown(&waiting, 80, 5), "nothing was recorded yet\n");
        let text = shown(
            &screen(Figures {
                local: 1.0,
                local_range: None,
                ..Figures::default()
            }),
            80,
            24,
        );
        assert!(text.contains("no objects") && !text.contains("NaN"), "{text}");
    }

    #[test]
    fn hostile_and_wide_names_stay_in_their_cells() {
        let mut hostile = figures(2);
        hostile.objects[0].name = plain("a\x1b[2J\x1b]0;owned\x07\nb");
        hostile.objects[1].name = "行列".repeat(40);
        let text = shown(&screen(hostile), 100, 30);
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
        assert!(
            text.contains("行列") && text.lines().all(|l| Span::raw(l).width() <= 100),
            "{text}"
        );
    }
}

//! Draws the table of objects, those with most remote accesses first.

use super::figures::Object;
use super::screen::{Order, Screen};
use nodewise_report::{count, percent};
use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Paragraph, Row, Table, TableState};

/// Columns of the screen below which advice and the number of remote accesses are left out.
const MIN_WIDE_COLUMNS: u16 = 90;

pub fn draw(frame: &mut Frame<'_>, screen: &Screen, area: Rect) {
    let objects = screen.objects();
    if objects.is_empty() {
        return frame.render_widget(Paragraph::new("no objects: nothing was accessed"), area);
    }
    let wide = area.width >= MIN_WIDE_COLUMNS;
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let rows = objects.iter().map(|object| Row::new(row(object, wide)));
    let table = Table::new(rows, widths(wide)).header(Row::new(heads(screen.order, wide)).style(bold));
    let cursor = Style::new().add_modifier(Modifier::REVERSED);
    let table = if screen.printed {
        table
    } else {
        table.row_highlight_style(cursor)
    };
    let mut state = TableState::new().with_selected(Some(screen.cursor()));
    frame.render_stateful_widget(table, area, &mut state);
}

fn widths(wide: bool) -> Vec<Constraint> {
    let name = Constraint::Fill(1);
    let numbers = [10, 11, 10, 9].map(Constraint::Length);
    match wide {
        true => [&[name], &numbers[..], &[Constraint::Fill(1)]].concat(),
        false => vec![
            name,
            Constraint::Length(8),
            Constraint::Length(8),
            Constraint::Length(7),
        ],
    }
}

fn heads(order: Order, wide: bool) -> Vec<Text<'static>> {
    let mark = |of: Order| if of == order { "▾" } else { "" };
    let right = |text: &str, of| Text::raw(format!("{text}{}", mark(of))).right_aligned();
    let name = Text::raw(format!("object{}", mark(Order::Name)));
    let share = right(if wide { "remote %" } else { "remote" }, Order::RemoteShare);
    let accesses = right(if wide { "accesses" } else { "access" }, Order::Accesses);
    let pages = right("pages", Order::Pages);
    match wide {
        true => vec![
            name,
            right("remote", Order::Remote),
            share,
            accesses,
            pages,
            "advice".into(),
        ],
        false => vec![name, share, accesses, pages],
    }
}

fn row(object: &Object, wide: bool) -> Vec<Text<'_>> {
    let right = |text: String| Text::raw(text).right_aligned();
    let name = Text::raw(object.name.as_str());
    let share = right(percent(object.remote_share));
    let (accesses, pages) = (right(count(object.accesses)), right(count(object.pages)));
    let remote = right(count(object.remote().round() as u64));
    match wide {
        true => vec![
            name,
            remote,
            share,
            accesses,
            pages,
            object.advice.as_str().into(),
        ],
        false => vec![name, share, accesses, pages],
    }
}

/// All details of the selected object.
pub fn details(screen: &Screen) -> Text<'_> {
    let Some(object) = screen.object() else {
        return Text::raw("no object");
    };
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let mut lines = vec![Line::styled(object.name.as_str(), bold)];
    for (name, text) in &object.details {
        lines.push(Line::from(vec![
            Span::styled(format!("{name}: "), bold),
            Span::raw(text.as_str()),
        ]));
    }
    if !object.snippet.is_empty() {
        lines.push(Line::raw(""));
        lines.extend(object.snippet.iter().map(|line| Line::raw(line.as_str())));
    }
    Text::from(lines)
}

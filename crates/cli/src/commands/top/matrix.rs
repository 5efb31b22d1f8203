//! Draws the matrix of nodes: numbers on shaded cells.

use super::figures::{Figures, Matrix};
use super::screen::{Screen, Shown};
use nodewise_report::count;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span, Text};

/// Columns of a cell; `LABEL` is the columns of a row's label.
const CELL: usize = 7;
const LABEL: usize = 20;
/// Shades of the 256-colour palette, from few to many: blue for local accesses, orange for remote ones.
const BLUES: [u8; 5] = [153, 117, 75, 33, 27];
const ORANGES: [u8; 5] = [223, 216, 209, 208, 202];

/// Lines of the matrix: a title, column heads, and a row for each node.
pub fn height(nodes: usize) -> u16 {
    u16::try_from(nodes + 2).unwrap_or(u16::MAX)
}

pub fn matrix(screen: &Screen, figures: &Figures, area: Rect) -> Text<'static> {
    let cells = cells(figures, screen.shown);
    let room = usize::from(area.width);
    let label = LABEL.min(room / 3);
    let columns = (room.saturating_sub(label) / CELL).min(cells.len());
    let rows = usize::from(area.height).saturating_sub(2).min(cells.len());
    let mut lines = vec![
        title(screen.shown, figures, (rows, columns)),
        heads(label, columns),
    ];
    let most = cells.iter().flatten().copied().max().unwrap_or(0).max(1);
    let sum = cells.iter().flatten().sum::<u64>().max(1);
    for (node, row) in cells.iter().take(rows).enumerate() {
        let threads = figures.threads.get(node).copied().unwrap_or(0);
        let text = format!("node {node:<3} {threads:>3} threads");
        let mut line = vec![Span::raw(format!("{text:<label$.label$}"))];
        for (home, value) in row.iter().take(columns).enumerate() {
            let text = cell(screen.shown, *value, sum, node == home);
            let shade = shade(*value, most, node == home);
            let style = if screen.colour { shade } else { Style::new() };
            line.push(Span::styled(format!("{text:>CELL$}"), style));
        }
        lines.push(Line::from(line));
    }
    Text::from(lines)
}

/// The title, which tells if rows or columns are left out.
fn title(shown: Shown, figures: &Figures, (rows, columns): (usize, usize)) -> Line<'static> {
    let unit = match shown {
        Shown::Pages => "",
        _ => ", % of all",
    };
    let nodes = figures.nodes();
    let part = match rows.min(columns) < nodes {
        true => format!(" (of {nodes} nodes, what fits)"),
        false => String::new(),
    };
    let text = format!("{}{unit}, by node, of pages on node{part}", shown.name());
    Line::styled(text, Style::new().add_modifier(Modifier::BOLD))
}

fn heads(label: usize, columns: usize) -> Line<'static> {
    let heads: String = (0..columns).map(|c| format!("{c:>CELL$}")).collect();
    Line::raw(format!("{:label$}{heads}", ""))
}

fn cells(figures: &Figures, shown: Shown) -> Matrix {
    let mut cells = match shown {
        Shown::Pages => figures.pages.clone(),
        _ => figures.accesses.clone(),
    };
    if shown == Shown::Remote {
        cells.iter_mut().enumerate().for_each(|(node, row)| row[node] = 0);
    }
    cells
}

fn cell(shown: Shown, value: u64, sum: u64, local: bool) -> String {
    match shown {
        Shown::Pages => count(value),
        Shown::Remote if local => "·".to_owned(),
        _ => format!("{:.1}", 100.0 * value as f64 / sum as f64),
    }
}

/// The colours of a cell: dark text on light shades, light text on dark ones.
fn shade(value: u64, most: u64, local: bool) -> Style {
    if value == 0 {
        return Style::new().add_modifier(Modifier::DIM);
    }
    let shades = if local { BLUES } else { ORANGES };
    let step = (value as f64 / most as f64 * shades.len() as f64) as usize;
    let step = step.min(shades.len() - 1);
    let text = if local && step >= 3 { 231 } else { 16 };
    Style::new()
        .bg(Color::Indexed(shades[step]))
        .fg(Color::Indexed(text))
}

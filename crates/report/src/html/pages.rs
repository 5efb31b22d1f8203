//! What the pages are like: how often they would move, how they are shared.

use super::markup::{END, Text, bar, figure, head};
use crate::{Report, count, percent};
use std::fmt::Write;

/// Numbers of moves with a row of their own.
const FEW_MOVES: usize = 8;

/// Both, beside each other.
pub fn write(report: &Report) -> String {
    format!("<div class=\"pair\">{}{}</div>", moves(report), sharing(report))
}

fn moves(report: &Report) -> String {
    let moves = &report.dynamicity;
    let pages: u64 = moves.pages_by_moves.iter().sum();
    let mut html = format!(
        "<section aria-labelledby=\"moves\"><h2 id=\"moves\">How restless the pages are</h2>\
         <p>To keep every page where each slice uses it most would take {} moves. \
         Pages that never need to move are served as well by a static map as by a live balancer.</p>{}",
        figure(
            "/dynamicity/migrations",
            moves.migrations,
            &count(moves.migrations)
        ),
        head("", &["Moves", ">Pages", "=Share"])
    );
    let (few, many) = moves
        .pages_by_moves
        .split_at(moves.pages_by_moves.len().min(FEW_MOVES));
    for (i, &n) in few.iter().enumerate() {
        let value = figure(&format!("/dynamicity/pages_by_moves/{i}"), n, &count(n));
        html.push_str(&row(&i.to_string(), &[value], n, pages));
    }
    if !many.is_empty() {
        let n = many.iter().sum();
        html.push_str(&row(&format!("{FEW_MOVES} or more"), &[count(n)], n, pages));
    }
    html + END + "</section>"
}

fn sharing(report: &Report) -> String {
    let (pages, accesses) = report
        .sharing
        .iter()
        .fold((0, 0), |(p, a), s| (p + s.pages, a + s.accesses));
    let mut html = format!(
        "<section aria-labelledby=\"sharing\"><h2 id=\"sharing\">How data is shared</h2>\
         <p>Private and non-shared pages belong to one thread; node-shared ones to threads of one node. \
         Uniformly shared pages are used from several nodes, whatever the shares.</p>{}",
        head("", &["Class", ">Pages", ">Accesses", "=Share of accesses"])
    );
    for (i, s) in report.sharing.iter().enumerate() {
        let of_all = percent(s.pages as f64 / pages.max(1) as f64);
        let pages = figure(&format!("/sharing/{i}/pages"), s.pages, &count(s.pages));
        let cells = [
            format!("{pages} <small>{of_all}</small>"),
            figure(&format!("/sharing/{i}/accesses"), s.accesses, &count(s.accesses)),
        ];
        html.push_str(&row(&s.class, &cells, s.accesses, accesses));
    }
    html + END + "</section>"
}

/// A name, its figures, and its share of the whole as a number and a bar.
fn row(name: &str, cells: &[String], part: u64, whole: u64) -> String {
    let share = part as f64 / whole.max(1) as f64;
    let mut html = format!("<tr><th scope=\"row\">{}</th>", Text(name));
    for cell in cells {
        let _ = write!(html, "<td class=\"n\">{cell}</td>");
    }
    let _ = write!(
        html,
        "<td class=\"n\">{}</td><td class=\"wide\">{}</td></tr>",
        percent(share),
        bar("plain", share)
    );
    html
}

//! The page × thread figures: packed for the script, with a table as the alternative.

use super::markup::{ALPHABET, END, Text, head};
use crate::format::grouped;
use crate::{HeatMap, HeatRow, Object, Report, bytes, count, percent};
use serde::Serialize;
use std::fmt::Write;

/// The section; the script finds each canvas's data under its number.
pub fn write(report: &Report) -> String {
    let drawn: Vec<(&Object, &HeatMap)> = drawn(report).collect();
    let Some((_, first)) = drawn.first() else {
        return String::new();
    };
    let mut html = String::from(
        "<section aria-labelledby=\"heat\"><h2 id=\"heat\">Who uses which page, and where it lives</h2>\
         <p>One column is a group of pages in address order, one row a thread, grouped by node. \
         The stronger the colour, the more accesses (logarithmic). \
         The grey band marks the node that holds the pages: accesses on the band are local, off the band they cross the machine.</p>\
         <div class=\"legend\"><span class=\"key local\">local</span><span class=\"key remote\">remote</span><span class=\"key home\">where the pages live</span>",
    );
    html.push_str("<fieldset><legend>Placement</legend>");
    for (i, placement) in first.placements.iter().enumerate() {
        let checked = if i == 0 { " checked" } else { "" };
        let _ = write!(
            html,
            "<label><input type=\"radio\" name=\"placement\" value=\"{i}\"{checked}> {}</label>",
            Text(placement)
        );
    }
    html.push_str("</fieldset></div>");
    for (i, (object, map)) in drawn.iter().enumerate() {
        html.push_str(&one(i, object, map, report.page_size));
    }
    html.push_str("</section>");
    html
}

fn drawn(report: &Report) -> impl Iterator<Item = (&Object, &HeatMap)> {
    report
        .objects
        .iter()
        .filter_map(|o| o.heat.as_ref().map(|h| (o, h)))
}

fn one(i: usize, object: &Object, map: &HeatMap, page_size: u64) -> String {
    format!(
        "<figure class=\"heat\"><figcaption><h3><code>{name}</code></h3><span>{size} · {accesses} accesses · {pattern}</span></figcaption>\
         <canvas data-heat=\"{i}\" tabindex=\"0\" role=\"img\" aria-label=\"Accesses to {name} by page and thread; the table below has the same by thread. Arrow keys read single cells.\"></canvas>\
         <p class=\"axis\"><span>page 0</span><output aria-live=\"polite\" data-readout=\"{i}\"></output><span>page {pages}</span></p>\
         <details><summary>The same as a table</summary>{table}</details></figure>",
        name = Text(&object.name),
        size = bytes(map.pages * page_size),
        accesses = count(object.accesses),
        pattern = Text(&object.pattern),
        pages = grouped(map.pages - 1),
        table = table(map),
    )
}

fn table(map: &HeatMap) -> String {
    let placements: Vec<String> = map.placements.iter().map(|p| format!(">Local, {p}")).collect();
    let mut titles = vec!["Threads", ">Node", ">Accesses"];
    titles.extend(placements.iter().map(String::as_str));
    let mut html = format!("<div class=\"scroll\">{}", head("", &titles));
    for (i, row) in map.rows.iter().enumerate() {
        let (accesses, local) = map.row_totals(i);
        let _ = write!(
            html,
            "<tr><th scope=\"row\">{}</th><td class=\"n\">{}</td><td class=\"n\">{}</td>",
            label(row),
            row.node,
            count(accesses)
        );
        for local in local {
            let share = if accesses == 0 {
                "–".to_owned()
            } else {
                percent(local as f64 / accesses as f64)
            };
            let _ = write!(html, "<td class=\"n\">{share}</td>");
        }
        html.push_str("</tr>");
    }
    html + END + "</div>"
}

fn label(row: &HeatRow) -> String {
    match row.threads.as_slice() {
        [one] => format!("thread {one}"),
        threads => {
            let list: Vec<_> = threads.iter().map(ToString::to_string).collect();
            format!("threads {}", list.join(", "))
        }
    }
}

/// What the script reads.
#[derive(Serialize)]
pub struct Packed<'a> {
    name: &'a str,
    placements: &'a [String],
    rows: Vec<(String, u32)>,
    columns: usize,
    pages: u64,
    /// Largest cell.
    max: u64,
    /// Two characters a cell: 0, or 1 + 4094 · ln(accesses) / ln(max).
    accesses: String,
    /// One character a cell and placement: 63 · local share.
    local: Vec<String>,
    /// One character a column and placement for each node in turn: 63 · share of its pages there.
    homes: Vec<String>,
}

/// Every figure, in the order of the canvases.
pub fn packed(report: &Report) -> Vec<Packed<'_>> {
    drawn(report)
        .map(|(object, map)| pack(&object.name, map))
        .collect()
}

fn pack<'a>(name: &'a str, map: &'a HeatMap) -> Packed<'a> {
    let max = map.accesses.iter().copied().max().unwrap_or(0).max(2);
    let level = |a: u64| {
        if a == 0 {
            0
        } else {
            1 + (4094.0 * (a as f64).ln() / (max as f64).ln()).round() as usize
        }
    };
    let share = |(l, a): (&u64, &u64)| {
        if *a == 0 {
            0
        } else {
            (63.0 * *l as f64 / *a as f64).round() as usize
        }
    };
    Packed {
        name,
        placements: &map.placements,
        rows: map.rows.iter().map(|r| (label(r), r.node)).collect(),
        columns: map.columns,
        pages: map.pages,
        max,
        accesses: map
            .accesses
            .iter()
            .map(|&a| level(a))
            .flat_map(|l| [l >> 6, l & 63])
            .map(digit)
            .collect(),
        local: map
            .local
            .iter()
            .map(|l| l.iter().zip(&map.accesses).map(share).map(digit).collect())
            .collect(),
        homes: map.homes.iter().map(|h| homes(map, h)).collect(),
    }
}

fn homes(map: &HeatMap, pages: &[u64]) -> String {
    let whole = |column: usize| {
        (0..map.nodes)
            .map(|n| pages[n * map.columns + column])
            .sum::<u64>()
    };
    let share = |(i, n): (usize, &u64)| (63.0 * *n as f64 / whole(i % map.columns) as f64).round() as usize;
    pages.iter().enumerate().map(share).map(digit).collect()
}

fn digit(six_bits: usize) -> char {
    ALPHABET[six_bits].into()
}

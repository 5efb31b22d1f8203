//! The record of moved pages: Tao et al.'s three windows (3.3), standing still. *Runtime migration*:
//! which pair of nodes moved how much when. *Page show*: where the most restless pages lived through
//! the run. *Page location*: where each object's pages lived first and last.

use super::markup::{END, Text, figure, head, prose};
use crate::format::{grouped, plural};
use crate::{MovedObject, Moves, PageJourney, Report, Step, count, seconds, text};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;

const WIDTH: f64 = 1080.0;
/// Where lanes begin: left of it stand their names.
const LEFT: f64 = 190.0;
/// Height of a lane, and of what is drawn in it.
const LANE: f64 = 26.0;
const DRAWN: f64 = 20.0;
/// Pairs of nodes with a lane of their own, objects and rows shown.
const LANES: usize = 12;
const OBJECTS: usize = 8;
const ROWS: usize = 50;
/// Columns of an object's pages.
const COLUMNS: u64 = 360;
/// Colours there are for nodes.
const COLOURS: u16 = 8;

/// The section; nothing where nothing was moved, held back or asked about.
pub fn write(report: &Report) -> String {
    let Some(moves) = &report.moves else {
        return String::new();
    };
    let mut html =
        String::from("<section aria-labelledby=\"moved\"><h2 id=\"moved\">What was moved while it ran</h2>");
    let _ = write!(html, "<p>{}</p>", prose(&text::moves(moves).join(" ")));
    if moves.ours + moves.kernel > 0 {
        html.push_str(&sums(moves));
        html.push_str(&over_time(moves, end(report)));
        html.push_str(&page_show(moves, end(report)));
        html.push_str(&locations(moves));
        html.push_str(&rows(report));
    }
    html + "</section>"
}

/// When the run ended, as far as moves go.
fn end(report: &Report) -> f64 {
    let moved = report.migrations.iter().map(|m| m.seconds);
    moved
        .fold(report.program.wall_seconds, f64::max)
        .max(f64::MIN_POSITIVE)
}

fn colour(node: u16) -> String {
    format!("n{}", node % COLOURS)
}

fn legend(moves: &Moves) -> String {
    let mut html = String::from("<div class=\"legend\">");
    for node in 0..moves.matrix.len() {
        let _ = write!(
            html,
            "<span class=\"key {}\">node {node}</span>",
            colour(node as u16)
        );
    }
    html + "</div>"
}

fn sums(moves: &Moves) -> String {
    let at = |key: &str, value: u64| figure(&format!("/moves/{key}"), value, &grouped(value));
    let mut html = String::from("<div class=\"scroll\">");
    html.push_str(&head(
        "",
        &[
            ">Pages",
            ">Moves, ours",
            ">Moves, kernel",
            ">Ping-pong",
            ">Multiple",
            ">Incorrect",
        ],
    ));
    let incorrect = moves
        .incorrect
        .map_or_else(|| "not known".to_owned(), |n| at("incorrect", n));
    for cell in [
        at("pages", moves.pages),
        at("ours", moves.ours),
        at("kernel", moves.kernel),
        at("ping_pongs", moves.ping_pongs),
        at("multiple", moves.multiple),
        incorrect,
    ] {
        let _ = write!(html, "<td class=\"n\">{cell}</td>");
    }
    html + "</tr>" + END + "</div>"
}

/// Runtime migration: a lane for each pair of nodes, ours above its line, the kernel's below.
fn over_time(moves: &Moves, end: f64) -> String {
    let mut pairs: BTreeMap<(u16, u16), u64> = BTreeMap::new();
    for s in &moves.over_time {
        *pairs.entry((s.from, s.to)).or_default() += s.ours + s.kernel;
    }
    let mut lanes: Vec<_> = pairs.into_iter().collect();
    lanes.sort_by_key(|&(pair, pages)| (std::cmp::Reverse(pages), pair));
    let left = lanes.len().saturating_sub(LANES);
    lanes.truncate(LANES);
    let most = moves
        .over_time
        .iter()
        .map(|s| s.ours.max(s.kernel))
        .max()
        .unwrap_or(1);
    let mut svg = String::new();
    for (i, (pair, pages)) in lanes.iter().enumerate() {
        let steps = moves.over_time.iter().filter(|s| (s.from, s.to) == *pair);
        svg.push_str(&lane(i, *pair, *pages, steps, (end, most)));
    }
    let more = if left > 0 {
        format!(" {} with fewer moves are in the table.", plural(left, "pair"))
    } else {
        String::new()
    };
    format!(
        "<h3>Between which nodes, and when</h3><p>A lane for each pair of nodes, coloured by where pages went. \
         Bars upwards are our policies’ moves, grey bars downwards the kernel’s own; the tallest is {} pages.{more}</p>{}{}{}",
        count(most),
        legend(moves),
        picture(
            &(svg + &axis(lanes.len() as f64 * LANE, end)),
            lanes.len() as f64 * LANE + 24.0,
            "Moves between nodes over time; the table below has the figures."
        ),
        matrix(moves)
    )
}

fn picture(body: &str, height: f64, label: &str) -> String {
    format!(
        "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" aria-label=\"{label}\">{body}</svg>"
    )
}

fn x(time: f64, end: f64) -> f64 {
    LEFT + (time / end).clamp(0.0, 1.0) * (WIDTH - LEFT - 4.0)
}

fn axis(y: f64, end: f64) -> String {
    let mut svg = String::new();
    for tick in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let (at, time) = (x(tick * end, end), tick * end);
        let anchor = if tick == 1.0 { "end" } else { "middle" };
        let time = if time == 0.0 {
            "0 s".to_owned()
        } else {
            seconds(time)
        };
        let _ = write!(
            svg,
            "<text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{time}</text>",
            y + 18.0
        );
    }
    svg
}

fn lane<'a>(
    i: usize,
    (from, to): (u16, u16),
    pages: u64,
    steps: impl Iterator<Item = &'a Step>,
    (end, most): (f64, u64),
) -> String {
    let top = i as f64 * LANE;
    let base = top + DRAWN * 0.7;
    let mut svg = format!(
        "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{from} → {to}: {}</text><line class=\"grid\" x1=\"{LEFT}\" x2=\"{WIDTH}\" y1=\"{base:.1}\" y2=\"{base:.1}\"/>",
        LEFT - 10.0,
        base + 2.0,
        count(pages)
    );
    for s in steps {
        let (at, width) = (
            x(s.start_seconds, end),
            x(s.end_seconds, end) - x(s.start_seconds, end),
        );
        let mut bar = |class: &str, pages: u64, room: f64, up: bool, who: &str| {
            if pages > 0 {
                let height = (pages as f64 / most as f64 * room).max(1.0);
                let y = if up { base - height } else { base };
                let _ = write!(
                    svg,
                    "<rect class=\"{class}\" x=\"{at:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{height:.1}\"><title>{} {who} at {}</title></rect>",
                    (width - 0.8).max(1.2),
                    plural(pages as usize, "page"),
                    seconds(s.start_seconds),
                );
            }
        };
        bar(&colour(to), s.ours, DRAWN * 0.7, true, "by us");
        bar("kernel", s.kernel, DRAWN * 0.3, false, "by the kernel");
    }
    svg
}

/// Moves from node (row) to node (column).
fn matrix(moves: &Moves) -> String {
    let titles: Vec<String> = (0..moves.matrix.len()).map(|n| format!(">to {n}")).collect();
    let mut all = vec!["From"];
    all.extend(titles.iter().map(String::as_str));
    let mut html = String::from("<details><summary>The same as a table</summary><div class=\"scroll\">");
    html.push_str(&head("", &all));
    for (from, row) in moves.matrix.iter().enumerate() {
        let _ = write!(html, "<tr><th scope=\"row\">node {from}</th>");
        for (to, ours) in row.iter().enumerate() {
            let kernel = moves.kernel_matrix[from][to];
            let ours = figure(&format!("/moves/matrix/{from}/{to}"), ours, &grouped(*ours));
            let apart = figure(
                &format!("/moves/kernel_matrix/{from}/{to}"),
                kernel,
                &grouped(kernel),
            );
            let apart = if kernel > 0 {
                format!(" <small>+ {apart} by the kernel</small>")
            } else {
                String::new()
            };
            let _ = write!(html, "<td class=\"n\">{ours}{apart}</td>");
        }
        html.push_str("</tr>");
    }
    html + END + "</div></details>"
}

/// Page show: a bar through the run for each run of pages, in the colour of its home.
fn page_show(moves: &Moves, end: f64) -> String {
    let mut svg = String::new();
    for (i, journey) in moves.journeys.iter().enumerate() {
        svg.push_str(&bar(i, journey, end));
    }
    let height = moves.journeys.len() as f64 * LANE;
    format!(
        "<h3>Where the most-moved pages lived</h3><p>A bar for pages that always moved together, from the start of the run \
         to its end; its colour is their home, the tick a move. A colour that comes back is a ping-pong.</p>{}{}{}",
        legend(moves),
        picture(
            &(svg + &axis(height, end)),
            height + 24.0,
            "Homes of the most-moved pages through the run; the table below has the same."
        ),
        journeys(&moves.journeys)
    )
}

/// `grid 17`, `grid 17–40`.
fn place(page: u64, pages: u64) -> String {
    match pages {
        1 => grouped(page),
        n => format!("{}–{}", grouped(page), grouped(page + n - 1)),
    }
}

/// What fits left of the lanes.
fn shortened(name: &str) -> String {
    const ROOM: usize = 14;
    match name.chars().count() {
        n if n > ROOM => name.chars().take(ROOM - 1).chain(['…']).collect(),
        _ => name.to_owned(),
    }
}

fn bar(i: usize, journey: &PageJourney, end: f64) -> String {
    let top = i as f64 * LANE;
    let mut svg = format!(
        "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{} {}</text>",
        LEFT - 10.0,
        top + 15.0,
        Text(&shortened(&journey.object)),
        place(journey.page, journey.pages)
    );
    for (s, stay) in journey.stays.iter().enumerate() {
        let until = journey.stays.get(s + 1).map_or(end, |next| next.seconds);
        let (from, to) = (x(stay.seconds, end), x(until, end));
        let by = stay
            .by
            .as_ref()
            .map(|by| format!(", moved by {by}"))
            .unwrap_or_default();
        let _ = write!(
            svg,
            "<rect class=\"{}\" x=\"{from:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{DRAWN}\"><title>node {} from {}{}</title></rect>",
            colour(stay.node),
            (to - from).max(0.6),
            stay.node,
            seconds(stay.seconds),
            Text(&by)
        );
        if s > 0 {
            let _ = write!(
                svg,
                "<rect class=\"tick\" x=\"{:.1}\" y=\"{top:.1}\" width=\"1.2\" height=\"{DRAWN}\"/>",
                from - 0.6
            );
        }
    }
    svg
}

fn journeys(journeys: &[PageJourney]) -> String {
    let mut html = String::from("<details><summary>The same as a table</summary><div class=\"scroll\">");
    html.push_str(&head("", &["Object", ">Pages", "Homes in order"]));
    for j in journeys {
        let stays: Vec<_> = j.stays.iter().map(|s| s.node.to_string()).collect();
        let _ = write!(
            html,
            "<tr><th scope=\"row\"><code>{}</code></th><td class=\"n\">{}</td><td>{}</td></tr>",
            Text(&j.object),
            place(j.page, j.pages),
            stays.join(" → ")
        );
    }
    html + END + "</div></details>"
}

/// Page location: each object's pages in address order, first homes above, last homes below.
fn locations(moves: &Moves) -> String {
    let shown = &moves.objects[..moves.objects.len().min(OBJECTS)];
    let mut svg = String::new();
    let tall = 2.0 * LANE;
    for (i, object) in shown.iter().enumerate() {
        svg.push_str(&strips(i as f64 * tall, object));
    }
    format!(
        "<h3>Where pages lived first and last</h3><p>One column is a group of an object’s pages in address order: above, where most of \
         its moved pages lived before they were first moved, below, where they ended. Blank pages did not move.</p>{}{}",
        picture(
            &svg,
            shown.len() as f64 * tall,
            "First and last homes of each object's pages; the table below has the sums."
        ),
        objects(&moves.objects)
    )
}

fn strips(top: f64, object: &MovedObject) -> String {
    let last = object.homes.last().map_or(1, |h| h.page + h.pages);
    let pages = object.of_pages.max(last);
    let columns = pages.min(COLUMNS);
    let first = object.homes.first().map_or(0, |h| h.page);
    // An object nobody claimed has no first page: its strip begins where its moves do.
    let (base, pages) = if object.of_pages < last {
        (first, last - first)
    } else {
        (0, pages)
    };
    let mut svg = format!(
        "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
        LEFT - 10.0,
        top + 22.0,
        Text(&shortened(&object.name))
    );
    for (row, home) in [|h: &crate::Homes| h.first, |h: &crate::Homes| h.last]
        .into_iter()
        .enumerate()
    {
        let y = top + row as f64 * 18.0;
        let _ = write!(
            svg,
            "<rect class=\"blank\" x=\"{LEFT}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"15\"/>",
            WIDTH - LEFT - 4.0
        );
        let width = pages.div_ceil(columns.max(1));
        for (columns, node) in stretches(majority(object, base, width, home)) {
            let [from, to] = [columns.start, columns.end].map(|c| x((c * width) as f64, pages as f64));
            let _ = write!(
                svg,
                "<rect class=\"{}\" x=\"{from:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"15\"/>",
                colour(node),
                to - from
            );
        }
    }
    svg
}

/// Neighbouring columns of one node.
fn stretches(columns: BTreeMap<u64, u16>) -> Vec<(Range<u64>, u16)> {
    let mut stretches: Vec<(Range<u64>, u16)> = Vec::new();
    for (column, node) in columns {
        match stretches.last_mut() {
            Some((range, last)) if range.end == column && *last == node => range.end += 1,
            _ => stretches.push((column..column + 1, node)),
        }
    }
    stretches
}

/// The node of most moved pages of each column that has any.
fn majority(
    object: &MovedObject,
    base: u64,
    width: u64,
    home: fn(&crate::Homes) -> u16,
) -> BTreeMap<u64, u16> {
    let mut columns: BTreeMap<u64, BTreeMap<u16, u64>> = BTreeMap::new();
    for run in &object.homes {
        let (mut page, end) = (run.page - base, run.page - base + run.pages);
        while page < end {
            let next = (page / width + 1) * width;
            let part = next.min(end) - page;
            *columns
                .entry(page / width)
                .or_default()
                .entry(home(run))
                .or_default() += part;
            page += part;
        }
    }
    let most = |nodes: BTreeMap<u16, u64>| {
        nodes
            .into_iter()
            .max_by_key(|&(_, n)| n)
            .map_or(0, |(node, _)| node)
    };
    columns
        .into_iter()
        .map(|(column, nodes)| (column, most(nodes)))
        .collect()
}

fn objects(objects: &[MovedObject]) -> String {
    let mut html = String::from("<div class=\"scroll\">");
    html.push_str(&head(
        "",
        &[
            "Object",
            ">Pages moved",
            ">of",
            ">Moves, ours",
            ">Moves, kernel",
            ">Ping-pong",
            ">Multiple",
        ],
    ));
    for (i, o) in objects.iter().enumerate().take(ROWS) {
        let at = |key: &str, value: u64| figure(&format!("/moves/objects/{i}/{key}"), value, &grouped(value));
        let _ = write!(html, "<tr><th scope=\"row\"><code>{}</code></th>", Text(&o.name));
        for cell in [
            at("pages", o.pages),
            at("of_pages", o.of_pages),
            at("ours", o.ours),
            at("kernel", o.kernel),
            at("ping_pongs", o.ping_pongs),
            at("multiple", o.multiple),
        ] {
            let _ = write!(html, "<td class=\"n\">{cell}</td>");
        }
        html.push_str("</tr>");
    }
    html + END + "</div>"
}

/// The first moves with their reasons.
fn rows(report: &Report) -> String {
    let mut html = String::from("<details><summary>Moves and their reasons</summary><div class=\"scroll\">");
    html.push_str(&head(
        "",
        &[
            ">Time",
            "Object",
            ">Pages",
            ">From",
            ">To",
            "By",
            ">From there",
            ">From home",
            ">Had to exceed",
        ],
    ));
    for (i, m) in report.migrations.iter().enumerate().take(ROWS) {
        let at =
            |key: &str, value: f64| figure(&format!("/migrations/{i}/{key}"), value, &significant(value));
        let home = m
            .home_count
            .map_or_else(|| "not seen".to_owned(), |h| at("home_count", h));
        let _ = write!(
            html,
            "<tr><td class=\"n\">{}</td><td><code>{}</code></td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
             <td><code>{}</code></td><td class=\"n\">{}</td><td class=\"n\">{home}</td><td class=\"n\">{}</td></tr>",
            figure(
                &format!("/migrations/{i}/seconds"),
                m.seconds,
                &seconds(m.seconds)
            ),
            Text(&m.object),
            place(m.page, m.pages.into()),
            m.from,
            m.to,
            Text(&m.by),
            at("to_count", m.to_count),
            at("against", m.against)
        );
    }
    if report.migrations.len() > ROWS {
        html.push_str("<tr><td colspan=\"9\">More are in the JSON, all in the profile’s table <code>migrations</code></td></tr>");
    }
    html + END + "</div></details>"
}

/// A count that may be decayed.
fn significant(value: f64) -> String {
    if value.fract() == 0.0 {
        count(value as u64)
    } else {
        format!("{value:.2}")
    }
}

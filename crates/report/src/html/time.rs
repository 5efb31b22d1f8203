//! The run in time: exclusivity and locality over slices, moves, sharing.

use super::markup::{Text, bar, figure};
use crate::{Report, Slice, count, percent, seconds};
use std::fmt::Write;

const WIDTH: f64 = 1080.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 48.0;
const BOTTOM: f64 = 28.0;
/// Most steps of a curve; longer runs are averaged, weighted by accesses.
const STEPS: usize = 360;

/// Slices, then moves and sharing beside each other.
pub fn write(report: &Report) -> String {
    format!(
        "{}<div class=\"pair\">{}{}</div>",
        slices(report),
        moves(report),
        sharing(report)
    )
}

fn slices(report: &Report) -> String {
    let mut html = String::from("<section aria-labelledby=\"time\"><h2 id=\"time\">Over time</h2>");
    if report.slices.len() < 2 {
        html.push_str("<p>The recording has one slice; record with a shorter <code>--slice</code> to see change over time.</p></section>");
        return html;
    }
    html.push_str(
        "<p>Exclusivity is the local share that a page map made for that moment alone could reach; \
         the local share today is what first-touch gives. The gap between the curves is what placement can win; \
         curves that change mean that one map cannot fit the whole run.</p>",
    );
    html.push_str(&chart(&thin(&report.slices)));
    html.push_str("<details><summary>The same as a table</summary><div class=\"scroll\"><table><thead><tr><th scope=\"col\">Slice</th><th scope=\"col\" class=\"n\">From</th><th scope=\"col\" class=\"n\">To</th><th scope=\"col\" class=\"n\">Accesses</th><th scope=\"col\" class=\"n\">Exclusivity</th><th scope=\"col\" class=\"n\">Local</th></tr></thead><tbody>");
    for (i, s) in report.slices.iter().enumerate().take(STEPS) {
        let at = |key: &str| format!("/slices/{i}/{key}");
        let _ = write!(
            html,
            "<tr><th scope=\"row\">{i}</th><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
            figure(&at("start_seconds"), s.start_seconds, &seconds(s.start_seconds)),
            figure(&at("end_seconds"), s.end_seconds, &seconds(s.end_seconds)),
            figure(&at("accesses"), s.accesses, &count(s.accesses)),
            figure(&at("exclusivity"), s.exclusivity, &percent(s.exclusivity)),
            figure(
                &at("local_fraction"),
                s.local_fraction,
                &percent(s.local_fraction)
            ),
        );
    }
    html.push_str("</tbody></table></div></details></section>");
    html
}

/// Averages neighbours until at most [`STEPS`] are left; slices without accesses are left out.
fn thin(slices: &[Slice]) -> Vec<Slice> {
    let busy: Vec<Slice> = slices.iter().filter(|s| s.accesses > 0).copied().collect();
    busy.chunks(busy.len().div_ceil(STEPS).max(1))
        .map(|group| {
            let accesses: u64 = group.iter().map(|s| s.accesses).sum();
            let mean = |f: fn(&Slice) -> f64| {
                group.iter().map(|s| f(s) * s.accesses as f64).sum::<f64>() / accesses as f64
            };
            Slice {
                start_seconds: group[0].start_seconds,
                end_seconds: group[group.len() - 1].end_seconds,
                accesses,
                exclusivity: mean(|s| s.exclusivity),
                local_fraction: mean(|s| s.local_fraction),
                migrations: group.iter().map(|s| s.migrations).sum(),
            }
        })
        .collect()
}

fn chart(slices: &[Slice]) -> String {
    let end = slices
        .last()
        .map_or(1.0, |s| s.end_seconds)
        .max(f64::MIN_POSITIVE);
    let x = |t: f64| LEFT + t / end * (WIDTH - LEFT - 8.0);
    let y = |v: f64| 8.0 + (1.0 - v) * (HEIGHT - BOTTOM - 8.0);
    let mut svg = format!(
        "<div class=\"legend\"><span class=\"line exclusivity\">exclusivity</span><span class=\"line local\">local share today</span></div>\
         <svg class=\"chart\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"Exclusivity and local share over {}; the table below has the figures.\">",
        seconds(end)
    );
    for tick in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{WIDTH}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/><text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{:.0} %</text>",
            LEFT - 8.0,
            y(tick) + 4.0,
            tick * 100.0,
            y = y(tick)
        );
        let _ = write!(
            svg,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"{}\">{}</text>",
            x(tick * end),
            HEIGHT - 6.0,
            if tick == 1.0 { "end" } else { "middle" },
            seconds_tick(tick * end)
        );
    }
    for (class, value) in [
        ("exclusivity", (|s| s.exclusivity) as fn(&Slice) -> f64),
        ("local", |s| s.local_fraction),
    ] {
        let points: Vec<String> = slices
            .iter()
            .flat_map(|s| [s.start_seconds, s.end_seconds].map(|t| format!("{:.1},{:.1}", x(t), y(value(s)))))
            .collect();
        let _ = write!(
            svg,
            "<polyline class=\"{class}\" points=\"{}\"/>",
            points.join(" ")
        );
    }
    svg.push_str("</svg>");
    svg
}

fn seconds_tick(t: f64) -> String {
    if t == 0.0 { "0 s".to_owned() } else { seconds(t) }
}

fn moves(report: &Report) -> String {
    let moves = &report.dynamicity;
    let pages: u64 = moves.pages_by_moves.iter().sum();
    let mut html = format!(
        "<section aria-labelledby=\"moves\"><h2 id=\"moves\">How restless the pages are</h2>\
         <p>To keep every page where each slice uses it most would take {} moves. \
         Pages that never need to move are served as well by a static map as by a live balancer.</p>\
         <table><thead><tr><th scope=\"col\">Moves</th><th scope=\"col\" class=\"n\">Pages</th><th scope=\"col\" colspan=\"2\">Share</th></tr></thead><tbody>",
        figure(
            "/dynamicity/migrations",
            moves.migrations,
            &count(moves.migrations)
        )
    );
    for (i, &n) in moves.pages_by_moves.iter().enumerate().take(8) {
        let share = n as f64 / pages.max(1) as f64;
        let _ = write!(
            html,
            "<tr><th scope=\"row\">{i}</th><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"wide\">{}</td></tr>",
            figure(&format!("/dynamicity/pages_by_moves/{i}"), n, &count(n)),
            percent(share),
            bar("plain", share)
        );
    }
    html.push_str("</tbody></table></section>");
    html
}

fn sharing(report: &Report) -> String {
    let (pages, accesses) = report
        .sharing
        .iter()
        .fold((0, 0), |(p, a), s| (p + s.pages, a + s.accesses));
    let mut html = String::from(
        "<section aria-labelledby=\"sharing\"><h2 id=\"sharing\">How data is shared</h2>\
         <p>Private and non-shared pages belong to one thread; node-shared ones to threads of one node. \
         Uniformly shared pages are used from several nodes, whatever the shares.</p>\
         <table><thead><tr><th scope=\"col\">Class</th><th scope=\"col\" class=\"n\">Pages</th><th scope=\"col\" class=\"n\">Accesses</th><th scope=\"col\" colspan=\"2\">Share of accesses</th></tr></thead><tbody>",
    );
    for (i, s) in report.sharing.iter().enumerate() {
        let share = s.accesses as f64 / accesses.max(1) as f64;
        let _ = write!(
            html,
            "<tr><th scope=\"row\">{}</th><td class=\"n\">{} <small>{}</small></td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"wide\">{}</td></tr>",
            Text(&s.class),
            figure(&format!("/sharing/{i}/pages"), s.pages, &count(s.pages)),
            percent(s.pages as f64 / pages.max(1) as f64),
            figure(&format!("/sharing/{i}/accesses"), s.accesses, &count(s.accesses)),
            percent(share),
            bar("plain", share)
        );
    }
    html.push_str("</tbody></table></section>");
    html
}

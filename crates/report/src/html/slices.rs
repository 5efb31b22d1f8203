//! The run in time: exclusivity and locality, slice by slice.

use super::markup::{END, figure, head};
use crate::{Report, Slice, count, percent, seconds};
use std::fmt::Write;

const WIDTH: f64 = 1080.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 48.0;
const BOTTOM: f64 = 28.0;
/// Most steps of a curve, and rows of its table; longer runs are averaged, weighted by accesses.
const STEPS: usize = 360;

/// The curves, and the same as a table.
pub fn write(report: &Report) -> String {
    let mut html = String::from("<section aria-labelledby=\"time\"><h2 id=\"time\">Over time</h2>");
    if report.slices.len() < 2 {
        html.push_str("<p>The recording has one slice; record with a shorter <code>--slice</code> to see change over time.</p></section>");
        return html;
    }
    html.push_str(
        "<p>Exclusivity is the local share that a page map made for that moment alone could reach; \
         the local share today is what first-touch gives. The gap between the curves is what placement can win; \
         curves that change mean that one map cannot fit the whole run. Where they break off, no accesses were counted.</p>",
    );
    html.push_str(&chart(&thin(&report.slices)));
    html.push_str(&table(&report.slices));
    html.push_str("</section>");
    html
}

fn table(slices: &[Slice]) -> String {
    let mut html = String::from("<details><summary>The same as a table</summary><div class=\"scroll\">");
    html.push_str(&head(
        "",
        &["Slice", ">From", ">To", ">Accesses", ">Exclusivity", ">Local"],
    ));
    for (i, s) in slices.iter().enumerate().take(STEPS) {
        let at = |key: &str, value: f64, text: String| figure(&format!("/slices/{i}/{key}"), value, &text);
        let _ = write!(html, "<tr><th scope=\"row\">{i}</th>");
        for cell in [
            at("start_seconds", s.start_seconds, seconds(s.start_seconds)),
            at("end_seconds", s.end_seconds, seconds(s.end_seconds)),
            figure(&format!("/slices/{i}/accesses"), s.accesses, &count(s.accesses)),
            at("exclusivity", s.exclusivity, percent(s.exclusivity)),
            at("local_fraction", s.local_fraction, percent(s.local_fraction)),
        ] {
            let _ = write!(html, "<td class=\"n\">{cell}</td>");
        }
        html.push_str("</tr>");
    }
    if slices.len() > STEPS {
        let _ = write!(
            html,
            "<tr><td colspan=\"6\">{} more are in the JSON</td></tr>",
            slices.len() - STEPS
        );
    }
    html + END + "</div></details>"
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

/// Where a time or a share lies in the picture.
struct Scale {
    end: f64,
}

impl Scale {
    fn x(&self, t: f64) -> f64 {
        LEFT + t / self.end * (WIDTH - LEFT - 8.0)
    }

    fn y(value: f64) -> f64 {
        8.0 + (1.0 - value) * (HEIGHT - BOTTOM - 8.0)
    }
}

fn chart(slices: &[Slice]) -> String {
    let end = slices
        .last()
        .map_or(1.0, |s| s.end_seconds)
        .max(f64::MIN_POSITIVE);
    let scale = Scale { end };
    format!(
        "<div class=\"legend\"><span class=\"line exclusivity\">exclusivity</span><span class=\"line local\">local share today</span></div>\
         <svg class=\"chart\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"Exclusivity and local share over {}; the table below has the figures.\">{}{}{}</svg>",
        seconds(end),
        grid(&scale),
        curve(slices, &scale, "exclusivity", |s| s.exclusivity),
        curve(slices, &scale, "local", |s| s.local_fraction),
    )
}

fn grid(scale: &Scale) -> String {
    let mut svg = String::new();
    for tick in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let y = Scale::y(tick);
        let time = tick * scale.end;
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{WIDTH}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{:.0} %</text>\
             <text x=\"{:.1}\" y=\"{}\" text-anchor=\"{}\">{}</text>",
            LEFT - 8.0,
            y + 4.0,
            tick * 100.0,
            scale.x(time),
            HEIGHT - 6.0,
            if tick == 1.0 { "end" } else { "middle" },
            if time == 0.0 {
                "0 s".to_owned()
            } else {
                seconds(time)
            },
        );
    }
    svg
}

fn curve(slices: &[Slice], scale: &Scale, class: &str, value: fn(&Slice) -> f64) -> String {
    let mut svg = String::new();
    for busy in slices.chunk_by(|a, b| b.start_seconds - a.end_seconds < scale.end * 1e-3) {
        let step = |s: &Slice| {
            [s.start_seconds, s.end_seconds].map(|t| format!("{:.1},{:.1}", scale.x(t), Scale::y(value(s))))
        };
        let points: Vec<String> = busy.iter().flat_map(step).collect();
        let _ = write!(
            svg,
            "<polyline class=\"{class}\" points=\"{}\"/>",
            points.join(" ")
        );
    }
    svg
}

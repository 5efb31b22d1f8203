//! SVG of a parameter sweep, with a panel for each parameter; for light and dark colour schemes, with tooltips.

// Why: docs/decisions/structure.md

use crate::markup::Text;
use crate::{count, percent};
use std::fmt::Write;

/// Results of one value of one parameter; all other parameters have their chosen values.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepPoint {
    /// Name of the parameter.
    pub parameter: String,
    /// Value of the parameter, as written.
    pub value: String,
    /// Whether this is the chosen value, which the other panels assume.
    pub chosen: bool,
    /// Predicted speed-up over the baseline.
    pub speedup: f64,
    /// Share of local accesses.
    pub local_fraction: f64,
    /// Number of pages moved.
    pub migrations: u64,
}

const STYLE: &str = "text{font:12px system-ui,'Segoe UI','DejaVu Sans',sans-serif;fill:#171b21}\
.title{font-size:17px;font-weight:600}.small{font-size:11px;fill:#59636f}.tiny{font-size:10px;fill:#59636f}.middle{text-anchor:middle}\
.end{text-anchor:end}.name{font-weight:600}.ground{fill:#f5f6f8}.card{fill:#fff;stroke:#dde1e7}.axis{stroke:#aab3bf;fill:none}\
.one{stroke:#aab3bf;stroke-dasharray:3 3}.gain{stroke:#1667a8;fill:none;stroke-width:1.8}.dot{fill:#1667a8}\
.chosen{stroke:#171b21;stroke-width:2}.moves{fill:#e69f00}\
@media(prefers-color-scheme:dark){text{fill:#e7ebf0}.small,.tiny{fill:#9aa5b2}.ground{fill:#0e1217}.card{fill:#161b22;stroke:#2a323c}\
.axis,.one{stroke:#56616e}.gain{stroke:#5fb0f2}.dot{fill:#5fb0f2}.chosen{stroke:#e7ebf0}}";

const PANEL: (f64, f64) = (296.0, 222.0);
const GAP: f64 = 16.0;
const MARGIN: f64 = 24.0;
const TOP: f64 = 96.0;
const COLUMNS: usize = 3;
/// Height of the curve and of the bars below it, SVG units.
const CURVE: f64 = 104.0;
const BARS: f64 = 40.0;

/// The picture of a sweep, a complete SVG document. In `points`, those of one parameter must be consecutive.
#[must_use]
pub fn sweep_svg(title: &str, summary: &str, points: &[SweepPoint]) -> String {
    let panels: Vec<_> = points.chunk_by(|a, b| a.parameter == b.parameter).collect();
    let columns = panels.len().clamp(1, COLUMNS);
    let rows = panels.len().div_ceil(columns).max(1);
    let width = 2.0 * MARGIN + columns as f64 * (PANEL.0 + GAP) - GAP;
    let height = TOP + rows as f64 * (PANEL.1 + GAP) + 8.0;
    let scale = Scale::of(points);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
         height=\"{height:.0}\" role=\"img\" aria-label=\"Sensitivity of {title}\"><style>{STYLE}</style>\n\
         <rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n\
         <text class=\"title\" x=\"{MARGIN}\" y=\"34\">{title}</text><text class=\"small\" x=\"{MARGIN}\" y=\"54\">{summary}</text>\n\
         <circle class=\"dot\" cx=\"{a}\" cy=\"74\" r=\"4\"/><text class=\"small\" x=\"{b}\" y=\"78\">speed-up</text>\
         <circle class=\"dot chosen\" cx=\"{c}\" cy=\"74\" r=\"4\"/><text class=\"small\" x=\"{d}\" y=\"78\">as in the other panels</text>\
         <rect class=\"moves\" x=\"{e}\" y=\"69\" width=\"10\" height=\"10\"/><text class=\"small\" x=\"{f}\" y=\"78\">pages moved</text>\n",
        title = Text(title),
        summary = Text(summary),
        a = MARGIN + 5.0,
        b = MARGIN + 15.0,
        c = MARGIN + 85.0,
        d = MARGIN + 95.0,
        e = MARGIN + 235.0,
        f = MARGIN + 250.0,
    );
    for (i, panel) in panels.iter().enumerate() {
        let x = MARGIN + (i % columns) as f64 * (PANEL.0 + GAP);
        let y = TOP + (i / columns) as f64 * (PANEL.1 + GAP);
        let _ = writeln!(
            svg,
            "<g transform=\"translate({x:.0} {y:.0})\">{}</g>",
            draw(panel, &scale)
        );
    }
    svg.push_str("</svg>\n");
    svg
}

/// The range of the curves, common to all panels.
struct Scale {
    low: f64,
    high: f64,
    moves: u64,
}

impl Scale {
    fn of(points: &[SweepPoint]) -> Self {
        let fold = |f: fn(f64, f64) -> f64| points.iter().map(|p| p.speedup).fold(1.0, f);
        let (low, high) = (fold(f64::min), fold(f64::max));
        let room = (0.06 * (high - low)).max(0.005);
        Self {
            low: low - room,
            high: high + room,
            moves: points.iter().map(|p| p.migrations).max().unwrap_or(0).max(1),
        }
    }

    fn y(&self, speedup: f64) -> f64 {
        34.0 + (self.high - speedup) / (self.high - self.low) * CURVE
    }
}

fn draw(points: &[SweepPoint], scale: &Scale) -> String {
    let (left, right) = (46.0, PANEL.0 - 12.0);
    let step = (right - left) / points.len() as f64;
    let floor = 34.0 + CURVE + 14.0 + BARS;
    let mut svg = format!(
        "<rect class=\"card\" width=\"{}\" height=\"{}\" rx=\"8\"/><text class=\"name\" x=\"14\" y=\"22\">{}</text>\
         <path class=\"one\" d=\"M{left} {one:.1}H{right}\"/><path class=\"axis\" d=\"M{left} {floor}H{right}\"/>\
         <text class=\"tiny end\" x=\"{x}\" y=\"{:.1}\">{:.2}</text><text class=\"tiny end\" x=\"{x}\" y=\"{:.1}\">{:.2}</text>\
         <text class=\"tiny end\" x=\"{x}\" y=\"{:.1}\">{}</text>",
        PANEL.0,
        PANEL.1,
        Text(&points[0].parameter),
        scale.y(scale.high) + 4.0,
        scale.high,
        scale.y(scale.low) + 4.0,
        scale.low,
        floor - BARS + 8.0,
        count(scale.moves),
        one = scale.y(1.0),
        x = left - 6.0,
    );
    let mut line = String::new();
    let (mut dots, mut labels) = (String::new(), String::new());
    for (i, p) in points.iter().enumerate() {
        let (x, y) = (left + (i as f64 + 0.5) * step, scale.y(p.speedup));
        let _ = write!(line, "{}{x:.1} {y:.1}", if i == 0 { 'M' } else { 'L' });
        let tall = BARS * p.migrations as f64 / scale.moves as f64;
        let _ = write!(
            dots,
            "<g><title>{} {}: {:.3} times as fast, {} local, {} moved</title>\
             <rect class=\"moves\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{tall:.1}\"/>\
             <circle class=\"dot{}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\"/></g>",
            Text(&p.parameter),
            Text(&p.value),
            p.speedup,
            percent(p.local_fraction),
            count(p.migrations),
            x - 0.3 * step,
            floor - tall,
            0.6 * step,
            if p.chosen { " chosen" } else { "" },
        );
        let _ = write!(
            labels,
            "<text class=\"tiny middle\" x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
            floor + 14.0,
            Text(&p.value)
        );
    }
    let _ = write!(svg, "<path class=\"gain\" d=\"{line}\"/>{dots}{labels}");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panel_a_parameter_a_dot_a_value_and_names_cannot_break_out() {
        let point = |parameter: &str, value: &str, speedup| SweepPoint {
            parameter: parameter.into(),
            value: value.into(),
            chosen: value == "2",
            speedup,
            local_fraction: 0.5,
            migrations: 10,
        };
        let points = [
            point("threshold", "1", 0.9),
            point("threshold", "2", 1.4),
            point("weight", "<b>", 1.2),
        ];
        let svg = sweep_svg("balance:out-w", "4 nodes & more", &points);
        assert_eq!(svg.matches("class=\"card\"").count(), 2);
        assert_eq!(svg.matches("times as fast").count(), 3);
        assert!(svg.contains("&lt;b&gt;") && svg.contains("nodes &amp; more") && !svg.contains("<b>"));
    }
}

//! SVG of the additional time by the size of the fast memory, for light and dark colour schemes, with tooltips.

// Why: docs/decisions/structure.md

use crate::markup::Text;
use crate::{bytes, percent};
use std::fmt::Write;

/// One size of the fast memory.
#[derive(Clone, Debug, PartialEq)]
pub struct SizePoint {
    /// Bytes in fast memory.
    pub fast_bytes: u64,
    /// Additional time over that with all in fast memory, as a fraction: least, typical, most.
    pub loss: [f64; 3],
    /// The same, typical, where the memory is filled in the order of first touches, if that was predicted.
    pub filled_loss: Option<f64>,
    /// Share of the memory traffic that the fast nodes serve, 0–1.
    pub fast_share: f64,
}

const STYLE: &str = "text{font:12px system-ui,'Segoe UI','DejaVu Sans',sans-serif;fill:#171b21}\
.title{font-size:17px;font-weight:600}.small{font-size:11px;fill:#59636f}.middle{text-anchor:middle}.end{text-anchor:end}\
.ground{fill:#f5f6f8}.card{fill:#fff;stroke:#dde1e7}.grid{stroke:#dde1e7}.band{fill:#1667a8;fill-opacity:.16}\
.hot{stroke:#1667a8;fill:none;stroke-width:2}.dot{fill:#1667a8}.filled{stroke:#b85c00;fill:none;stroke-width:2;stroke-dasharray:5 4}\
.may{stroke:#2c8a4b;stroke-width:1.5}\
@media(prefers-color-scheme:dark){text{fill:#e7ebf0}.small{fill:#9aa5b2}.ground{fill:#0e1217}.card{fill:#161b22;stroke:#2a323c}\
.grid{stroke:#2a323c}.band{fill:#5fb0f2;fill-opacity:.2}.hot{stroke:#5fb0f2}.dot{fill:#5fb0f2}.filled{stroke:#f0a04b}.may{stroke:#5fce85}}";

const SIZE: (f64, f64) = (800.0, 468.0);
/// Left, top, right and bottom edge of the plot.
const PLOT: [f64; 4] = [76.0, 132.0, 752.0, 412.0];

/// The picture, a complete SVG document; `points` ascend by size, and `may_lose` is the loss that is drawn as a line.
#[must_use]
pub fn sizes_svg(title: &str, summary: &[String; 2], may_lose: f64, points: &[SizePoint]) -> String {
    let scale = Scale::of(points, may_lose);
    let [left, _, right, bottom] = PLOT;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {w} {h}\" width=\"{w}\" height=\"{h}\" role=\"img\" \
         aria-label=\"{title}\"><style>{STYLE}</style>\n<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n\
         <text class=\"title\" x=\"24\" y=\"32\">{title}</text><text class=\"small\" x=\"24\" y=\"52\">{first}.</text>\
         <text class=\"small\" x=\"24\" y=\"68\">{second}.</text>\n\
         <path class=\"hot\" d=\"M24 88h22\"/><text class=\"small\" x=\"52\" y=\"92\">hottest first, with its range</text>\
         <path class=\"filled\" d=\"M222 88h22\"/><text class=\"small\" x=\"250\" y=\"92\">filled in the order of first touches</text>\
         <path class=\"may\" d=\"M470 88h22\"/><text class=\"small\" x=\"498\" y=\"92\">{may} may be lost</text>\n\
         <rect class=\"card\" x=\"{left}\" y=\"{top}\" width=\"{pw}\" height=\"{ph}\"/>\n",
        w = SIZE.0,
        h = SIZE.1,
        title = Text(title),
        first = Text(&summary[0]),
        second = Text(&summary[1]),
        may = percent(may_lose),
        top = PLOT[1],
        pw = right - left,
        ph = bottom - PLOT[1],
    );
    let mut loss = scale.low;
    while loss <= scale.high + scale.step / 2.0 {
        let y = scale.y(loss);
        let _ = writeln!(
            svg,
            "<path class=\"grid\" d=\"M{left} {y:.1}H{right}\"/><text class=\"small end\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            left - 8.0,
            y + 4.0,
            percent(loss)
        );
        loss += scale.step;
    }
    for step in 0..=4 {
        let size = scale.most * step / 4;
        let _ = writeln!(
            svg,
            "<text class=\"small middle\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            scale.x(size),
            bottom + 18.0,
            bytes(size)
        );
    }
    let _ = writeln!(
        svg,
        "<text class=\"small middle\" x=\"{:.1}\" y=\"{:.1}\">fast memory that the program has</text>\
         <text class=\"small\" x=\"24\" y=\"{:.1}\">additional time</text>",
        f64::midpoint(left, right),
        bottom + 40.0,
        PLOT[1] - 14.0
    );
    let at = |p: &SizePoint, loss: f64| format!("{:.1} {:.1}", scale.x(p.fast_bytes), scale.y(loss));
    let along = |end: usize| points.iter().map(move |p| at(p, p.loss[end]));
    let back: Vec<String> = along(0).collect();
    let band: Vec<String> = along(2).chain(back.into_iter().rev()).collect();
    let filled: Vec<String> = points
        .iter()
        .filter_map(|p| Some(at(p, p.filled_loss?)))
        .collect();
    let _ = writeln!(
        svg,
        "<polygon class=\"band\" points=\"{}\"/><polyline class=\"filled\" points=\"{}\"/><polyline class=\"hot\" points=\"{}\"/>\
         <path class=\"may\" d=\"M{left} {y:.1}H{right}\"/>",
        band.join(" "),
        filled.join(" "),
        along(1).collect::<Vec<_>>().join(" "),
        y = scale.y(may_lose),
    );
    for p in points {
        let _ = writeln!(
            svg,
            "<g><title>{} in fast memory, which serves {}: {} more time ({} to {})</title>\
             <circle class=\"dot\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.5\"/></g>",
            bytes(p.fast_bytes),
            percent(p.fast_share),
            percent(p.loss[1]),
            percent(p.loss[0]),
            percent(p.loss[2]),
            scale.x(p.fast_bytes),
            scale.y(p.loss[1])
        );
    }
    svg + "</svg>\n"
}

/// Losses from `low` to `high`, both multiples of `step`, which is 1, 2 or 5 times a power of ten; zero is among them.
struct Scale {
    most: u64,
    low: f64,
    high: f64,
    step: f64,
}

impl Scale {
    fn of(points: &[SizePoint], may_lose: f64) -> Self {
        let all = || {
            points
                .iter()
                .flat_map(|p| p.loss.into_iter().chain(p.filled_loss))
        };
        let low = all().fold(0.0, f64::min);
        let high = all().fold(may_lose.max(0.01), f64::max);
        let rough = (high - low) / 4.0;
        let power = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .into_iter()
            .find(|s| s * power >= rough)
            .unwrap_or(10.0)
            * power;
        Self {
            most: points.iter().map(|p| p.fast_bytes).max().unwrap_or(0).max(1),
            low: (low / step).floor() * step,
            high: (high / step).ceil() * step,
            step,
        }
    }

    fn x(&self, size: u64) -> f64 {
        PLOT[0] + (PLOT[2] - PLOT[0]) * size as f64 / self.most as f64
    }

    fn y(&self, loss: f64) -> f64 {
        PLOT[3] - (PLOT[3] - PLOT[1]) * (loss - self.low) / (self.high - self.low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dot_a_size_and_a_title_that_cannot_break_out() {
        let point = |fast_bytes, typical| SizePoint {
            fast_bytes,
            loss: [typical / 2.0, typical, typical * 2.0],
            filled_loss: (fast_bytes == 0).then_some(1.0),
            fast_share: 0.5,
        };
        let svg = sizes_svg(
            "hot:0 on <b>",
            &["1 & 2".to_owned(), String::new()],
            0.05,
            &[point(0, 0.8), point(1 << 30, 0.0)],
        );
        assert_eq!(svg.matches("class=\"dot\"").count(), 2);
        assert!(svg.contains("hot:0 on &lt;b&gt;") && svg.contains("1 &amp; 2.") && !svg.contains("NaN"));
        assert!(svg.contains("1 GiB in fast memory"));
        let none = sizes_svg("hot:0", &[String::new(), String::new()], 0.0, &[]);
        assert!(!none.contains("NaN"));
    }
}

//! The matrices as a picture: one heat map for each placement, side by side, on one colour scale. Blue is local, orange
//! is remote (distinguishable with any kind of colour vision); deeper colours are larger shares. One SVG file for light
//! and dark colour schemes, with tooltips.

use super::Experiment;
use super::matrix::{Shares, short};
use super::panel::{Scale, draw};
use crate::markup::Text;
use crate::text::wrap;
use nodewise_input::escaped;
use std::fmt::Write;

/// Colours are given twice, as plain values and in a media query: SVG attributes cannot depend on the reader's colour
/// scheme, and some viewers do not support CSS variables.
const STYLE: &str = "text{font:12px system-ui,'Segoe UI','DejaVu Sans',sans-serif;fill:#171b21}\
.title{font-size:19px;font-weight:600}.run{font-size:15px;font-weight:600}.small{font-size:11px;fill:#59636f}\
.middle{text-anchor:middle}.end{text-anchor:end}.number{font-size:12px}.tight{font-size:10px}\
.ground{fill:#f5f6f8}.card{fill:#fff;stroke:#dde1e7}.paper{fill:#eef0f3}.local{fill:#1667a8}.remote{fill:#b84e00}\
.sum{fill:#8a95a2}.home{fill:none;stroke:#1667a8;stroke-width:2}.nil{fill:#9aa3ae}.b{fill:#171b21}.c{fill:#fff}\
@media(prefers-color-scheme:dark){text{fill:#e7ebf0}.small{fill:#9aa5b2}.ground{fill:#0e1217}\
.card{fill:#161b22;stroke:#2a323c}.paper{fill:#1f262f}.local{fill:#5fb0f2}.remote{fill:#ff9d4d}.sum{fill:#6b7785}\
.home{stroke:#5fb0f2}.nil{fill:#6b7785}.b,.c{fill:#0e1217}}";

/// Largest width of a row of panels, SVG units.
const PAGE: f64 = 1060.0;
const MARGIN: f64 = 24.0;
/// Distance between panels, SVG units.
const GAP: f64 = 20.0;
const LEGEND: f64 = 66.0;
const LINE: f64 = 15.0;

/// The picture of an experiment, a complete SVG document. Runs without counts are left out.
#[must_use]
pub fn write(experiment: &Experiment) -> String {
    let scale = Scale::of(experiment);
    let counted = experiment.runs().iter().filter(|r| r.accesses.is_some());
    let panels: Vec<String> = counted.map(|run| draw(experiment, run, &scale)).collect();
    let fitting = (((PAGE - 2.0 * MARGIN + GAP) / (scale.width + GAP)) as usize).max(1);
    let rows = panels.len().div_ceil(fitting).max(1);
    let columns = panels.len().div_ceil(rows).max(1);
    let inner = (columns as f64 * (scale.width + GAP) - GAP).max(460.0);
    let width = inner + 2.0 * MARGIN;
    let letters = (inner / 5.9) as usize;
    let place = wrap(&escaped(&experiment.place()), letters);
    let foot = wrap(&escaped(&experiment.method()), letters);
    let top = 50.0 + LINE * place.len() as f64;
    let legend = top + rows as f64 * (scale.height + GAP);
    let height = legend + LEGEND + LINE * foot.len() as f64 + 12.0;

    let mut svg = head(experiment, width, height);
    lines(&mut svg, 54.0, &place);
    for (i, panel) in panels.iter().enumerate() {
        let x = MARGIN + (i % columns) as f64 * (scale.width + GAP);
        let y = top + (i / columns) as f64 * (scale.height + GAP);
        let _ = writeln!(svg, "<g transform=\"translate({x:.1} {y:.1})\">{panel}</g>");
    }
    svg.push_str(&key(&scale, legend));
    lines(&mut svg, legend + LEGEND + 8.0, &foot);
    svg.push_str("</svg>\n");
    svg
}

fn head(experiment: &Experiment, width: f64, height: f64) -> String {
    let command = escaped(&experiment.command.join(" "));
    let room = ((width - 2.0 * MARGIN) / 10.5) as usize;
    let title = if command.chars().count() > room {
        command.chars().take(room - 1).chain(['…']).collect()
    } else {
        command
    };
    let described: Vec<String> = experiment.runs().iter().map(described).collect();
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
         height=\"{height:.0}\" role=\"img\" aria-label=\"Accesses by node of the CPU and of the memory; {}\">\
         <style>{STYLE}</style>\n<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n\
         <text class=\"title\" x=\"{MARGIN}\" y=\"34\">{}</text>\n",
        Text(&escaped(&described.join("; "))),
        Text(&title),
    )
}

/// Text alternative of a panel for screen readers.
fn described(run: &super::LabRun) -> String {
    let local = run.local_fraction.map_or("nothing counted".to_owned(), |f| {
        format!("{} local", crate::percent(f))
    });
    format!("{}: {local}", run.name())
}

fn lines(svg: &mut String, y: f64, lines: &[String]) {
    for (i, line) in lines.iter().enumerate() {
        let y = y + LINE * i as f64;
        let _ = writeln!(
            svg,
            "<text class=\"small\" x=\"{MARGIN}\" y=\"{y:.1}\">{}</text>",
            Text(line)
        );
    }
}

/// The legend of colours and shades.
fn key(scale: &Scale, y: f64) -> String {
    let mut svg = format!(
        "<text class=\"small\" x=\"{MARGIN}\" y=\"{:.1}\">per cent of a run's accesses; outlined: a node's own \
         memory</text>\n",
        y + 10.0
    );
    ramp(&mut svg, scale, "local", MARGIN, y + 20.0);
    ramp(&mut svg, scale, "remote", MARGIN + 230.0, y + 20.0);
    svg
}

/// Draws the scale of one colour, from zero to the largest share, with three numbers.
fn ramp(svg: &mut String, scale: &Scale, class: &str, x: f64, y: f64) {
    const STEPS: u32 = 28;
    const STEP: f64 = 5.0;
    let (left, length) = (x + 52.0, f64::from(STEPS) * STEP);
    let share = |part: f64| part * part * scale.most;
    let _ = write!(
        svg,
        "<text class=\"number\" x=\"{x}\" y=\"{:.1}\">{class}</text>\
         <rect class=\"paper\" x=\"{left}\" y=\"{y:.1}\" width=\"{length}\" height=\"14\"/>",
        y + 11.0
    );
    for step in 0..STEPS {
        let _ = write!(
            svg,
            "<rect class=\"{class}\" x=\"{:.1}\" y=\"{y:.1}\" width=\"{STEP}\" height=\"14\" fill-opacity=\"{:.3}\"/>",
            left + f64::from(step) * STEP,
            scale.shade(share((f64::from(step) + 0.5) / f64::from(STEPS)))
        );
    }
    for (part, anchor) in [(0.0, ""), (0.5, " middle"), (1.0, " end")] {
        let number = if part > 0.0 {
            short(share(part))
        } else {
            "0".to_owned()
        };
        let _ = write!(
            svg,
            "<text class=\"small{anchor}\" x=\"{:.1}\" y=\"{:.1}\">{number}</text>",
            left + part * length,
            y + 27.0
        );
    }
    svg.push('\n');
}

impl Scale {
    /// The common scale of all runs.
    fn of(experiment: &Experiment) -> Self {
        let (readers, memories) = (experiment.readers(), experiment.nodes.len());
        let counts = experiment.runs().iter().filter_map(|r| r.accesses.as_ref());
        let mut scale = Self::new(readers.len(), memories);
        for shares in counts.map(|c| Shares::of(c)) {
            for &reader in &readers {
                scale.row = scale.row.max(shares.by_reader(reader));
                scale.most = (0..memories).fold(scale.most, |m, memory| m.max(shares.cell(reader, memory)));
            }
            scale.column = (0..memories).fold(scale.column, |s, memory| s.max(shares.by_memory(memory)));
        }
        scale
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::example;

    fn count(text: &str, part: &str) -> usize {
        text.matches(part).count()
    }

    #[test]
    fn every_run_has_a_cell_for_each_cpu_node_and_memory() {
        let svg = write(&example());
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        assert_eq!(count(&svg, "<g"), count(&svg, "</g>"));
        assert_eq!(count(&svg, "reads and writes memory of node"), 2 * 3 * 4);
        assert_eq!(
            count(&svg, "class=\"home\""),
            2 * 3,
            "the diagonal, where there are CPUs"
        );
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }

    #[test]
    fn equal_shares_have_equal_shades_in_all_panels() {
        let scale = Scale::of(&example());
        assert!((scale.most - 0.3).abs() < 1e-9, "of all runs, not of each");
        assert_eq!(scale.shade(0.0), 0.0);
        assert!(scale.shade(0.01) < scale.shade(0.02));
        assert!((scale.shade(scale.most) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn names_are_escaped() {
        let mut odd = example();
        odd.command = vec!["<script>".to_owned()];
        let svg = write(&odd);
        assert!(!svg.contains("<script>") && !svg.contains("four<"));
    }

    #[test]
    fn nothing_counted_still_draws() {
        let mut none = example();
        none.results = super::super::Results::One(Box::default());
        assert!(write(&none).ends_with("</svg>\n"));
    }
}

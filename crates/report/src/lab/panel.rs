//! A heat map of one run: rows are CPU nodes, columns are memory nodes; bars beside and below show the sums.

use super::matrix::{Shares, short, tiny};
use super::{Experiment, LabRun};
use crate::markup::Text;
use crate::{amount, count, pages, percent};
use nodewise_input::escaped;
use std::fmt::Write;

/// Sizes and the colour scale, which all panels share.
pub struct Scale {
    /// The largest share of any cell.
    pub most: f64,
    /// The largest share of any row.
    pub row: f64,
    /// The largest share of any column.
    pub column: f64,
    cell: f64,
    memories: usize,
    readers: usize,
    /// Width of a panel in SVG units.
    pub width: f64,
    /// Height of a panel in SVG units.
    pub height: f64,
}

const PAD: f64 = 16.0;
/// Position of the first cell, SVG units.
const LEFT: f64 = PAD + 40.0;
const TOP: f64 = 108.0;
/// Width of the bars of row sums.
const ROW_BAR: f64 = 34.0;
const COLUMN_BAR: f64 = 26.0;
const SEAM: f64 = 2.0;

impl Scale {
    pub fn new(readers: usize, memories: usize) -> Self {
        let cell = match memories {
            0..=4 => 54.0,
            5..=8 => 42.0,
            9..=12 => 36.0,
            _ => 31.0,
        };
        let grid = |n: usize| n as f64 * cell;
        Self {
            most: 0.0,
            row: 0.0,
            column: 0.0,
            cell,
            memories,
            readers,
            width: (LEFT + grid(memories) + 40.0 + ROW_BAR + PAD).max(320.0),
            height: TOP + grid(readers) + 40.0 + COLUMN_BAR + PAD,
        }
    }

    /// Opacity for a share, by the square root of its ratio to the largest share: a hundredth of the largest share
    /// still has more than a tenth of its opacity.
    pub fn shade(&self, share: f64) -> f64 {
        if share <= 0.0 || self.most <= 0.0 {
            return 0.0;
        }
        0.06 + 0.94 * (share / self.most).sqrt().min(1.0)
    }
}

/// Draws the panel of a run; its top left corner is the origin.
pub fn draw(experiment: &Experiment, run: &LabRun, scale: &Scale) -> String {
    let counts = run.accesses.as_deref().unwrap_or_default();
    let panel = Panel {
        scale,
        shares: Shares::of(counts),
        run,
        readers: experiment.readers(),
    };
    let mut svg = format!(
        "<rect class=\"card\" width=\"{:.1}\" height=\"{:.1}\" rx=\"10\"/>\n",
        scale.width, scale.height
    );
    panel.head(&mut svg);
    panel.axes(&mut svg);
    for (row, reader) in panel.readers.iter().enumerate() {
        (0..scale.memories).for_each(|memory| panel.cell(&mut svg, row, *reader, memory));
        panel.row_sum(&mut svg, row, *reader);
    }
    (0..scale.memories).for_each(|memory| panel.column_sum(&mut svg, memory));
    svg
}

/// Text on the numbers of pages that the balancer and the kernel moved; empty if none.
fn moved(run: &LabRun) -> String {
    let by_us = run.balance.as_ref().map_or(0, |b| b.pages_moved);
    let by_kernel = run.pages_migrated.unwrap_or(0).unsigned_abs();
    match (by_us, by_kernel) {
        (0, 0) => String::new(),
        (0, kernel) => format!(" · {} moved by the kernel", pages(kernel)),
        (ours, kernel) => format!(" · moved {} by us, {} by the kernel", count(ours), count(kernel)),
    }
}

struct Panel<'a> {
    scale: &'a Scale,
    shares: Shares<'a>,
    run: &'a LabRun,
    readers: Vec<usize>,
}

impl Panel<'_> {
    fn head(&self, svg: &mut String) {
        let known = |f: Option<f64>| f.map_or("–".to_owned(), percent);
        let under = escaped(&self.run.name());
        let room = ((self.scale.width - 2.0 * PAD) / 8.0) as usize;
        let name: String = match under.chars().count() {
            n if n > room => std::iter::once('…')
                .chain(under.chars().skip(n + 1 - room))
                .collect(),
            _ => under,
        };
        text(svg, "run", PAD, 27.0, &name);
        let metrics = format!(
            "local {} · access balance {}",
            known(self.run.local_fraction),
            known(self.run.access_balance)
        );
        text(svg, "number", PAD, 46.0, &metrics);
        text(
            svg,
            "small",
            PAD,
            62.0,
            &format!("{}{}", amount(self.shares.total, "access"), moved(self.run)),
        );
    }

    fn axes(&self, svg: &mut String) {
        let (cell, columns) = (self.scale.cell, self.scale.memories as f64);
        text(
            svg,
            "small middle",
            LEFT + columns * cell / 2.0,
            TOP - 20.0,
            "memory of node",
        );
        let y = TOP + self.scale.readers as f64 * cell / 2.0;
        let _ = write!(
            svg,
            "<text class=\"small middle\" transform=\"translate({:.1} {y:.1}) rotate(-90)\">CPUs of node</text>",
            PAD + 8.0
        );
        for memory in 0..self.scale.memories {
            let x = LEFT + (memory as f64 + 0.5) * cell;
            text(svg, "number middle", x, TOP - 6.0, &memory.to_string());
        }
        svg.push('\n');
    }

    fn cell(&self, svg: &mut String, row: usize, reader: usize, memory: usize) {
        let size = self.scale.cell - SEAM;
        let x = LEFT + memory as f64 * self.scale.cell + SEAM / 2.0;
        let y = TOP + row as f64 * self.scale.cell + SEAM / 2.0;
        let share = self.shares.cell(reader, memory);
        let shade = self.scale.shade(share);
        let class = if reader == memory { "local" } else { "remote" };
        let place = format!("x=\"{x:.1}\" y=\"{y:.1}\" width=\"{size:.1}\" height=\"{size:.1}\" rx=\"3\"");
        let _ = write!(
            svg,
            "<g><title>node {reader} reads and writes memory of node {memory}: {}, {}</title>\
             <rect class=\"paper\" {place}/>",
            amount(self.shares.count(reader, memory), "access"),
            percent(share)
        );
        if shade > 0.0 {
            let _ = write!(
                svg,
                "<rect class=\"{class}\" {place} fill-opacity=\"{shade:.3}\"/>"
            );
        }
        if reader == memory {
            let _ = write!(
                svg,
                "<rect class=\"home\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"2\"/>",
                x + 1.0,
                y + 1.0,
                size - 2.0,
                size - 2.0
            );
        }
        let size_class = if self.scale.cell < 40.0 { "tight" } else { "number" };
        let class = format!("{size_class} middle{}", ink(share, shade));
        text(svg, &class, x + size / 2.0, y + size / 2.0 + 4.0, &short(share));
        svg.push_str("</g>\n");
    }

    fn row_sum(&self, svg: &mut String, row: usize, reader: usize) {
        let cell = self.scale.cell;
        let middle = TOP + (row as f64 + 0.5) * cell;
        text(svg, "number end", LEFT - 7.0, middle + 4.0, &reader.to_string());
        let share = self.shares.by_reader(reader);
        let x = LEFT + self.scale.memories as f64 * cell + 6.0;
        text(svg, "small end", x + 26.0, middle + 4.0, &short(share));
        let _ = writeln!(
            svg,
            "<g><title>CPUs of node {reader}: {} of the accesses</title>\
             <rect class=\"sum\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"8\" rx=\"2\"/></g>",
            percent(share),
            x + 32.0,
            middle - 4.0,
            part(share, self.scale.row) * ROW_BAR
        );
    }

    fn column_sum(&self, svg: &mut String, memory: usize) {
        let middle = LEFT + (memory as f64 + 0.5) * self.scale.cell;
        let y = TOP + self.scale.readers as f64 * self.scale.cell;
        let share = self.shares.by_memory(memory);
        text(svg, "small middle", middle, y + 15.0, &short(share));
        let touched = self.run.pages.get(memory).copied().unwrap_or(0);
        let _ = writeln!(
            svg,
            "<g><title>memory of node {memory}: {} of the accesses, {}</title>\
             <rect class=\"sum\" x=\"{:.1}\" y=\"{:.1}\" width=\"14\" height=\"{:.1}\" rx=\"2\"/></g>",
            percent(share),
            pages(touched),
            middle - 7.0,
            y + 21.0,
            part(share, self.scale.column) * COLUMN_BAR
        );
        if !self.run.pages.is_empty() {
            let y = y + COLUMN_BAR + 38.0;
            text(svg, "small middle", middle, y, &tiny(touched));
            if memory == 0 {
                text(svg, "small end", LEFT - 3.0, y, "pages");
            }
        }
    }
}

fn part(share: f64, most: f64) -> f64 {
    if most > 0.0 { share / most } else { 0.0 }
}

/// CSS class for the colour of a number on a shade. At the two thresholds the more legible text colour changes, in the
/// light and in the dark colour scheme.
fn ink(share: f64, shade: f64) -> &'static str {
    match shade {
        _ if share <= 0.0 => " nil",
        s if s > 0.84 => " c",
        s if s > 0.62 => " b",
        _ => "",
    }
}

fn text(svg: &mut String, class: &str, x: f64, y: f64, what: &str) {
    let _ = write!(
        svg,
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>",
        Text(what)
    );
}

//! The latency matrix as a table of shaded cells.

use nodewise_analysis::figures::gigabytes;
use nodewise_machine::{Machine, NodeId};
use std::fmt::Write;

pub struct Matrix {
    pub svg: String,
    pub width: f64,
    pub height: f64,
}

/// Position and size of the cells, and the range of latencies that shades stand for.
struct Grid {
    left: f64,
    top: f64,
    cell: f64,
    /// Whether cells are large enough for numbers.
    numbers: bool,
    least: f64,
    most: f64,
}

/// Draws the matrix: rows are the nodes of the reading CPUs, columns the memory nodes; higher latency is darker.
pub fn draw(machine: &Machine, x: f64, y: f64) -> Matrix {
    let readers: Vec<_> = machine.cpu_nodes().collect();
    let grid = Grid::of(machine, x + 22.0, y + 40.0);
    let mut svg = format!(
        "<text class=\"name\" x=\"{x:.1}\" y=\"{y:.1}\">Idle latency, ns</text>\
         <text class=\"small\" x=\"{x:.1}\" y=\"{:.1}\">row: node of the CPU, column: node of the memory</text>\n",
        y + 16.0
    );
    for (row, reader) in readers.iter().enumerate() {
        if grid.numbers {
            let y = grid.top + (row as f64 + 0.5) * grid.cell + 4.0;
            let _ = writeln!(
                svg,
                "<text class=\"small end\" x=\"{:.1}\" y=\"{y:.1}\">{reader}</text>",
                grid.left - 5.0
            );
        }
        machine
            .node_ids()
            .for_each(|memory| svg.push_str(&grid.cell(machine, row, *reader, memory)));
    }
    for memory in machine.node_ids().filter(|_| grid.numbers) {
        let x = grid.left + (memory.index() as f64 + 0.5) * grid.cell;
        let _ = writeln!(
            svg,
            "<text class=\"small middle\" x=\"{x:.1}\" y=\"{:.1}\">{memory}</text>",
            grid.top - 5.0
        );
    }
    Matrix {
        svg,
        width: (22.0 + machine.node_count() as f64 * grid.cell).max(270.0),
        height: 40.0 + readers.len() as f64 * grid.cell,
    }
}

impl Grid {
    fn of(machine: &Machine, left: f64, top: f64) -> Self {
        let (cell, numbers) = match machine.node_count() {
            0..=8 => (40.0, true),
            9..=16 => (31.0, true),
            count => ((520.0 / count as f64).max(3.0), false),
        };
        let all = || {
            machine
                .cpu_nodes()
                .flat_map(|r| machine.node_ids().map(move |m| machine.latency(r, m)))
        };
        let (least, most) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
        Self {
            left,
            top,
            cell,
            numbers,
            least,
            most,
        }
    }

    fn cell(&self, machine: &Machine, row: usize, reader: NodeId, memory: NodeId) -> String {
        let latency = machine.latency(reader, memory);
        let (x, y) = (
            self.left + memory.index() as f64 * self.cell,
            self.top + row as f64 * self.cell,
        );
        let mut svg = format!(
            "<g><title>node {reader} reads node {memory}: {latency:.0} ns, {} alone</title>\
             <rect class=\"cell\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{size:.1}\" height=\"{size:.1}\" fill=\"{}\"/>",
            gigabytes(machine.route(reader, memory).bandwidth),
            self.shade(latency),
            size = self.cell
        );
        if self.numbers {
            let size = if latency >= 999.5 || self.cell < 40.0 {
                10
            } else {
                12
            };
            let (x, y) = (x + self.cell / 2.0, y + self.cell / 2.0 + 4.0);
            let _ = write!(
                svg,
                "<text class=\"middle ink\" x=\"{x:.1}\" y=\"{y:.1}\" style=\"font-size:{size}px\">{latency:.0}</text>"
            );
        }
        svg + "</g>\n"
    }

    /// Colour of a latency, from pale blue (low) to orange (high). The scale is logarithmic, so that a ratio of 1.5
    /// remains visible beside a ratio of 30.
    fn shade(&self, latency: f64) -> String {
        let near = self.most <= self.least;
        let share = if near {
            0.0
        } else {
            (latency / self.least).ln() / (self.most / self.least).ln()
        };
        let mix = |near: f64, far: f64| (near + (far - near) * share).round() as u8;
        format!(
            "#{:02x}{:02x}{:02x}",
            mix(205.0, 245.0),
            mix(228.0, 160.0),
            mix(245.0, 96.0)
        )
    }
}

//! The latency matrix as a table of shaded cells.

use nodewise_machine::Machine;
use std::fmt::Write;

pub struct Matrix {
    pub svg: String,
    pub width: f64,
    pub height: f64,
}

/// Rows are the nodes of reading CPUs, columns memories; the darker, the farther.
pub fn draw(machine: &Machine, x: f64, y: f64) -> Matrix {
    let count = machine.node_count();
    let (cell, numbers) = match count {
        0..=8 => (40.0, true),
        9..=16 => (31.0, true),
        _ => ((520.0 / count as f64).max(3.0), false),
    };
    let readers: Vec<_> = machine.cpu_nodes().collect();
    let (left, top) = (x + 22.0, y + 40.0);
    let mut svg = format!(
        "<text class=\"name\" x=\"{x:.1}\" y=\"{y:.1}\">Idle latency, ns</text>\
         <text class=\"small\" x=\"{x:.1}\" y=\"{:.1}\">row: node of the CPU, column: node of the memory</text>\n",
        y + 16.0
    );
    let all = readers
        .iter()
        .flat_map(|r| machine.node_ids().map(|m| machine.latency(*r, m)));
    let (least, most) = all.fold((f64::INFINITY, 0.0_f64), |(least, most), l| {
        (least.min(l), most.max(l))
    });
    for (row, reader) in readers.iter().enumerate() {
        let y = top + row as f64 * cell;
        if numbers {
            let _ = writeln!(
                svg,
                "<text class=\"small end\" x=\"{:.1}\" y=\"{:.1}\">{reader}</text>",
                left - 5.0,
                y + cell / 2.0 + 4.0
            );
        }
        for memory in machine.node_ids() {
            let latency = machine.latency(*reader, memory);
            // Even steps for even ratios: 30 times farther must not drown 1.5 times.
            let share = if most > least {
                (latency / least).ln() / (most / least).ln()
            } else {
                0.0
            };
            let x = left + memory.index() as f64 * cell;
            let _ = write!(
                svg,
                "<g><title>node {reader} reads node {memory}: {latency:.0} ns, {:.1} GB/s alone</title>\
                 <rect class=\"cell\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{cell:.1}\" height=\"{cell:.1}\" fill=\"{}\"/>",
                machine.route(*reader, memory).bandwidth / 1000.0,
                shade(share)
            );
            if numbers {
                let _ = write!(
                    svg,
                    "<text class=\"middle ink\" x=\"{:.1}\" y=\"{:.1}\" style=\"font-size:{}px\">{latency:.0}</text>",
                    x + cell / 2.0,
                    y + cell / 2.0 + 4.0,
                    if latency >= 999.5 || count > 8 { 10 } else { 12 }
                );
            }
            svg.push_str("</g>\n");
        }
    }
    if numbers {
        for memory in machine.node_ids() {
            let x = left + (memory.index() as f64 + 0.5) * cell;
            let _ = writeln!(
                svg,
                "<text class=\"small middle\" x=\"{x:.1}\" y=\"{:.1}\">{memory}</text>",
                top - 5.0
            );
        }
    }
    Matrix {
        svg,
        width: (22.0 + count as f64 * cell).max(270.0),
        height: 40.0 + readers.len() as f64 * cell,
    }
}

/// From pale blue (near) to orange (far).
fn shade(share: f64) -> String {
    let mix = |near: f64, far: f64| (near + (far - near) * share).round() as u8;
    format!(
        "#{:02x}{:02x}{:02x}",
        mix(205.0, 245.0),
        mix(228.0, 160.0),
        mix(245.0, 96.0)
    )
}

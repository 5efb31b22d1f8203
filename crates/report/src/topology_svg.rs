//! SVG of a machine's topology and its latency matrix. Nodes are grouped by socket, or positioned so that links can be
//! distinguished; line width shows bandwidth. For light and dark colour schemes, with tooltips.

// Why: docs/decisions/structure.md

mod arrangement;
mod layout;
mod links;
mod matrix;

use crate::markup::Text;
use layout::{Layout, Spot};
use nodewise_analysis::figures::{bytes, gigabytes};
use nodewise_machine::{Machine, Node, format_list};
use std::fmt::Write;

/// Colours are given twice, as plain values and in a media query: SVG attributes cannot depend on the reader's colour
/// scheme, and some viewers do not support CSS variables.
const STYLE: &str = "text{font:12px system-ui,'Segoe UI','DejaVu Sans',sans-serif;fill:#171b21}\
.title{font-size:19px;font-weight:600}.small{font-size:11px;fill:#59636f}.name{font-weight:600}.middle{text-anchor:middle}\
.end{text-anchor:end}.ground{fill:#f5f6f8}.node{fill:#fff;stroke:#1667a8;stroke-width:1.5}\
.far{fill:#fff;stroke:#d05f00;stroke-width:1.5;stroke-dasharray:5 3}.socket{fill:none;stroke:#aab3bf;stroke-width:1.2}\
.link{stroke:#1a7a5c;fill:none;stroke-opacity:.75}.head{fill:#1a7a5c}.idle{stroke:#c9d0d8}.head.idle{fill:#c9d0d8}.some{stroke:#1667a8}.head.some{fill:#1667a8}.much{stroke:#a98600}.head.much{fill:#a98600}\
.most{stroke:#d05f00}.head.most{fill:#d05f00}.full{stroke:#c0271b}.head.full{fill:#c0271b}.head{stroke:none}.idle,.some,.much,.most,.full{stroke-opacity:1}\
.tag{font-weight:600;paint-order:stroke;stroke:#f5f6f8;stroke-width:5px;stroke-linejoin:round}.hub{fill:#dde1e7;stroke:#aab3bf}.cell{stroke:#f5f6f8}\
@media(prefers-color-scheme:dark){text{fill:#e7ebf0}.small{fill:#9aa5b2}.ground{fill:#0e1217}.node{fill:#161b22;stroke:#5fb0f2}\
.far{fill:#161b22;stroke:#ff9d4d}.socket{stroke:#56616e}.link{stroke:#4cc79b}.head{fill:#4cc79b}\
.idle{stroke:#3a444f}.head.idle{fill:#3a444f}.some{stroke:#5fb0f2}.head.some{fill:#5fb0f2}.much{stroke:#e3c341}.head.much{fill:#e3c341}\
.most{stroke:#ff9d4d}.head.most{fill:#ff9d4d}.full{stroke:#ff6b5e}.head.full{fill:#ff6b5e}.tag{stroke:#0e1217}\
.hub{fill:#2a323c;stroke:#56616e}.cell{stroke:#0e1217}.ink{fill:#171b21}}";

/// The picture of a machine, a complete SVG document.
#[must_use]
pub fn topology_svg(machine: &Machine) -> String {
    let layout = Layout::of(machine);
    let matrix = matrix::draw(machine, layout.width + 30.0, 84.0);
    let width = layout.width + 30.0 + matrix.width + 24.0;
    let height = layout.height.max(matrix.height + 84.0) + 40.0;
    let foot = format!(
        "<text class=\"small\" x=\"24\" y=\"{:.0}\">{}</text>\n",
        height - 16.0,
        Text(&footnote(machine))
    );
    document(
        machine,
        (width, height),
        &(graph(machine, &layout, None) + &matrix.svg + &foot),
    )
}

/// Positions of the nodes in the picture of [`topology_svg`], from -1 to 1 in each direction; x to the right, y
/// downwards.
#[must_use]
pub fn places(machine: &Machine) -> Vec<(f64, f64)> {
    let spots = Layout::of(machine).nodes;
    let spread = |of: fn(&Spot) -> f64| {
        let ends = spots.iter().map(of);
        let (low, high) = ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| {
            (l.min(v), h.max(v))
        });
        move |spot: &Spot| match high - low {
            width if width > 0.0 => (of(spot) - low) / width * 2.0 - 1.0,
            _ => 0.0,
        }
    };
    let (x, y) = (spread(|s| s.x), spread(|s| s.y));
    spots.iter().map(|s| (x(s), y(s))).collect()
}

/// The nodes and links without the latency matrix, a complete SVG document. Line width shows the bandwidth of a link.
/// If `load` is given (MB/s by [`nodewise_machine::LinkId`], followed by that of the backplane if there is one), the
/// colour shows the utilization.
///
/// # Panics
/// If a link or the backplane has no load in the list.
#[must_use]
pub fn links_svg(machine: &Machine, load: Option<&[f64]>) -> String {
    let layout = Layout::of(machine);
    let size = (layout.width.max(560.0), layout.height + 44.0);
    let legend = legend(size.1 - 18.0, load.is_some());
    document(machine, size, &(graph(machine, &layout, load) + &legend))
}

fn document(machine: &Machine, (width, height): (f64, f64), body: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
         height=\"{height:.0}\" role=\"img\" aria-label=\"{title}\"><style>{STYLE}</style>\n\
         <rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n\
         <text class=\"title\" x=\"24\" y=\"34\">{name}</text><text class=\"small\" x=\"24\" y=\"54\">{title}</text>\n\
         {body}</svg>\n",
        title = Text(&machine.title),
        name = Text(&machine.name),
    )
}

fn graph(machine: &Machine, layout: &Layout, load: Option<&[f64]>) -> String {
    let mut svg = String::new();
    for socket in &layout.sockets {
        let _ = writeln!(
            svg,
            "<rect class=\"socket\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"14\"/>",
            socket.x, socket.y, socket.width, socket.height
        );
    }
    svg.push_str(&links::draw(machine, layout, load));
    for (index, (node, spot)) in machine.nodes.iter().zip(&layout.nodes).enumerate() {
        svg.push_str(&draw_node(index, node, spot));
    }
    svg
}

/// The legend of line widths and colours.
fn legend(y: f64, loaded: bool) -> String {
    let wide = "Lines are as wide as they carry; arrows where directions differ.";
    if !loaded {
        return format!("<text class=\"small\" x=\"24\" y=\"{y:.0}\">{wide}</text>\n");
    }
    let mut svg = String::new();
    let steps = [
        ("idle", "idle"),
        ("some", "to 50 %"),
        ("much", "to 80 %"),
        ("most", "nearly full"),
        ("full", "full"),
    ];
    for (index, (class, says)) in steps.iter().enumerate() {
        let x = 24.0 + 104.0 * index as f64;
        let _ = writeln!(
            svg,
            "<line class=\"link {class}\" x1=\"{x}\" x2=\"{}\" y1=\"{y}\" y2=\"{y}\" stroke-width=\"6\"/>\
             <text class=\"small\" x=\"{}\" y=\"{}\">{says}</text>",
            x + 26.0,
            x + 33.0,
            y + 4.0
        );
    }
    svg
}

fn draw_node(index: usize, node: &Node, spot: &Spot) -> String {
    let cpus: Vec<u32> = node.cpus.iter().map(|c| c.0).collect();
    let cpus = if cpus.is_empty() {
        "no CPUs".to_owned()
    } else {
        format!("CPUs {}", format_list(&cpus))
    };
    let memory = format!("{} · {}", bytes(node.memory), gigabytes(node.bandwidth));
    let class = if node.cpus.is_empty() { "far" } else { "node" };
    let (left, top) = (spot.x - spot.width / 2.0, spot.y - spot.height / 2.0);
    let mut svg = format!(
        "<g><title>node {index}: {cpus}; {memory}</title><rect class=\"{class}\" x=\"{left:.1}\" y=\"{top:.1}\" \
         width=\"{:.1}\" height=\"{:.1}\" rx=\"8\"/>",
        spot.width, spot.height
    );
    let mut line = |class: &str, y: f64, text: &str| {
        let _ = write!(
            svg,
            "<text class=\"{class} middle\" x=\"{:.1}\" y=\"{y:.1}\">{text}</text>",
            spot.x
        );
    };
    if spot.height < 50.0 {
        line("name", spot.y + 4.0, &index.to_string());
    } else {
        line("name", spot.y - 10.0, &format!("node {index}"));
        line(
            "small",
            spot.y + 5.0,
            &shortened(&cpus, (spot.width / 6.0) as usize),
        );
        line("small", spot.y + 19.0, &memory);
    }
    svg.push_str("</g>\n");
    svg
}

fn shortened(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    text.chars()
        .take(columns.saturating_sub(1))
        .chain(['…'])
        .collect()
}

fn footnote(machine: &Machine) -> String {
    let mut assumed: Vec<&str> = machine
        .sources
        .iter()
        .filter(|s| s.assumed)
        .map(|s| s.field.as_str())
        .collect();
    assumed.dedup();
    if assumed.is_empty() {
        return "Every figure is stated or measured.".to_owned();
    }
    format!(
        "Lines are as wide as they carry. Assumed, not measured: {}.",
        assumed.join(", ")
    )
}

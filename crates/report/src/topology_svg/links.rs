//! Draws links: one line if both directions are alike, else an arrow for each. Line width shows bandwidth, colour shows
//! load.

use super::layout::Layout;
use nodewise_analysis::figures::gigabytes;
use nodewise_machine::{Link, LinkId, Machine, NodeId};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Largest number of lines that are drawn; more would hide each other, so a sentence replaces them.
const MAX_LINES: usize = 130;

/// Draws all links. `load` is in MB/s by link, followed by the load of the backplane if there is one.
pub fn draw(machine: &Machine, layout: &Layout, load: Option<&[f64]>) -> String {
    if let Some(total) = machine.backplane {
        return backplane(machine, layout, total, load);
    }
    let pairs = anchored(machine, layout, load);
    let (inside, lines): (Vec<_>, Vec<_>) = pairs.iter().partition(|pair| pair.socket().is_some());
    if lines.len() > MAX_LINES {
        let text = format!("{} pairs of nodes, each with a link of its own", lines.len());
        return note(layout.width / 2.0, 38.0 + layout.height / 2.0, &text);
    }
    let widest = pairs.iter().map(Pair::widest).fold(0.0, f64::max);
    let mut svg: String = lines.iter().map(|pair| line(pair, widest)).collect();
    // Figures are drawn last, so that no line covers them.
    svg.extend(lines.iter().map(|pair| tags(pair)));
    for (index, socket) in layout.sockets.iter().enumerate() {
        let widths = inside
            .iter()
            .filter(|p| p.socket() == Some(index))
            .map(|p| p.widest());
        let width = widths.fold(0.0, f64::max);
        if width > 0.0 {
            let text = format!("any pair: {}", gigabytes(width));
            svg.push_str(&note(
                socket.x + socket.width / 2.0,
                socket.y + socket.height - 11.0,
                &text,
            ));
        }
    }
    svg
}

fn note(x: f64, y: f64, text: &str) -> String {
    format!("<text class=\"small middle\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>\n")
}

/// Two ends, and the links between them in both directions.
struct Pair {
    a: Anchor,
    b: Anchor,
    both: [Option<Direction>; 2],
}

/// Bandwidth and load of one direction of a link, in MB/s.
#[derive(Clone, Copy)]
struct Direction {
    bandwidth: f64,
    /// `None` if loads are not shown.
    load: Option<f64>,
}

impl Pair {
    /// The socket that contains both ends, if it is the same.
    fn socket(&self) -> Option<usize> {
        self.a.socket.filter(|_| self.a.socket == self.b.socket)
    }

    /// Sideways distance of each direction's line from the middle; 0 if there is only one line.
    fn bend(&self) -> f64 {
        if self.both.iter().flatten().count() == 1 {
            0.0
        } else {
            9.0
        }
    }

    fn widest(&self) -> f64 {
        self.both
            .iter()
            .flatten()
            .map(|w| w.bandwidth)
            .fold(0.0, f64::max)
    }
}

/// An end of a line: a node, or a socket whose nodes share the link.
#[derive(Clone, Debug, PartialEq)]
struct Anchor {
    label: String,
    socket: Option<usize>,
    at: (f64, f64),
    /// Half the width and half the height of the rectangle at this end.
    half: (f64, f64),
}

/// Groups links by the pair of their ends.
fn anchored(machine: &Machine, layout: &Layout, load: Option<&[f64]>) -> Vec<Pair> {
    type Group = Vec<NodeId>;
    let mut pairs: BTreeMap<(Group, Group), [Option<Direction>; 2]> = BTreeMap::new();
    for (id, link) in machine.links.iter().enumerate() {
        let (from, to) = machine.link_ends(LinkId(id as u32));
        let back = usize::from(from > to);
        let key = if back == 1 { (to, from) } else { (from, to) };
        let load = load.map(|l| l[id]);
        pairs.entry(key).or_default()[back] = Some(Direction {
            bandwidth: link.bandwidth,
            load,
        });
    }
    let pair = |((a, b), both): ((Group, Group), _)| Pair {
        a: anchor(&a, layout),
        b: anchor(&b, layout),
        both,
    };
    pairs.into_iter().map(pair).collect()
}

fn anchor(nodes: &[NodeId], layout: &Layout) -> Anchor {
    let socket = layout.sockets.iter().position(|s| s.nodes.contains(&nodes[0]));
    if let (Some(index), true) = (socket, nodes.len() > 1) {
        let s = &layout.sockets[index];
        let at = (s.x + s.width / 2.0, s.y + s.height / 2.0);
        let label = format!(
            "nodes {}",
            nodes
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        );
        return Anchor {
            label,
            socket,
            at,
            half: (s.width / 2.0, s.height / 2.0),
        };
    }
    let spot = layout.nodes[nodes[0].index()];
    Anchor {
        label: format!("node {}", nodes[0]),
        socket,
        at: (spot.x, spot.y),
        half: (spot.width / 2.0, spot.height / 2.0),
    }
}

fn line(pair: &Pair, widest: f64) -> String {
    let Pair { a, b, both } = pair;
    if let [Some(there), Some(back)] = *both
        && (there.bandwidth - back.bandwidth).abs() <= 0.002 * there.bandwidth
        && !there.busy()
        && !back.busy()
    {
        let what = format!(
            "{} and {}: {} each way",
            a.label,
            b.label,
            gigabytes(there.bandwidth)
        );
        return stroke(a, b, there, widest, 0.0, &what);
    }
    let bend = pair.bend();
    let one_way = if bend > 0.0 { "" } else { ", one way" };
    let arrow = |from: &Anchor, to: &Anchor, way: Direction| {
        let load = way.load.filter(|_| way.busy()).map_or(String::new(), |load| {
            format!(", of which {} are used", gigabytes(load))
        });
        let what = format!(
            "{} to {}: {}{load}{one_way}",
            from.label,
            to.label,
            gigabytes(way.bandwidth)
        );
        stroke(from, to, way, widest, bend, &what) + &head(from, to, way, bend)
    };
    let there = both[0].map(|way| arrow(a, b, way));
    let back = both[1].map(|way| arrow(b, a, way));
    there.into_iter().chain(back).collect()
}

/// Labels with the load of each busy direction of a link.
fn tags(pair: &Pair) -> String {
    let there = pair.both[0].map(|way| tag(&pair.a, &pair.b, way, pair.bend()));
    let back = pair.both[1].map(|way| tag(&pair.b, &pair.a, way, pair.bend()));
    there.into_iter().chain(back).collect()
}

impl Direction {
    fn busy(self) -> bool {
        self.load.is_some_and(|load| load > 0.0)
    }

    /// CSS class for the load: none if loads are not shown, else `idle` or one of four classes up to `full`.
    fn class(self) -> &'static str {
        match self.load.map(|load| load / self.bandwidth) {
            None => "",
            Some(share) if share <= 0.0 => " idle",
            Some(share) if share <= 0.5 => " some",
            Some(share) if share <= 0.8 => " much",
            Some(share) if share <= 0.995 => " most",
            Some(_) => " full",
        }
    }

    fn stroke_width(self, widest: f64) -> f64 {
        1.2 + 6.0 * self.bandwidth / widest
    }
}

/// The point at which the line from `a` to `b`, moved sideways by `aside`, leaves the rectangle around `a`.
fn edge(a: &Anchor, b: &Anchor, aside: f64) -> (f64, f64) {
    let (dx, dy) = (b.at.0 - a.at.0, b.at.1 - a.at.1);
    let length = dx.hypot(dy).max(1.0);
    let shift = (-dy / length * aside, dx / length * aside);
    let reach = |half: f64, shift: f64, d: f64| (half - shift * d.signum()) / d.abs();
    let reach = reach(a.half.0, shift.0, dx)
        .min(reach(a.half.1, shift.1, dy))
        .min(1.0);
    (a.at.0 + shift.0 + dx * reach, a.at.1 + shift.1 + dy * reach)
}

/// The line of a link, with `what` as its tooltip. Arrow heads are drawn by [`head`].
fn stroke(a: &Anchor, b: &Anchor, way: Direction, widest: f64, aside: f64, what: &str) -> String {
    let (from, to) = (edge(a, b, aside), edge(b, a, -aside));
    let mut svg = format!(
        "<g><title>{what}</title><line class=\"link{}\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke-width=\"{:.1}\"/>",
        way.class(),
        from.0,
        from.1,
        to.0,
        to.1,
        way.stroke_width(widest)
    );
    if a.socket.is_some() && b.socket.is_some() && !way.busy() {
        let _ = write!(
            svg,
            "<text class=\"small middle\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            (from.0 + to.0) / 2.0,
            (from.1 + to.1) / 2.0 - 9.0 + 20.0 * f64::from(aside > 0.0 && a.at.0 > b.at.0),
            gigabytes(way.bandwidth)
        );
    }
    svg.push_str("</g>\n");
    svg
}

fn head(from: &Anchor, to: &Anchor, way: Direction, aside: f64) -> String {
    let tip = edge(to, from, -aside);
    let (ux, uy) = direction(from, to);
    let wing = |side: f64| {
        let (back, out) = (14.0, side * 7.0);
        (tip.0 - back * ux - out * uy, tip.1 - back * uy + out * ux)
    };
    let (left, right) = (wing(1.0), wing(-1.0));
    format!(
        "<polygon class=\"head{}\" points=\"{:.1},{:.1} {:.1},{:.1} {:.1},{:.1}\"/>\n",
        way.class(),
        tip.0,
        tip.1,
        left.0,
        left.1,
        right.0,
        right.1
    )
}

/// Label with the load of a busy link: on the line, or beside it if the other direction has a line too.
fn tag(from: &Anchor, to: &Anchor, way: Direction, aside: f64) -> String {
    let Some(load) = way.load.filter(|_| way.busy()) else {
        return String::new();
    };
    let (a, b) = (edge(from, to, aside), edge(to, from, -aside));
    let at = |a: f64, b: f64| a + (b - a) * 0.4;
    let (ux, uy) = direction(from, to);
    let (x, y) = if aside > 0.0 {
        (-36.0 * uy, 11.0 * ux)
    } else {
        (0.0, 0.0)
    };
    format!(
        "<text class=\"tag middle\" x=\"{:.1}\" y=\"{:.1}\">{}</text>\n",
        at(a.0, b.0) + x,
        at(a.1, b.1) + y + 4.0,
        gigabytes(load)
    )
}

fn direction(from: &Anchor, to: &Anchor) -> (f64, f64) {
    let (dx, dy) = (to.at.0 - from.at.0, to.at.1 - from.at.1);
    let length = dx.hypot(dy).max(1.0);
    (dx / length, dy / length)
}

/// Draws all nodes connected to one hub, because the backplane limits the sum of all traffic, not that of each pair.
fn backplane(machine: &Machine, layout: &Layout, total: f64, load: Option<&[f64]>) -> String {
    let centre = layout
        .nodes
        .iter()
        .fold((0.0, 0.0), |sum, s| (sum.0 + s.x, sum.1 + s.y));
    let count = layout.nodes.len() as f64;
    let hub = Anchor {
        label: "backplane".to_owned(),
        socket: None,
        at: (centre.0 / count, centre.1 / count),
        half: (58.0, 26.0),
    };
    let ports = machine.node_ids().map(|node| {
        let (way, what) = port(machine, node, load);
        stroke(&anchor(&[node], layout), &hub, way, total, 0.0, &what)
    });
    let way = Direction {
        bandwidth: total,
        load: load.map(|l| l[machine.links.len()]),
    };
    ports.collect::<String>() + &middle(hub.at, way)
}

/// The connection of a node to the backplane, with the highest utilization of the node's links, and its tooltip.
fn port(machine: &Machine, node: NodeId, load: Option<&[f64]>) -> (Direction, String) {
    let ends = |end: fn(&Link) -> NodeId| {
        let links = machine.links.iter().enumerate();
        links.filter(move |(_, l)| end(l) == node)
    };
    let out = ends(|l| l.from).map(|(_, l)| l.bandwidth);
    let bandwidth = out.fold(0.0, f64::max);
    let what = format!("node {node} and backplane: {} each way", gigabytes(bandwidth));
    let Some(load) = load else {
        return (
            Direction {
                bandwidth,
                load: None,
            },
            what,
        );
    };
    let all = ends(|l| l.from).chain(ends(|l| l.to));
    let share = all.map(|(id, l)| load[id] / l.bandwidth).fold(0.0, f64::max);
    let sum = |end| gigabytes(ends(end).map(|(id, _)| load[id]).sum());
    let (sent, received) = (sum(|l| l.from), sum(|l| l.to));
    let way = Direction {
        bandwidth,
        load: Some(share * bandwidth),
    };
    (way, format!("{what}; sends {sent}, receives {received}"))
}

/// The hub itself; its outline has the colour of its load.
fn middle((x, y): (f64, f64), way: Direction) -> String {
    let shape = format!(
        "x=\"{:.1}\" y=\"{:.1}\" width=\"116\" height=\"52\" rx=\"26\"",
        x - 58.0,
        y - 26.0
    );
    let total = gigabytes(way.bandwidth);
    let (ring, says) = match way.load {
        None => (String::new(), format!("{total} in all")),
        Some(load) => (
            format!("<rect class=\"link{}\" {shape} stroke-width=\"4\"/>", way.class()),
            format!("{} of {total}", gigabytes(load).trim_end_matches(" GB/s")),
        ),
    };
    format!(
        "<rect class=\"hub\" {shape}/>{ring}<text class=\"name middle\" x=\"{x:.1}\" y=\"{:.1}\">backplane</text>\
         <text class=\"small middle\" x=\"{x:.1}\" y=\"{:.1}\">{says}</text>\n",
        y - 2.0,
        y + 14.0
    )
}

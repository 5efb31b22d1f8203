//! Links: a line for both directions where they are alike, an arrow each where they are not.

use super::gigabytes;
use super::layout::Layout;
use nodewise_machine::{LinkId, Machine, NodeId};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Lines between more nodes than this hide each other; a sentence says it better.
const MOST_LINES: usize = 130;

pub fn draw(machine: &Machine, layout: &Layout) -> String {
    if let Some(total) = machine.backplane {
        return backplane(machine, layout, total);
    }
    let pairs = anchored(machine, layout);
    let (inside, lines): (Vec<_>, Vec<_>) = pairs.iter().partition(|pair| pair.socket().is_some());
    if lines.len() > MOST_LINES {
        let text = format!("{} pairs of nodes, each with a link of its own", lines.len());
        return note(layout.width / 2.0, 38.0 + layout.height / 2.0, &text);
    }
    let widest = pairs.iter().map(Pair::widest).fold(0.0, f64::max);
    let mut svg: String = lines.iter().map(|pair| line(pair, widest)).collect();
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

/// Two ends and the bandwidth there and back.
struct Pair {
    a: Anchor,
    b: Anchor,
    both: [Option<f64>; 2],
}

impl Pair {
    /// The socket that both ends are in, when it is one.
    fn socket(&self) -> Option<usize> {
        self.a.socket.filter(|_| self.a.socket == self.b.socket)
    }

    fn widest(&self) -> f64 {
        self.both.iter().flatten().copied().fold(0.0, f64::max)
    }
}

/// An end of a line: a node, or a socket whose nodes share the link.
#[derive(Clone, Debug, PartialEq)]
struct Anchor {
    label: String,
    socket: Option<usize>,
    at: (f64, f64),
    /// Half the extent of what stands there.
    half: (f64, f64),
}

/// Links by the pair of their ends.
fn anchored(machine: &Machine, layout: &Layout) -> Vec<Pair> {
    type Group = Vec<NodeId>;
    let mut pairs: BTreeMap<(Group, Group), [Option<f64>; 2]> = BTreeMap::new();
    for (id, link) in machine.links.iter().enumerate() {
        let (from, to) = machine.link_ends(LinkId(id as u32));
        let back = usize::from(from > to);
        let key = if back == 1 { (to, from) } else { (from, to) };
        pairs.entry(key).or_default()[back] = Some(link.bandwidth);
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
        && (there - back).abs() <= 0.002 * there
    {
        let what = format!("{} and {}: {} each way", a.label, b.label, gigabytes(there));
        return stroke(a, b, there, widest, 0.0, &what);
    }
    let alone = both.iter().flatten().count() == 1;
    let (bend, one_way) = if alone { (0.0, ", one way") } else { (9.0, "") };
    let arrow = |from: &Anchor, to: &Anchor, width: f64| {
        let what = format!("{} to {}: {}{one_way}", from.label, to.label, gigabytes(width));
        stroke(from, to, width, widest, bend, &what) + &head(from, to, bend)
    };
    let there = both[0].map(|width| arrow(a, b, width));
    let back = both[1].map(|width| arrow(b, a, width));
    there.into_iter().chain(back).collect()
}

/// Where the line from `a` to `b`, moved sideways, leaves the rectangle around `a`.
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

fn stroke(a: &Anchor, b: &Anchor, bandwidth: f64, widest: f64, aside: f64, what: &str) -> String {
    let (from, to) = (edge(a, b, aside), edge(b, a, -aside));
    let width = 1.2 + 6.0 * bandwidth / widest;
    let mut svg = format!(
        "<g><title>{what}</title><line class=\"link\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke-width=\"{width:.1}\"/>",
        from.0, from.1, to.0, to.1
    );
    if a.socket.is_some() && b.socket.is_some() {
        let _ = write!(
            svg,
            "<text class=\"small middle\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            (from.0 + to.0) / 2.0,
            (from.1 + to.1) / 2.0 - 9.0 + 20.0 * f64::from(aside > 0.0 && a.at.0 > b.at.0),
            gigabytes(bandwidth)
        );
    }
    svg.push_str("</g>\n");
    svg
}

fn head(from: &Anchor, to: &Anchor, aside: f64) -> String {
    let tip = edge(to, from, -aside);
    let (dx, dy) = (to.at.0 - from.at.0, to.at.1 - from.at.1);
    let length = dx.hypot(dy).max(1.0);
    let (ux, uy) = (dx / length, dy / length);
    let wing = |side: f64| {
        let (back, out) = (14.0, side * 7.0);
        (tip.0 - back * ux - out * uy, tip.1 - back * uy + out * ux)
    };
    let (left, right) = (wing(1.0), wing(-1.0));
    format!(
        "<polygon class=\"head\" points=\"{:.1},{:.1} {:.1},{:.1} {:.1},{:.1}\"/>\n",
        tip.0, tip.1, left.0, left.1, right.0, right.1
    )
}

/// All nodes on one hub: which pair talks matters less than the sum.
fn backplane(machine: &Machine, layout: &Layout, total: f64) -> String {
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
    let mut svg = String::new();
    for id in machine.node_ids() {
        let port = machine
            .links
            .iter()
            .filter(|l| l.from == id)
            .map(|l| l.bandwidth)
            .fold(0.0, f64::max);
        let what = format!("node {id} and backplane: {} each way", gigabytes(port));
        svg.push_str(&stroke(&anchor(&[id], layout), &hub, port, total, 0.0, &what));
    }
    let (x, y) = hub.at;
    let _ = writeln!(
        svg,
        "<rect class=\"hub\" x=\"{:.1}\" y=\"{:.1}\" width=\"116\" height=\"52\" rx=\"26\"/>\
         <text class=\"name middle\" x=\"{x:.1}\" y=\"{:.1}\">backplane</text>\
         <text class=\"small middle\" x=\"{x:.1}\" y=\"{:.1}\">{} in all</text>",
        x - 58.0,
        y - 26.0,
        y - 2.0,
        y + 14.0,
        gigabytes(total)
    );
    svg
}

//! Where nodes go: in their sockets where sockets share links, else on a circle.

use nodewise_machine::{LinkId, Machine, NodeId};
use std::collections::BTreeSet;
use std::f64::consts::TAU;

/// A rectangle by its centre.
#[derive(Clone, Copy, Debug)]
pub struct Spot {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
}

/// A rectangle by its corner, and the nodes inside.
#[derive(Clone, Debug)]
pub struct Socket {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
    pub nodes: Vec<NodeId>,
}

/// Everything's place.
#[derive(Debug)]
pub struct Layout {
    pub width: f64,
    pub height: f64,
    /// By node.
    pub nodes: Vec<Spot>,
    /// Empty when nodes stand on a circle.
    pub sockets: Vec<Socket>,
}

const TOP: f64 = 76.0;
const CARD: (f64, f64) = (140.0, 58.0);

impl Layout {
    pub fn of(machine: &Machine) -> Self {
        let sockets = shared_ends(machine);
        if sockets.is_empty() {
            Self::circle(machine.node_count())
        } else {
            Self::in_sockets(machine, sockets)
        }
    }

    fn circle(count: usize) -> Self {
        let card = match count {
            0..=8 => CARD,
            9..=16 => (108.0, 52.0),
            _ => (26.0, 22.0),
        };
        let radius = match count {
            1 => 0.0,
            2 => 130.0,
            3..=4 => 190.0,
            5..=8 => 225.0,
            9..=16 => 300.0,
            _ => (count as f64 * 32.0 / TAU).max(230.0),
        };
        let width = 2.0 * radius + card.0 + 48.0;
        let height = TOP
            + if count <= 2 {
                card.1 + 90.0
            } else {
                2.0 * radius + card.1 + 24.0
            };
        let centre = (width / 2.0, TOP + (height - TOP) / 2.0);
        let spot = |n: usize| {
            // Two nodes side by side, more from the top clockwise.
            let turn = n as f64 / count as f64 + if count == 2 { 0.5 } else { -0.25 };
            let (sin, cos) = (turn * TAU).sin_cos();
            Spot {
                x: centre.0 + radius * cos,
                y: centre.1 + radius * sin,
                width: card.0,
                height: card.1,
            }
        };
        Self {
            width,
            height,
            nodes: (0..count).map(spot).collect(),
            sockets: Vec::new(),
        }
    }

    fn in_sockets(machine: &Machine, groups: Vec<Vec<NodeId>>) -> Self {
        let (gap, pad) = (14.0, 18.0);
        let columns = |n: usize| if n > 3 { 2 } else { 1 };
        let largest = groups.iter().map(Vec::len).max().unwrap_or(1);
        let rows = largest.div_ceil(columns(largest));
        let box_width = columns(largest) as f64 * (CARD.0 + gap) - gap + 2.0 * pad;
        let box_height = rows as f64 * (CARD.1 + gap) - gap + 2.0 * pad + 18.0;
        let across = if groups.len() > 3 {
            groups.len().div_ceil(2)
        } else {
            groups.len()
        };
        let space = 130.0;
        let mut nodes = vec![
            Spot {
                x: 0.0,
                y: 0.0,
                width: CARD.0,
                height: CARD.1
            };
            machine.node_count()
        ];
        let mut sockets = Vec::new();
        for (index, group) in groups.into_iter().enumerate() {
            let x = 24.0 + (index % across) as f64 * (box_width + space);
            let y = TOP + (index / across) as f64 * (box_height + 60.0);
            for (place, node) in group.iter().enumerate() {
                let spot = &mut nodes[node.index()];
                spot.x = x + pad + CARD.0 / 2.0 + (place / rows) as f64 * (CARD.0 + gap);
                spot.y = y + pad + CARD.1 / 2.0 + (place % rows) as f64 * (CARD.1 + gap);
            }
            sockets.push(Socket {
                x,
                y,
                width: box_width,
                height: box_height,
                nodes: group,
            });
        }
        let width = 24.0 + across as f64 * (box_width + space) - space;
        let height = TOP + sockets.len().div_ceil(across) as f64 * (box_height + 60.0) - 60.0;
        Self {
            width,
            height,
            nodes,
            sockets,
        }
    }
}

/// The groups of nodes that share links, when they part the machine.
fn shared_ends(machine: &Machine) -> Vec<Vec<NodeId>> {
    let ends = (0..machine.links.len() as u32).map(|l| machine.link_ends(LinkId(l)));
    let groups: BTreeSet<Vec<NodeId>> = ends
        .flat_map(|(from, to)| [from, to])
        .filter(|g| g.len() > 1)
        .collect();
    let parted: BTreeSet<NodeId> = groups.iter().flatten().copied().collect();
    let members: usize = groups.iter().map(Vec::len).sum();
    if members == machine.node_count() && parted.len() == members {
        groups.into_iter().collect()
    } else {
        Vec::new()
    }
}

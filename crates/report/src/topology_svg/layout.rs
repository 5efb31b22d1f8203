//! Positions of nodes: grouped by socket if the nodes of a socket share links, else on one circle or on two squares.

use super::arrangement::{self, Edge, SQUARES, Slot};
use nodewise_machine::{LinkId, Machine, NodeId};
use std::collections::{BTreeMap, BTreeSet};
use std::f64::consts::TAU;

/// A rectangle, given by its centre.
#[derive(Clone, Copy, Debug)]
pub struct Spot {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
}

/// A rectangle, given by its corner, and the nodes inside.
#[derive(Clone, Debug)]
pub struct Socket {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
    pub nodes: Vec<NodeId>,
}

/// Positions of all nodes and sockets.
#[derive(Debug)]
pub struct Layout {
    pub width: f64,
    pub height: f64,
    /// Position of each node, by node number.
    pub nodes: Vec<Spot>,
    /// The sockets; empty if nodes are not grouped by socket.
    pub sockets: Vec<Socket>,
}

/// Top edge of the drawing, below the title.
const TOP: f64 = 76.0;
const CARD: (f64, f64) = (140.0, 58.0);
/// Distance between the cards of a socket, and between the cards and the socket's edge.
const GAP: f64 = 14.0;
const PAD: f64 = 18.0;
/// Distance between sockets, horizontal and vertical.
const SOCKET_GAP: (f64, f64) = (130.0, 60.0);

impl Layout {
    pub fn of(machine: &Machine) -> Self {
        let sockets = shared_ends(machine);
        if sockets.is_empty() {
            Self::without_sockets(machine)
        } else {
            Self::in_sockets(machine, sockets)
        }
    }

    /// Layout without sockets: two nodes side by side, more nodes clockwise from the top. Up to eight nodes are ordered
    /// so that their links cross least.
    fn without_sockets(machine: &Machine) -> Self {
        let count = machine.node_count();
        let edges = edges(machine);
        let turn = |n: usize| TAU * (n as f64 / count as f64 + if count == 2 { 0.5 } else { -0.25 });
        let circle: Vec<Slot> = (0..count).map(|n| (turn(n).cos(), turn(n).sin())).collect();
        let is_complete = edges.len() * 2 == count * (count - 1);
        if !(5..=SQUARES.len()).contains(&count) || is_complete || machine.backplane.is_some() {
            return Self::placed(&circle);
        }
        let (round, squares) = (
            arrangement::arrange(&edges, count, &circle),
            arrangement::arrange(&edges, count, &SQUARES),
        );
        Self::placed(&if squares.1 < round.1 { squares.0 } else { round.0 })
    }

    fn placed(slots: &[Slot]) -> Self {
        let count = slots.len();
        let round = (count as f64 * 32.0 / TAU).max(230.0);
        let (card, (across, down)) = match count {
            1 => (CARD, (0.0, 0.0)),
            2 => (CARD, (130.0, 0.0)),
            3..=4 => (CARD, (190.0, 160.0)),
            5..=8 => (CARD, (320.0, 260.0)),
            9..=16 => ((108.0, 52.0), (330.0, 300.0)),
            _ => ((26.0, 22.0), (round, round)),
        };
        let width = 2.0 * across + card.0 + 48.0;
        let height = TOP + 2.0 * down + card.1 + if count <= 2 { 90.0 } else { 24.0 };
        let centre = (width / 2.0, TOP + (height - TOP) / 2.0);
        let spot = |(x, y): &Slot| Spot {
            x: centre.0 + across * x,
            y: centre.1 + down * y,
            width: card.0,
            height: card.1,
        };
        Self {
            width,
            height,
            nodes: slots.iter().map(spot).collect(),
            sockets: Vec::new(),
        }
    }

    /// Layout by sockets: up to three in one row, more in two rows.
    fn in_sockets(machine: &Machine, groups: Vec<Vec<NodeId>>) -> Self {
        let largest = groups.iter().map(Vec::len).max().unwrap_or(1);
        let columns = if largest > 3 { 2 } else { 1 };
        let rows = largest.div_ceil(columns);
        let extent = |cards: usize, card: f64| cards as f64 * (card + GAP) - GAP + 2.0 * PAD;
        let (width, height) = (extent(columns, CARD.0), extent(rows, CARD.1) + 18.0);
        let across = if groups.len() > 3 {
            groups.len().div_ceil(2)
        } else {
            groups.len()
        };
        let down = groups.len().div_ceil(across);
        let socket = |(index, nodes): (usize, Vec<NodeId>)| Socket {
            x: 24.0 + (index % across) as f64 * (width + SOCKET_GAP.0),
            y: TOP + (index / across) as f64 * (height + SOCKET_GAP.1),
            width,
            height,
            nodes,
        };
        let sockets: Vec<Socket> = groups.into_iter().enumerate().map(socket).collect();
        let total = |count: usize, size: f64, gap: f64| count as f64 * (size + gap) - gap;
        Self {
            width: 24.0 + total(across, width, SOCKET_GAP.0),
            height: TOP + total(down, height, SOCKET_GAP.1),
            nodes: cards(machine.node_count(), &sockets, rows),
            sockets,
        }
    }
}

/// A card for each node within its socket, column by column.
fn cards(nodes: usize, sockets: &[Socket], rows: usize) -> Vec<Spot> {
    let (width, height) = CARD;
    let nowhere = Spot {
        x: 0.0,
        y: 0.0,
        width,
        height,
    };
    let mut cards = vec![nowhere; nodes];
    for socket in sockets {
        for (place, node) in socket.nodes.iter().enumerate() {
            let card = &mut cards[node.index()];
            card.x = socket.x + PAD + width / 2.0 + (place / rows) as f64 * (width + GAP);
            card.y = socket.y + PAD + height / 2.0 + (place % rows) as f64 * (height + GAP);
        }
    }
    cards
}

/// Pairs of nodes with a link in either direction, with the larger bandwidth of the two.
fn edges(machine: &Machine) -> Vec<Edge> {
    let mut widths: BTreeMap<(usize, usize), f64> = BTreeMap::new();
    for link in &machine.links {
        let (a, b) = (link.from.index(), link.to.index());
        let width = widths.entry((a.min(b), a.max(b))).or_default();
        *width = width.max(link.bandwidth);
    }
    widths.into_iter().map(|((a, b), width)| (a, b, width)).collect()
}

/// The groups of nodes that share links, if each node belongs to exactly one group.
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

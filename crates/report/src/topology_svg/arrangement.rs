//! Orders nodes so that links can be distinguished: few crossings, no line behind a node, short lines for wide links.

/// A position, in units of half the picture's size.
pub type Slot = (f64, f64);

/// The corners of two squares, one inside the other.
pub const SQUARES: [Slot; 8] = [
    (-1.0, -1.0),
    (1.0, -1.0),
    (1.0, 1.0),
    (-1.0, 1.0),
    (-0.42, -0.38),
    (0.42, -0.38),
    (0.42, 0.38),
    (-0.42, 0.38),
];

/// Cost of a crossing, in units of line length, and of a line behind a node, in crossings.
const CROSSING_COST: f64 = 2.5;
const HIDDEN_COST: f64 = 5.0;
/// A line that passes a slot at less than this distance is hidden behind the node in that slot.
const MIN_CLEARANCE: f64 = 0.2;
const RANDOM_STARTS: u64 = 24;

/// A pair of nodes with links between them, and their width.
pub type Edge = (usize, usize, f64);

/// A position for each of `count` nodes, and the cost of the arrangement. A local search exchanges two nodes at a time,
/// from [`RANDOM_STARTS`] deterministic starting orders. The first node is at the top left.
pub fn arrange(edges: &[Edge], count: usize, slots: &[Slot]) -> (Vec<Slot>, f64) {
    let cost = |order: &[usize]| cost(edges, slots, order);
    let found = (0..RANDOM_STARTS).map(|seed| descend(start(slots.len(), seed), &cost));
    let (order, cost) = found
        .reduce(|a, b| if b.1 < a.1 - 1e-9 { b } else { a })
        .unwrap_or_default();
    let mut places: Vec<Slot> = order.iter().take(count).map(|s| slots[*s]).collect();
    let flip = places.first().map_or((1.0, 1.0), |(x, y)| {
        (
            if *x > 1e-9 { -1.0 } else { 1.0 },
            if *y > 1e-9 { -1.0 } else { 1.0 },
        )
    });
    places
        .iter_mut()
        .for_each(|(x, y)| (*x, *y) = (*x * flip.0, *y * flip.1));
    (places, cost)
}

/// A starting order of the slots: unchanged for seed 0, else shuffled.
fn start(count: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    let mut state = seed;
    for last in (1..count).rev().filter(|_| seed > 0) {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        order.swap(last, ((state >> 33) as usize) % (last + 1));
    }
    order
}

fn descend(mut order: Vec<usize>, cost: &impl Fn(&[usize]) -> f64) -> (Vec<usize>, f64) {
    let mut least = cost(&order);
    loop {
        let mut best = (least - 1e-9, None);
        for a in 0..order.len() {
            for b in a + 1..order.len() {
                order.swap(a, b);
                let found = cost(&order);
                if found < best.0 {
                    best = (found, Some((a, b)));
                }
                order.swap(a, b);
            }
        }
        let Some((a, b)) = best.1 else {
            return (order, least);
        };
        order.swap(a, b);
        least = best.0;
    }
}

fn cost(edges: &[Edge], slots: &[Slot], order: &[usize]) -> f64 {
    let widest = edges.iter().map(|e| e.2).fold(0.0, f64::max);
    let ends = |e: &Edge| (slots[order[e.0]], slots[order[e.1]]);
    let mut sum = 0.0;
    for (index, edge) in edges.iter().enumerate() {
        let (a, b) = ends(edge);
        sum += (a.0 - b.0).hypot(a.1 - b.1) * edge.2 / widest;
        let behind = slots
            .iter()
            .filter(|s| **s != a && **s != b && distance_to_segment(**s, a, b) < MIN_CLEARANCE)
            .count();
        let crossed = edges[..index]
            .iter()
            .filter(|other| crosses((a, b), ends(other)))
            .count();
        sum += CROSSING_COST * (crossed as f64 + HIDDEN_COST * behind as f64);
    }
    sum
}

/// Twice the area of a triangle, positive when it turns left.
fn turn(a: Slot, b: Slot, c: Slot) -> f64 {
    (b.0 - a.0) * (c.1 - a.1) - (b.1 - a.1) * (c.0 - a.0)
}

fn crosses((a, b): (Slot, Slot), (c, d): (Slot, Slot)) -> bool {
    turn(a, b, c) * turn(a, b, d) < -1e-12 && turn(c, d, a) * turn(c, d, b) < -1e-12
}

/// Distance from a point to the line segment between two others.
fn distance_to_segment(p: Slot, a: Slot, b: Slot) -> f64 {
    let (dx, dy) = (b.0 - a.0, b.1 - a.1);
    let along = (((p.0 - a.0) * dx + (p.1 - a.1) * dy) / (dx * dx + dy * dy)).clamp(0.0, 1.0);
    (p.0 - a.0 - along * dx).hypot(p.1 - a.1 - along * dy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cube_is_drawn_without_crossings_whatever_its_corners_are_called() {
        let corner = [3, 6, 0, 5, 1, 7, 2, 4];
        let mut edges = Vec::new();
        for a in 0..8usize {
            edges.extend(
                [1, 2, 4]
                    .map(|bit| (corner[a], corner[a ^ bit], 1.0))
                    .iter()
                    .filter(|e| e.0 < e.1),
            );
        }
        let (places, cost) = arrange(&edges, 8, &SQUARES);
        assert!(cost < 20.0, "{cost}");
        assert!(places[0].0 < 0.0 && places[0].1 < 0.0);
    }
}

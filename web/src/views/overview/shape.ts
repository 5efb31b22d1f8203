// Positions of nodes and links in the picture of a machine, in the picture's units.

import type { Machine } from "../../documents";

export interface Point {
  x: number;
  y: number;
}

/** One direction of a link: a curve from edge to edge, its arrow head, and its middle. */
export interface Lane {
  link: number;
  path: string;
  head: string;
  width: number;
  /** The point at which the curve is farthest from the straight line. */
  crest: Point;
}

export interface Shape {
  /** The visible part of the plane. */
  box: { x: number; y: number; width: number; height: number };
  radius: number;
  nodes: Point[];
  lanes: Lane[];
}

const WIDTH = 620;
const EDGE = 10;
/** Width of the thinnest lane; the largest width depends on the number of nodes, so that lanes do not overlap. */
const MIN_LANE_WIDTH = 2;
const thickest = (nodes: number) => (nodes <= 4 ? 11 : nodes <= 8 ? 9 : 5);

const between = (a: Point, b: Point, share: number): Point => ({ x: a.x + (b.x - a.x) * share, y: a.y + (b.y - a.y) * share });
const distance = (a: Point, b: Point) => Math.hypot(b.x - a.x, b.y - a.y);
const show = (p: Point) => `${p.x.toFixed(1)} ${p.y.toFixed(1)}`;

/** A vector of the given length, perpendicular to the line from a to b, to its left. */
function aside(a: Point, b: Point, length: number): Point {
  const d = distance(a, b) || 1;
  return { x: ((b.y - a.y) / d) * length, y: (-(b.x - a.x) / d) * length };
}

const plus = (a: Point, b: Point): Point => ({ x: a.x + b.x, y: a.y + b.y });

/** How far a line has to bend to avoid the nodes that lie on it; the sign gives the side. */
function detour(a: Point, b: Point, others: readonly Point[], room: number): number {
  let most = 0;
  const d = distance(a, b) || 1;
  for (const o of others) {
    const along = ((o.x - a.x) * (b.x - a.x) + (o.y - a.y) * (b.y - a.y)) / (d * d);
    if (along <= 0.05 || along >= 0.95) continue;
    const off = ((o.x - a.x) * (b.y - a.y) - (o.y - a.y) * (b.x - a.x)) / d;
    if (Math.abs(off) >= room) continue;
    // A quadratic curve bends by half the distance of its control point.
    const need = 2 * (room - Math.abs(off) + 6) * (off > 0 ? -1 : 1);
    if (Math.abs(need) > Math.abs(most)) most = need;
  }
  return most;
}

function lane(from: Point, to: Point, bend: number, offset: number, width: number, radius: number, link: number): Lane {
  const side = aside(from, to, offset);
  const [a, b] = [plus(from, side), plus(to, side)];
  const middle = plus(between(a, b, 0.5), aside(a, b, bend));
  const start = between(a, middle, Math.min(0.45, (radius + 3) / (distance(a, middle) || 1)));
  const tip = between(b, middle, Math.min(0.45, (radius + 4) / (distance(b, middle) || 1)));
  const long = Math.max(7, width * 1.1);
  const neck = between(tip, middle, Math.min(0.9, long / (distance(tip, middle) || 1)));
  const wing = aside(neck, tip, width / 2 + 2.5);
  const other = { x: -wing.x, y: -wing.y };
  return {
    link,
    width,
    path: bend ? `M${show(start)}Q${show(middle)} ${show(neck)}` : `M${show(start)}L${show(neck)}`,
    crest: between(between(a, b, 0.5), middle, 0.5),
    head: `M${show(tip)}L${show(plus(neck, wing))}L${show(plus(neck, other))}Z`,
  };
}

/** The two directions of a pair are each moved to their left, so that they lie side by side. */
function lanes(machine: Machine, nodes: readonly Point[], radius: number): Lane[] {
  const most = Math.max(...machine.links.map((l) => l.bandwidth), 1);
  const width = (bandwidth: number) => Math.max(MIN_LANE_WIDTH, (bandwidth / most) * thickest(nodes.length));
  return machine.links.flatMap((link, i) => {
    const [from, to] = [nodes[link.from], nodes[link.to]];
    if (!from || !to) return [];
    const [low, high] = link.from < link.to ? [from, to] : [to, from];
    const others = nodes.filter((_, n) => n !== link.from && n !== link.to);
    const bend = detour(low, high, others, radius + 10) * (link.from < link.to ? 1 : -1);
    const back = machine.links.some((l) => l.from === link.to && l.to === link.from);
    const w = width(link.bandwidth);
    return [lane(from, to, bend, back ? w / 2 + 1.2 : 0, w, radius, i)];
  });
}

const spread = (values: readonly number[]) => Math.max(...values) - Math.min(...values);

/** A box around all points, with a margin of a lane's width. */
function box(points: readonly Point[]): Shape["box"] {
  const [x, y] = [Math.min(...points.map((p) => p.x)), Math.min(...points.map((p) => p.y))];
  const [right, below] = [Math.max(...points.map((p) => p.x)), Math.max(...points.map((p) => p.y))];
  return { x: x - EDGE, y: y - EDGE, width: right - x + 2 * EDGE, height: below - y + 2 * EDGE };
}

export function shape(machine: Machine): Shape {
  const { places } = machine;
  const radius = places.length <= 4 ? 42 : places.length <= 8 ? 36 : 25;
  const [edge, above] = [radius + 14, radius + 14];
  const flat = spread(places.map((p) => p.y)) < 0.01;
  const width = places.length <= 2 ? 420 : WIDTH;
  const height = flat ? 2 * above + 40 : places.length <= 4 ? 300 : 380;
  const nodes = places.map((p) => ({
    x: edge + ((p.x + 1) / 2) * (width - 2 * edge),
    y: above + ((p.y + 1) / 2) * (height - 2 * above),
  }));
  const drawn = lanes(machine, nodes, radius);
  return { box: box([{ x: 0, y: 0 }, { x: width, y: height }, ...drawn.map((l) => l.crest)]), radius, nodes, lanes: drawn };
}

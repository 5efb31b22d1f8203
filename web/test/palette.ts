// Whether the colours of nodes can be told apart, by eyes of three kinds (Machado, Oliveira and Fernandes 2009), and
// whether more of a quantity is always further from the ground.

import { palette, type Rgb } from "../src/palette";

type Matrix = readonly (readonly number[])[];

const EYES: Record<string, Matrix> = {
  normal: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  protanopia: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deuteranopia: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
};
// CIE76; 2.3 is just noticeable side by side.
const LEAST = 15;

function lab(colour: Rgb, eyes: Matrix): number[] {
  const light = colour.map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
  const [r, g, b] = eyes.map((row) => Math.max(0, row[0]! * light[0]! + row[1]! * light[1]! + row[2]! * light[2]!)) as [
    number,
    number,
    number,
  ];
  const f = (t: number) => (t > 0.008856 ? Math.cbrt(t) : 7.787 * t + 16 / 116);
  const [x, y, z] = [
    f((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.95047),
    f(0.2126 * r + 0.7152 * g + 0.0722 * b),
    f((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.08883),
  ];
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

const apart = (a: Rgb, b: Rgb, eyes: Matrix) => Math.hypot(...lab(a, eyes).map((v, i) => v - lab(b, eyes)[i]!));
let failed = 0;
const check = (what: string, holds: boolean, found: number) => {
  console.log(`${holds ? "ok" : "FAILED"}: ${what} (${found.toFixed(1)})`);
  if (!holds) failed++;
};

for (const dark of [false, true]) {
  const p = palette(dark);
  const theme = dark ? "dark" : "light";
  const nodes = Array.from({ length: 8 }, (_, node) => p.node(node));
  for (const [name, eyes] of Object.entries(EYES)) {
    const pairs = nodes.flatMap((a, i) => nodes.slice(0, i).map((b) => apart(a, b, eyes)));
    check(`${theme}, ${name}: eight nodes`, Math.min(...pairs) >= LEAST, Math.min(...pairs));
    const spread = Math.min(...nodes.map((node) => apart(node, p.spread, eyes)));
    check(`${theme}, ${name}: nodes and what is spread`, spread >= LEAST, spread);
    check(`${theme}, ${name}: local and remote`, apart(p.local, p.remote, eyes) >= 3 * LEAST, apart(p.local, p.remote, eyes));
  }
  const lightness = Array.from({ length: 65 }, (_, i) => lab(p.quantity(i / 64), EYES.normal!)[0]!);
  const steps = lightness.slice(1).map((l, i) => (dark ? l - lightness[i]! : lightness[i]! - l));
  check(
    `${theme}: more is further from the ground, at each step`,
    steps.every((s) => s > 0),
    Math.min(...steps),
  );
}
if (failed) throw new Error(`${failed} failed`);

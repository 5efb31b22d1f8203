// Lookup tables of colours as pixels, so that painting need not mix colours.

import { mix, pixel, type Palette, type Rgb } from "../palette";

const STEPS = 32;
const table = (n: number, colour: (share: number) => Rgb) => Uint32Array.from({ length: n }, (_, i) => pixel(colour(i / (n - 1))));

/** Numbers of steps of the three dimensions of the page × thread figure's colours: depth, locality and background. */
const DEPTHS = 32;
const LOCALS = 17;
const GROUNDS = 9;

export class Inks {
  readonly card: number;
  readonly spread: number;
  readonly nodes: Uint32Array;
  readonly classes: Uint32Array;
  readonly quantity: Uint32Array;
  readonly locality: Uint32Array;
  private readonly homes: Uint32Array;
  private readonly reach: Uint32Array;
  private readonly others: Uint32Array;

  constructor(
    readonly palette: Palette,
    readonly count: number,
  ) {
    this.card = pixel(palette.card);
    this.spread = pixel(palette.spread);
    this.nodes = Uint32Array.from({ length: count }, (_, node) => pixel(palette.node(node)));
    this.classes = Uint32Array.from(palette.classes, pixel);
    this.quantity = table(256, palette.quantity);
    this.locality = table(256, palette.locality);
    this.homes = new Uint32Array(count * STEPS);
    for (let node = 0; node < count; node++) {
      for (let step = 0; step < STEPS; step++)
        this.homes[node * STEPS + step] = pixel(mix(palette.spread, palette.node(node), step / (STEPS - 1)));
    }
    this.reach = reach(palette);
    this.others = table(DEPTHS, (depth) => mix(palette.card, palette.muted, depth));
  }

  /** A node's colour, greyer for a smaller share of the pages; an even share over nodes is grey. */
  home(node: number, share: number): number {
    const even = 1 / this.count;
    const own = this.count > 1 ? Math.max(0, (share - even) / (1 - even)) : 1;
    return this.homes[node * STEPS + Math.round(own * (STEPS - 1))]!;
  }

  /** Colour of a thread's accesses to a cell, by their number, their local share, and the background. */
  access(depth: number, local: number, ground: number): number {
    return this.reach[
      (Math.round(ground * (GROUNDS - 1)) * LOCALS + Math.round(local * (LOCALS - 1))) * DEPTHS + Math.round(depth * (DEPTHS - 1))
    ]!;
  }

  /** Colour of accesses of threads that are not listed individually. */
  other(depth: number): number {
    return this.others[Math.round(depth * (DEPTHS - 1))]!;
  }
}

function reach(palette: Palette): Uint32Array {
  const made = new Uint32Array(DEPTHS * LOCALS * GROUNDS);
  for (let ground = 0, at = 0; ground < GROUNDS; ground++) {
    const below = mix(palette.card, palette.home, ground / (GROUNDS - 1));
    for (let local = 0; local < LOCALS; local++) {
      const hue = mix(palette.remote, palette.local, local / (LOCALS - 1));
      for (let depth = 0; depth < DEPTHS; depth++)
        made[at++] = pixel(depth === 0 ? below : mix(below, hue, 0.12 + (0.88 * depth) / (DEPTHS - 1)));
    }
  }
  return made;
}

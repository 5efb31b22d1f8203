// The run as a film: a line of pixels for each time step.

import type { Packed } from "../packed";
import { NO_ACCESS } from "./cells";
import type { Inks } from "./inks";

export interface Film {
  steps: number;
  width: number;
  /** Seconds, by step. */
  start: number[];
  end: number[];
  /** `[step * width + column]`. */
  dominant: Uint8Array;
  accesses: Float32Array;
  local: Uint8Array;
  most: number;
}

export const FILM_MODES = ["node", "local", "accesses"] as const;
export type FilmMode = (typeof FILM_MODES)[number];

export function film(packed: Packed): Film {
  const { steps, width, start, end } = packed.facts as { steps: number; width: number; start: number[]; end: number[] };
  const accesses = packed.columns.get("accesses") as Float32Array;
  const column = (name: string) => packed.columns.get(name) as Uint8Array;
  return {
    steps,
    width,
    start,
    end,
    dominant: column("dominant"),
    accesses,
    local: column("local"),
    most: accesses.reduce((a, b) => Math.max(a, b), 0),
  };
}

/** The step at a time: the last one that began before it. */
export function stepAt({ steps, start }: Film, seconds: number): number {
  let step = 0;
  while (step + 1 < steps && start[step + 1]! <= seconds) step++;
  return step;
}

/** All steps from `first` to `last`, summed up as one. */
export function together(film: Film, first: number, last: number, nodes: number): Film {
  const { width } = film;
  const by = new Float64Array(width * nodes);
  const local = new Float64Array(width);
  const accesses = new Float32Array(width);
  for (let step = first; step <= last; step++) {
    for (let x = 0; x < width; x++) {
      const at = step * width + x;
      const n = film.accesses[at]!;
      if (film.dominant[at] === NO_ACCESS || n === 0) continue;
      const cell = x * nodes + film.dominant[at]!;
      by[cell] = by[cell]! + n;
      accesses[x] = accesses[x]! + n;
      local[x] = local[x]! + n * film.local[at]!;
    }
  }
  const dominant = new Uint8Array(width).fill(NO_ACCESS);
  for (let x = 0; x < width; x++) {
    let most = 0;
    for (let node = 0; node < nodes; node++) {
      if (by[x * nodes + node]! > most) [most, dominant[x]] = [by[x * nodes + node]!, node];
    }
  }
  const shares = Uint8Array.from(local, (sum, x) => (accesses[x]! > 0 ? Math.round(sum / accesses[x]!) : 0));
  const most = accesses.reduce((a, b) => Math.max(a, b), 0);
  return { steps: 1, width, start: [film.start[first] ?? 0], end: [film.end[last] ?? 0], dominant, accesses, local: shares, most };
}

/** Paints the film, with steps downwards, scaled to the given height and width. */
export function paintFilm(
  out: Uint32Array,
  width: number,
  height: number,
  film: Film,
  mode: FilmMode,
  inks: Inks,
  first = 0,
  last = film.steps - 1,
): void {
  const steps = last - first + 1;
  let drawn = -1;
  for (let y = 0; y < height; y++) {
    const step = first + Math.min(steps - 1, Math.floor((y * steps) / height));
    if (step === drawn) {
      out.copyWithin(y * width, (y - 1) * width, y * width);
      continue;
    }
    drawn = step;
    for (let x = 0; x < width; x++)
      out[y * width + x] = colour(film, step * film.width + Math.min(film.width - 1, Math.floor((x * film.width) / width)), mode, inks);
  }
}

function colour(film: Film, at: number, mode: FilmMode, inks: Inks): number {
  if (film.dominant[at] === NO_ACCESS) return inks.card;
  if (mode === "node") return inks.nodes[film.dominant[at]!]!;
  if (mode === "local") return inks.locality[film.local[at]!]!;
  const share = film.most > 1 ? Math.log1p(film.accesses[at]!) / Math.log1p(film.most) : 1;
  return inks.quantity[Math.round(255 * Math.min(1, share))]!;
}

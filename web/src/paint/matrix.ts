// Paints the sharing matrix as squares of pixels.

import type { Inks } from "./inks";

export interface Span {
  least: number;
  most: number;
}

/** Range of the logarithmic scale: values below the largest one divided by this are shown as the smallest step. */
const RANGE = 2000;

/** The range of the colour scale: from the smallest to the largest value above zero, at most a factor of `RANGE`. */
export function span(sharing: readonly number[][]): Span {
  let [least, most] = [Infinity, 0];
  sharing.forEach((row, a) =>
    row.forEach((value, b) => {
      if (a === b || value <= 0) return;
      least = Math.min(least, value);
      most = Math.max(most, value);
    }),
  );
  return most > 0 ? { least: Math.max(Math.min(least, most / 10), most / RANGE), most } : { least: 1, most: 1 };
}

/** The step of the logarithmic colour scale: 0 for zero, else 1 to 255. */
export function step(value: number, { least, most }: Span): number {
  if (value <= 0) return 0;
  const range = Math.log(most / least);
  return 1 + Math.round(254 * (range > 0 ? Math.max(0, Math.min(1, Math.log(value / least) / range)) : 1));
}

/** Paints the matrix; `order` gives the group of each row. The diagonal, which is not sharing, is grey. */
export function paintMatrix(out: Uint32Array, size: number, sharing: readonly number[][], order: readonly number[], inks: Inks): void {
  const n = order.length;
  const range = span(sharing);
  const at = Uint16Array.from({ length: size }, (_, i) => Math.min(n - 1, Math.floor((i * n) / size)));
  for (let y = 0; y < size; y++) {
    if (y > 0 && at[y] === at[y - 1]) {
      out.copyWithin(y * size, (y - 1) * size, y * size);
      continue;
    }
    const row = sharing[order[at[y]!]!]!;
    for (let x = 0; x < size; x++) {
      const value = row[order[at[x]!]!]!;
      out[y * size + x] = at[x] === at[y] ? inks.spread : value > 0 ? inks.quantity[step(value, range)]! : inks.card;
    }
  }
}

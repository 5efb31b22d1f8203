// Columns of the strip of differences: their positions on both sides, and how they are painted.

import { css, type Palette } from "../../palette";
import type { Cells, Span } from "./cells";

export const ROW = 26;
export const GAP = 6;

/** A column of the picture, with its positions on both sides. */
export interface Column {
  span: Span;
  a: number;
  b: number;
  /** Page within the object, on the first side. */
  page: number;
}

/** Objects one after the other, each as wide as its pages on the first side. */
export function columns(list: readonly Span[], n: number): Column[] {
  const whole = list.reduce((sum, s) => sum + s.a.pages, 0);
  const found: Column[] = [];
  let [span, before] = [0, 0];
  for (let c = 0; c < n && whole > 0; c++) {
    const position = ((c + 0.5) / n) * whole;
    while (span < list.length - 1 && position >= before + list[span]!.a.pages) before += list[span++]!.a.pages;
    const s = list[span]!;
    const share = Math.min(0.999999, (position - before) / s.a.pages);
    found.push({ span: s, a: s.a.first + share * s.a.pages, b: s.b.first + share * s.b.pages, page: Math.floor(share * s.a.pages) });
  }
  return found;
}

export interface Reading {
  used: boolean;
  homes: [number, number];
  local: [number, number];
}

export function reading(column: Column, a: Cells, b: Cells): Reading {
  const [i, j] = [Math.floor(column.a / a.size), Math.floor(column.b / b.size)];
  return {
    used: (a.accesses[i] ?? 0) > 0 || (b.accesses[j] ?? 0) > 0,
    homes: [a.home[i] ?? 255, b.home[j] ?? 255],
    local: [(a.local[i] ?? 0) / 255, (b.local[j] ?? 0) / 255],
  };
}

export function paint(pen: CanvasRenderingContext2D, shown: readonly Column[], a: Cells, b: Cells, colours: Palette): void {
  const bar = (x: number, row: number, fill: string) => {
    pen.fillStyle = fill;
    pen.fillRect(x, row * (ROW + GAP), 1, ROW);
  };
  const node = (n: number) => css(n === 255 ? colours.home : colours.node(n));
  shown.forEach((column, x) => {
    const { homes, local, used } = reading(column, a, b);
    bar(x, 0, node(homes[0]));
    bar(x, 1, node(homes[1]));
    bar(x, 2, used ? css(colours.locality(0.5 + (local[1] - local[0]) / 2)) : css(colours.card));
  });
  // Lines between objects.
  pen.fillStyle = css(colours.card);
  shown.forEach((column, x) => x > 0 && shown[x - 1]!.span !== column.span && pen.fillRect(x, 0, 1, 3 * ROW + 2 * GAP));
}

// Objects as named bands above the strips.

import { css, mix, type Palette } from "../palette";

export interface Run {
  first: number;
  pages: number;
  name: string;
  object: number;
}

/** Where a run of pages is drawn. */
export interface Stage {
  x: number;
  w: number;
  from: number;
  to: number;
}

export const FONT = '12px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
export const SMALL = '11px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';

/** Index of the run that contains a position. */
export function runAt(runs: readonly Run[], position: number): number {
  let [low, high] = [0, runs.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (runs[middle]!.first <= position) low = middle;
    else high = middle - 1;
  }
  return runs.length ? low : -1;
}

/** The text, shortened with … if necessary; empty if not even that fits. */
export function fitted(pen: CanvasRenderingContext2D, text: string, room: number): string {
  if (pen.measureText(text).width <= room) return text;
  const letters = Math.floor(text.length * (room / pen.measureText(text).width)) - 1;
  return letters >= 2 ? `${text.slice(0, letters)}…` : "";
}

export function drawBands(
  pen: CanvasRenderingContext2D,
  runs: readonly Run[],
  at: Stage,
  y: number,
  h: number,
  selected: number,
  palette: Palette,
): void {
  const { x, w, from, to } = at;
  const scale = w / (to - from);
  pen.textBaseline = "middle";
  pen.textAlign = "left";
  for (let i = Math.max(0, runAt(runs, from)); i < runs.length && runs[i]!.first < to; ) {
    const run = runs[i]!;
    const left = Math.max(x, x + (run.first - from) * scale);
    const right = Math.min(x + w, x + (run.first + run.pages - from) * scale);
    const lit = run.object >= 0 && run.object === selected;
    pen.fillStyle = css(lit ? mix(palette.card, palette.local, 0.35) : mix(palette.card, palette.muted, i % 2 ? 0.16 : 0.28));
    pen.fillRect(left, y, Math.max(0.5, right - left - (right - left > 3 ? 1 : 0)), h);
    if (right - left > 22) {
      pen.fillStyle = css(palette.ink);
      pen.fillText(fitted(pen, run.name, right - left - 10), left + 5, y + h / 2 + 0.5);
    }
    // Of several bands within one pixel, only one is drawn.
    i = Math.max(i + 1, right - left < 1 ? runAt(runs, from + (left + 1 - x) / scale) : i + 1);
  }
}

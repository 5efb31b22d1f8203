// What moves with the pointer, on a sheet of its own above the picture.

import { css } from "../../palette";
import type { Scene } from "./scene";

export function overlay(pen: CanvasRenderingContext2D, scene: Scene): void {
  const { geometry: at, cursor, span, look, shown } = scene;
  pen.clearRect(0, 0, at.width, at.height);
  if (!cursor || !shown) return;
  const piece = shown.cells.pieces[columnAt(scene, cursor.position)];
  const size = 2 ** (piece?.level ?? 0);
  const x = (position: number) => at.x + ((position - span.from) / (span.to - span.from)) * at.w;
  const first = Math.floor(cursor.position / size) * size;
  const left = Math.max(at.x, x(first));
  const right = Math.min(at.x + at.w, Math.max(left + 1, x(first + size)));
  if (right < at.x || left > at.x + at.w) return;
  const [top, bottom] = [at.bands.y, at.threads.y + at.threads.h];
  pen.strokeStyle = css(look.palette.card, 0.9);
  pen.lineWidth = 3;
  pen.strokeRect(left - 0.5, top, right - left + 1, bottom - top);
  pen.strokeStyle = css(look.palette.ink);
  pen.lineWidth = 1;
  pen.strokeRect(left - 0.5, top, right - left + 1, bottom - top);
  if (cursor.row >= 0) {
    const y = at.threads.y + cursor.row * at.row;
    pen.fillStyle = css(look.palette.ink, 0.12);
    pen.fillRect(at.x, y, at.w, at.row);
    pen.strokeRect(left - 1.5, y - 0.5, right - left + 3, at.row + 1);
  }
  const pages = Math.max(1, scene.strip.pages);
  pen.fillStyle = css(look.palette.ink);
  pen.fillRect(at.x + (cursor.position / pages) * at.w - 0.5, at.overview.y, 1, at.overview.h + 3);
}

/** Column of pixels of a position. */
export function columnAt({ span, shown }: Scene, position: number): number {
  const width = shown?.cells.width ?? 1;
  return Math.max(0, Math.min(width - 1, Math.floor(((position - span.from) / (span.to - span.from)) * width)));
}

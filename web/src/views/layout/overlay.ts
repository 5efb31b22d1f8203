// Marks that move with the pointer: HTML elements above the picture, so that the picture need not be drawn again.

import type { Scene } from "./scene";

/** Marks of the cursor's column, its row, the cell where they cross, and its position in the overview. */
export class Overlay {
  private readonly boxes: Record<"row" | "column" | "cell" | "tick", HTMLElement>;

  constructor(place: HTMLElement) {
    const box = (name: string) => {
      const made = place.appendChild(document.createElement("div"));
      made.className = `pointed ${name}`;
      made.dataset.unexported = "";
      made.hidden = true;
      return made;
    };
    this.boxes = { row: box("row"), column: box("column"), cell: box("cell"), tick: box("tick") };
  }

  remove(): void {
    for (const box of Object.values(this.boxes)) box.remove();
  }

  show(scene: Scene): void {
    const { geometry: at, cursor, span, shown, strip } = scene;
    const { row, column, cell, tick } = this.boxes;
    const piece = cursor && shown?.cells.pieces[columnAt(scene, cursor.position)];
    const inView = cursor !== null && cursor.position >= span.from && cursor.position < span.to;
    for (const box of Object.values(this.boxes)) box.hidden = !piece;
    if (!cursor || !piece) return;
    const size = 2 ** piece.level;
    const x = (position: number) => at.x + Math.max(0, Math.min(1, (position - span.from) / (span.to - span.from))) * at.w;
    const first = Math.floor(cursor.position / size) * size;
    const left = x(first);
    const width = Math.max(1, x(first + size) - left);
    put(tick, at.x + (cursor.position / Math.max(1, strip.pages)) * at.w - 0.5, at.overview.y, 1, at.overview.h + 3);
    column.hidden = !inView;
    cell.hidden = row.hidden = !inView || cursor.row < 0;
    put(column, left - 1, at.bands.y, width + 2, at.threads.y + at.threads.h - at.bands.y);
    const y = at.threads.y + cursor.row * at.row;
    put(row, at.x, y, at.w, at.row);
    put(cell, left - 2, y - 1, width + 4, at.row + 2);
  }
}

function put({ style }: HTMLElement, x: number, y: number, width: number, height: number): void {
  style.transform = `translate(${x.toFixed(2)}px, ${y.toFixed(2)}px)`;
  style.width = `${width.toFixed(2)}px`;
  style.height = `${height.toFixed(2)}px`;
}

/** Column of pixels of a position. */
export function columnAt({ span, shown }: Scene, position: number): number {
  const width = shown?.cells.width ?? 1;
  return Math.max(0, Math.min(width - 1, Math.floor(((position - span.from) / (span.to - span.from)) * width)));
}

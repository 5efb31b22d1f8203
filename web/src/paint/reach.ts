// The page × thread figure: who reaches where, and whether that is near.

import { OTHERS, type Cells, type Who } from "./cells";
import type { Columns } from "./columns";
import type { Inks } from "./inks";
import type { Rows } from "./rows";

export interface Reach {
  who: Columns<Who>;
  cells: Columns<Cells>;
  policy: number;
  rows: Rows;
  inks: Inks;
  /** Accesses of one thread to a cell of a level that are drawn in full colour. */
  full: (level: number) => number;
}

/** How local the accesses of each row to a cell are: exact for a page, else so that the cell's own share comes out. */
export function locality(rows: Rows, accesses: Float64Array, home: number, share: number, local: number, out: Float64Array): void {
  const elsewhere = rows.nodes > 1 ? (1 - share) / (rows.nodes - 1) : 0;
  let all = 0;
  let near = 0;
  for (let row = 0; row < rows.length; row++) {
    out[row] = rows.node[row] === home ? share : elsewhere;
    all += accesses[row]!;
    near += accesses[row]! * out[row]!;
  }
  if (all === 0) return;
  const guessed = near / all;
  for (let row = 0; row < rows.length; row++) {
    if (local >= guessed) out[row] = guessed < 1 ? 1 - ((1 - out[row]!) * (1 - local)) / (1 - guessed) : 1;
    else out[row] = (out[row]! * local) / guessed;
  }
}

/** One pixel a row and column, `[row * width + x]`. */
export function paintReach(out: Uint32Array, reach: Reach): void {
  const { rows, who, inks } = reach;
  const width = who.width;
  const accesses = new Float64Array(rows.length + 1);
  const local = new Float64Array(rows.length);
  const column = new Uint32Array(rows.length + 1).fill(inks.card);
  let [before, cell, under, over]: [Who | undefined, number, Cells | undefined, number] = [undefined, -1, undefined, -1];
  const drawn = rows.others ? rows.length + 1 : rows.length;
  for (let x = 0; x < width; x++) {
    const piece = who.pieces[x];
    const c = who.cells[x]!;
    const cells = reach.cells.pieces[x];
    const d = reach.cells.cells[x]!;
    if (piece !== before || c !== cell || cells !== under || d !== over) {
      tally(accesses, piece, c, rows);
      dip(column, accesses, local, cells, d, piece ? reach.full(piece.level) : 1, reach);
      [before, cell, under, over] = [piece, c, cells, d];
    }
    for (let row = 0; row < drawn; row++) out[row * width + x] = column[row]!;
  }
}

/** Accesses by row; what is not told apart comes last. */
export function tally(out: Float64Array, piece: Who | undefined, c: number, rows: Rows): void {
  out.fill(0);
  if (!piece) return;
  for (let at = piece.offsets[c]!; at < piece.offsets[c + 1]!; at++) {
    const thread = piece.thread[at]!;
    const row = thread === OTHERS ? rows.length : rows.of[thread]!;
    out[row] = out[row]! + piece.accesses[at]!;
  }
}

function dip(column: Uint32Array, accesses: Float64Array, local: Float64Array, cells: Cells | undefined, d: number, full: number, reach: Reach): void {
  const { rows, inks } = reach;
  const homes = cells?.homes[reach.policy];
  const home = homes ? homes.node[d]! : -1;
  const share = homes ? homes.share[d]! / 255 : 0;
  locality(rows, accesses, home, share, homes ? homes.local[d]! / 255 : 0, local);
  for (let row = 0; row < rows.length; row++) {
    const depth = accesses[row]! > 0 ? Math.max(0.1, Math.min(1, Math.sqrt(accesses[row]! / (full * rows.size[row]!)))) : 0;
    column[row] = inks.access(depth, local[row]!, rows.node[row] === home ? share : 0);
  }
  column[rows.length] = inks.other(Math.min(1, Math.sqrt(accesses[rows.length]! / (full * 4))));
}

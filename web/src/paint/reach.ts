// Paints the page × thread figure: which threads access which pages, and whether the accesses are local.

import { OTHER_THREADS, type Cells, type Who } from "./cells";
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

/** The accesses to one cell by row; only the rows of its few threads are visited. */
export class Tally {
  /** Accesses by row; the last row stands for threads that are not listed. */
  readonly accesses: Float64Array;
  /** Local share of each row's accesses. */
  readonly local: Float64Array;
  /** Rows with accesses. */
  readonly touched: number[] = [];

  constructor(private readonly rows: Rows) {
    this.accesses = new Float64Array(rows.length + 1);
    this.local = new Float64Array(rows.length + 1);
  }

  count(piece: Who | undefined, c: number): void {
    for (const row of this.touched) this.accesses[row] = 0;
    this.touched.length = 0;
    if (!piece) return;
    for (let at = piece.offsets[c]!; at < piece.offsets[c + 1]!; at++) {
      const thread = piece.thread[at]!;
      const row = thread === OTHER_THREADS ? this.rows.length : this.rows.of[thread]!;
      if (this.accesses[row] === 0) this.touched.push(row);
      this.accesses[row] = this.accesses[row]! + piece.accesses[at]!;
    }
  }

  /** Computes the local shares of rows: exact for a single page, else chosen to give the cell's total local share. */
  localize(home: number, share: number, local: number): void {
    const { rows, touched } = this;
    const elsewhere = rows.nodes > 1 ? (1 - share) / (rows.nodes - 1) : 0;
    let [all, near] = [0, 0];
    for (const row of touched) {
      this.local[row] = row < rows.length ? (rows.node[row] === home ? share : elsewhere) : local;
      all += this.accesses[row]!;
      near += this.accesses[row]! * this.local[row]!;
    }
    const guessed = all > 0 ? near / all : 0;
    for (const row of touched) {
      if (local >= guessed) this.local[row] = guessed < 1 ? 1 - ((1 - this.local[row]!) * (1 - local)) / (1 - guessed) : 1;
      else this.local[row] = (this.local[row]! * local) / guessed;
    }
  }
}

/** Paints one pixel for each row and column, `[row * width + x]`. */
export function paintReach(out: Uint32Array, reach: Reach): void {
  const { rows, who, inks } = reach;
  const width = who.width;
  const tally = new Tally(rows);
  const column = new Uint32Array(rows.length + 1).fill(inks.card);
  let [before, cell, under, over]: [Who | undefined, number, Cells | undefined, number] = [undefined, -1, undefined, -1];
  const drawn = rows.others ? rows.length + 1 : rows.length;
  for (let x = 0; x < width; x++) {
    const piece = who.pieces[x];
    const c = who.cells[x]!;
    const cells = reach.cells.pieces[x];
    const d = reach.cells.cells[x]!;
    if (piece !== before || c !== cell || cells !== under || d !== over) {
      tally.count(piece, c);
      dip(column, tally, cells, d, piece ? reach.full(piece.level) : 1, reach);
      [before, cell, under, over] = [piece, c, cells, d];
    }
    for (let row = 0; row < drawn; row++) out[row * width + x] = column[row]!;
  }
}

function dip(column: Uint32Array, tally: Tally, cells: Cells | undefined, d: number, full: number, reach: Reach): void {
  const { rows, inks } = reach;
  const homes = cells?.homes[reach.policy];
  const home = homes ? homes.node[d]! : -1;
  const share = homes ? homes.share[d]! / 255 : 0;
  tally.localize(home, share, homes ? homes.local[d]! / 255 : 0);
  column.fill(inks.card);
  const [first, end] = rows.spans.get(home) ?? [0, 0];
  column.fill(inks.access(0, 0, share), first, end);
  for (const row of tally.touched) {
    const accesses = tally.accesses[row]!;
    if (row === rows.length) column[row] = inks.other(Math.min(1, Math.sqrt(accesses / (full * 4))));
    else {
      const depth = Math.max(0.1, Math.min(1, Math.sqrt(accesses / (full * rows.size[row]!))));
      column[row] = inks.access(depth, tally.local[row]!, rows.node[row] === home ? share : 0);
    }
  }
}

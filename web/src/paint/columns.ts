// Assigns a cell to each column of pixels.

/** A tile of either kind. */
export interface Piece {
  level: number;
  first: number;
  count: number;
}

export interface Columns<T extends Piece> {
  width: number;
  pieces: (T | undefined)[];
  /** Index within the piece. */
  cells: Uint16Array;
}

/** Finds the finest available piece at a position whose level is not finer than the given one. */
export type Find<T extends Piece> = (level: number, position: number) => T | undefined;

export function columns<T extends Piece>(width: number, from: number, to: number, level: number, find: Find<T>): Columns<T> {
  const pieces = new Array<T | undefined>(width);
  const cells = new Uint16Array(width);
  let piece: T | undefined;
  let end = -1;
  for (let x = 0; x < width; x++) {
    const position = from + ((x + 0.5) * (to - from)) / width;
    if (position >= end) {
      piece = find(level, position);
      // Within a coarser piece a finer one may begin at any tile of the level.
      const step = 256 * 2 ** level;
      end = Math.min(piece ? (piece.first + piece.count) * 2 ** piece.level : Infinity, (Math.floor(position / step) + 1) * step);
    }
    if (!piece) continue;
    const cell = Math.floor(position / 2 ** piece.level) - piece.first;
    if (cell < 0 || cell >= piece.count) continue;
    pieces[x] = piece;
    cells[x] = cell;
  }
  return { width, pieces, cells };
}

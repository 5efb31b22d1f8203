// Strips of the address space: a row of pixels, from tiles to colours.

import { NO_ACCESS, type Cells } from "./cells";
import type { Columns } from "./columns";
import type { Inks } from "./inks";
import type { LogScale } from "./scale";

export const MODES = ["node", "local", "class", "accesses", "exclusivity"] as const;
export type Mode = (typeof MODES)[number];

/** The colour of a cell. */
export type Colour = (cells: Cells, cell: number) => number;

/** Colours by the use of pages, which is independent of their home nodes. */
export function observed(mode: Mode, inks: Inks, scale: LogScale): Colour {
  switch (mode) {
    case "node":
      return (cells, c) => (cells.dominant[c] === NO_ACCESS ? inks.card : inks.nodes[cells.dominant[c]!]!);
    case "class":
      return (cells, c) => (cells.sharing[c] === NO_ACCESS ? inks.card : inks.classes[cells.sharing[c]!]!);
    case "exclusivity":
      return (cells, c) => (cells.dominant[c] === NO_ACCESS ? inks.card : inks.quantity[cells.exclusivity[c]!]!);
    case "local":
    case "accesses":
      return (cells, c) => (cells.accesses[c]! > 0 ? inks.quantity[scale.step(cells.accesses[c]! / 2 ** cells.level)]! : inks.card);
  }
}

/** Colours by the home nodes under a policy, and the resulting locality. */
export function mapped(mode: Mode, policy: number, inks: Inks, scale: LogScale): Colour {
  const homes = (cells: Cells) => cells.homes[policy];
  switch (mode) {
    case "node":
    case "class":
      return (cells, c) => {
        const home = homes(cells);
        return !home || home.node[c] === NO_ACCESS ? inks.card : inks.home(home.node[c]!, home.share[c]! / 255);
      };
    case "local":
      return (cells, c) => (cells.accesses[c]! > 0 ? inks.locality[homes(cells)?.local[c] ?? 0]! : inks.card);
    case "exclusivity":
      return (cells, c) => (cells.accesses[c]! > 0 ? inks.quantity[homes(cells)?.local[c] ?? 0]! : inks.card);
    case "accesses":
      return (cells, c) => {
        const far = (cells.accesses[c]! * (255 - (homes(cells)?.local[c] ?? 0))) / 255;
        return far > 0 ? inks.quantity[scale.step(far / 2 ** cells.level)]! : inks.card;
      };
  }
}

/** Paints each column in one colour. */
export function paintFlat(out: Uint32Array, width: number, height: number, columns: Columns<Cells>, colour: Colour, blank: number): void {
  for (let x = 0; x < width; x++) {
    const cells = columns.pieces[x];
    out[x] = cells ? colour(cells, columns.cells[x]!) : blank;
  }
  for (let y = 1; y < height; y++) out.copyWithin(y * width, 0, width);
}

/** Each column divided among the nodes that access it. */
export function paintShares(out: Uint32Array, width: number, height: number, columns: Columns<Cells>, inks: Inks): void {
  const column = new Uint32Array(height);
  let before: Cells | undefined;
  let cell = -1;
  for (let x = 0; x < width; x++) {
    const cells = columns.pieces[x];
    const c = columns.cells[x]!;
    if (x === 0 || cells !== before || c !== cell) divide(column, cells, c, inks);
    for (let y = 0; y < height; y++) out[y * width + x] = column[y]!;
    [before, cell] = [cells, c];
  }
}

function divide(column: Uint32Array, cells: Cells | undefined, c: number, inks: Inks): void {
  if (!cells || cells.dominant[c] === NO_ACCESS) return void column.fill(inks.card);
  let total = 0;
  for (let node = 0; node < inks.count; node++) total += cells.nodes[node * cells.count + c]!;
  if (total === 0) return void column.fill(inks.nodes[cells.dominant[c]!]!);
  let sum = 0;
  let y = 0;
  for (let node = 0; node < inks.count; node++) {
    sum += cells.nodes[node * cells.count + c]!;
    const end = Math.round((sum / total) * column.length);
    while (y < end) column[y++] = inks.nodes[node]!;
  }
}

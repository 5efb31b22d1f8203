// A logarithmic scale for accesses per page. It only grows with the values seen, so that a colour keeps its meaning.

import type { Cells } from "./cells";

export class LogScale {
  least = Infinity;
  most = 0;

  see(cells: Cells): void {
    for (const accesses of cells.accesses) {
      const each = accesses / 2 ** cells.level;
      if (each <= 0) continue;
      if (each < this.least) this.least = each;
      if (each > this.most) this.most = each;
    }
  }

  /** A step from 0 to 255; at least 1 for a value above 0. */
  step(each: number): number {
    if (each <= 0 || this.most <= 0) return 0;
    const span = Math.log(this.most / this.least);
    const share = span > 0 ? Math.log(Math.max(each, this.least) / this.least) / span : 1;
    return 1 + Math.round(254 * Math.min(1, share));
  }
}

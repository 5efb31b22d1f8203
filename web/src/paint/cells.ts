// The content of a tile, with named columns.

import type { Packed } from "../packed";

/** Home nodes of the pages of each cell under one policy. */
export interface Homes {
  node: Uint8Array;
  /** Share of the cell's pages that are on the node; 255 is all. */
  share: Uint8Array;
  /** Share of the cell's accesses that are local; 255 is all. */
  local: Uint8Array;
}

export interface Cells {
  level: number;
  /** The first cell, counted in cells of the level. */
  first: number;
  count: number;
  accesses: Float32Array;
  writes: Uint8Array;
  dominant: Uint8Array;
  exclusivity: Uint8Array;
  sharing: Uint8Array;
  /** `[node * count + cell]`; 255 is all. */
  nodes: Uint8Array;
  /** Page of the cell's first position, counted from where its object begins. */
  page: Uint32Array | undefined;
  homes: Homes[];
}

/** The threads that access the pages of each cell. */
export interface Who {
  level: number;
  first: number;
  count: number;
  offsets: Uint32Array;
  /** Index of the thread; `OTHER_THREADS` for all that are not listed. */
  thread: Uint16Array;
  accesses: Float32Array;
}

export const OTHER_THREADS = 65535;
export const NO_ACCESS = 255;

const place = (packed: Packed) => ({ level: Number(packed.facts.level), first: Number(packed.facts.first_cell) });

export function cells(packed: Packed): Cells {
  const column = <T>(name: string) => packed.columns.get(name) as T;
  const accesses = column<Float32Array>("accesses");
  const homes: Homes[] = [];
  for (let k = 0; packed.columns.has(`home_${k}`); k++) {
    homes.push({ node: column(`home_${k}`), share: column(`homeshare_${k}`), local: column(`local_${k}`) });
  }
  return {
    ...place(packed),
    count: accesses.length,
    accesses,
    writes: column("writes"),
    dominant: column("dominant"),
    exclusivity: column("exclusivity"),
    sharing: column("class"),
    nodes: column("nodes"),
    page: packed.columns.get("page") as Uint32Array | undefined,
    homes,
  };
}

export function who(packed: Packed): Who {
  const offsets = packed.columns.get("offsets") as Uint32Array;
  return {
    ...place(packed),
    count: offsets.length - 1,
    offsets,
    thread: packed.columns.get("thread") as Uint16Array,
    accesses: packed.columns.get("accesses") as Float32Array,
  };
}

// A profile's strip as cells of a resolution that suits a comparison: home node and local share under one policy.

import type { Strip } from "../../documents";
import type { Documents } from "../../source";
import type { Side } from "./sides";

/** Largest number of cells; finer ones would be smaller than pixels. */
const MOST_CELLS = 2048;

export interface Cells {
  strip: Strip;
  /** Number of pages of a cell. */
  size: number;
  accesses: Float32Array;
  /** Home node of most pages of the cell. */
  home: Uint8Array;
  /** Share of accesses that are local, 0 to 255. */
  local: Uint8Array;
}

function level(strip: Strip): number {
  let found = strip.finest;
  while (Math.ceil(strip.pages / 2 ** found) > MOST_CELLS && found < strip.coarsest) found += 1;
  return found;
}

/** Loads the cells of a side; fails with a one-sentence error if the strip does not contain the policy. */
export async function cells(documents: Documents, side: Side): Promise<Cells> {
  const strip = await documents.strip(side.profile);
  const policy = strip.policies.indexOf(side.policy.policy);
  if (policy < 0) throw new Error(`The strip has no mapping by ${side.policy.policy}.`);
  const fine = level(strip);
  const size = 2 ** fine;
  const n = Math.ceil(strip.pages / size);
  const made: Cells = { strip, size, accesses: new Float32Array(n), home: new Uint8Array(n), local: new Uint8Array(n) };
  const tiles = Array.from({ length: Math.ceil(n / strip.cells) }, (_, i) => i);
  await Promise.all(
    tiles.map(async (i) => {
      const { columns } = await documents.tile(side.profile, fine, i);
      made.accesses.set((columns.get("accesses") ?? []) as Float32Array, i * strip.cells);
      made.home.set((columns.get(`home_${policy}`) ?? []) as Uint8Array, i * strip.cells);
      made.local.set((columns.get(`local_${policy}`) ?? []) as Uint8Array, i * strip.cells);
    }),
  );
  return made;
}

/** An object's positions in both strips. */
export interface Span {
  name: string;
  a: { first: number; pages: number };
  b: { first: number; pages: number };
}

type Run = Strip["objects"][number];

/** Pairs the objects of two strips by name, those of the same name in order. */
export function spans(a: Strip, b: Strip): { spans: Span[]; left: number } {
  const rest = new Map<string, Run[]>();
  for (const run of b.objects) rest.set(run.name, [...(rest.get(run.name) ?? []), run]);
  const found: Span[] = [];
  let left = 0;
  for (const run of a.objects) {
    const other = rest.get(run.name)?.shift();
    if (other) found.push({ name: run.name, a: run, b: other });
    else left += 1;
  }
  for (const runs of rest.values()) left += runs.length;
  return { spans: found, left };
}

/** Local share of a run of pages, from the cells that lie completely within it; null if there are none. */
export function localShare(of: Cells, { first, pages }: { first: number; pages: number }): number | null {
  const from = Math.ceil(first / of.size);
  const to = Math.floor((first + pages) / of.size);
  let [accesses, local] = [0, 0];
  for (let c = from; c < to; c++) {
    accesses += of.accesses[c]!;
    local += of.accesses[c]! * (of.local[c]! / 255);
  }
  return accesses > 0 ? local / accesses : null;
}

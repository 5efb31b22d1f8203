// All figures of the pages under the cursor.

import { runAt } from "../../paint/bands";
import { NO_ACCESS, OTHER_THREADS } from "../../paint/cells";
import { Tally } from "../../paint/reach";
import { andMore, count, noun, pages as range, percent } from "../../format";
import { columnAt } from "./overlay";
import type { Scene } from "./scene";

export interface Seen {
  /** Positions: first, and one past the last. */
  first: number;
  end: number;
  object: number;
  name: string;
  /** Page range within the object, counted from its first touched page. */
  within: string;
  of: number;
  /** Number of other objects in the same cell. */
  more: number;
  address: string;
  accesses: number;
  writes: number;
  sharing: string;
  exclusivity: number;
  nodes: { node: number; share: number }[];
  homes: { policy: string; node: number; share: number; local: number }[];
  /** Accesses by row of the figure; the last row stands for all threads that are not listed. */
  rows: Float64Array;
  /** Local accesses by row, under the mapping shown. */
  local: Float64Array;
  listed: { thread: number; node: number; accesses: number }[];
  others: number;
  row: number;
}

export function inspect(scene: Scene, pageSize: number): Seen | null {
  const { cursor, shown, strip, rows, look } = scene;
  if (!cursor || !shown || strip.pages === 0) return null;
  const x = columnAt(scene, cursor.position);
  const piece = shown.cells.pieces[x];
  if (!piece) return null;
  const c = shown.cells.cells[x]!;
  const size = 2 ** piece.level;
  const first = (piece.first + c) * size;
  const end = Math.min(strip.pages, first + size);
  const index = runAt(strip.objects, Math.min(end - 1, Math.max(first, Math.floor(cursor.position))));
  const run = strip.objects[index];
  const from = Math.max(first, run?.first ?? 0);
  const policies = [...new Set([0, look.chosen])];
  const homes = policies.flatMap((policy) => {
    const home = piece.homes[policy];
    return home
      ? [{ policy: strip.policies[policy] ?? "", node: home.node[c]!, share: home.share[c]! / 255, local: home.local[c]! / 255 }]
      : [];
  });
  const nodes = Array.from({ length: strip.nodes }, (_, node) => ({ node, share: piece.nodes[node * piece.count + c]! / 255 }));
  const seen = {
    first,
    end,
    object: run?.object ?? -1,
    name: run?.name ?? "",
    within: run ? range(from - run.first, Math.min(end, run.first + run.pages) - from) : "",
    of: run?.pages ?? 0,
    more: runAt(strip.objects, end - 1) - runAt(strip.objects, first),
    address: run ? address(run.address, from === first ? piece.page?.[c] : 0, pageSize) : "",
    accesses: piece.accesses[c]!,
    writes: piece.writes[c]! / 255,
    sharing: piece.sharing[c] === NO_ACCESS ? "untouched" : (strip.classes[piece.sharing[c]!] ?? ""),
    exclusivity: piece.exclusivity[c]! / 255,
    nodes: nodes.filter(({ share }) => share > 0).sort((a, b) => b.share - a.share),
    homes,
    row: cursor.row,
  };
  const tally = new Tally(rows);
  const who = shown.who.pieces[x];
  const d = shown.who.cells[x]!;
  tally.count(who, d);
  const home = piece.homes[look.after ? look.chosen : 0];
  tally.localize(home?.node[c] ?? -1, (home?.share[c] ?? 0) / 255, (home?.local[c] ?? 0) / 255);
  const listed = [];
  for (let at = who?.offsets[d] ?? 0; who && at < who.offsets[d + 1]!; at++) {
    const thread = who.thread[at]!;
    if (thread !== OTHER_THREADS)
      listed.push({ thread: strip.threads.numbers[thread]!, node: strip.threads.nodes[thread]!, accesses: who.accesses[at]! });
  }
  listed.sort((a, b) => b.accesses - a.accesses);
  return { ...seen, rows: tally.accesses, local: tally.local, listed, others: tally.accesses[rows.length]! };
}

/** Address of a page, whose number is counted from `begin`, the start of its object; empty if it is unknown. */
function address(begin: string, page: number | undefined, pageSize: number): string {
  if (page === undefined) return "";
  try {
    return `0x${(BigInt(begin) + BigInt(page) * BigInt(pageSize)).toString(16)}`;
  } catch {
    return "";
  }
}

/** The figures in one line, for screen readers and for the status line below the picture. */
export function statusLine(seen: Seen, scene: Scene, unit: string): string {
  const where = `${seen.name}${andMore(seen.more, "object", "zoom in")}, ${noun(seen.end - seen.first, "page")} ${seen.within}`;
  const of = unit === "samples" ? " of samples" : "";
  const homes = seen.homes.map((home) => `${home.policy}: ${lives(home)}, ${percent(home.local)}${of} local`).join("; ");
  if (seen.row >= 0) {
    const accesses = seen.rows[seen.row]!;
    const threads = scene.rows.threads[seen.row];
    const who = threads
      ? `${names(threads.map((t) => scene.strip.threads.numbers[t]!))} on node ${scene.rows.node[seen.row]}`
      : "other threads";
    const near = threads && accesses > 0 ? `, ${percent(seen.local[seen.row]!)} of these local` : "";
    return `${where}; ${who}: ${accesses > 0 ? `${count(Math.round(accesses))} ${unit}${near}` : `no ${unit}`}. ${homes}.`;
  }
  return `${where}: ${count(Math.round(seen.accesses))} ${unit}, ${seen.sharing}, exclusivity ${percent(seen.exclusivity)}${of}. ${homes}.`;
}

const names = (numbers: number[]) =>
  numbers.length === 1 ? `thread ${numbers[0]}` : `threads ${numbers[0]}–${numbers[numbers.length - 1]}`;
export const lives = (home: { node: number; share: number }) =>
  home.share > 0.995 ? `on node ${home.node}` : `${percent(home.share)} on node ${home.node}`;

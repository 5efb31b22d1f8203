// Recorded moves as the view filters and judges them.

import type { Migration, Moves, Report } from "../../documents";

export interface Filter {
  object: string;
  by: string;
}

export type Kind = "first" | "ping-pong" | "multiple";

export interface Move extends Migration {
  /** Its number among all, in the order of time. */
  index: number;
  /** Seen from its first page: back where it just came from, on to yet another node, or moved for the first time. */
  kind: Kind;
}

/** The latest of the moves that took the page along: runs need not begin where an earlier one began. */
function latest(moves: readonly Migration[], page: number): Migration | undefined {
  for (let i = moves.length - 1; i >= 0; i--) {
    const move = moves[i]!;
    if (move.page <= page && page < move.page + move.pages) return move;
  }
  return undefined;
}

/** Moves in the order of time, each judged by what its first page did before. */
export function judged(migrations: readonly Migration[]): Move[] {
  const before = new Map<string, Migration[]>();
  return [...migrations]
    .sort((a, b) => a.seconds - b.seconds)
    .map((move, index) => {
      const earlier = before.get(move.object) ?? [];
      const last = latest(earlier, move.page);
      earlier.push(move);
      before.set(move.object, earlier);
      const kind: Kind = !last ? "first" : last.from === move.to ? "ping-pong" : "multiple";
      return { ...move, index, kind };
    });
}

export const matches = (filter: Filter) => (move: { object: string; by?: string }) =>
  (!filter.object || move.object === filter.object) && (!filter.by || move.by === filter.by);

/** When the run ended, as far as moves go. */
export const runEnd = (report: Report) =>
  Math.max(report.program.wall_seconds, ...report.migrations.map((m) => m.seconds).slice(-1), ...(report.moves?.over_time ?? []).map((s) => s.end_seconds).slice(-1), 1e-9);

/** Moves of a journey that went back to the node before. */
export const returns = (stays: Moves["journeys"][number]["stays"]) =>
  stays.map((stay, i) => i >= 2 && stays[i - 2]!.node === stay.node);

// Recorded moves, with the order and the filters of the view.

import type { Migration, Report } from "../../documents";

export interface Filter {
  object: string;
  by: string;
}

export interface Move extends Migration {
  /** Index of the move among all moves, in the order of time. */
  index: number;
}

/** Moves in the order of time. */
export const numbered = (migrations: readonly Migration[]): Move[] =>
  [...migrations].sort((a, b) => a.seconds - b.seconds).map((move, index) => ({ ...move, index }));

export const matches = (filter: Filter) => (move: { object: string; by?: string }) =>
  (!filter.object || move.object === filter.object) && (!filter.by || move.by === filter.by);

/** End of the time axis of moves, seconds since the recording began. */
export const runEnd = (report: Report) =>
  Math.max(
    report.program.wall_seconds,
    ...report.migrations.map((m) => m.seconds).slice(-1),
    ...(report.moves?.over_time ?? []).map((s) => s.end_seconds).slice(-1),
    1e-9,
  );

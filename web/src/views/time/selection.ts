// Totals and means over the slices of a selected period.

import type { Report, Slice } from "../../documents";

export interface Summary {
  slices: number;
  seconds: number;
  accesses: number;
  local: number | null;
  /** If accesses are samples: the hull of the slices' bounds, which holds for any weights of the slices. */
  localRange: readonly [number, number] | null;
  exclusivity: number | null;
  balance: number | null;
  migrations: number;
}

/** The slices that overlap the selection. */
export const within = (slices: readonly Slice[], selected: readonly [number, number] | null) =>
  selected ? slices.filter((s) => s.start_seconds < selected[1] && s.end_seconds > selected[0]) : slices;

const hull = (ranges: readonly (readonly [number, number])[]): readonly [number, number] | null =>
  ranges.length > 0 ? [Math.min(...ranges.map((r) => r[0])), Math.max(...ranges.map((r) => r[1]))] : null;

/** Summary of the selection; means of shares are weighted by accesses. */
export function summary(report: Report, selected: readonly [number, number] | null): Summary {
  const some = within(report.slices, selected);
  const accesses = some.reduce((sum, s) => sum + s.accesses, 0);
  const mean = (value: (s: Slice) => number | null) =>
    accesses > 0 && some.every((s) => value(s) !== null || s.accesses === 0)
      ? some.reduce((sum, s) => sum + (value(s) ?? 0) * s.accesses, 0) / accesses
      : null;
  return {
    slices: some.length,
    seconds: some.reduce((sum, s) => sum + s.end_seconds - s.start_seconds, 0),
    accesses,
    local: mean((s) => s.local_fraction),
    localRange: hull(some.flatMap((s) => (s.local_range ? [s.local_range] : []))),
    exclusivity: mean((s) => s.exclusivity),
    balance: mean((s) => s.access_balance),
    migrations: some.reduce((sum, s) => sum + s.migrations, 0),
  };
}

/** The selection in the address, limited to the run. */
export function selection(report: Report, t0: string | undefined, t1: string | undefined): readonly [number, number] | null {
  const [a, b] = [Number(t0 ?? NaN), Number(t1 ?? NaN)];
  const [first, last] = [report.slices[0]?.start_seconds ?? 0, report.slices[report.slices.length - 1]?.end_seconds ?? 0];
  if (!Number.isFinite(a) || !Number.isFinite(b) || b <= a || b <= first || a >= last) return null;
  return [Math.max(first, a), Math.min(last, b)];
}

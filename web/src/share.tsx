// A share of accesses: the counted share, or bounds from samples. The share of samples itself is not shown, because it
// differs from the share of accesses.

import { between } from "./format";
import { at, Value } from "./value";

export type Range = readonly [number, number];

/** Bounds of a share of accesses if accesses are samples; null if they were counted. */
export function rangeAt(report: unknown, pointer: string): Range | null {
  const range = at(report, pointer);
  return Array.isArray(range) ? (range as unknown as Range) : null;
}

export interface ShareProps {
  of: unknown;
  /** Pointer to the object with the fields `local_fraction` and `local_range`. */
  pointer: string;
  profile?: number;
}

/** Shows a local fraction. */
export function Local({ of, pointer, profile }: ShareProps) {
  const range = rangeAt(of, `${pointer}/local_range`);
  if (!range) return <Value pointer={`${pointer}/local_fraction`} of={of} as="percent" profile={profile} />;
  return (
    <span class="words">
      <Value pointer={`${pointer}/local_range/0`} of={of} as="percent" text={() => between(range)} profile={profile} />
    </span>
  );
}

/** Shows an exclusivity; `range` is the pointer to its bounds, and 1 / `nodes` is the smallest possible value. */
export function Exclusivity({ of, pointer, range, nodes }: { of: unknown; pointer: string; range: string; nodes: number }) {
  const bounds = rangeAt(of, range);
  if (!bounds) return <Value pointer={pointer} of={of} as="percent" />;
  return (
    <span class="words">
      <Value pointer={`${range}/0`} of={of} as="percent" text={() => between(bounds, 1 / nodes)} />
    </span>
  );
}

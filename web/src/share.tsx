// A share of accesses: as counted, or what samples say of it. Samples are no share of accesses, and none is shown as one.

import { between } from "./format";
import { at, Value } from "./value";

export type Range = readonly [number, number];

/** The bounds that a report has beside a share of samples; null where accesses were counted. */
export function rangeAt(report: unknown, pointer: string): Range | null {
  const range = at(report, pointer);
  return Array.isArray(range) ? (range as unknown as Range) : null;
}

export interface ShareProps {
  of: unknown;
  /** What has `local_fraction` and `local_range`. */
  pointer: string;
  profile?: number;
}

/** How much is local. */
export function Local({ of, pointer, profile }: ShareProps) {
  const range = rangeAt(of, `${pointer}/local_range`);
  if (!range) return <Value pointer={`${pointer}/local_fraction`} of={of} as="percent" profile={profile} />;
  return (
    <span class="words">
      <Value pointer={`${pointer}/local_range/0`} of={of} as="percent" text={() => between(range)} profile={profile} />
    </span>
  );
}

/** How exclusive; `range` is the pointer to the bounds of samples, `nodes` say what no share is below. */
export function Exclusivity({ of, pointer, range, nodes }: { of: unknown; pointer: string; range: string; nodes: number }) {
  const bounds = rangeAt(of, range);
  if (!bounds) return <Value pointer={pointer} of={of} as="percent" />;
  return (
    <span class="words">
      <Value pointer={`${range}/0`} of={of} as="percent" text={() => between(bounds, 1 / nodes)} />
    </span>
  );
}

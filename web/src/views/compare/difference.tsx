// Shows a difference with its sign, as a colour, and in words, so that it can be read without distinguishing colours.

import { signed, type Kind } from "../../format";

/** Whether larger or smaller values are better. */
export type Better = "more" | "less" | "neither";

export type Judgement = "better" | "worse" | "same" | "other";

/** Smallest relative difference, as a fraction of the larger value, that counts as a change. */
const NEGLIGIBLE_DIFFERENCE = 0.0005;

export function judge(a: number, b: number, better: Better): Judgement {
  if (Math.abs(b - a) <= NEGLIGIBLE_DIFFERENCE * Math.max(Math.abs(a), Math.abs(b))) return "same";
  if (better === "neither") return "other";
  return b > a === (better === "more") ? "better" : "worse";
}

const WORDS: Record<Judgement, string> = { better: "better", worse: "worse", same: "the same", other: "" };

export function difference(a: number, b: number, as: Kind): string {
  if (as !== "percent") return signed(b - a, as);
  // Differences of shares are in percentage points: from 10 % to 15 % are 5 points.
  return signed(b - a, as).replace("%", "points");
}

export function Difference({ a, b, as, better }: { a: number | null; b: number | null; as: Kind; better: Better }) {
  if (a === null || b === null) return <span class="unknown">–</span>;
  const judgement = judge(a, b, better);
  if (judgement === "same") return <span class="muted">the same</span>;
  return (
    <span class={`difference ${judgement}`}>
      {difference(a, b, as)} {WORDS[judgement] && <small>{WORDS[judgement]}</small>}
    </span>
  );
}

/** Bounds of a share on one side; both are equal if accesses were counted. */
export type Known = readonly [number, number];

/** Compares two shares by their bounds; null if the bounds overlap, so that the order of the shares is unknown. */
export function apart(a: Known, b: Known, better: Better): Judgement | null {
  if (a[0] <= b[1] && b[0] <= a[1]) return null;
  return judge(a[0], b[0], better);
}

export function BoundedDifference({ a, b, better }: { a: Known; b: Known; better: Better }) {
  const judgement = apart(a, b, better);
  if (judgement === null)
    return (
      <span class="muted" title="the bounds overlap: samples cannot say">
        not known
      </span>
    );
  return (
    <span class={`difference ${judgement}`}>
      {b[0] > a[0] ? "more" : "less"} <small>{WORDS[judgement]}</small>
    </span>
  );
}

/** A bar from the middle, to the right for an improvement. */
export function DifferenceBar({ by, most, label }: { by: number; most: number; label: string }) {
  const half = most > 0 ? Math.min(1, Math.abs(by) / most) * 50 : 0;
  return (
    <svg class="diverging" viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label={label}>
      <rect class={by >= 0 ? "better" : "worse"} x={(by >= 0 ? 50 : 50 - half).toFixed(2)} width={half.toFixed(2)} height="10" />
      <path class="middle" d="M50 0V10" vector-effect="non-scaling-stroke" />
    </svg>
  );
}

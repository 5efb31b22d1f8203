// Bars that stand in a table's cell.

/** A bar for a share. If accesses are samples: the lower bound and, fainter, the range up to the upper bound. */
export function Bar({
  share,
  range,
  tone = "local",
}: {
  share: number;
  range?: readonly [number, number] | null;
  tone?: "local" | "remote" | "plain";
}) {
  const of = (part: number) => Math.max(0, Math.min(1, part)) * 100;
  const width = of(range ? range[0] : share);
  return (
    <svg class={`gauge ${tone}`} viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
      <rect class="track" width="100" height="8" />
      {range && <rect class="possible" width={of(range[1]).toFixed(2)} height="8" />}
      <rect class="fill" width={width.toFixed(2)} height="8" />
    </svg>
  );
}

/** A bar for a typical value, on an axis from 0 to `most`, with a line for its range. */
export function RangeBar({
  value,
  range,
  most,
  strong,
}: {
  value: number;
  range: readonly [number, number];
  most: number;
  strong: boolean;
}) {
  const x = (v: number) => (most > 0 ? (v / most) * 99 : 0).toFixed(2);
  return (
    <svg class={strong ? "range strong" : "range"} viewBox="0 0 100 16" preserveAspectRatio="none" aria-hidden="true">
      <rect class="fill" y="3" width={x(value)} height="10" />
      <path
        class="whisker"
        d={`M${x(range[0])} 8H${x(range[1])}M${x(range[0])} 4V12M${x(range[1])} 4V12`}
        vector-effect="non-scaling-stroke"
      />
    </svg>
  );
}

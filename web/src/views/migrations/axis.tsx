// Time along the lower edge of a figure.

import { seconds } from "../../format";

/** Positions of about six ticks at multiples of 1, 2 or 5 times a power of ten. */
export function ticks(end: number): number[] {
  const rough = end / 6;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= rough) ?? end;
  return Array.from({ length: Math.floor(end / step + 1e-9) + 1 }, (_, i) => i * step);
}

export function Axis({ x, y, end }: { x: (t: number) => number; y: number; end: number }) {
  return (
    <g class="axis-line">
      {ticks(end).map((t) => (
        <g key={t}>
          <path d={`M${x(t).toFixed(1)} ${y}v4`} />
          <text x={x(t).toFixed(1)} y={y + 17}>
            {seconds(t)}
          </text>
        </g>
      ))}
    </g>
  );
}

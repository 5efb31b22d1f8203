// Round numbers along an axis.

/** Positions of at most `most` ticks, at multiples of 1, 2 or 5 times a power of ten. */
export function ticks(from: number, to: number, most: number): number[] {
  const rough = Math.max(1e-12, (to - from) / Math.max(1, most));
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough)!;
  const found: number[] = [];
  for (let at = Math.ceil(from / step); at * step <= to; at++) found.push(at * step);
  return found;
}

/** Formats times in a common unit, with as many digits as are necessary. */
export function moments(times: readonly number[]): string[] {
  const most = Math.max(...times.map(Math.abs), 0);
  const [factor, unit] = most >= 1 ? [1, "s"] : most >= 1e-3 ? [1e3, "ms"] : [1e6, "µs"];
  return times.map((t) => `${+(t * factor).toPrecision(6)}\u00a0${unit}`);
}

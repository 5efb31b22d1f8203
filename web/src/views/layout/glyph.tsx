// A pattern as it looks in the page × thread figure: addresses to the right, threads downwards.

const N = 6;

/** Cells that are dark: column, row. */
function cells(pattern: string): [number, number][] {
  const every = (test: (x: number, y: number) => boolean) =>
    Array.from({ length: 2 * N * N }, (_, i): [number, number] => [i % (2 * N), Math.floor(i / (2 * N))]).filter(([x, y]) => test(x, y));
  switch (pattern) {
    case "one-thread":
      return every((_, y) => y === 0);
    case "x-wise":
      return every((x, y) => x >> 1 === y);
    case "blocks":
      return every((x, y) => [2, 2, 0, 0, 4, 4, 1, 1, 5, 5, 3, 3][x] === y);
    case "block-exclusive":
      return every((x, y) => [0, 0, 0, 1, 2, 2, 3, 3, 3, 4, 5, 5][x] === y);
    case "y-wise":
      return every((x, y) => x % N === y);
    case "z-wise":
      return every((x, y) => (x * 2) % N === y || (x * 2 + 1) % N === y);
    case "strided":
      return every((x, y) => (x * 5) % N === y);
    case "uniform":
    case "read-shared":
      return every(() => true);
    default:
      // random, irregular, gather
      return every((x, y) => (x * 7 + y * 11 + ((x * y) % 5)) % 4 === 0);
  }
}

export function Glyph({ pattern, inverse }: { pattern: string; inverse: boolean }) {
  return (
    <svg class="glyph" viewBox={`0 0 ${2 * N} ${N}`} role="img" aria-label={`pattern ${pattern}${inverse ? ", inverse" : ""}`}>
      {cells(pattern).map(([x, y]) => (
        <rect key={`${x} ${y}`} x={x} y={inverse ? N - 1 - y : y} width="1" height="1" />
      ))}
    </svg>
  );
}

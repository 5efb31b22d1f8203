// Differences of the accesses from each node to each node's memory.

import type { Row } from "../../export/csv";
import { Figure } from "../../figure";
import { digits, percent } from "../../format";
import { palette, css } from "../../palette";
import { useTheme } from "../../theme";
import { difference } from "./difference";
import type { Pair, Side } from "./sides";

const LEFT = 52;
const TOP = 34;

/** Shares of all accesses, because two runs may differ in their number of accesses. */
function shares(side: Side): number[][] {
  const placed = side.machine.policies.find((p) => p.policy === side.policy.policy);
  const all = placed?.accesses.flat().reduce((x, y) => x + y, 0) ?? 0;
  return placed?.accesses.map((row) => row.map((n) => (all > 0 ? n / all : 0))) ?? [];
}

interface Cell {
  from: number;
  to: number;
  a: number;
  b: number;
}

function cells(pair: Pair): Cell[] {
  const [a, b] = [shares(pair.a), shares(pair.b)];
  return a.flatMap((row, from) => row.map((share, to) => ({ from, to, a: share, b: b[from]?.[to] ?? 0 })));
}

/** Improvement: more local or fewer remote accesses. */
const gain = (c: Cell) => (c.from === c.to ? c.b - c.a : c.a - c.b);

export function CrossingsDifference({ pair }: { pair: Pair }) {
  const colours = palette(useTheme() === "dark");
  const n = shares(pair.a).length;
  const unit = pair.a.report.program.exact && pair.b.report.program.exact ? "accesses" : "samples";
  const same = n === shares(pair.b).length && pair.a.report.machine.name === pair.b.report.machine.name;
  const all = cells(pair);
  const most = Math.max(1e-9, ...all.map((c) => Math.abs(c.b - c.a)));
  const size = Math.min(46, 480 / Math.max(1, n));
  const rows = (): Row[] => [
    ["threads on node", "memory of node", `${pair.a.title} (share of ${unit})`, `${pair.b.title} (share of ${unit})`, "difference"],
    ...all.map((c): Row => [c.from, c.to, c.a, c.b, c.b - c.a]),
  ];
  return (
    <Figure
      id="crossings"
      title="Who reads whose memory"
      rows={rows}
      what={`Each field is threads of one node (rows) that access memory of another (columns): how its share of all ${unit} changes, in points of a hundred. Blue is better: more stays at home or less goes abroad; orange is worse. The stronger, the larger the change.`}
    >
      {!same || n < 2 ? (
        <p class="none">
          {n < 2
            ? "With one node nothing crosses the machine."
            : "The two were judged for different machines: their nodes are not the same."}
        </p>
      ) : (
        <>
          <svg
            class="crossings"
            width={LEFT + n * size + 8}
            viewBox={`0 0 ${LEFT + n * size + 8} ${TOP + n * size + 8}`}
            role="img"
            aria-label="Differences in accesses between nodes; as CSV they are a table."
          >
            <text class="axis" x={LEFT + (n * size) / 2} y={12}>
              memory of node
            </text>
            <text class="axis" x={0} y={0} transform={`translate(12 ${TOP + (n * size) / 2}) rotate(-90)`}>
              threads on node
            </text>
            {Array.from(
              { length: n },
              (_, i) =>
                i % Math.ceil(n / 24) === 0 && (
                  <g key={i}>
                    <text class="tick" x={LEFT - 8} y={TOP + (i + 0.5) * size + 4}>
                      {i}
                    </text>
                    <text class="tick middle" x={LEFT + (i + 0.5) * size} y={TOP - 6}>
                      {i}
                    </text>
                  </g>
                ),
            )}
            {all.map((c) => (
              <g
                key={`${c.from} ${c.to}`}
                data-tip={`threads on node ${c.from}, memory of node ${c.to}\n${percent(c.a)} → ${percent(c.b)} of all ${unit}: ${difference(c.a, c.b, "percent")}`}
              >
                <rect
                  class="cell"
                  x={LEFT + c.to * size + 0.5}
                  y={TOP + c.from * size + 0.5}
                  width={size - 1}
                  height={size - 1}
                  fill={css(colours.locality(0.5 + (gain(c) / most) * 0.5))}
                />
                {size >= 34 && Math.abs(c.b - c.a) >= 0.0005 && (
                  <text
                    class="change"
                    x={LEFT + (c.to + 0.5) * size}
                    y={TOP + (c.from + 0.5) * size + 4}
                    fill={Math.abs(gain(c)) > most * 0.55 ? css(colours.card) : css(colours.ink)}
                  >
                    {`${c.b > c.a ? "+" : "−"}${digits(Math.abs(c.b - c.a))}`}
                  </text>
                )}
              </g>
            ))}
          </svg>
          <div class="legend">
            <span>
              <i class="swatch local" />
              better
            </span>
            <span>
              <i class="swatch remote" />
              worse
            </span>
            <span>points of a hundred of all {unit}</span>
          </div>
        </>
      )}
    </Figure>
  );
}

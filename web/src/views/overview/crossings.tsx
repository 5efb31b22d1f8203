// Accesses by CPU node and memory node as a matrix, for machines whose links are unknown or too many to draw.

import type { Report } from "../../documents";
import { count, percent } from "../../format";
import type { Placed } from "./traffic";

const CELL = 36;
const LEFT = 52;
const TOP = 34;

export function Crossings({ report, placed, label }: { report: Report; placed: Placed; label: string }) {
  const n = placed.accesses.length;
  const cell = n > 16 ? Math.max(8, 480 / n) : CELL;
  const all = placed.accesses.flat().reduce((a, b) => a + b, 0);
  const most = Math.max(...placed.accesses.flat(), 1);
  const what = report.program.exact ? "accesses" : "samples";
  const size = n * cell;
  const every = Math.ceil(n / 24);
  return (
    <svg class="crossings" width={LEFT + size + 8} viewBox={`0 0 ${LEFT + size + 8} ${TOP + size + 8}`} role="img" aria-label={label}>
      <text class="axis" x={LEFT + size / 2} y={12}>
        memory of node
      </text>
      <text class="axis" x={0} y={0} transform={`translate(12 ${TOP + size / 2}) rotate(-90)`}>
        threads on node
      </text>
      {placed.accesses.map((row, from) => (
        <g key={from}>
          {from % every === 0 && (
            <text class="tick" x={LEFT - 8} y={TOP + (from + 0.5) * cell + 4}>
              {from}
            </text>
          )}
          {from % every === 0 && (
            <text class="tick middle" x={LEFT + (from + 0.5) * cell} y={TOP - 6}>
              {from}
            </text>
          )}
          {row.map((accesses, to) => (
            <rect
              key={to}
              class={from === to ? "cell local" : "cell remote"}
              x={LEFT + to * cell + 0.5}
              y={TOP + from * cell + 0.5}
              width={cell - 1}
              height={cell - 1}
              fill-opacity={(accesses === 0 ? 0.06 : 0.12 + 0.88 * Math.sqrt(accesses / most)).toFixed(3)}
              data-tip={`threads on node ${from}, memory of node ${to}\n${count(accesses)} ${what}, ${percent(all > 0 ? accesses / all : 0)} of all`}
            />
          ))}
        </g>
      ))}
    </svg>
  );
}

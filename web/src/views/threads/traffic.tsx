// Accesses by CPU node and memory node, before and after the change of placement.

import type { Placing, Threads } from "../../documents";
import { Figure } from "../../figure";
import { between, count, digits, percent } from "../../format";
import { css, mix, readable, type Palette } from "../../palette";
import { Key } from "../layout/legend";

export function Traffic({ threads, palette, unit }: { threads: Threads; palette: Palette; unit: string }) {
  const { before, after } = threads;
  return (
    <Figure
      id="traffic"
      title="Which node uses whose memory"
      what={`Rows are nodes that run threads, columns nodes that hold the pages; a square is a share of all ${unit}. Blue on the diagonal stays at home, orange crosses the machine.`}
      rows={() => [
        ["from node", "to memory of node", `${unit} before`, `${unit} after`],
        ...before.accesses.flatMap((row, from) => row.map((n, to) => [from, to, n, after.accesses[from]?.[to]])),
      ]}
    >
      <div class="pair">
        <Square title="Before" placing={before} palette={palette} unit={unit} />
        <Square title="After" placing={after} palette={palette} unit={unit} />
      </div>
      <div class="legend">
        <Key colour={palette.local}>local</Key>
        <Key colour={palette.remote}>remote</Key>
        <span class="key">the deeper, the larger its share of all {unit}</span>
      </div>
    </Figure>
  );
}

function Square({ title, placing, palette, unit }: { title: string; placing: Placing; palette: Palette; unit: string }) {
  const n = placing.accesses.length;
  const all = placing.accesses.flat().reduce((a, b) => a + b, 0);
  const most = Math.max(1e-9, ...placing.accesses.flat()) / Math.max(1, all);
  const each = Math.max(9, Math.min(44, Math.floor(330 / Math.max(1, n))));
  const side = n * each + 34;
  return (
    <div>
      <h4>
        {title}:{" "}
        <span class="muted">
          {placing.local_range ? <>local accesses: {between(placing.local_range)}</> : <>{percent(placing.local_fraction)} local</>}
        </span>
      </h4>
      <svg
        class="placing"
        viewBox={`0 0 ${side} ${side}`}
        width={side}
        role="img"
        aria-label={`${title}: ${percent(placing.local_fraction)} of ${count(all)} ${unit} are local`}
      >
        <text x={34 + (n * each) / 2} y="10" text-anchor="middle" font-size="10.5" fill={css(palette.muted)}>
          memory of node
        </text>
        {placing.accesses.map((row, from) => (
          <g key={from}>
            {(each >= 12 || from % 8 === 0) && (
              <>
                <text x="28" y={34 + (from + 0.5) * each + 3.5} text-anchor="end" font-size="10.5" fill={css(palette.ink)}>
                  {from}
                </text>
                <text x={34 + (from + 0.5) * each} y="27" text-anchor="middle" font-size="10.5" fill={css(palette.ink)}>
                  {from}
                </text>
              </>
            )}
            {row.map((value, to) => {
              const share = all > 0 ? value / all : 0;
              const depth = value > 0 ? 0.06 + 0.94 * Math.sqrt(share / most) : 0;
              const fill = mix(palette.card, from === to ? palette.local : palette.remote, depth);
              return (
                <g key={to} data-tip={`node ${from} → memory of node ${to}: ${count(value)} ${unit}, ${percent(share)} of all`}>
                  <rect
                    x={34 + to * each}
                    y={34 + from * each}
                    width={each - 1}
                    height={each - 1}
                    fill={css(fill)}
                    stroke={css(palette.line)}
                    stroke-width="0.5"
                  />
                  {each >= 28 && share >= 0.005 && (
                    <text
                      x={34 + (to + 0.5) * each - 0.5}
                      y={34 + (from + 0.5) * each + 3.5}
                      text-anchor="middle"
                      font-size="10"
                      fill={readable(fill)}
                    >
                      {digits(share)}
                    </text>
                  )}
                </g>
              );
            })}
          </g>
        ))}
      </svg>
    </div>
  );
}

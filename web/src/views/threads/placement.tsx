// Threads on nodes, before and after.

import { Bar } from "../../bar";
import type { Assignment, Threads } from "../../documents";
import { Figure } from "../../figure";
import { between, percent, plural } from "../../format";
import { css, readable, type Palette } from "../../palette";
import { sides } from "./order";

const CHIP = 19;
const PAD = 7;

export function Placement({ threads, nodes, palette }: { threads: Threads; nodes: number; palette: Palette }) {
  const [from, to] = sides(threads);
  const moved = threads.groups
    .filter((_, i) => from.placing.nodes[i] !== to.placing.nodes[i])
    .reduce((sum, g) => sum + g.threads.length, 0);
  return (
    <Figure
      id="placement"
      title="Threads on nodes"
      what="Each box is a node, each chip a thread (or a group of them). Chips have the colour of their node on the left, so that on the right a chip of another colour has moved."
      rows={() => [
        ["threads", `node ${from.title.toLowerCase()}`, `node ${to.title.toLowerCase()}`],
        ...threads.groups.map((g, i) => [
          g.threads.length > 1 ? g.label : Number(g.threads[0] ?? g.label),
          from.placing.nodes[i],
          to.placing.nodes[i],
        ]),
      ]}
    >
      <div class="pair">
        {[from, to].map((side) => (
          <Side key={side.title} {...side} threads={threads} nodes={nodes} palette={palette} />
        ))}
      </div>
      <p class="reading">
        {moved === 0 ? "No thread would change its node." : `${plural(moved, "thread")} would run on another node.`}
        {threads.in_order && " All figures of this report are with threads placed by sharing, those of today's pages too."}
      </p>
    </Figure>
  );
}

function Side({
  title,
  threads,
  placing,
  nodes,
  palette,
}: {
  title: string;
  threads: Threads;
  placing: Assignment;
  nodes: number;
  palette: Palette;
}) {
  const on = Array.from({ length: nodes }, (_, node) => placing.nodes.flatMap((n, group) => (n === node ? [group] : [])));
  const columns = Math.max(1, Math.min(nodes, Math.ceil(Math.sqrt(nodes * 1.6))));
  const most = Math.max(1, ...on.map((groups) => groups.length));
  const across = Math.max(2, Math.ceil(Math.sqrt(most * 1.5)));
  const wide = Math.max(70, across * CHIP + 2 * PAD);
  const high = Math.ceil(most / across) * CHIP + 2 * PAD + 16;
  const width = columns * (wide + 10);
  const height = Math.ceil(nodes / columns) * (high + 10);
  return (
    <div>
      <h4>
        {title}: <span class="muted">{placing.affinity}</span>
      </h4>
      <svg
        class="placing"
        viewBox={`0 0 ${width} ${height}`}
        width={width * 1.3}
        role="img"
        aria-label={`${title}: ${on.map((g, node) => `node ${node} has ${g.length}`).join(", ")}`}
      >
        {on.map((groups, node) => {
          const [x, y] = [(node % columns) * (wide + 10) + 2, Math.floor(node / columns) * (high + 10) + 2];
          return (
            <g key={node} transform={`translate(${x} ${y})`}>
              <rect width={wide} height={high} rx="6" fill={css(palette.ground)} stroke={css(palette.node(node))} stroke-width="2" />
              <text x={PAD} y="15" fill={css(palette.ink)} font-size="11" font-weight="600">
                node {node}
              </text>
              {groups.map((group, i) => (
                <Chip
                  key={group}
                  threads={threads}
                  group={group}
                  x={PAD + (i % across) * CHIP}
                  y={PAD + 14 + Math.floor(i / across) * CHIP}
                  palette={palette}
                />
              ))}
            </g>
          );
        })}
      </svg>
    </div>
  );
}

function Chip({ threads, group, x, y, palette }: { threads: Threads; group: number; x: number; y: number; palette: Palette }) {
  const [before, after] = sides(threads).map((side) => side.placing.nodes[group] ?? 0) as [number, number];
  const name = threads.groups[group]!.label;
  const label = name.replace(/^threads? /, "");
  const colour = palette.node(before);
  return (
    <g data-tip={before === after ? `${name} stays on node ${before}` : `${name} goes from node ${before} to node ${after}`}>
      <rect x={x} y={y} width={CHIP - 3} height={CHIP - 3} rx="4" fill={css(colour)} />
      {label.length <= 3 && (
        <text
          x={x + (CHIP - 3) / 2}
          y={y + (CHIP - 3) / 2 + 3.2}
          text-anchor="middle"
          font-size={label.length > 2 ? 7.5 : 9}
          fill={readable(colour)}
        >
          {label}
        </text>
      )}
    </g>
  );
}

/** The benefit of the recommended placement over the report's baseline. */
export function Worth({ threads }: { threads: Threads }) {
  const { before, after } = threads;
  const unit = after.local_range ? "samples" : "accesses";
  const gain = after.local_fraction - before.local_fraction;
  const said =
    Math.abs(gain) < 0.0005
      ? "changes nothing"
      : gain > 0
        ? `makes another ${percent(gain)} of all ${unit} local`
        : `takes ${percent(-gain)} of all ${unit} away from their node`;
  return (
    <div class="card worth">
      {[before, after].map((placing, i) => (
        <div key={i}>
          <h4>{i === 0 ? "Before" : "After"}</h4>
          <p>
            {placing.local_range ? (
              <>
                local accesses: <data value={String(placing.local_range[0])}>{between(placing.local_range)}</data>
              </>
            ) : (
              <>
                <data class="large" value={String(placing.local_fraction)}>
                  {percent(placing.local_fraction)}
                </data>{" "}
                local
              </>
            )}
          </p>
          {placing.local_range ? (
            <Bar share={placing.local_fraction} range={placing.local_range} />
          ) : (
            <svg class="meter" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
              <rect class="track" width="100" height="8" />
              <rect class="fill" width={placing.local_fraction * 100} height="8" />
            </svg>
          )}
          <p class="muted">
            threads <code>{placing.affinity}</code>, pages <code>{placing.policy}</code>
          </p>
        </div>
      ))}
      <p class="said">The change {said}.</p>
    </div>
  );
}

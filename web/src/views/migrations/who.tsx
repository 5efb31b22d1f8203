// Moves by originator, node pair and time, and moves that a limit prevented.

import { useMemo } from "preact/hooks";
import type uPlot from "uplot";
import uplot from "uplot";
import type { Moves, Report } from "../../documents";
import type { Row } from "../../export/csv";
import { Figure } from "../../figure";
import { andMore, count, seconds, whole } from "../../format";
import { Plot } from "../../plot";
import { Value } from "../../value";
import type { Filter } from "./moves";

/** Largest number of nodes whose matrix fits the page. */
const MOST_NODES = 32;

function matrixRows(moves: Moves): Row[] {
  const table: Row[] = [["from node", "to node", "pages by us", "pages by the kernel", "pages by others"]];
  moves.matrix.forEach((row, from) =>
    row.forEach((n, to) => table.push([from, to, n, moves.kernel_matrix[from]?.[to] ?? 0, moves.others_matrix[from]?.[to] ?? 0])),
  );
  return table;
}

function Cell({ report, from, to, most }: { report: Report; from: number; to: number; most: number }) {
  const moves = report.moves!;
  const [ours, kernel, others] = [moves.matrix, moves.kernel_matrix, moves.others_matrix].map((m) => m[from]?.[to] ?? 0) as [
    number,
    number,
    number,
  ];
  const all = ours + kernel + others;
  const level = all === 0 ? 0 : 1 + Math.min(4, Math.floor((all / most) * 4.999));
  return (
    <td
      class={`n heat h${level}`}
      data-tip={`node ${from} → node ${to}\n${whole(ours)} pages by us, ${whole(kernel)} by the kernel${others > 0 ? `, ${whole(others)} by others` : ""}`}
    >
      {all === 0 && from === to ? "" : <Value pointer={`/moves/matrix/${from}/${to}`} of={report} as="count" />}
      {kernel > 0 && (
        <small>
          {" "}
          +<Value pointer={`/moves/kernel_matrix/${from}/${to}`} of={report} as="count" />
        </small>
      )}
    </td>
  );
}

export function Pairs({ report }: { report: Report }) {
  const moves = report.moves!;
  const nodes = moves.matrix.map((_, n) => n).slice(0, MOST_NODES);
  const most = Math.max(
    1,
    ...moves.matrix.flatMap((row, from) =>
      row.map((n, to) => n + (moves.kernel_matrix[from]?.[to] ?? 0) + (moves.others_matrix[from]?.[to] ?? 0)),
    ),
  );
  return (
    <Figure
      id="pairs"
      title="Between which nodes"
      rows={() => matrixRows(moves)}
      what="Pages moved, by the node they left (rows) and the node they went to (columns). Behind a + stand the kernel’s own moves, as far as they were seen. A pair that is strong both ways is where ping-pongs come from."
    >
      <div class="scroll">
        <table class="matrix">
          <thead>
            <tr>
              <th scope="col">from \ to</th>
              {nodes.map((n) => (
                <th scope="col" class="n" key={n}>
                  {n}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {nodes.map((from) => (
              <tr key={from}>
                <th scope="row">node {from}</th>
                {nodes.map((to) => (
                  <Cell key={to} {...{ report, from, to, most }} />
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {moves.matrix.length > nodes.length && <p class="muted">{andMore(moves.matrix.length - nodes.length, "node", "the CSV")}</p>}
    </Figure>
  );
}

interface Step {
  start: number;
  end: number;
  ours: number;
  /** Pages moved by the kernel and by others. */
  theirs: number;
}

/** Moves of each time step, summed over node pairs. Steps without moves are missing in the report; they are 0 here. */
function steps(moves: Moves): Step[] {
  const found = new Map<number, Step>();
  for (const s of moves.over_time) {
    const step = found.get(s.start_seconds) ?? { start: s.start_seconds, end: s.end_seconds, ours: 0, theirs: 0 };
    step.ours += s.ours;
    step.theirs += s.kernel + s.others;
    found.set(s.start_seconds, step);
  }
  return [...found.values()].sort((a, b) => a.start - b.start);
}

/** Data of the bars, each in the middle of its step; all steps have the same length. */
function series(list: readonly Step[], end: number): uPlot.AlignedData {
  const long = list[0] ? list[0].end - list[0].start : end;
  const n = Math.max(1, Math.min(2000, Math.round(end / long)));
  const columns = [0, 1, 2].map(() => new Array<number>(n).fill(0)) as [number[], number[], number[]];
  for (let i = 0; i < n; i++) columns[0][i] = (i + 0.5) * long;
  for (const s of list) {
    const i = Math.min(n - 1, Math.floor((s.start + s.end) / 2 / long));
    // The bar of our moves is drawn in front of the bar of all moves.
    columns[1][i]! += s.ours + s.theirs;
    columns[2][i]! += s.ours;
  }
  return columns;
}

export function OverTime({ moves, end }: { moves: Moves; end: number }) {
  const list = useMemo(() => steps(moves), [moves]);
  const data = useMemo(() => series(list, end), [list, end]);
  return (
    <Figure
      id="moves-over-time"
      title="When"
      what="Pages moved in each step of time: by our policies, and above them by the kernel itself and by others. Moves that go on to the end of the run mean that pages do not find a place: the use changes, or the policy is too eager."
      rows={() => [
        ["start (s)", "end (s)", "from node", "to node", "pages by us", "pages by the kernel", "pages by others"],
        ...moves.over_time.map((s) => [s.start_seconds, s.end_seconds, s.from, s.to, s.ours, s.kernel, s.others]),
      ]}
    >
      <Plot
        data={data}
        height={190}
        label="Pages moved over time; as CSV it is a table."
        options={(style) => ({
          legend: { show: false },
          cursor: { show: false },
          scales: { x: { time: false, range: [0, end] }, y: { range: (_, __, most) => [0, Math.max(1, most * 1.08)] } },
          axes: [
            { stroke: style("--muted"), grid: { show: false }, ticks: { stroke: style("--line") }, values: (_, ts) => ts.map(seconds) },
            {
              stroke: style("--muted"),
              grid: { stroke: style("--line"), width: 1 },
              ticks: { show: false },
              size: 56,
              values: (_, ns) => ns.map(count),
            },
          ],
          series: [
            {},
            {
              fill: style("--bar"),
              stroke: style("--bar"),
              width: 0,
              points: { show: false },
              paths: uplot.paths.bars!({ size: [0.86, 60, 1] }),
            },
            {
              fill: style("--local"),
              stroke: style("--local"),
              width: 0,
              points: { show: false },
              paths: uplot.paths.bars!({ size: [0.86, 60, 1] }),
            },
          ],
        })}
      />
      <div class="legend">
        <span>
          <i class="swatch local" />
          pages moved by our policies
        </span>
        <span>
          <i class="swatch" />
          by the kernel{moves.others > 0 ? " and others" : ""}
        </span>
      </div>
    </Figure>
  );
}

export function Movers({ report, filter }: { report: Report; filter: Filter }) {
  const moves = report.moves!;
  const rows: Row[] = [
    ["what", "who or why", "pages"],
    ...moves.by.map((b): Row => ["moved", b.by, b.pages]),
    ...moves.held_back.map((h): Row => ["held back", h.cause, h.pages]),
  ];
  return (
    <Figure
      id="movers"
      title="Who moved, and what was held back"
      rows={() => rows}
      what="Above, who moved how many pages: a policy as it was written on the command line, or the kernel’s own balancing. Below, moves that a policy wanted and that were not made, by what stopped them."
    >
      <table class="counts">
        <tbody>
          {moves.by.map((b, i) => (
            <tr key={b.by} class={filter.by === b.by ? "best" : ""}>
              <th scope="row">
                moved by <code>{b.by}</code>
              </th>
              <td class="n">
                <Value pointer={`/moves/by/${i}/pages`} of={report} as="whole" /> pages
              </td>
            </tr>
          ))}
          {moves.held_back.map((h, i) => (
            <tr key={h.cause} class="muted">
              <th scope="row">held back: {h.cause.replace(/[-_]/g, " ")}</th>
              <td class="n">
                <Value pointer={`/moves/held_back/${i}/pages`} of={report} as="whole" /> pages
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Figure>
  );
}

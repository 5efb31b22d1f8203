// A running session: figures of each interval, as reported by `nodewise balance`.

import { useMemo } from "preact/hooks";
import uplot from "uplot";
import type uPlot from "uplot";
import type { Row } from "../../export/csv";
import { Figure } from "../../figure";
import { between, count, format, percent, seconds } from "../../format";
import { Plot } from "../../plot";
import { rangeAt } from "../../share";
import { at } from "../../value";

type Intervals = readonly Record<string, unknown>[];

interface Point {
  time: number;
  /** Pages moved in the interval; the session reports the total since its start. */
  moved: number;
  local: number | null;
}

const number = (of: unknown, pointer: string) => {
  const value = at(of, pointer);
  return typeof value === "number" && Number.isFinite(value) ? value : null;
};

function points(intervals: Intervals): Point[] {
  let before: number | null = null;
  return intervals.map((interval) => {
    const moved = number(interval, "/pages_moved") ?? 0;
    const point = {
      time: number(interval, "/seconds") ?? 0,
      moved: before === null ? 0 : Math.max(0, moved - before),
      local: number(interval, "/local_fraction/last"),
    };
    before = moved;
    return point;
  });
}

/** Bounds of the share of local accesses in the last interval. */
function local(last: unknown): string {
  const range = rangeAt(last, "/local_accesses/last");
  return range ? between(range) : "samples cannot say";
}

function Facts({ last }: { last: Record<string, unknown> }) {
  const facts: [string, string][] = [
    ["running for", format(number(last, "/seconds"), "seconds")],
    ["policy", String(last.policy ?? "–")],
    ["pages moved", format(number(last, "/pages_moved"), "whole")],
    ["ping-pongs", format(number(last, "/ping_pongs"), "whole")],
    ["local accesses, last interval", local(last)],
    [
      "spent on moving",
      `${format(number(last, "/budget/used"), "percent")} of the time, ${format(number(last, "/budget/limit"), "percent")} allowed`,
    ],
    ["samples", format(number(last, "/samples"), "count")],
  ];
  return (
    <dl class="facts-row">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

const options = (style: (name: string) => string): Omit<uPlot.Options, "width" | "height"> => ({
  legend: { show: false },
  cursor: { show: false },
  scales: { x: { time: false }, y: { range: (_, __, most) => [0, Math.max(1, (most ?? 1) * 1.1)] }, share: { range: [0, 1] } },
  axes: [
    { stroke: style("--muted"), grid: { show: false }, values: (_, ts) => ts.map(seconds) },
    { stroke: style("--muted"), grid: { stroke: style("--line"), width: 1 }, size: 56, values: (_, ns) => ns.map(count) },
    { scale: "share", side: 1, stroke: style("--local"), grid: { show: false }, size: 64, values: (_, ns) => ns.map(percent) },
  ],
  series: [
    {},
    { fill: style("--bar"), width: 0, points: { show: false }, paths: uplot.paths.bars!({ size: [0.8, 24] }) },
    { scale: "share", stroke: style("--local"), width: 2, spanGaps: true },
  ],
});

export function RunningSession({ intervals }: { intervals: Intervals }) {
  const list = useMemo(() => points(intervals), [intervals]);
  const data = useMemo((): uPlot.AlignedData => [list.map((p) => p.time), list.map((p) => p.moved), list.map((p) => p.local)], [list]);
  const last = intervals.at(-1);
  if (!last) return null;
  const rows = (): Row[] => [
    ["time (s)", "pages moved in the interval", "local in the interval (fraction of samples)"],
    ...list.map((p): Row => [p.time, p.moved, p.local]),
  ];
  return (
    <Figure
      id="session"
      title="The session, interval by interval"
      rows={rows}
      what="What each interval of the running session brought: bars are pages moved in it, the line is the share of its samples from the page’s own node, which is not that of its accesses: what they say of those stands above. As pages find their places, the line rises and the bars end."
    >
      <Facts last={last} />
      <Plot data={data} height={170} label="Pages moved and local share by interval; as CSV it is a table." options={options} />
      <div class="legend">
        <span>
          <i class="swatch" />
          pages moved
        </span>
        <span>
          <i class="swatch local" />
          local share of samples
        </span>
      </div>
    </Figure>
  );
}

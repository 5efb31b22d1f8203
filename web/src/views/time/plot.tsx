// One chart over time. All charts of the view share their cursor and their selection.

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useEffect, useRef } from "preact/hooks";
import { count, percent } from "../../format";
import { css, mix, type Palette, type Rgb } from "../../palette";
import { moments } from "../layout/ticks";
import { edges, type Chart, type Line } from "./series";
import type { Slice } from "../../documents";

export interface PlotProps {
  chart: Chart;
  slices: readonly Slice[];
  palette: Palette;
  /** The selected period, in seconds. */
  selected: readonly [number, number] | null;
  onSelect: (from: number, to: number) => void;
  onHover: (seconds: number | null) => void;
}

const ink = (palette: Palette, line: Line): Rgb =>
  line.colour === "calm" ? (palette.dark ? [76, 199, 155] : [20, 115, 79]) : palette[line.colour];

/** Data of a step chart: each value applies from one edge to the next. */
function data(chart: Chart, slices: readonly Slice[]): uPlot.AlignedData {
  const times = chart.edges ?? edges(slices);
  return [
    times,
    ...chart.lines.map(({ values }) => (chart.edges ? values : [...values, values[values.length - 1] ?? null])),
  ] as uPlot.AlignedData;
}

function options(latest: { current: PlotProps }, width: number, select: (u: uPlot) => void, hover: (u: uPlot) => void): uPlot.Options {
  const { chart, palette } = latest.current;
  const write = chart.unit === "percent" ? (v: number) => percent(v).replace(".0", "") : (v: number) => count(v);
  const font = '11px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
  const axis = {
    stroke: css(palette.muted),
    font,
    grid: { stroke: css(palette.line), width: 1 },
    ticks: { stroke: css(palette.line), width: 1, size: 4 },
  };
  const stepped = uPlot.paths.stepped!({ align: 1 });
  return {
    width,
    height: chart.height,
    legend: { show: false },
    cursor: { sync: { key: "nodewise-time" }, drag: { x: true, y: false, setScale: false }, points: { size: 6 }, y: false },
    scales: {
      x: { time: false, range: () => range(latest.current.slices) },
      y: { range: (_, __, most) => [0, chart.unit === "percent" ? 1 : Math.max(1, (most ?? 1) * 1.08)] },
    },
    axes: [
      { ...axis, size: 26, values: (_, ticks) => moments(ticks) },
      {
        ...axis,
        size: 62,
        values: (_, ticks) => ticks.map(write),
        splits: chart.unit === "percent" ? () => [0, 0.25, 0.5, 0.75, 1] : undefined,
      },
    ],
    series: [
      {},
      ...chart.lines.map((line) => ({
        label: line.label,
        stroke: css(ink(palette, line)),
        fill: chart.unit === "count" ? css(mix(palette.card, ink(palette, line), 0.28)) : undefined,
        width: 2,
        dash: line.dash,
        paths: stepped,
        points: { show: chart.lines[0]!.values.length === 1 },
      })),
    ],
    hooks: { setSelect: [select], setCursor: [hover] },
  } as uPlot.Options;
}

export function Plot(props: PlotProps) {
  const { chart, slices, palette, selected } = props;
  const frame = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>();
  const latest = useRef(props);
  latest.current = props;
  useEffect(() => {
    const place = frame.current!;
    const select = (u: uPlot) => {
      if (u.select.width < 2) return;
      latest.current.onSelect(u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x"));
    };
    const hover = (u: uPlot) =>
      latest.current.onHover(u.cursor.left !== undefined && u.cursor.left >= 0 ? u.posToVal(u.cursor.left, "x") : null);
    const made = new uPlot(options(latest, place.clientWidth || 600, select, hover), data(chart, slices), place);
    plot.current = made;
    const canvas = place.querySelector("canvas");
    if (canvas) canvas.dataset.drawn = chart.id;
    const watch = new ResizeObserver(() => {
      if (place.clientWidth && place.clientWidth !== made.width) made.setSize({ width: place.clientWidth, height: chart.height });
      shade(made, latest.current.selected);
    });
    watch.observe(place);
    return () => {
      watch.disconnect();
      made.destroy();
    };
  }, [chart.id, chart.lines.length, palette]);
  // In a live session, new data are added to the existing chart.
  const fed = useRef<Chart>();
  useEffect(() => {
    if (fed.current && fed.current !== chart) plot.current?.setData(data(chart, slices));
    fed.current = chart;
  }, [chart, slices]);
  useEffect(() => shade(plot.current, selected), [selected?.[0], selected?.[1], chart, slices, palette]);
  return (
    <div class="timeline">
      <p class="legend">
        <b>{chart.title}</b>
        {chart.lines.length > 1 &&
          chart.lines.map((line) => (
            <span key={line.label}>
              <svg class="dash" viewBox="0 0 28 4" aria-hidden="true">
                <line
                  x1="0"
                  x2="28"
                  y1="2"
                  y2="2"
                  stroke={css(ink(palette, line))}
                  stroke-width="2.5"
                  stroke-dasharray={line.dash?.join(" ")}
                />
              </svg>
              {line.label}
            </span>
          ))}
      </p>
      <div ref={frame} role="img" aria-label={`${chart.title} over time: ${chart.lines.map((l) => l.label).join("; ")}`} />
    </div>
  );
}

/** The time range of the whole run. */
function range(slices: readonly Slice[]): [number, number] {
  const [first, last] = [slices[0]?.start_seconds ?? 0, slices[slices.length - 1]?.end_seconds ?? 1];
  return last > first ? [first, last] : [first, first + 1];
}

/** Draws the selection without triggering a selection event. */
function shade(plot: uPlot | undefined, selected: readonly [number, number] | null): void {
  if (!plot) return;
  const height = plot.over.clientHeight;
  if (!selected) {
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    return;
  }
  const left = plot.valToPos(selected[0], "x");
  plot.setSelect({ left, top: 0, width: Math.max(1, plot.valToPos(selected[1], "x") - left), height }, false);
}

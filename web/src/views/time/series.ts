// Data of the charts over time, from the report's slices and moves.

import type { Report, Slice } from "../../documents";

export interface Line {
  label: string;
  values: (number | null)[];
  colour: "local" | "ink" | "calm" | "muted" | "remote";
  dash?: number[];
}

export interface Chart {
  id: string;
  title: string;
  unit: "percent" | "count";
  lines: Line[];
  bars: boolean;
  height: number;
  /** Times of the steps, if they are not those of the slices. */
  edges?: number[];
}

interface Span {
  start_seconds: number;
  end_seconds: number;
  /** Null if nothing was accessed in that time; the report then has no slice. */
  slice: Slice | null;
}

/** The whole run: slices, and the gaps between them. */
function spans(slices: readonly Slice[]): Span[] {
  return slices.flatMap((slice, i) => {
    const { start_seconds, end_seconds } = slice;
    const next = slices[i + 1]?.start_seconds ?? end_seconds;
    const own = { start_seconds, end_seconds, slice };
    return next > end_seconds + 1e-9 ? [own, { start_seconds: end_seconds, end_seconds: next, slice: null }] : [own];
  });
}

/** The start of each span, and the end of the last one. */
export function edges(slices: readonly Slice[]): number[] {
  const all = spans(slices);
  return all.length ? [...all.map((s) => s.start_seconds), all[all.length - 1]!.end_seconds] : [];
}

export function charts(report: Report): Chart[] {
  const all = spans(report.slices);
  const of = (figure: (slice: Slice) => number | null, none: number | null = null) =>
    all.map(({ slice }) => (slice ? figure(slice) : none));
  const unit = report.program.exact ? "Accesses" : "Samples";
  const rate = of((s) => (s.end_seconds > s.start_seconds ? s.accesses / (s.end_seconds - s.start_seconds) : null), 0);
  const made: Chart[] = [
    {
      id: "shares",
      title: report.program.exact ? "Shares of accesses" : "Shares of samples, which are not those of the accesses",
      unit: "percent",
      bars: false,
      height: 190,
      lines: [
        { label: "local under first-touch", values: of((s) => s.local_fraction), colour: "local" },
        {
          label: "exclusivity: the most that a placement of the slice could make local",
          values: of((s) => s.exclusivity),
          colour: "ink",
          dash: [7, 4],
        },
        { label: "access balance", values: of((s) => s.access_balance), colour: "calm", dash: [2, 3] },
      ].filter(({ values }) => values.some((v) => v !== null)) as Line[],
    },
    {
      id: "rate",
      title: `${unit} per second`,
      unit: "count",
      bars: false,
      height: 110,
      lines: [{ label: `${unit} per second`, values: rate, colour: "muted" }],
    },
    {
      id: "migrations",
      title: "Pages that would have to move to stay where they are used",
      unit: "count",
      bars: true,
      height: 110,
      lines: [{ label: "pages to move", values: of((s) => s.migrations, 0), colour: "remote" }],
    },
  ];
  const moved = moves(report);
  return moved ? [...made, moved] : made;
}

/** The moves in the report's time steps, summed over node pairs. */
function moves(report: Report): Chart | null {
  const over = report.moves?.over_time ?? [];
  if (over.length === 0) return null;
  const by = new Map<number, { start_seconds: number; end_seconds: number; ours: number; kernel: number; others: number }>();
  for (const { start_seconds, end_seconds, ours, kernel, others } of over) {
    const step = by.get(start_seconds) ?? { start_seconds, end_seconds, ours: 0, kernel: 0, others: 0 };
    step.ours += ours;
    step.kernel += kernel;
    step.others += others;
    by.set(start_seconds, step);
  }
  const steps = [...by.values()].sort((a, b) => a.start_seconds - b.start_seconds);
  // Steps without moves are not listed: nothing is drawn between those that are.
  const times: number[] = [];
  const [ours, kernel, others]: (number | null)[][] = [[], [], []];
  steps.forEach((step, i) => {
    times.push(step.start_seconds);
    ours!.push(step.ours);
    kernel!.push(step.kernel);
    others!.push(step.others);
    const next = steps[i + 1];
    if (!next || next.start_seconds > step.end_seconds + 1e-9) {
      times.push(step.end_seconds);
      ours!.push(0);
      kernel!.push(0);
      others!.push(0);
    }
  });
  return {
    id: "moves",
    title: report.moves?.simulated ? "Pages that would be moved (simulated)" : "Pages that were moved",
    unit: "count",
    bars: false,
    height: 110,
    edges: times,
    lines: [
      { label: "by us", values: ours!, colour: "local" },
      { label: "by the kernel", values: kernel!, colour: "muted", dash: [4, 3] },
      ...(others!.some((n) => n! > 0) ? [{ label: "by others", values: others!, colour: "remote" as const, dash: [1, 3] }] : []),
    ],
  };
}

// Slices as charts, one below the other, with one cursor and one selection.

import { useMemo, useState } from "preact/hooks";
import { FIRST_TOUCH } from "../../chosen";
import type { Report } from "../../documents";
import type { Row } from "../../export/csv";
import { Figure } from "../../figure";
import { between, count, format, percent, plural, seconds } from "../../format";
import type { Palette } from "../../palette";
import { update } from "../../state";
import { Term } from "../../tip";
import { Plot } from "./plot";
import { summary } from "./selection";
import { charts } from "./series";

export function Charts({ report, palette, selected }: { report: Report; palette: Palette; selected: readonly [number, number] | null }) {
  const made = useMemo(() => charts(report), [report]);
  const [at, hover] = useState<number | null>(null);
  const select = (from: number, to: number) => update({ t0: from.toFixed(4), t1: to.toFixed(4), frame: undefined }, true);
  const clear = () => update({ t0: undefined, t1: undefined, frame: undefined }, true);
  return (
    <Figure
      id="slices"
      title="Over time"
      what="The run in slices. Where the local share falls below exclusivity, a placement would help; where pages would have to move in many slices, no fixed placement serves the whole run. Drag to select a stretch of time: the film below follows."
      rows={() => rows(report)}
      controls={
        selected && (
          <button type="button" onClick={clear}>
            whole run
          </button>
        )
      }
    >
      <Line report={report} selected={selected} />
      {made.map((chart) => (
        <Plot key={chart.id} chart={chart} slices={report.slices} palette={palette} selected={selected} onSelect={select} onHover={hover} />
      ))}
      <output class="reading" aria-live="off" data-unexported>
        {at === null ? "Drag over a chart to select a stretch of time." : sliceSummary(report, at)}
      </output>
    </Figure>
  );
}

/** Figures of the selection, in one line. */
function Line({ report, selected }: { report: Report; selected: readonly [number, number] | null }) {
  const sum = summary(report, selected);
  return (
    <p class="summary" data-selection={selected ? "part" : "whole"}>
      <b>{selected ? `${seconds(selected[0])} – ${seconds(selected[1])}` : "Whole run"}</b>
      <span>{plural(sum.slices, "slice")}</span>
      <span>
        {count(sum.accesses)} {report.program.exact ? "accesses" : "samples"}
      </span>
      <span>
        <Term of={sum.localRange ? "local_samples" : "local_fraction"}>local</Term>{" "}
        <b class="near">
          {sum.localRange ? between(selected ? sum.localRange : (whole(report) ?? sum.localRange)) : format(sum.local, "percent")}
        </b>
      </span>
      <span>
        <Term of="exclusivity">exclusivity</Term> <b>{format(sum.exclusivity, "percent")}</b>
        {!report.program.exact && " of samples"}
      </span>
      {sum.balance !== null && (
        <span>
          <Term of="access_balance">balance</Term> <b>{percent(sum.balance)}</b>
        </span>
      )}
      <span>
        <b>{count(sum.migrations)}</b> pages to move
      </span>
    </p>
  );
}

/** Bounds of the local fraction of the whole run; they are narrower than those derived from the slices. */
const whole = (report: Report) => report.policies.find((p) => p.policy === FIRST_TOUCH)?.local_range ?? null;

function sliceSummary(report: Report, at: number): string {
  const last = report.slices[report.slices.length - 1];
  if (!last) return "";
  const slice = at >= last.start_seconds ? last : report.slices.find((s) => at >= s.start_seconds && at < s.end_seconds);
  if (!slice) return `${seconds(at)}: nothing was accessed.`;
  const unit = report.program.exact ? "accesses" : "samples";
  const of = report.program.exact ? "" : "of these ";
  const balance = slice.access_balance === null ? "" : `, balance ${percent(slice.access_balance)}`;
  return `${seconds(slice.start_seconds)} – ${seconds(slice.end_seconds)}: ${count(slice.accesses)} ${unit}, ${percent(slice.local_fraction)} ${of}local, exclusivity ${percent(slice.exclusivity)}${balance}, ${count(slice.migrations)} pages to move.`;
}

function rows(report: Report): Row[] {
  const head: Row = [
    "start [s]",
    "end [s]",
    report.program.exact ? "accesses" : "samples",
    report.program.exact ? "local share" : "local share of samples",
    "local, at least",
    "local, at most",
    report.program.exact ? "exclusivity" : "exclusivity of samples",
    "access balance",
    "pages to move",
  ];
  return [
    head,
    ...report.slices.map(
      (s): Row => [
        s.start_seconds,
        s.end_seconds,
        s.accesses,
        s.local_fraction,
        ...(s.local_range ?? [null, null]),
        s.exclusivity,
        s.access_balance,
        s.migrations,
      ],
    ),
  ];
}

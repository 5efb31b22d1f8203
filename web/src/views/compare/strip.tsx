// The address space on both sides, and the differences of home nodes and local fractions.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Row } from "../../export/csv";
import { Figure } from "../../figure";
import { pages as range, percent, plural } from "../../format";
import { useWidth } from "../../measured";
import { palette } from "../../palette";
import { update } from "../../state";
import { useTheme } from "../../theme";
import { NodeLegend } from "../migrations/node";
import { spans, type Cells } from "./cells";
import { GAP, ROW, columns, paint, reading, type Column, type Reading } from "./columns";
import { difference } from "./difference";
import type { Pair } from "./sides";

const LABEL = 150;
const HEIGHT = 3 * ROW + 2 * GAP;

function words(column: Column, r: Reading, pair: Pair): string {
  const homes = r.homes[0] === r.homes[1] ? `home: node ${r.homes[0]} on both sides` : `home: node ${r.homes[0]} → node ${r.homes[1]}`;
  const local = r.used
    ? `local${pair.a.report.program.exact && pair.b.report.program.exact ? "" : " of samples"}: ${percent(r.local[0])} → ${percent(r.local[1])}, ${difference(r.local[0], r.local[1], "percent")}`
    : "not accessed";
  return `${column.span.name}, page ${range(column.page, 1)} · ${homes} · ${local} (${pair.a.title} → ${pair.b.title})`;
}

/** Opens the layout view on the object's pages. */
const look = (pair: Pair, { span }: Column) =>
  update({ view: "layout", profile: String(pair.a.profile), from: String(span.a.first), to: String(span.a.first + span.a.pages) });

interface StripsProps {
  pair: Pair;
  a: Cells;
  b: Cells;
  shown: readonly Column[];
  cursor: number | null;
  point: (to: number | null) => void;
}

function Strips({ pair, a, b, shown, cursor, point }: StripsProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const colours = palette(useTheme() === "dark");
  const width = shown.length;
  useEffect(() => {
    const element = canvas.current;
    if (!element) return;
    const scale = devicePixelRatio || 1;
    element.width = width * scale;
    element.height = HEIGHT * scale;
    const pen = element.getContext("2d")!;
    pen.scale(scale, scale);
    paint(pen, shown, a, b, colours);
    element.dataset.drawn = "difference";
  }, [shown, a, b, colours, width]);
  const key = (event: KeyboardEvent) => {
    const way = { ArrowRight: 1, ArrowLeft: -1, PageDown: 40, PageUp: -40 }[event.key];
    if (event.key === "Escape") point(null);
    if (event.key === "Enter" && cursor !== null && shown[cursor]) look(pair, shown[cursor]);
    if (!way) return;
    event.preventDefault();
    point(Math.max(0, Math.min(width - 1, (cursor ?? -1) + way)));
  };
  return (
    <canvas
      ref={canvas}
      tabIndex={0}
      role="application"
      aria-label="Pages on both sides; arrow keys move, Enter opens the layout view"
      style={{ width: `${width}px`, height: `${HEIGHT}px` }}
      onPointerMove={(e) => point(Math.max(0, Math.min(width - 1, Math.floor(e.offsetX))))}
      onPointerLeave={() => point(null)}
      onClick={(e) => shown[Math.floor(e.offsetX)] && look(pair, shown[Math.floor(e.offsetX)]!)}
      onKeyDown={key}
    />
  );
}

function rows(pair: Pair, a: Cells, b: Cells, shown: readonly Column[]): Row[] {
  const line = (c: Column): Row => {
    const { homes, local } = reading(c, a, b);
    return [c.span.name, c.page, ...homes, ...local];
  };
  return [
    ["object", "page", `home (${pair.a.title})`, `home (${pair.b.title})`, `local (${pair.a.title})`, `local (${pair.b.title})`],
    ...shown.map(line),
  ];
}

const EXPLANATION =
  "The address space, object after object: in the first two strips each page has the colour of its home on either side; in the third, blue where more of its accesses are local on the second side, orange where fewer are. Click to see an object in the layout view.";

function Summary({ pair, a, b, shown, cursor }: Omit<StripsProps, "point">) {
  const column = cursor === null ? undefined : shown[cursor];
  const changed = shown.filter((c) => ((r) => r.homes[0] !== r.homes[1])(reading(c, a, b))).length;
  return (
    <p class="reading" aria-live="polite">
      {column
        ? words(column, reading(column, a, b), pair)
        : `${percent(changed / shown.length)} of the pages have another home. A column stands for about ${plural(Math.max(1, Math.round(a.strip.pages / shown.length)), "page")}.`}
    </p>
  );
}

export function DifferenceStrip({ pair, a, b }: { pair: Pair; a: Cells; b: Cells }) {
  const room = useRef<HTMLDivElement>(null);
  const width = Math.max(100, useWidth(room) - LABEL);
  const matched = useMemo(() => spans(a.strip, b.strip), [a, b]);
  const shown = useMemo(() => columns(matched.spans, width), [matched, width]);
  const [cursor, point] = useState<number | null>(null);
  const strips = { pair, a, b, shown, cursor };
  return (
    <Figure id="difference" title="Which pages differ" rows={() => rows(pair, a, b, shown)} what={EXPLANATION}>
      <div ref={room}>
        {shown.length === 0 ? (
          <p class="none">The two have no object of the same name.</p>
        ) : (
          <>
            <div class="strips">
              <div class="names">
                <span title={pair.a.title}>home, {pair.a.title}</span>
                <span title={pair.b.title}>home, {pair.b.title}</span>
                <span>local, the difference</span>
              </div>
              <Strips {...strips} point={point} />
              {cursor !== null && <i class="hair" style={{ left: `${LABEL + cursor}px` }} data-unexported />}
            </div>
            <Summary {...strips} />
            <NodeLegend nodes={a.strip.nodes} />
            {matched.left > 0 && (
              <p class="muted">
                {plural(matched.left, "object")} without a counterpart {matched.left === 1 ? "is" : "are"} left out.
              </p>
            )}
          </>
        )}
      </div>
    </Figure>
  );
}

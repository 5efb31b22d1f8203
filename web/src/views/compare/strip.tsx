// The address space on both sides, and what differs: homes, and how much is local.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Row } from "../../export/csv";
import { Figure } from "../../figure";
import { pages as range, percent, plural } from "../../format";
import { useWidth } from "../../measured";
import { css, palette, type Palette } from "../../palette";
import { update } from "../../state";
import { useTheme } from "../../theme";
import { NodeLegend } from "../migrations/node";
import { spans, type Cells, type Span } from "./cells";
import { difference } from "./difference";
import type { Pair } from "./sides";

const ROW = 26;
const GAP = 6;
const LABEL = 150;

/** One column of the picture: where it lies on both sides. */
interface Column {
  span: Span;
  a: number;
  b: number;
  /** Page within the object, by the first side. */
  page: number;
}

/** Objects one after the other, each as wide as its pages on the first side. */
function columns(list: readonly Span[], n: number): Column[] {
  const whole = list.reduce((sum, s) => sum + s.a.pages, 0);
  const found: Column[] = [];
  let [span, before] = [0, 0];
  for (let c = 0; c < n && whole > 0; c++) {
    const position = ((c + 0.5) / n) * whole;
    while (span < list.length - 1 && position >= before + list[span]!.a.pages) before += list[span++]!.a.pages;
    const s = list[span]!;
    const share = Math.min(0.999999, (position - before) / s.a.pages);
    found.push({ span: s, a: s.a.first + share * s.a.pages, b: s.b.first + share * s.b.pages, page: Math.floor(share * s.a.pages) });
  }
  return found;
}

interface Reading {
  used: boolean;
  homes: [number, number];
  local: [number, number];
}

function reading(column: Column, a: Cells, b: Cells): Reading {
  const [i, j] = [Math.floor(column.a / a.size), Math.floor(column.b / b.size)];
  return {
    used: (a.accesses[i] ?? 0) > 0 || (b.accesses[j] ?? 0) > 0,
    homes: [a.home[i] ?? 255, b.home[j] ?? 255],
    local: [(a.local[i] ?? 0) / 255, (b.local[j] ?? 0) / 255],
  };
}

function paint(pen: CanvasRenderingContext2D, shown: readonly Column[], a: Cells, b: Cells, colours: Palette): void {
  const bar = (x: number, row: number, fill: string) => {
    pen.fillStyle = fill;
    pen.fillRect(x, row * (ROW + GAP), 1, ROW);
  };
  const node = (n: number) => css(n === 255 ? colours.home : colours.node(n));
  shown.forEach((column, x) => {
    const { homes, local, used } = reading(column, a, b);
    bar(x, 0, node(homes[0]));
    bar(x, 1, node(homes[1]));
    bar(x, 2, used ? css(colours.locality(0.5 + (local[1] - local[0]) / 2)) : css(colours.card));
  });
  // Where an object ends.
  pen.fillStyle = css(colours.card);
  shown.forEach((column, x) => x > 0 && shown[x - 1]!.span !== column.span && pen.fillRect(x, 0, 1, 3 * ROW + 2 * GAP));
}

function words(column: Column, r: Reading, pair: Pair): string {
  const homes = r.homes[0] === r.homes[1] ? `home: node ${r.homes[0]} on both sides` : `home: node ${r.homes[0]} → node ${r.homes[1]}`;
  const local = r.used ? `local: ${percent(r.local[0])} → ${percent(r.local[1])}, ${difference(r.local[0], r.local[1], "percent")}` : "not accessed";
  return `${column.span.name}, page ${range(column.page, 1)} · ${homes} · ${local} (${pair.a.title} → ${pair.b.title})`;
}

export function DifferenceStrip({ pair, a, b }: { pair: Pair; a: Cells; b: Cells }) {
  const room = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = Math.max(100, useWidth(room) - LABEL);
  const colours = palette(useTheme() === "dark");
  const matched = useMemo(() => spans(a.strip, b.strip), [a, b]);
  const shown = useMemo(() => columns(matched.spans, width), [matched, width]);
  const [cursor, point] = useState<number | null>(null);
  useEffect(() => {
    const element = canvas.current;
    if (!element) return;
    const scale = devicePixelRatio || 1;
    element.width = width * scale;
    element.height = (3 * ROW + 2 * GAP) * scale;
    const pen = element.getContext("2d")!;
    pen.scale(scale, scale);
    paint(pen, shown, a, b, colours);
    element.dataset.drawn = "difference";
  }, [shown, a, b, colours, width]);
  const column = cursor === null ? undefined : shown[Math.min(cursor, shown.length - 1)];
  const key = (event: KeyboardEvent) => {
    const way = { ArrowRight: 1, ArrowLeft: -1, PageDown: 40, PageUp: -40 }[event.key];
    if (event.key === "Escape") point(null);
    if (event.key === "Enter" && column) look(column);
    if (!way) return;
    event.preventDefault();
    point((now) => Math.max(0, Math.min(shown.length - 1, (now ?? -1) + way)));
  };
  const look = ({ span }: Column) => update({ view: "layout", profile: String(pair.a.profile), from: String(span.a.first), to: String(span.a.first + span.a.pages) });
  const rows = (): Row[] => [
    ["object", "page", `home (${pair.a.title})`, `home (${pair.b.title})`, `local (${pair.a.title})`, `local (${pair.b.title})`],
    ...shown.map((c): Row => {
      const r = reading(c, a, b);
      return [c.span.name, c.page, ...r.homes, ...r.local];
    }),
  ];
  const changed = shown.filter((c) => ((r) => r.homes[0] !== r.homes[1])(reading(c, a, b))).length;
  return (
    <Figure id="difference" title="Which pages differ" rows={rows} what={`The address space, object after object: in the first two strips each page has the colour of its home on either side; in the third, blue where more of its accesses are local on the second side, orange where fewer are. A column stands for about ${plural(Math.max(1, Math.round(a.strip.pages / width)), "page")}. Click to see an object in the layout view.`}>
      <div ref={room}>
        {shown.length === 0 ? <p class="none">The two have no object of the same name.</p> : (
          <>
            <div class="strips">
              <div class="names">
                <span title={pair.a.title}>home, {pair.a.title}</span>
                <span title={pair.b.title}>home, {pair.b.title}</span>
                <span>local, the difference</span>
              </div>
              <canvas
                ref={canvas}
                tabIndex={0}
                role="application"
                aria-label="Pages on both sides; arrow keys move, Enter opens the layout view"
                style={{ width: `${width}px`, height: `${3 * ROW + 2 * GAP}px` }}
                onPointerMove={(e) => point(Math.max(0, Math.floor(e.offsetX)))}
                onPointerLeave={() => point(null)}
                onClick={(e) => shown[Math.floor(e.offsetX)] && look(shown[Math.floor(e.offsetX)]!)}
                onKeyDown={key}
              />
              {cursor !== null && <i class="hair" style={{ left: `${LABEL + cursor}px` }} data-unexported />}
            </div>
            <p class="reading" aria-live="polite">
              {column ? words(column, reading(column, a, b), pair) : `${percent(changed / shown.length)} of the pages have another home.`}
            </p>
            <NodeLegend nodes={a.strip.nodes} />
            {matched.left > 0 && <p class="muted">{plural(matched.left, "object")} without a counterpart {matched.left === 1 ? "is" : "are"} left out.</p>}
          </>
        )}
      </div>
    </Figure>
  );
}

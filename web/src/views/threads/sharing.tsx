// The sharing matrix on its canvas.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Threads } from "../../documents";
import type { Row } from "../../export/csv";
import { Figure } from "../../figure";
import { count } from "../../format";
import { SMALL } from "../../paint/bands";
import { Inks } from "../../paint/inks";
import { paintMatrix, span } from "../../paint/matrix";
import { device, atSavedResolution, ImageBuffer, sized } from "../../paint/surface";
import { css, type Palette } from "../../palette";
import { Segments } from "../../segments";
import { Key, Outline, Ramp } from "../layout/legend";
import { ordered, sides, type Order } from "./order";

const EDGE = 58;
const BAND = 7;

export interface SharingProps {
  threads: Threads;
  nodes: number;
  palette: Palette;
  after: boolean;
  unit: string;
}

type Pair = { row: number; column: number } | null;

export function Sharing({ threads, nodes, palette, after, unit }: SharingProps) {
  const [from, to] = sides(threads);
  const placing = (after ? to : from).placing;
  const order = useMemo(() => ordered(placing), [placing]);
  const inks = useMemo(() => new Inks(palette, nodes), [palette, nodes]);
  const base = useRef<HTMLCanvasElement>(null);
  const above = useRef<HTMLCanvasElement>(null);
  const frame = useRef<HTMLDivElement>(null);
  const body = useRef<HTMLDivElement>(null);
  const [side, resize] = useState(520);
  const [pair, point] = useState<Pair>(null);
  const n = order.groups.length;

  useLayoutEffect(() => {
    const watch = new ResizeObserver(() => resize(Math.max(160, Math.min(620, (frame.current?.clientWidth ?? 520) - EDGE - 12))));
    watch.observe(frame.current!);
    return () => watch.disconnect();
  }, []);
  useLayoutEffect(() => draw(base.current!, side, threads, order, inks, palette), [side, threads, order, inks, palette]);
  useEffect(() => {
    const next = requestAnimationFrame(() => above.current && cross(above.current, side, n, pair, palette));
    return () => cancelAnimationFrame(next);
  }, [pair, side, n, palette, order]);

  const at = (event: PointerEvent) => {
    const [x, y] = [event.offsetX - EDGE, event.offsetY - EDGE].map((v) => Math.floor((v / side) * n));
    point(x! >= 0 && x! < n && y! >= 0 && y! < n ? { row: y!, column: x! } : null);
  };
  const key = (event: KeyboardEvent) => {
    if (event.key === "Escape") return point(null);
    const move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!move) return;
    event.preventDefault();
    const clamp = (v: number) => Math.max(0, Math.min(n - 1, v));
    point((old) =>
      old ? { row: clamp(old.row + move[1]!), column: clamp(old.column + move[0]!) } : { row: 0, column: Math.min(1, n - 1) },
    );
  };
  const range = span(threads.sharing);
  return (
    <Figure
      id="sharing"
      title="Who shares with whom"
      what={`Each square is a pair of ${threads.groups.some((g) => g.threads.length > 1) ? "groups of threads" : "threads"}: how many ${unit} of theirs go to pages that both use. Threads stand in the order of the nodes they run on; frames are clusters that belong together. Dark outside the frames on the diagonal is sharing across nodes.`}
      element={() => {
        atSavedResolution(() => base.current && draw(base.current, side, threads, order, inks, palette));
        return body.current;
      }}
      rows={() => rows(threads, unit)}
      controls={
        <Segments
          label="Order of threads"
          state="order"
          value={after ? "after" : "before"}
          options={[
            ["before", from.title],
            ["after", to.title],
          ]}
        />
      }
    >
      <div ref={body}>
        <div class="plate matrix-plate" ref={frame}>
          <canvas ref={base} />
          <canvas
            class="above"
            data-unexported
            ref={above}
            tabIndex={0}
            role="application"
            aria-label={`Sharing matrix of ${n} ${n === 1 ? "thread" : "threads or groups"}. Arrow keys move from pair to pair.`}
            aria-describedby="sharing-said"
            onPointerMove={at}
            onPointerLeave={() => point(null)}
            onKeyDown={key}
          />
        </div>
        <output class="reading" id="sharing-said" aria-live="polite" data-unexported={pair ? undefined : true}>
          {pair
            ? pairSummary(threads, order, pair, placing.nodes, unit)
            : `Under ${placing.affinity} threads. Point at a square for its pair.`}
        </output>
        <div class="legend" role="group" aria-label="Colours of the matrix">
          {range.most > 1 && (
            <Ramp
              from={count(Math.max(1, Math.round(range.least)))}
              to={`${count(Math.round(range.most))} ${unit} to shared pages`}
              colour={palette.quantity}
            />
          )}
          <Key colour={palette.spread}>itself</Key>
          <Outline colour={palette.ink}>cluster</Outline>
        </div>
      </div>
    </Figure>
  );
}

const who = (threads: Threads, group: number) => threads.groups[group]?.label ?? "";

function pairSummary(threads: Threads, order: Order, pair: { row: number; column: number }, nodes: number[], unit: string): string {
  const [a, b] = [order.groups[pair.row]!, order.groups[pair.column]!];
  const value = threads.sharing[a]?.[b] ?? 0;
  if (a === b) return `${who(threads, a)} on node ${nodes[a]}: ${count(Math.round(value))} ${unit} to pages that nobody else uses.`;
  const where = nodes[a] === nodes[b] ? `both on node ${nodes[a]}` : `on nodes ${nodes[a]} and ${nodes[b]}`;
  return `${who(threads, a)} and ${who(threads, b)}, ${where}: ${value > 0 ? `${count(Math.round(value))} ${unit}` : `no ${unit}`} to shared pages.`;
}

function draw(canvas: HTMLCanvasElement, side: number, threads: Threads, order: Order, inks: Inks, palette: Palette): void {
  const size = EDGE + side + 2;
  const pen = sized(canvas, size, size);
  canvas.style.width = `${size}px`;
  pen.fillStyle = css(palette.card);
  pen.fillRect(0, 0, size, size);
  const plate = new ImageBuffer();
  plate.fit(device(side), device(side));
  paintMatrix(plate.pixels, plate.width, threads.sharing, order.groups, inks);
  plate.put(pen, EDGE, EDGE);
  const each = side / Math.max(1, order.groups.length);
  for (const { node, first, end } of order.nodes) {
    const [from, length] = [EDGE + first * each, (end - first) * each];
    pen.fillStyle = css(palette.node(node));
    pen.fillRect(EDGE - BAND - 2, from + 0.5, BAND, Math.max(1, length - 1));
    pen.fillRect(from + 0.5, EDGE - BAND - 2, Math.max(1, length - 1), BAND);
    pen.fillStyle = css(palette.ink);
    pen.font = SMALL;
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    if (length >= 11) pen.fillText(`node ${node}`, EDGE - BAND - 6, from + length / 2);
    pen.textAlign = "center";
    if (length >= 14) pen.fillText(length >= 44 ? `node ${node}` : String(node), from + length / 2, EDGE - BAND - 10);
    pen.fillStyle = css(palette.muted, 0.6);
    if (first > 0) {
      pen.fillRect(EDGE, from - 0.5, side, 1);
      pen.fillRect(from - 0.5, EDGE, 1, side);
    }
  }
  outline(pen, order, each, palette);
  canvas.dataset.drawn = "sharing";
}

/** Outlines clusters on the diagonal; for a cluster on several nodes also its off-diagonal squares, dashed. */
function outline(pen: CanvasRenderingContext2D, { clusters }: Order, each: number, palette: Palette): void {
  for (const a of clusters) {
    for (const b of clusters) {
      if (a.cluster !== b.cluster || (a === b && a.end - a.first < 2)) continue;
      const box = [EDGE + b.first * each, EDGE + a.first * each, (b.end - b.first) * each, (a.end - a.first) * each] as const;
      pen.setLineDash(a === b ? [] : [3, 2]);
      pen.strokeStyle = css(palette.card, 0.8);
      pen.lineWidth = a === b ? 3.5 : 0;
      if (a === b) pen.strokeRect(...box);
      pen.strokeStyle = css(palette.ink);
      pen.lineWidth = a === b ? 1.6 : 0.8;
      if (a === b || Math.min(box[2], box[3]) > 3) pen.strokeRect(...box);
    }
  }
  pen.setLineDash([]);
}

function cross(canvas: HTMLCanvasElement, side: number, n: number, pair: Pair, palette: Palette): void {
  const size = EDGE + side + 2;
  const pen = sized(canvas, size, size);
  canvas.style.width = `${size}px`;
  pen.clearRect(0, 0, size, size);
  canvas.dataset.drawn = "pair";
  if (!pair) return;
  const each = side / Math.max(1, n);
  pen.fillStyle = css(palette.ink, 0.14);
  pen.fillRect(EDGE, EDGE + pair.row * each, side, each);
  pen.fillRect(EDGE + pair.column * each, EDGE, each, side);
  pen.strokeStyle = css(palette.ink);
  pen.lineWidth = 2;
  pen.strokeRect(EDGE + pair.column * each - 1, EDGE + pair.row * each - 1, each + 2, each + 2);
}

function rows(threads: Threads, unit: string): Row[] {
  const compared = sides(threads);
  const titles = compared.map((side) => `node ${side.title.toLowerCase()}`);
  const nodes = (group: number) => compared.map((side) => side.placing.nodes[group]);
  const made: Row[] = [["threads", ...titles, "threads", ...titles, `${unit} to shared pages`]];
  threads.groups.forEach((a, i) =>
    threads.groups.slice(i).forEach((b, d) => {
      const j = i + d;
      const value = threads.sharing[i]?.[j] ?? 0;
      if (value > 0 || i === j) made.push([a.label, ...nodes(i), b.label, ...nodes(j), value]);
    }),
  );
  return made;
}

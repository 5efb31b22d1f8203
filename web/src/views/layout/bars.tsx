// The histogram of the pages under the cursor, over threads.

import { useEffect, useRef } from "preact/hooks";
import { css, type Palette } from "../../palette";
import { SMALL } from "../../paint/bands";
import { sized } from "../../paint/surface";
import { count } from "../../format";
import type { Rows } from "../../paint/rows";

export interface BarsProps {
  values: Float64Array;
  rows: Rows;
  row: number;
  palette: Palette;
  label: string;
}

const HEIGHT = 92;

/** Bars stand in the order of the figure's rows, in the colours of their nodes. */
export function Bars({ values, rows, row, palette, label }: BarsProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const target = canvas.current!;
    draw(sized(target, target.clientWidth || 280, HEIGHT), target.clientWidth || 280, values, rows, row, palette);
    target.dataset.drawn = "threads";
  }, [values, rows, row, palette]);
  return <canvas class="bars" ref={canvas} role="img" aria-label={label} />;
}

function draw(pen: CanvasRenderingContext2D, width: number, values: Float64Array, rows: Rows, row: number, palette: Palette): void {
  const bars = rows.length + (rows.others ? 1 : 0);
  const most = values.reduce((a, b) => Math.max(a, b), 0);
  const [top, base] = [14, HEIGHT - 14];
  pen.clearRect(0, 0, width, HEIGHT);
  pen.font = SMALL;
  pen.fillStyle = css(palette.muted);
  pen.textBaseline = "top";
  pen.textAlign = "left";
  pen.fillText(most > 0 ? count(Math.round(most)) : "", 0, 0);
  pen.fillStyle = css(palette.line);
  pen.fillRect(0, top - 1, width, 1);
  pen.fillRect(0, base, width, 1);
  const each = width / Math.max(1, bars);
  for (let i = 0; i < bars; i++) {
    const height = most > 0 && values[i]! > 0 ? Math.max(1, (values[i]! / most) * (base - top)) : 0;
    pen.fillStyle = css(i < rows.length ? palette.node(rows.node[i]!) : palette.muted);
    pen.fillRect(i * each, base - height, Math.max(1, each - (each > 3 ? 1 : 0)), height);
    if (i === row) {
      pen.strokeStyle = css(palette.ink);
      pen.strokeRect(i * each + 0.5, top, Math.max(2, each - 1), base - top);
    }
  }
  pen.textAlign = "center";
  for (let first = 0; first < rows.length; ) {
    let end = first + 1;
    while (end < rows.length && rows.node[end] === rows.node[first]) end++;
    pen.fillStyle = css(palette.node(rows.node[first]!));
    pen.fillRect(first * each, base + 1, Math.max(1, (end - first) * each - 1), 2);
    pen.fillStyle = css(palette.muted);
    if ((end - first) * each > 10) pen.fillText(String(rows.node[first]), ((first + end) / 2) * each, base + 4);
    first = end;
  }
}

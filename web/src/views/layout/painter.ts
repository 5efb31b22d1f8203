// Draws the scene's picture: strips, bands, the page × thread figure, and what is written beside them.

import { css, mix } from "../../palette";
import { drawBands, fitted, FONT, SMALL, type Stage } from "../../paint/bands";
import type { Cells } from "../../paint/cells";
import type { Columns } from "../../paint/columns";
import { paintReach } from "../../paint/reach";
import { mapped, observed, paintFlat, paintShares, type Colour } from "../../paint/strips";
import { device, ImageBuffer, resolution } from "../../paint/surface";
import { count, whole } from "../../format";
import type { Zone } from "./geometry";
import type { Scene } from "./scene";
import { ticks } from "./ticks";
import { titles } from "./titles";

export class Painter {
  private readonly strip = new ImageBuffer();
  private readonly lines = new ImageBuffer();
  private readonly reach = new ImageBuffer();
  private readonly overview = document.createElement("canvas");

  constructor(private readonly scene: Scene) {}

  /** Draws the picture; the overview only if `whole`, its columns, is given. */
  paint(pen: CanvasRenderingContext2D, whole: Columns<Cells> | undefined): void {
    const { geometry: at, look, inks, scene } = { ...this.scene, scene: this.scene };
    const { palette } = look;
    pen.fillStyle = css(palette.card);
    pen.fillRect(0, 0, at.width, at.height);
    if (whole) this.paintOverview(whole);
    pen.drawImage(this.overview, at.x, 0, at.w, this.overview.height / resolution());
    this.brush(pen);
    const shown = scene.shown!.cells;
    pen.font = FONT;
    drawBands(pen, scene.strip.objects, this.stage(), at.bands.y, at.bands.h, look.selected, palette);
    if (look.mode === "node") this.shares(pen, at.observed, shown);
    else this.flat(pen, at.observed, shown, observed(look.mode, inks, scene.scale));
    this.flat(pen, at.today, shown, mapped(look.mode, 0, inks, scene.scale));
    this.flat(pen, at.chosen, shown, mapped(look.mode, look.chosen, inks, scene.scale));
    this.threads(pen);
    this.gutter(pen);
    this.axis(pen);
  }

  private stage(): Stage {
    const { geometry: at, span } = this.scene;
    return { x: at.x, w: at.w, ...span };
  }

  private paintOverview(whole: Columns<Cells>): void {
    const { geometry: at, look, inks, scale, strip } = this.scene;
    const height = at.overview.y + at.overview.h;
    this.overview.width = whole.width;
    this.overview.height = device(height);
    const pen = this.overview.getContext("2d")!;
    pen.setTransform(resolution(), 0, 0, resolution(), 0, 0);
    pen.font = SMALL;
    drawBands(
      pen,
      strip.objects,
      { x: 0, w: at.w, from: 0, to: Math.max(1, strip.pages) },
      at.names.y,
      at.names.h,
      look.selected,
      look.palette,
    );
    this.strip.fit(whole.width, device(at.overview.h));
    if (look.mode === "node") paintShares(this.strip.pixels, this.strip.width, this.strip.height, whole, inks);
    else paintFlat(this.strip.pixels, this.strip.width, this.strip.height, whole, observed(look.mode, inks, scale), inks.card);
    this.strip.put(pen, 0, at.overview.y);
  }

  /** Marks the visible span in the overview by a frame, with lines down to the picture. */
  private brush(pen: CanvasRenderingContext2D): void {
    const { geometry: at, span, strip, look } = this.scene;
    const pages = Math.max(1, strip.pages);
    const left = at.x + (span.from / pages) * at.w;
    const right = Math.max(left + 2, at.x + (span.to / pages) * at.w);
    const [top, bottom] = [at.names.y, at.overview.y + at.overview.h];
    pen.fillStyle = css(look.palette.card, 0.62);
    pen.fillRect(at.x, top, left - at.x, bottom - top);
    pen.fillRect(right, top, at.x + at.w - right, bottom - top);
    pen.fillStyle = css(mix(look.palette.card, look.palette.home, 0.55));
    pen.beginPath();
    pen.moveTo(left, bottom);
    pen.lineTo(right, bottom);
    pen.lineTo(at.x + at.w, at.bands.y - 2);
    pen.lineTo(at.x, at.bands.y - 2);
    pen.fill();
    pen.strokeStyle = css(look.palette.ink);
    pen.lineWidth = 1.5;
    pen.strokeRect(left, top + 0.75, right - left, bottom - top - 1);
  }

  private flat(pen: CanvasRenderingContext2D, zone: Zone, shown: Columns<Cells>, colour: Colour): void {
    this.strip.fit(shown.width, device(zone.h));
    paintFlat(this.strip.pixels, shown.width, this.strip.height, shown, colour, this.scene.inks.card);
    this.strip.put(pen, this.scene.geometry.x, zone.y);
    this.frame(pen, zone);
  }

  private shares(pen: CanvasRenderingContext2D, zone: Zone, shown: Columns<Cells>): void {
    this.strip.fit(shown.width, device(zone.h));
    paintShares(this.strip.pixels, shown.width, this.strip.height, shown, this.scene.inks);
    this.strip.put(pen, this.scene.geometry.x, zone.y);
    this.frame(pen, zone);
  }

  private frame(pen: CanvasRenderingContext2D, zone: Zone): void {
    const { geometry: at, look } = this.scene;
    pen.strokeStyle = css(look.palette.line);
    pen.lineWidth = 1;
    pen.strokeRect(at.x - 0.5, zone.y - 0.5, at.w + 1, zone.h + 1);
  }

  private threads(pen: CanvasRenderingContext2D): void {
    const { geometry: at, look, rows, inks, full, shown } = this.scene;
    const drawn = rows.length + (rows.others ? 1 : 0);
    if (drawn === 0) return;
    const width = shown!.who.width;
    this.lines.fit(width, drawn);
    paintReach(this.lines.pixels, { ...shown!, policy: look.after ? look.chosen : 0, rows, inks, full });
    this.reach.fit(width, device(at.threads.h));
    const { pixels, height } = this.reach;
    for (let y = 0; y < height; y++) {
      const row = Math.min(drawn - 1, Math.floor((y * drawn) / height));
      pixels.set(this.lines.pixels.subarray(row * width, (row + 1) * width), y * width);
    }
    this.reach.put(pen, at.x, at.threads.y);
    this.frame(pen, at.threads);
    this.nodes(pen);
  }

  /** Lines between nodes, and the nodes' names with colour chips as in the strips above. */
  private nodes(pen: CanvasRenderingContext2D): void {
    const { geometry: at, look, rows } = this.scene;
    const { palette } = look;
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    let written = -Infinity;
    for (let first = 0; first < rows.length; ) {
      let end = first + 1;
      while (end < rows.length && rows.node[end] === rows.node[first]) end++;
      const [top, bottom] = [at.threads.y + first * at.row, at.threads.y + end * at.row];
      pen.fillStyle = css(palette.muted, bottom - top < 12 ? 0.2 : 0.55);
      if (first > 0) pen.fillRect(at.x - 8, Math.round(top) - 0.5, at.w + 8, 1);
      pen.fillStyle = css(palette.node(rows.node[first]!));
      pen.fillRect(at.x - 8, top + 1, 5, Math.max(1, bottom - top - 2));
      if ((top + bottom) / 2 >= written + 13) {
        written = (top + bottom) / 2;
        pen.font = FONT;
        pen.fillStyle = css(palette.ink);
        pen.fillText(`node ${rows.node[first]}`, at.x - 13, (top + bottom) / 2);
      }
      first = end;
    }
    if (rows.others) {
      pen.fillStyle = css(palette.muted);
      pen.font = SMALL;
      pen.fillText("others", at.x - 13, at.threads.y + at.threads.h - at.row / 2);
    }
  }

  private gutter(pen: CanvasRenderingContext2D): void {
    const { geometry: at, look } = this.scene;
    const write = (zone: Zone, head: string, below: string) => {
      const middle = zone.y + zone.h / 2;
      pen.font = FONT;
      pen.fillStyle = css(look.palette.ink);
      pen.fillText(fitted(pen, head, at.x - 12), at.x - 10, below ? middle - 7 : middle);
      pen.font = SMALL;
      pen.fillStyle = css(look.palette.muted);
      if (below) pen.fillText(fitted(pen, below, at.x - 12), at.x - 10, middle + 7);
    };
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (const [zone, head, below] of titles(this.scene)) write(at[zone], head, below);
  }

  private axis(pen: CanvasRenderingContext2D): void {
    const { geometry: at, span, look } = this.scene;
    pen.font = SMALL;
    pen.textBaseline = "top";
    pen.textAlign = "center";
    for (const position of ticks(span.from, span.to, at.w / 110)) {
      if (position < span.from || position !== Math.round(position)) continue;
      const x = at.x + ((position - span.from) / (span.to - span.from)) * at.w;
      pen.fillStyle = css(look.palette.muted);
      pen.fillRect(x - 0.5, at.axis.y, 1, 4);
      const text = span.to - span.from < 1e4 ? whole(position) : count(position);
      const half = pen.measureText(text).width / 2;
      pen.fillText(text, Math.max(at.x + half, Math.min(at.width - half, x)), at.axis.y + 6);
    }
    pen.textAlign = "right";
    pen.fillText("touched page", at.x - 10, at.axis.y + 6);
  }
}

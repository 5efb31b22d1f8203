// Draws the film: objects at the top, then the current step and the whole run as strips, and all steps below.

import type { Strip } from "../../documents";
import { seconds } from "../../format";
import { drawBands, FONT, SMALL } from "../../paint/bands";
import { paintFilm, together, type Film, type FilmMode } from "../../paint/film";
import type { Inks } from "../../paint/inks";
import { device, ImageBuffer, sized } from "../../paint/surface";
import { css, type Palette } from "../../palette";
import { GUTTER, RIGHT } from "../layout/geometry";
import { moments, ticks } from "../layout/ticks";

export interface FramesLook {
  mode: FilmMode;
  palette: Palette;
  inks: Inks;
  /** First and last step of the selection. */
  first: number;
  last: number;
}

const ZONES = { bands: { y: 0, h: 20 }, step: { y: 24, h: 44 }, whole: { y: 73, h: 26 }, film: { y: 108, h: 0 } };

export class Frames {
  width = 800;
  readonly height: number;
  private readonly plate = new ImageBuffer();
  private readonly strip = new ImageBuffer();

  constructor(
    readonly base: HTMLCanvasElement,
    readonly above: HTMLCanvasElement,
    readonly film: Film,
    readonly made: Strip,
    public look: FramesLook,
  ) {
    this.height = Math.max(120, Math.min(420, film.steps * 9));
  }

  get x(): number {
    return GUTTER;
  }
  get w(): number {
    return Math.max(40, this.width - GUTTER - RIGHT);
  }
  get bottom(): number {
    return ZONES.film.y + this.height + 6;
  }

  /** Column and step of a point; null outside the film. */
  at(x: number, y: number): { column: number; step: number } | null {
    const [across, down] = [(x - this.x) / this.w, (y - ZONES.film.y) / this.height];
    if (across < 0 || across >= 1 || down < 0 || down >= 1) return null;
    return { column: Math.floor(across * this.film.width), step: Math.floor(down * this.film.steps) };
  }

  draw(): void {
    const pen = sized(this.base, this.width, this.bottom);
    const { film, look, made } = this;
    pen.fillStyle = css(look.palette.card);
    pen.fillRect(0, 0, this.width, this.bottom);
    pen.font = FONT;
    drawBands(
      pen,
      made.objects,
      { x: this.x, w: this.w, from: 0, to: Math.max(1, made.pages) },
      ZONES.bands.y,
      ZONES.bands.h,
      -1,
      look.palette,
    );
    this.put(pen, this.strip, ZONES.whole, together(film, look.first, look.last, made.nodes));
    this.plate.fit(device(this.w), device(this.height));
    paintFilm(this.plate.pixels, this.plate.width, this.plate.height, film, look.mode, look.inks);
    this.plate.put(pen, this.x, ZONES.film.y);
    this.frame(pen, { y: ZONES.film.y, h: this.height });
    this.shade(pen);
    this.times(pen);
    const part = look.first > 0 || look.last < film.steps - 1;
    this.label(pen, ZONES.whole, part ? "selection" : "whole run", "");
    this.base.dataset.drawn = look.mode;
  }

  /** Draws only the parts that change from step to step. */
  play(step: number, hover: { column: number; step: number } | null): void {
    const { film, look } = this;
    const pen = sized(this.base, this.width, this.bottom);
    pen.fillStyle = css(look.palette.card);
    pen.fillRect(0, ZONES.step.y - 2, this.width, ZONES.step.h + 4);
    this.put(pen, this.strip, ZONES.step, film, step);
    this.label(pen, ZONES.step, `step ${step + 1} of ${film.steps}`, `${seconds(film.start[step]!)} – ${seconds(film.end[step]!)}`);
    const top = sized(this.above, this.width, this.bottom);
    top.clearRect(0, 0, this.width, this.bottom);
    const each = this.height / film.steps;
    top.strokeStyle = css(look.palette.ink);
    top.lineWidth = 2;
    top.strokeRect(this.x - 1, ZONES.film.y + step * each - 1, this.w + 2, each + 2);
    top.fillStyle = css(look.palette.ink);
    top.beginPath();
    const middle = ZONES.film.y + (step + 0.5) * each;
    top.moveTo(this.x - 2, middle);
    top.lineTo(this.x - 9, middle - 5);
    top.lineTo(this.x - 9, middle + 5);
    top.fill();
    if (hover) this.point(top, hover, each);
    this.above.dataset.drawn = "frame";
  }

  private point(pen: CanvasRenderingContext2D, { column, step }: { column: number; step: number }, each: number): void {
    const { palette } = this.look;
    const wide = Math.max(1, this.w / this.film.width);
    const left = this.x + (column / this.film.width) * this.w;
    pen.fillStyle = css(palette.ink, 0.35);
    pen.fillRect(left + wide / 2 - 0.5, ZONES.bands.y, 1, this.bottom - 6);
    pen.lineWidth = 1.5;
    pen.strokeStyle = css(palette.ink);
    pen.strokeRect(left - 1.5, ZONES.film.y + step * each - 1.5, wide + 3, each + 3);
  }

  private put(pen: CanvasRenderingContext2D, plate: ImageBuffer, zone: { y: number; h: number }, film: Film, step = 0): void {
    plate.fit(device(this.w), device(zone.h));
    paintFilm(plate.pixels, plate.width, plate.height, film, this.look.mode, this.look.inks, step, step);
    plate.put(pen, this.x, zone.y);
    this.frame(pen, zone);
  }

  private frame(pen: CanvasRenderingContext2D, { y, h }: { y: number; h: number }): void {
    pen.strokeStyle = css(this.look.palette.line);
    pen.lineWidth = 1;
    pen.strokeRect(this.x - 0.5, y - 0.5, this.w + 1, h + 1);
  }

  /** Fades the steps outside the selection. */
  private shade(pen: CanvasRenderingContext2D): void {
    const { film, look } = this;
    const each = this.height / film.steps;
    pen.fillStyle = css(look.palette.card, 0.65);
    pen.fillRect(this.x, ZONES.film.y, this.w, look.first * each);
    pen.fillRect(this.x, ZONES.film.y + (look.last + 1) * each, this.w, (film.steps - 1 - look.last) * each);
  }

  private label(pen: CanvasRenderingContext2D, zone: { y: number; h: number }, head: string, below: string): void {
    const { palette } = this.look;
    const middle = zone.y + zone.h / 2;
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    pen.font = FONT;
    pen.fillStyle = css(palette.ink);
    pen.fillText(head, this.x - 10, below ? middle - 7 : middle);
    pen.font = SMALL;
    pen.fillStyle = css(palette.muted);
    if (below) pen.fillText(below, this.x - 10, middle + 8, this.x - 12);
  }

  private times(pen: CanvasRenderingContext2D): void {
    const { film, look } = this;
    const [first, last] = [film.start[0] ?? 0, film.end[film.steps - 1] ?? 0];
    if (last <= first) return;
    pen.font = SMALL;
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    pen.fillStyle = css(look.palette.muted);
    // All steps have the same height, whatever their duration.
    const marked = new Set<number>();
    const times = ticks(first, last, this.height / 32);
    const words = moments(times);
    times.forEach((time, t) => {
      const step = film.start.findIndex((start, i) => time >= start - 1e-9 && time < film.end[i]! - 1e-9);
      if (step < 0 || marked.has(step)) return;
      marked.add(step);
      const y = ZONES.film.y + (step * this.height) / film.steps;
      pen.fillRect(this.x - 5, y - 0.5, 5, 1);
      pen.fillText(words[t]!, this.x - 12, Math.max(ZONES.film.y + 5, y));
    });
  }
}

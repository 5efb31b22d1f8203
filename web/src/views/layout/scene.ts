// The state of the layout picture; draws it at most once per animation frame.

import { cells, OTHER_THREADS, who, type Cells, type Who } from "../../paint/cells";
import { columns, type Columns } from "../../paint/columns";
import { Inks } from "../../paint/inks";
import { rows, type Rows } from "../../paint/rows";
import { LogScale } from "../../paint/scale";
import type { Mode } from "../../paint/strips";
import { device, sized } from "../../paint/surface";
import type { Palette } from "../../palette";
import type { Strip } from "../../documents";
import type { Documents } from "../../source";
import { geometry, type Geometry } from "./geometry";
import { Painter } from "./painter";
import { Overlay } from "./overlay";
import { levelOf, whole, type Span } from "./span";
import { Tiles } from "./tiles";

/** Milliseconds for which arriving tiles are collected before the picture is drawn again. */
const REDRAW_DELAY_MS = 140;
/** Smallest interval between two requests for tiles, milliseconds. */
const REQUEST_INTERVAL_MS = 80;

export interface Look {
  mode: Mode;
  /** Index of the chosen policy among the strip's. */
  chosen: number;
  /** Whether the page × thread figure is under the chosen mapping. */
  after: boolean;
  /** Index of the selected object in the report; −1 if none is selected. */
  selected: number;
  palette: Palette;
}

/** The position and the row of threads under the pointer or the keyboard cursor; row −1 if none. */
export interface Cursor {
  position: number;
  row: number;
}

export interface Scened {
  strip: Strip;
  documents: Documents;
  profile: number;
}

export class Scene {
  span: Span;
  cursor: Cursor | null = null;
  geometry: Geometry;
  rows: Rows;
  inks!: Inks;
  readonly scale = new LogScale();
  readonly tiles: Tiles<Cells>;
  readonly details: Tiles<Who>;
  /** Columns of the span, as last drawn. */
  shown: { cells: Columns<Cells>; who: Columns<Who> } | undefined;
  /** Called once a frame, after drawing. */
  onFrame: () => void = () => {};
  private readonly fulls = new Map<number, number>();
  private frame = 0;
  private coming = 0;
  private asking = 0;
  private asked = -REQUEST_INTERVAL_MS;
  private stale = { picture: true, overview: true };
  private readonly painter = new Painter(this);
  private readonly overlay: Overlay;
  private width = 800;

  constructor(
    readonly made: Scened,
    readonly base: HTMLCanvasElement,
    public look: Look,
    older?: Scene,
  ) {
    const { strip, documents, profile } = made;
    this.overlay = new Overlay(base.parentElement!);
    this.span = older && older.made.strip.pages === strip.pages ? older.span : whole(strip.pages);
    this.cursor = older?.cursor ?? null;
    this.rows = rows(strip.threads, strip.nodes, false);
    this.geometry = geometry(this.width, this.rows.length);
    this.tiles = new Tiles(
      strip.coarsest,
      async (l, i) => cells(await documents.tile(profile, l, i)),
      (piece) => this.tileCame(piece),
      older?.tiles,
    );
    this.details = new Tiles(
      strip.coarsest,
      async (l, i) => who(await documents.detail(profile, l, i)),
      (piece) => this.detailCame(piece),
      older?.details,
    );
  }

  get strip(): Strip {
    return this.made.strip;
  }
  get level(): number {
    return levelOf(this.span, this.geometry.w, this.strip.finest, this.strip.coarsest);
  }
  /** Number of accesses of a thread to a cell that is drawn in full colour. */
  readonly full = (level: number) => this.fulls.get(level) ?? 1;

  resize(width: number): void {
    this.width = width;
    this.geometry = geometry(width, this.rows.length + (this.rows.others ? 1 : 0));
    this.invalidate();
  }

  restyle(look: Look): void {
    if (look.palette !== this.look.palette) this.inks = new Inks(look.palette, this.strip.nodes);
    this.look = look;
    this.invalidate();
  }

  show(span: Span): void {
    this.span = span;
    this.invalidate(false);
  }

  point(cursor: Cursor | null): void {
    this.cursor = cursor;
    this.soon();
  }

  invalidate(overview = true): void {
    this.stale.picture = true;
    if (overview) this.stale.overview = true;
    this.soon();
  }

  /** Draws the whole picture immediately, to be saved. */
  redraw(): void {
    this.stale.picture = this.stale.overview = true;
    this.draw();
  }

  stop(): void {
    cancelAnimationFrame(this.frame);
    clearTimeout(this.coming);
    clearTimeout(this.asking);
    this.overlay.remove();
    this.onFrame = () => {};
  }

  private soon(): void {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }

  private draw(): void {
    const { picture, overview } = this.stale;
    this.stale = { picture: false, overview: false };
    this.inks ??= new Inks(this.look.palette, this.strip.nodes);
    if (picture) this.paint(overview);
    this.overlay.show(this);
    this.onFrame();
  }

  private paint(overview: boolean): void {
    clearTimeout(this.coming);
    this.coming = 0;
    const { from, to } = this.span;
    const { level, geometry: at, strip } = this;
    const pages = Math.max(1, strip.pages);
    const above = this.overviewLevel;
    this.ask();
    const width = device(at.w);
    this.shown = {
      cells: columns(width, from, to, level, this.tiles.find),
      who: columns(width, from, to, level, this.details.find),
    };
    this.painter.paint(sized(this.base, this.width, at.height), overview ? columns(width, 0, pages, above, this.tiles.find) : undefined);
    if (this.shown.cells.pieces.some(Boolean)) this.base.dataset.drawn = this.look.mode;
    else delete this.base.dataset.drawn;
    this.base.dataset.level = String(level);
    this.base.dataset.complete = String(!this.asking && this.tiles.complete && this.details.complete);
  }

  /** Requests the visible tiles, rate-limited by `REQUEST_INTERVAL_MS`. */
  private ask(): void {
    if (this.asking) return;
    const wait = this.asked + REQUEST_INTERVAL_MS - performance.now();
    if (wait > 0) {
      this.asking = window.setTimeout(() => {
        this.asking = 0;
        this.ask();
      }, wait);
      return;
    }
    this.asked = performance.now();
    const { level, span, tiles, details } = this;
    tiles.want(level, span.from, span.to);
    // The overview is coarse and always needed; its tiles come after those of the span.
    if (tiles.complete) tiles.want(this.overviewLevel, 0, Math.max(1, this.strip.pages));
    details.want(level, span.from, span.to);
    this.base.dataset.complete = String(tiles.complete && details.complete);
  }

  private tileCame(piece: Cells): void {
    const { most, least } = this.scale;
    this.scale.see(piece);
    const rescaled = most !== this.scale.most || least !== this.scale.least;
    const overview = piece.level >= this.overviewLevel || (rescaled && (this.look.mode === "accesses" || this.look.mode === "local"));
    this.later(overview);
  }

  /** Draws arrived tiles after a delay, several at once, so that user input has priority. */
  private later(overview: boolean): void {
    this.stale.overview ||= overview;
    this.coming ||= window.setTimeout(
      () => {
        this.coming = 0;
        this.invalidate(false);
      },
      this.shown?.cells.pieces[0] ? REDRAW_DELAY_MS : 0,
    );
  }

  private get overviewLevel(): number {
    return levelOf(whole(this.strip.pages), this.geometry.w, this.strip.finest, this.strip.coarsest);
  }

  private detailCame(piece: Who): void {
    this.fulls.set(piece.level, Math.max(this.fulls.get(piece.level) ?? 0, typical(piece.accesses)));
    if (!this.rows.others && piece.thread.includes(OTHER_THREADS)) {
      this.rows = { ...this.rows, others: true };
      this.resize(this.width);
    }
    this.later(false);
  }
}

/** A high percentile instead of the maximum, so that a single hot page does not make all others pale. */
function typical(accesses: Float32Array): number {
  if (accesses.length === 0) return 0;
  const every = Math.ceil(accesses.length / 2048);
  const some = Float32Array.from({ length: Math.ceil(accesses.length / every) }, (_, i) => accesses[i * every]!).sort();
  return some[Math.min(some.length - 1, Math.floor(some.length * 0.97))]!;
}

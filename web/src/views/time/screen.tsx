// The film: which nodes used which part of memory over time, with playback.

import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Report, Strip } from "../../documents";
import type { Row } from "../../export/csv";
import { Figure } from "../../figure";
import { count, pages, percent, seconds } from "../../format";
import { runAt } from "../../paint/bands";
import { NO_ACCESS } from "../../paint/cells";
import { FILM_MODES, stepAt, type Film, type FilmMode } from "../../paint/film";
import { atSavedResolution } from "../../paint/surface";
import { Inks } from "../../paint/inks";
import type { Palette } from "../../palette";
import { Segments } from "../../segments";
import { update, type State } from "../../state";
import { NodeKeys, Outline, Ramp } from "../layout/legend";
import { Frames, type FramesLook } from "./frames";

/** Playback speed, steps per second. */
const SPEED = 10;

export interface ScreenProps {
  report: Report;
  strip: Strip;
  film: Film;
  palette: Palette;
  selected: readonly [number, number] | null;
  state: State;
}

type Hover = { column: number; step: number } | null;

export function Screen({ report, strip, film, palette, selected, state }: ScreenProps) {
  const mode: FilmMode = FILM_MODES.find((m) => m === state.colour) ?? "node";
  const look = useMemo((): FramesLook => {
    const [first, last] = selected
      ? [stepAt(film, selected[0]), stepAt(film, Math.max(selected[0], selected[1] - 1e-9))]
      : [0, film.steps - 1];
    return { mode, palette, inks: new Inks(palette, strip.nodes), first, last };
  }, [mode, palette, selected?.[0], selected?.[1], film, strip]);
  const inRange = (step: number) => Math.max(look.first, Math.min(look.last, step));
  const [frame, setFrame] = useState(() => Number(state.frame ?? look.first) || 0);
  const [playing, play] = useState(false);
  const [hover, setHover] = useState<Hover>(null);
  const step = inRange(frame);
  const body = useRef<HTMLDivElement>(null);
  const canvas = useFrames(film, strip, look, step, hover);

  useEffect(() => {
    if (!playing) return;
    const timer = setInterval(() => setFrame((f) => (inRange(f) >= look.last ? look.first : inRange(f) + 1)), 1000 / SPEED);
    return () => clearInterval(timer);
  }, [playing, look]);
  // The address is not updated during playback, because browsers limit the rate of changes.
  useEffect(() => {
    if (playing) return;
    const timer = setTimeout(() => update({ frame: step === look.first ? undefined : String(step) }, true), 200);
    return () => clearTimeout(timer);
  }, [playing, step]);
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement | null;
      if (event.key !== " " || event.defaultPrevented || target?.closest("button, input, select, textarea, summary, a")) return;
      event.preventDefault();
      play((p) => !p);
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);

  const point = (event: PointerEvent) => setHover(canvas.frames.current?.at(event.offsetX, event.offsetY) ?? null);
  const key = (event: KeyboardEvent) => {
    const at = hover ?? { column: film.width >> 1, step };
    const move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (event.key === "Escape") return setHover(null);
    // The keys [ and ] set the start and the end of the selection.
    if (event.key === "[") return update({ t0: String(film.start[step]), t1: String(selected?.[1] ?? film.end[film.steps - 1]) }, true);
    if (event.key === "]") return update({ t0: String(selected?.[0] ?? film.start[0]), t1: String(film.end[step]) }, true);
    if (!move) return;
    event.preventDefault();
    const next = {
      column: Math.max(0, Math.min(film.width - 1, at.column + move[0]!)),
      step: Math.max(0, Math.min(film.steps - 1, at.step + move[1]!)),
    };
    setHover(next);
    if (move[1]) setFrame(next.step);
  };
  return (
    <Figure
      id="film"
      title="Film"
      what="The address space from left to right, time downwards: each line is a step, coloured by the node that used the pages most in it. Upright stripes stay where they are; slanted ones wander from node to node, and no fixed placement follows them."
      element={() => {
        atSavedResolution(canvas.draw);
        return body.current;
      }}
      rows={() => rows(film)}
      controls={
        <>
          <button type="button" onClick={() => play(!playing)} aria-pressed={playing} disabled={film.steps < 2}>
            {playing ? "❚❚ Pause" : "▶ Play"}
          </button>
          <input
            type="range"
            min={look.first}
            max={look.last}
            value={step}
            aria-label="Step of the film"
            onInput={(e) => {
              play(false);
              setFrame(Number(e.currentTarget.value));
            }}
          />
          <Segments
            label="Colour by"
            state="colour"
            value={mode}
            options={[
              ["node", "Node"],
              ["local", "Local"],
              ["accesses", "Accesses"],
            ]}
          />
        </>
      }
    >
      <div ref={body}>
        <div class="plate" ref={canvas.frame}>
          <canvas ref={canvas.base} />
          <canvas
            class="above"
            ref={canvas.above}
            tabIndex={0}
            role="application"
            aria-label="Film: address space from left to right, time downwards. Arrow keys move, space plays, [ and ] select from and up to a step."
            aria-describedby="film-said"
            onPointerMove={point}
            onPointerLeave={() => setHover(null)}
            onPointerDown={(e) => setFrame(canvas.frames.current?.at(e.offsetX, e.offsetY)?.step ?? step)}
            onKeyDown={key}
          />
        </div>
        <output class="reading" id="film-said" aria-live="polite">
          {hover
            ? cellSummary(film, strip, report, hover)
            : `Step ${step + 1} of ${film.steps}: ${seconds(film.start[step]!)} – ${seconds(film.end[step]!)}.`}
        </output>
        <FilmLegend mode={mode} palette={palette} nodes={strip.nodes} film={film} />
      </div>
    </Figure>
  );
}

/** The canvases, drawn when something has changed. */
function useFrames(film: Film, strip: Strip, look: FramesLook, step: number, hover: Hover) {
  const frame = useRef<HTMLDivElement>(null);
  const base = useRef<HTMLCanvasElement>(null);
  const above = useRef<HTMLCanvasElement>(null);
  const frames = useRef<Frames>();
  const latest = useRef({ step, hover });
  latest.current = { step, hover };
  const draw = useCallback(() => {
    frames.current?.draw();
    frames.current?.play(latest.current.step, latest.current.hover);
  }, []);
  useLayoutEffect(() => {
    const made = new Frames(base.current!, above.current!, film, strip, look);
    frames.current = made;
    const fit = () => {
      made.width = frame.current?.clientWidth || made.width;
      draw();
    };
    const watch = new ResizeObserver(fit);
    watch.observe(frame.current!);
    fit();
    return () => watch.disconnect();
  }, [film, strip, look]);
  useLayoutEffect(() => {
    const next = requestAnimationFrame(() => frames.current?.play(step, hover));
    return () => cancelAnimationFrame(next);
  }, [step, hover, look]);
  return { frame, base, above, frames, draw };
}

function FilmLegend({ mode, palette, nodes, film }: { mode: FilmMode; palette: Palette; nodes: number; film: Film }) {
  return (
    <div class="legend" role="group" aria-label="Colours of the film">
      {mode === "node" && <NodeKeys nodes={nodes} palette={palette} />}
      {mode === "local" && <Ramp from="all remote under first-touch" to="all local" colour={palette.locality} />}
      {mode === "accesses" && <Ramp from="0" to={count(Math.round(film.most))} colour={palette.quantity} />}
      <Outline colour={palette.line}>not used in this step</Outline>
    </div>
  );
}

function cellSummary(film: Film, strip: Strip, report: Report, { column, step }: { column: number; step: number }): string {
  const at = step * film.width + column;
  const first = Math.floor((column * strip.pages) / film.width);
  const end = Math.max(first + 1, Math.floor(((column + 1) * strip.pages) / film.width));
  const run = strip.objects[runAt(strip.objects, first)];
  const where = run ? `${run.name}, pages ${pages(first - run.first, Math.min(end, run.first + run.pages) - first)}` : "";
  const when = `${seconds(film.start[step]!)} – ${seconds(film.end[step]!)}`;
  if (film.dominant[at] === NO_ACCESS) return `${when}: ${where}: not used.`;
  const unit = report.program.exact ? "accesses" : "samples";
  return `${when}: ${where}: ${count(Math.round(film.accesses[at]!))} ${unit}, most of them by node ${film.dominant[at]}, ${percent(film.local[at]! / 255)} local under first-touch.`;
}

function rows(film: Film): Row[] {
  const made: Row[] = [["start [s]", "end [s]", "column", "dominant node", "accesses", "local share"]];
  film.dominant.forEach((node, at) => {
    const step = Math.floor(at / film.width);
    if (node !== NO_ACCESS)
      made.push([film.start[step], film.end[step], at % film.width, node, film.accesses[at], +(film.local[at]! / 255).toFixed(4)]);
  });
  return made;
}

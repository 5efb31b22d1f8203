// The layout picture, its controls, and the panel beside it.

import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { chosenPolicy } from "../../chosen";
import type { Strip } from "../../documents";
import { Figure } from "../../figure";
import { plural } from "../../format";
import { palette } from "../../palette";
import { atSavedResolution } from "../../paint/surface";
import { MODES, type Mode } from "../../paint/strips";
import { Segments } from "../../segments";
import { update } from "../../state";
import { useTheme } from "../../theme";
import type { ViewProps } from "../../view";
import { followPointer } from "./pointer";
import { inspect, statusLine, type Seen } from "./inspect";
import { Legend, ReachLegend } from "./legend";
import { Source } from "./object";
import { Objects } from "./objects";
import { Panel } from "./panel";
import { Scene, type Look } from "./scene";
import { clamped, read, whole, type Span } from "./span";
import { table } from "./table";

const TITLES: Record<Mode, string> = { node: "Node", local: "Local", class: "Sharing", accesses: "Accesses", exclusivity: "Exclusivity" };
/** Pause after user input before the address is updated, milliseconds: browsers limit the rate of changes. */
const PAUSE = 180;

type Props = ViewProps & { strip: Strip };

/** The display settings from the address, with defaults for missing ones. */
function useLook({ report, state, strip }: Props): Look {
  const dark = useTheme() === "dark";
  const wanted = strip.policies.indexOf(chosenPolicy(report, state));
  const chosen = wanted >= 0 ? wanted : strip.policies.length - 1;
  const mode = MODES.find((m) => m === state.colour) ?? "node";
  const after = state.mapping === "chosen";
  const selected = state.object !== undefined && report.objects[Number(state.object)] ? Number(state.object) : -1;
  return useMemo(() => ({ mode, chosen, after, selected, palette: palette(dark) }), [mode, chosen, after, selected, dark]);
}

/** The span that the address names, directly or by an object. */
function useTarget({ state, strip }: Props): Span {
  const { from, to, object } = state;
  return useMemo(() => {
    const run = strip.objects.find((r) => object !== undefined && r.object === Number(object));
    return read(from, to, strip.pages) ?? (run ? clamped({ from: run.first, to: run.first + run.pages }, strip.pages) : whole(strip.pages));
  }, [from, to, object, strip]);
}

/** A span as parameters of the address. They are omitted for the whole span, unless an object is selected, which would
 *  stand for the object's own span. */
function words({ from, to }: Span, pages: number, selected: boolean): { from: string | undefined; to: string | undefined } {
  const short = (position: number) => position.toFixed(2).replace(/\.00$/, "");
  return from === 0 && to >= pages && !selected ? { from: undefined, to: undefined } : { from: short(from), to: short(to) };
}

const key = ({ from, to, object }: { from?: string; to?: string; object?: string }) => `${from} ${to} ${object}`;

export function Picture(props: Props) {
  const { strip, documents, profile, report } = props;
  const look = useLook(props);
  const target = useTarget(props);
  const base = useRef<HTMLCanvasElement>(null);
  const frame = useRef<HTMLDivElement>(null);
  const shown = useRef<HTMLDivElement>(null);
  const scene = useRef<Scene>();
  const written = useRef("");
  const [seen, see] = useState<Seen | null>(null);
  const [, again] = useState(0);
  const unit = report.program.exact ? "accesses" : "samples";

  const choose = useCallback((object: number) => say(object), []);
  /** Writes the span and the selected object into the address, without triggering a change of the span. */
  const say = (object: number) => {
    const made = scene.current!;
    const patch = { ...words(made.span, strip.pages, object >= 0), object: object < 0 ? undefined : String(object) };
    written.current = key(patch);
    update(patch, true);
  };
  useLayoutEffect(() => {
    const made = new Scene({ strip, documents, profile }, base.current!, look, scene.current);
    scene.current = made;
    let timer = 0;
    const moved = () => {
      clearTimeout(timer);
      timer = window.setTimeout(() => say(made.look.selected), PAUSE);
    };
    const drop = followPointer(made, { moved, chose: choose });
    let most = 0;
    made.onFrame = () => {
      see(inspect(made, report.page_size));
      if (made.scale.most !== most) again((n) => n + 1);
      most = made.scale.most;
    };
    const watch = new ResizeObserver(() => frame.current && made.resize(frame.current.clientWidth));
    made.resize(frame.current!.clientWidth);
    watch.observe(frame.current!);
    return () => {
      clearTimeout(timer);
      watch.disconnect();
      drop();
      made.stop();
    };
  }, [strip, documents, profile]);
  useEffect(() => scene.current?.restyle(look), [look]);
  useEffect(() => {
    if (written.current !== key(props.state)) scene.current?.show(target);
    written.current = "";
  }, [target]);

  const object = seen ? seen.object : look.selected;
  const zoom = () => {
    const run = strip.objects.find((r) => r.object === object);
    if (run) update({ object: String(object), from: String(run.first), to: String(run.first + run.pages) });
  };
  const { least, most } = scene.current?.scale ?? NO_EXTENT;
  // Memoised, because it does not depend on the pointer.
  const legends = useMemo(
    () => (
      <>
        <Legend mode={look.mode} nodes={strip.nodes} classes={strip.classes} scale={{ least, most }} palette={look.palette} unit={unit} />
        <ReachLegend palette={look.palette} />
      </>
    ),
    [look.mode, look.palette, strip, least, most, unit],
  );
  const source = useMemo(
    () =>
      object < 0 ? (
        <Objects report={report} strip={strip} />
      ) : (
        <Source report={report} index={object} pinned={look.selected >= 0} onClose={() => choose(-1)} onZoom={zoom} />
      ),
    [report, strip, object, look.selected],
  );
  const choices = useMemo(() => <Choices report={report} look={look} strip={strip} />, [report, look, strip]);
  return (
    <div class="layout">
      <Figure
        id="layout"
        title="Data layout"
        what={`All ${plural(strip.pages, "touched page")}, object after object, from left to right. The strips show how they are used and where a policy puts them; below, each row is a thread and colour says whether its accesses stay on its node. One cell is one page once you are near enough.`}
        element={() => {
          if (scene.current) atSavedResolution(() => scene.current?.redraw());
          return shown.current;
        }}
        rows={() => table(scene.current!, unit)}
      >
        <div class="controls">{choices}</div>
        <div ref={shown}>
          <div class="plate" ref={frame}>
            <canvas
              ref={base}
              tabIndex={0}
              role="application"
              aria-label="Data layout: strips of the address space above, threads below. Arrow keys move the cursor, plus and minus zoom, Escape shows the whole."
              aria-describedby="layout-said"
            />
          </div>
          {legends}
          <output class="reading" id="layout-said" aria-live="polite" data-unexported={seen ? undefined : true}>
            {seen && scene.current ? statusLine(seen, scene.current, unit) : span(scene.current)}
          </output>
        </div>
        {strip.threads.numbers.length === 1 && <p class="none">One thread: it shares nothing, and its pages are best where it runs.</p>}
        {strip.nodes === 1 && <p class="none">One node: every access is local, whatever the policy.</p>}
        {strip.finest > 0 && (
          <p class="none">This file has groups of {2 ** strip.finest} pages at the finest; nodewise serve shows each page.</p>
        )}
      </Figure>
      <aside>
        <Panel seen={seen} rows={scene.current?.rows ?? EMPTY} palette={look.palette} unit={unit} />
        {source}
      </aside>
    </div>
  );
}

const NO_EXTENT = { least: 0, most: 0 };
const EMPTY = {
  length: 0,
  nodes: 1,
  spans: new Map<number, [number, number]>(),
  node: new Uint16Array(),
  size: new Uint16Array(),
  threads: [],
  of: new Uint16Array(),
  others: false,
};

function span(scene: Scene | undefined): string {
  if (!scene) return "";
  const pages = Math.round(scene.span.to - scene.span.from);
  const size = 2 ** scene.level;
  return `${plural(pages, "page")} in view; a cell is ${plural(size, "page")}.`;
}

function Choices({ report, look, strip }: { report: Props["report"]; look: Look; strip: Strip }) {
  const value = strip.policies[look.chosen] ?? "";
  return (
    <>
      <span class="field">
        Strips by <Segments label="Colour strips by" state="colour" value={look.mode} options={MODES.map((m) => [m, TITLES[m]] as const)} />
      </span>
      <label class="field">
        Chosen mapping{" "}
        <select value={value} onChange={(e) => update({ policy: e.currentTarget.value }, true)} aria-label="Chosen mapping">
          {strip.policies.map((policy) => (
            <option key={policy} value={policy} disabled={!report.policies.some((p) => p.policy === policy)}>
              {policy}
            </option>
          ))}
        </select>
      </label>
      <span class="field">
        Threads under{" "}
        <Segments
          label="Threads under"
          state="mapping"
          value={look.after ? "chosen" : "today"}
          options={[
            ["today", "Today"],
            ["chosen", "Chosen"],
          ]}
        />
      </span>
    </>
  );
}

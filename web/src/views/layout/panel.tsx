// Panel beside the picture: the pages under the cursor.

import { andMore, count, noun, percent, plural, whole } from "../../format";
import { css, type Palette } from "../../palette";
import { Term } from "../../tip";
import type { Rows } from "../../paint/rows";
import { Bars } from "./bars";
import { lives, type Seen } from "./inspect";

/** Largest number of threads that are named. */
const MAX_THREADS_NAMED = 3;

export interface PanelProps {
  seen: Seen | null;
  rows: Rows;
  palette: Palette;
  /** "accesses" or "samples". */
  unit: string;
}

export function Panel({ seen, rows, palette, unit }: PanelProps) {
  if (!seen) {
    return (
      <section class="cursor empty" aria-label="Under the cursor">
        <p>Point at a page, or use the arrow keys, to see who uses it.</p>
        <p class="hint">
          Wheel or <kbd>+</kbd> <kbd>−</kbd> zoom, drag moves, a double click shows an object, <kbd>Esc</kbd> the whole.
        </p>
      </section>
    );
  }
  const n = seen.end - seen.first;
  return (
    <section class="cursor" aria-label="Under the cursor">
      <h4 title={seen.name}>
        <span class="name">{seen.name}</span>
        {seen.more > 0 && <small>{andMore(seen.more, "object", "zoom in")}</small>}
      </h4>
      <p class="where">
        {noun(n, "page")} <b>{seen.within}</b> of {whole(seen.of)}
        <code>{seen.address}</code>
      </p>
      <dl>
        <dt>{unit === "samples" ? "Samples" : "Accesses"}</dt>
        <dd>
          {count(Math.round(seen.accesses))}
          {n > 1 && <small> on {plural(n, "page")}</small>}
        </dd>
        <dt>Writes</dt>
        <dd>{seen.accesses > 0 ? percent(seen.writes) : "–"}</dd>
        <dt>
          <Term of="sharing" />
        </dt>
        <dd>{seen.sharing}</dd>
        <dt>
          <Term of="exclusivity" />
        </dt>
        <dd>
          {seen.accesses > 0 ? percent(seen.exclusivity) : "–"}
          {unit === "samples" && <small> of samples</small>}
        </dd>
        {seen.homes.map((home) => (
          <Home key={home.policy} home={home} used={seen.accesses > 0} unit={unit} palette={palette} />
        ))}
      </dl>
      <h5>{unit === "samples" ? "Samples" : "Accesses"} by thread, by node below</h5>
      <Bars values={seen.rows} rows={rows} row={seen.row} palette={palette} label={`${unit} by thread: ${busiest(seen)}`} />
      <p class="busiest">{busiest(seen)}</p>
      <Shares seen={seen} palette={palette} />
    </section>
  );
}

function Home({ home, used, unit, palette }: { home: Seen["homes"][number]; used: boolean; unit: string; palette: Palette }) {
  return (
    <>
      <dt class="home">
        <i class="chip" style={{ background: css(palette.node(home.node)) }} /> <span title={home.policy}>{home.policy}</span>
      </dt>
      <dd>
        {lives(home)}
        {used && (
          <span class={home.local >= 0.5 ? "near" : "far"}>
            {percent(home.local)} {unit === "samples" ? "of samples " : ""}local
          </span>
        )}
      </dd>
    </>
  );
}

function busiest(seen: Seen): string {
  const most = seen.listed.slice(0, MAX_THREADS_NAMED);
  if (most.length === 0) return "no thread";
  const named = most.map(({ thread, accesses }) => `${thread} (${count(Math.round(accesses))})`);
  const rest = seen.listed.slice(MAX_THREADS_NAMED);
  // How many the others are is not known, only how often they access the pages.
  const more =
    seen.others > 0
      ? ` and others (${count(Math.round(rest.reduce((sum, { accesses }) => sum + accesses, seen.others)))}; view Threads)`
      : andMore(rest.length, "thread", "view Threads");
  return `${noun(seen.listed.length, "thread")} ${named.join(", ")}${more}`;
}

function Shares({ seen, palette }: { seen: Seen; palette: Palette }) {
  return (
    <ul class="shares" aria-label="Accesses by node">
      {seen.nodes.map(({ node, share }) => (
        <li key={node}>
          <span>node {node}</span>
          <svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
            <rect width={Math.max(1, share * 100)} height="8" fill={css(palette.node(node))} />
          </svg>
          <span>{percent(share)}</span>
        </li>
      ))}
    </ul>
  );
}

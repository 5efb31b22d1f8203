// Page location (Tao et al., Figure 1): each object's pages in address order, their first homes above, their last below.

import { useRef, useState } from "preact/hooks";
import type { Moves } from "../../documents";
import type { Row } from "../../export/csv";
import { Figure } from "../../figure";
import { andMore, pages, plural, shortened, whole } from "../../format";
import { useWidth } from "../../measured";
import { NodeLegend, useNodeColours } from "./node";
import { LEFT } from "./show";
import { stretches } from "./stretches";

type Moved = Moves["objects"][number];

const STRIP = 15;
const OBJECT = 48;
const RIGHT = 8;
const SHOWN = 12;
/** Largest number of objects shown on request. */
const MOST_SHOWN = 200;

const EXPLANATION =
  "Each pair of strips is an object, its pages in the order of addresses: above, the node where its moved pages lived before their first move; below, where they ended. Where the strip is blank, pages did not move. A column that stands for several pages has the colour of most of them.";

function rows(objects: readonly Moved[]): Row[] {
  const table: Row[] = [["object", "first page", "pages", "first node", "last node"]];
  for (const o of objects) for (const h of o.homes) table.push([o.name, h.page, h.pages, h.first, h.last]);
  return table;
}

function Strips({ object, y, width }: { object: Moved; y: number; width: number }) {
  const { fill } = useNodeColours();
  const room = width - LEFT - RIGHT;
  const { base, span } = extent(object);
  const columns = Math.max(1, Math.min(span, Math.floor(room / 2)));
  const x = (column: number) => LEFT + (column / columns) * room;
  return (
    <g>
      <text class="lane-name" x={LEFT - 52} y={y + 21} data-tip={object.name}>
        {shortened(object.name, 19)}
      </text>
      {(["first", "last"] as const).map((which, row) => (
        <g key={which}>
          <text class="lane-row" x={LEFT - 10} y={y + row * 18 + 12}>
            {which}
          </text>
          <rect class="blank" x={LEFT} y={y + row * 18} width={room} height={STRIP} />
          {stretches(object.homes, which, { base, span, columns }).map((s) => (
            <rect
              key={s.from}
              x={x(s.from)}
              y={y + row * 18}
              width={Math.max(0.8, x(s.to) - x(s.from))}
              height={STRIP}
              fill={fill(s.node)}
              data-tip={`${object.name}, ${which === "first" ? "before the first move" : "after the last move"}\npages ${pages(base + Math.floor((s.from / columns) * span), Math.max(1, Math.round(((s.to - s.from) / columns) * span)))}: node ${s.node}`}
            />
          ))}
        </g>
      ))}
    </g>
  );
}

/** First page and length of an object's strip. Pages of no known object have no first page: the strip begins at the
 *  first moved page. */
function extent(object: Moved): { base: number; span: number } {
  const last = object.homes.at(-1);
  const end = last ? last.page + last.pages : 1;
  const first = object.homes[0]?.page ?? 0;
  return object.of_pages < end ? { base: first, span: end - first } : { base: 0, span: object.of_pages };
}

export function Location({ objects, nodes }: { objects: readonly Moved[]; nodes: number }) {
  const room = useRef<HTMLDivElement>(null);
  const width = useWidth(room);
  const [all, showAll] = useState(false);
  const shown = all ? objects.slice(0, MOST_SHOWN) : objects.slice(0, SHOWN);
  return (
    <Figure id="location" title="Page location: first and last homes" what={EXPLANATION} rows={() => rows(objects)}>
      <div ref={room}>
        <NodeLegend nodes={nodes} />
        <svg
          class="location"
          width={width}
          height={shown.length * OBJECT}
          viewBox={`0 0 ${width} ${shown.length * OBJECT}`}
          role="img"
          aria-label="First and last homes of each object's moved pages; as CSV it is a table."
        >
          {shown.map((o, i) => (
            <Strips key={i} object={o} y={i * OBJECT} width={width} />
          ))}
        </svg>
        {objects.length > shown.length && !all && (
          <button type="button" data-unexported onClick={() => showAll(true)}>
            The other {plural(objects.length - shown.length, "object")}
          </button>
        )}
        {objects.length > shown.length && all && <p class="muted">{andMore(objects.length - shown.length, "object", "the CSV")}</p>}
        <p class="muted">
          {whole(objects.reduce((n, o) => n + o.pages, 0))} pages moved, of {plural(objects.length, "object")}.
        </p>
      </div>
    </Figure>
  );
}

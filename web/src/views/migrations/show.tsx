// Page show (Tao et al., Figure 1): home nodes over time of the pages with most moves.

import { useRef } from "preact/hooks";
import type { Moves } from "../../documents";
import type { Row } from "../../export/csv";
import { Figure } from "../../figure";
import { pages, plural, seconds, shortened } from "../../format";
import { useWidth } from "../../measured";
import { Axis } from "./axis";
import { NodeLegend, useNodeColours } from "./node";
import type { Playing } from "./player";

type Journey = Moves["journeys"][number];

const LANE = 26;
const BAR = 19;
export const LEFT = 210;
const RIGHT = 104;

const EXPLANATION =
  "Each bar is a run of pages that always moved together, through the whole run from left to right; its colour is the node where they lived, the number names it, a gap is a move. A colour that comes back, framed and marked ↩, is a ping-pong. The most restless pages stand first.";

function rows(journeys: readonly Journey[]): Row[] {
  const table: Row[] = [["object", "first page", "pages", "since (s)", "node", "brought by"]];
  for (const j of journeys) for (const s of j.stays) table.push([j.object, j.page, j.pages, s.seconds, s.node, s.by ?? "first touch"]);
  return table;
}

function Lane({ journey, y, x, end, now }: { journey: Journey; y: number; x: (t: number) => number; end: number; now: number }) {
  const { fill, ink } = useNodeColours();
  const back = journey.stays.map((stay) => stay.kind === "ping-pong");
  const label = `${shortened(journey.object, 18)} ${pages(journey.page, journey.pages)}`;
  return (
    <g>
      <text class="lane-name" x={LEFT - 10} y={y + 14} data-tip={`${journey.object}, ${plural(journey.pages, "page")}`}>
        {label}
      </text>
      {journey.stays.map((stay, i) => {
        if (stay.seconds > now) return null;
        const until = Math.min(journey.stays[i + 1]?.seconds ?? end, now);
        const [from, to] = [x(stay.seconds) + (i > 0 ? 1 : 0), x(until) - 1];
        const width = Math.max(1, to - from);
        const tip = `${journey.object} ${pages(journey.page, journey.pages)}\nnode ${stay.node} from ${seconds(stay.seconds)} to ${seconds(until)}${stay.by ? `, moved by ${stay.by}` : ", first home"}${back[i] ? "\nping-pong: back where it had just come from" : ""}`;
        return (
          <g key={i} data-tip={tip}>
            <rect class={back[i] ? "stay returned" : "stay"} x={from} y={y} width={width} height={BAR} rx="2" fill={fill(stay.node)} />
            {width > 26 && (
              <text class="inside" x={from + width / 2} y={y + 13.5} fill={ink(stay.node)}>
                {back[i] ? "↩ " : ""}
                {stay.node}
              </text>
            )}
          </g>
        );
      })}
    </g>
  );
}

export function Show({ journeys, nodes, player, whole }: { journeys: readonly Journey[]; nodes: number; player: Playing; whole: boolean }) {
  const room = useRef<HTMLDivElement>(null);
  const width = useWidth(room);
  const x = (t: number) => LEFT + Math.max(0, Math.min(1, t / player.end)) * (width - LEFT - RIGHT);
  const height = journeys.length * LANE;
  return (
    <Figure id="show" title="Page show: where the most restless pages lived" what={EXPLANATION} rows={() => rows(journeys)}>
      <div ref={room}>
        {journeys.length === 0 ? (
          <p class="none">{whole ? "No page moved." : "None of the most restless pages is left by this choice."}</p>
        ) : (
          <>
            <NodeLegend nodes={nodes} />
            <svg
              class="show"
              width={width}
              height={height + 26}
              viewBox={`0 0 ${width} ${height + 26}`}
              role="img"
              aria-label="Homes of the most restless pages through the run; as CSV it is a table."
            >
              {journeys.map((journey, i) => (
                <g key={i}>
                  <Lane journey={journey} y={i * LANE} x={x} end={player.end} now={player.now} />
                  <Restless journey={journey} x={width - RIGHT + 12} y={i * LANE + 14} />
                </g>
              ))}
              <Axis x={x} y={height} end={player.end} />
              {player.now < player.end && <path class="now" d={`M${x(player.now)} 0V${height}`} />}
            </svg>
          </>
        )}
      </div>
    </Figure>
  );
}

function Restless({ journey, x, y }: { journey: Journey; x: number; y: number }) {
  const back = journey.stays.filter((stay) => stay.kind === "ping-pong").length;
  return back ? (
    <text class="ping" x={x} y={y}>
      ping-pong{back > 1 ? ` ×${back}` : ""}
    </text>
  ) : null;
}

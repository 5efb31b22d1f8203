// Runtime migration (Tao et al., Figure 1): moves in order of time, the source node above, the target node below.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Row } from "../../export/csv";
import { Figure } from "../../figure";
import { count, pages, plural, seconds, shortened } from "../../format";
import { useWidth } from "../../measured";
import type { Move } from "./moves";
import { useNodeColours } from "./node";
import type { Playing } from "./player";

const ITEM = 108;
const HEIGHT = 150;
const CHIP = { width: 40, height: 22 };
const TOP = 22;
const BOTTOM = 96;

const EXPLANATION =
  "Each column is a move, in the order of time: the node that the pages left above, the node they went to below, beside the arrow their numbers within the object. A dashed arrow is the kernel’s own move. A mark ↩ is a ping-pong: back to the node that the page had just left. Play shows them as they happened.";

function rows(moves: readonly Move[]): Row[] {
  return [
    [
      "time (s)",
      "object",
      "first page",
      "pages",
      "from node",
      "to node",
      "by",
      "accesses from the new node",
      "accesses from the old node",
      "had to exceed",
      "kind",
    ],
    ...moves.map((m) => [m.seconds, m.object, m.page, m.pages, m.from, m.to, m.by, m.to_count, m.home_count, m.against, m.kind]),
  ];
}

function words(m: Move): string {
  const old = m.home_count === null ? "" : `, ${count(m.home_count)} from the old one`;
  const kind = { first: "", "ping-pong": "\nping-pong: back where it had just come from", multiple: "\nmoved on to yet another node" }[
    m.kind
  ];
  return `${m.object}, ${m.pages === 1 ? "page" : "pages"} ${pages(m.page, m.pages)}\nnode ${m.from} → node ${m.to} at ${seconds(m.seconds)}, by ${m.by}\n${count(m.to_count)} accesses from the new node${old}; more than ${count(m.against)} was needed${kind}`;
}

type Colours = ReturnType<typeof useNodeColours>;

function Chip({ node, x, y, colours: { fill, ink } }: { node: number; x: number; y: number; colours: Colours }) {
  return (
    <>
      <rect x={x - CHIP.width / 2} y={y} width={CHIP.width} height={CHIP.height} rx="5" fill={fill(node)} />
      <text class="chip" x={x} y={y + 15.5} fill={ink(node)}>
        {node}
      </text>
    </>
  );
}

function Item({ move, x, past, colours }: { move: Move; x: number; past: boolean; colours: Colours }) {
  const arrow = { x: x + ITEM / 2, from: TOP + CHIP.height + 3, to: BOTTOM - 3 };
  return (
    <g class={past ? "move" : "move ahead"} data-tip={words(move)} data-move={move.index}>
      <rect class="reach" x={x} y="0" width={ITEM} height={HEIGHT} />
      <text class="when" x={arrow.x} y="13">
        {seconds(move.seconds)}
      </text>
      <Chip node={move.from} x={arrow.x} y={TOP} colours={colours} />
      <path class={move.by === "kernel" ? "arrow kernel" : "arrow"} d={`M${arrow.x} ${arrow.from}V${arrow.to - 7}`} />
      <path class="point" d={`M${arrow.x} ${arrow.to}l-5 -9h10z`} />
      <text class="pages" x={arrow.x + 7} y={(arrow.from + arrow.to) / 2 + 3}>
        {shortened(pages(move.page, move.pages), 12)}
      </text>
      {move.kind === "ping-pong" && (
        <text class="back" x={arrow.x - 10} y={(arrow.from + arrow.to) / 2 + 5}>
          ↩
        </text>
      )}
      <Chip node={move.to} x={arrow.x} y={BOTTOM} colours={colours} />
      <text class="object" x={arrow.x} y={BOTTOM + CHIP.height + 17}>
        {shortened(move.object, 15)}
      </text>
    </g>
  );
}

/** Number of moves up to the time `now`. */
function happened(moves: readonly Move[], now: number): number {
  let [low, high] = [0, moves.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (moves[middle]!.seconds <= now) low = middle + 1;
    else high = middle;
  }
  return low;
}

export function MoveSequence({ moves, all, player }: { moves: readonly Move[]; all: number; player: Playing }) {
  const scroller = useRef<HTMLDivElement>(null);
  const width = useWidth(scroller);
  const colours = useNodeColours();
  const [left, scroll] = useState(0);
  const past = happened(moves, player.now);
  const whole = moves.length * ITEM;
  const [follows, before] = [useRef(true), useRef(-1)];
  // Scrolls to the newest moves, unless the reader has scrolled back.
  useEffect(() => {
    const box = scroller.current;
    const grown = before.current !== moves.length;
    before.current = moves.length;
    if (!box || (grown && !player.playing && !follows.current)) return;
    box.scrollLeft = Math.max(0, past * ITEM - width * (player.now < player.end ? 0.7 : 1));
  }, [past, width, moves.length]);
  const first = Math.max(0, Math.floor(left / ITEM) - 2);
  const last = Math.min(moves.length, Math.ceil((left + width) / ITEM) + 2);
  const scrolled = () => {
    const { scrollLeft, scrollWidth, clientWidth } = scroller.current!;
    follows.current = scrollLeft + clientWidth >= scrollWidth - ITEM;
    scroll(scrollLeft);
  };
  const step = (event: KeyboardEvent) => {
    const way = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!way || !scroller.current) return;
    event.preventDefault();
    let to = Math.max(0, Math.min(moves.length - 1, past - 1 + way));
    // Moves at the same time are one step.
    while (way < 0 && to > 0 && moves[to]!.seconds === moves[past - 1]?.seconds) to -= 1;
    player.seek(moves[to]?.seconds ?? 0);
    scroller.current.scrollLeft = Math.max(0, (to + 1) * ITEM - width * 0.7);
  };
  const current = moves[past - 1];
  return (
    <Figure id="runtime" title="Runtime migration: moves as they happened" what={EXPLANATION} rows={() => rows(moves)}>
      {moves.length === 0 ? (
        <p class="none">No move is left by this choice of object and mover.</p>
      ) : (
        <>
          <div
            class="move-sequence"
            ref={scroller}
            tabIndex={0}
            role="group"
            aria-label="Moves in the order of time; arrow keys go from one to the next"
            onScroll={scrolled}
            onKeyDown={step}
          >
            <div class="track" style={{ width: `${whole}px` }}>
              {/* biome-ignore lint/a11y/noSvgWithoutTitle: the group around it has the name */}
              <svg width={(last - first) * ITEM} height={HEIGHT} style={{ left: `${first * ITEM}px` }}>
                {moves.slice(first, last).map((m, i) => (
                  <Item key={m.index} move={m} x={i * ITEM} past={first + i < past} colours={colours} />
                ))}
              </svg>
            </div>
          </div>
          <p class="reading" aria-live={player.playing ? "off" : "polite"}>
            {current ? words(current).replace(/\n/g, " · ") : "Before the first move."}
          </p>
          <p class="muted">
            {past < moves.length ? `${plural(past, "move")} of ${moves.length} by now.` : `${plural(moves.length, "move")}.`}
            {all > moves.length ? ` ${plural(all, "move")} without the choice.` : ""}
          </p>
        </>
      )}
    </Figure>
  );
}

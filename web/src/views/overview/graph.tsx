// The machine as a graph under one policy: nodes show the local fraction of their threads' accesses, link width shows
// bandwidth.

import { useRef } from "preact/hooks";
import type { Machine, Report } from "../../documents";
import { percent } from "../../format";
import type { Lane, Point, Shape } from "./shape";
import { linkWords, localShare, nodeTraffic, nodeWords, step, type Placed } from "./traffic";

export interface GraphProps {
  report: Report;
  machine: Machine;
  placed: Placed;
  shape: Shape;
  label: string;
}

const RING = 7;

/** An arc of a ring, clockwise from the top. */
function Arc({ at, radius, from, to, tone }: { at: Point; radius: number; from: number; to: number; tone: string }) {
  const length = 2 * Math.PI * radius;
  if (to - from < 1e-6) return null;
  return (
    <circle
      class={`ring ${tone}`}
      cx={at.x}
      cy={at.y}
      r={radius}
      stroke-width={RING}
      stroke-dasharray={`${((to - from) * length).toFixed(2)} ${length.toFixed(2)}`}
      transform={`rotate(${(from * 360 - 90).toFixed(2)} ${at.x} ${at.y})`}
    />
  );
}

/** Utilization of a node's memory, shown as the level to which its disc is filled. */
function Level({ at, radius, busy }: { at: Point; radius: number; busy: number }) {
  const height = Math.max(0, Math.min(1, busy)) * 2 * radius;
  const y = at.y + radius - height;
  const half = Math.sqrt(Math.max(0, radius * radius - (y - at.y) ** 2));
  if (height < 0.5) return null;
  const large = height > radius ? 1 : 0;
  return <path class={`level u${step(busy)}`} d={`M${at.x - half} ${y}A${radius} ${radius} 0 ${large} 0 ${at.x + half} ${y}Z`} />;
}

function NodeMark({ report, placed, node, at, radius }: { report: Report; placed: Placed; node: number; at: Point; radius: number }) {
  const traffic = nodeTraffic(placed, node);
  const share = localShare(traffic);
  const words = nodeWords(report, placed, node);
  const ring = radius - RING / 2;
  return (
    <g class="item node" tabindex={-1} role="img" aria-label={words} data-tip={words} data-node={node}>
      <circle class="disc" cx={at.x} cy={at.y} r={radius} />
      {traffic.busy !== null && <Level at={at} radius={radius - RING} busy={traffic.busy} />}
      <circle class="ring" cx={at.x} cy={at.y} r={ring} stroke-width={RING} />
      {share !== null && <Arc at={at} radius={ring} from={0} to={share} tone="local" />}
      {share !== null && <Arc at={at} radius={ring} from={share} to={1} tone="remote" />}
      <text class="number" x={at.x} y={at.y + (share === null || radius <= 30 || !report.program.exact ? 6 : 1)}>
        {node}
      </text>
      {share !== null && radius > 30 && report.program.exact && (
        <text class="share" x={at.x} y={at.y + 15}>
          {percent(share)}
        </text>
      )}
    </g>
  );
}

function LaneMark({ lane, machine, placed }: { lane: Lane; machine: Machine; placed: Placed }) {
  const used = placed.links[lane.link];
  const words = linkWords(machine, placed, lane.link);
  return (
    <g class={`item lane ${used ? `u${step(used.utilization)}` : "plain"}`} tabindex={-1} role="img" aria-label={words} data-tip={words}>
      <path class="reach" d={lane.path} stroke-width={Math.max(12, lane.width)} data-unexported />
      <path class="way" d={lane.path} stroke-width={lane.width} />
      <path class="head" d={lane.head} />
    </g>
  );
}

/** Arrow keys move the focus through nodes and then links, so that the picture is a single tab stop. */
function walk(svg: SVGSVGElement, event: KeyboardEvent): void {
  const way = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (!way) return;
  const items = [...svg.querySelectorAll<SVGElement>(".node"), ...svg.querySelectorAll<SVGElement>(".lane")];
  const now = items.indexOf(document.activeElement as SVGElement);
  items[now < 0 ? 0 : (now + way + items.length) % items.length]?.focus();
  event.preventDefault();
}

export function Graph({ report, machine, placed, shape, label }: GraphProps) {
  const svg = useRef<SVGSVGElement>(null);
  return (
    <svg
      ref={svg}
      class="graph"
      viewBox={`${shape.box.x} ${shape.box.y} ${shape.box.width} ${shape.box.height}`}
      tabindex={0}
      role="group"
      aria-label={`${label}; arrow keys go from node to node`}
      onKeyDown={(event) => svg.current && walk(svg.current, event)}
    >
      {shape.lanes.map((lane) => (
        <LaneMark key={lane.link} {...{ lane, machine, placed }} />
      ))}
      {shape.nodes.map((at, node) => (
        <NodeMark key={node} {...{ report, placed, node, at }} radius={shape.radius} />
      ))}
    </svg>
  );
}

// All metrics of both sides, with what changed.

import type { Term as Key } from "../../explain";
import type { Row } from "../../export/csv";
import { Figure } from "../../figure";
import { between, type Kind } from "../../format";
import { rangeAt } from "../../share";
import { Term } from "../../tip";
import { Value, at } from "../../value";
import { apart, BoundedDifference, Difference, judge, type Better, type Known } from "./difference";
import type { Pair, Side } from "./sides";

interface Metric {
  of: Key;
  title?: string;
  as: Kind;
  better: Better;
  pointer: (side: Side) => string;
  /** Pointer to the metric's bounds, which exist if accesses are samples. */
  range?: (side: Side) => string;
  /** Whether the metric depends on the profile alone, so that it is equal for two policies of one profile. */
  ofProfile?: boolean;
}

const policy = (key: string) => (side: Side) => `/policies/${side.index}/${key}`;

const METRICS: readonly Metric[] = [
  { of: "seconds", as: "seconds", better: "less", pointer: policy("seconds") },
  { of: "speedup", as: "ratio", better: "more", pointer: policy("speedup") },
  { of: "local_fraction", as: "percent", better: "more", pointer: policy("local_fraction"), range: policy("local_range") },
  { of: "access_balance", as: "percent", better: "more", pointer: policy("access_balance") },
  { of: "page_balance", as: "percent", better: "neither", pointer: policy("page_balance") },
  { of: "migrations", as: "whole", better: "neither", pointer: policy("migrations") },
  {
    of: "exclusivity",
    as: "percent",
    better: "more",
    pointer: () => "/application_exclusivity",
    range: () => "/sampling/exclusivity/range",
    ofProfile: true,
  },
  { of: "pages", as: "whole", better: "neither", pointer: () => "/totals/pages", ofProfile: true },
  { of: "accesses", as: "count", better: "neither", pointer: () => "/totals/accesses", ofProfile: true },
  { of: "accesses", title: "Loads", as: "count", better: "neither", pointer: () => "/totals/reads", ofProfile: true },
  { of: "accesses", title: "Stores", as: "count", better: "neither", pointer: () => "/totals/writes", ofProfile: true },
  { of: "threads", as: "whole", better: "neither", pointer: () => "/program/threads", ofProfile: true },
  { of: "wall", as: "seconds", better: "less", pointer: () => "/program/wall_seconds", ofProfile: true },
  { of: "moved", as: "whole", better: "neither", pointer: () => "/moves/pages", ofProfile: true },
  { of: "ping_pong", as: "whole", better: "less", pointer: () => "/moves/ping_pongs", ofProfile: true },
];

const read = (metric: Metric, side: Side) => {
  const value = at(side.report, metric.pointer(side));
  return typeof value === "number" ? value : null;
};

/** Bounds of both sides, if at least one side has bounds. */
function known(metric: Metric, { a, b }: Pair): [Known, Known] | null {
  const [x, y] = [a, b].map((side) => (metric.range ? rangeAt(side.report, metric.range(side)) : null));
  const point = (side: Side): Known => [read(metric, side) ?? 0, read(metric, side) ?? 1];
  return x || y ? [x ?? point(a), y ?? point(b)] : null;
}

function Figured({ metric, side, profile }: { metric: Metric; side: Side; profile: number | undefined }) {
  const range = metric.range?.(side);
  const bounds = range === undefined ? null : rangeAt(side.report, range);
  if (!bounds) return <Value pointer={metric.pointer(side)} of={side.report} as={metric.as} profile={profile} />;
  const least = metric.of === "exclusivity" ? 1 / side.report.machine.nodes.length : 0;
  return <Value pointer={`${range}/0`} of={side.report} as={metric.as} text={() => between(bounds, least)} profile={profile} />;
}

function Changed({ metric, pair }: { metric: Metric; pair: Pair }) {
  const bounds = known(metric, pair);
  if (bounds) return <BoundedDifference a={bounds[0]} b={bounds[1]} better={metric.better} />;
  return <Difference a={read(metric, pair.a)} b={read(metric, pair.b)} as={metric.as} better={metric.better} />;
}

function shown(pair: Pair): Metric[] {
  return METRICS.filter((m) => (pair.profiles || !m.ofProfile) && (read(m, pair.a) !== null || read(m, pair.b) !== null));
}

function rows(pair: Pair): Row[] {
  const line = (m: Metric): Row => {
    const [a, b] = [read(m, pair.a), read(m, pair.b)];
    const bounds = known(m, pair);
    if (bounds)
      return [`${m.title ?? m.of}, between`, ...bounds.map((k) => k.join(" and ")), null, apart(...bounds, m.better) ?? "not known"];
    return [m.title ?? m.of, a, b, a !== null && b !== null ? b - a : null, a !== null && b !== null ? judge(a, b, m.better) : "not known"];
  };
  return [["metric (SI units, fractions of 1)", pair.a.title, pair.b.title, "difference", "judgement"], ...shown(pair).map(line)];
}

export function Metrics({ pair }: { pair: Pair }) {
  const { a, b, profiles } = pair;
  const tag = (side: Side) => (profiles ? side.profile : undefined);
  return (
    <Figure
      id="metrics"
      title="What changes"
      rows={() => rows(pair)}
      what="Each metric on both sides, and the difference from the first to the second: blue and “better”, orange and “worse”, grey where neither is better by itself. Differences of shares are in points of a hundred."
    >
      <div class="scroll">
        <table class="metrics">
          <thead>
            <tr>
              <th scope="col">Metric</th>
              <th scope="col" class="n">
                <code>{a.title}</code>
              </th>
              <th scope="col" class="n">
                <code>{b.title}</code>
              </th>
              <th scope="col">Difference</th>
            </tr>
          </thead>
          <tbody>
            {shown(pair).map((m) => (
              <tr key={m.pointer(a) + m.title}>
                <th scope="row">
                  <Term of={m.of}>{m.title}</Term>
                </th>
                <td class="n">
                  <Figured metric={m} side={a} profile={tag(a)} />
                </td>
                <td class="n">
                  <Figured metric={m} side={b} profile={tag(b)} />
                </td>
                <td>
                  <Changed metric={m} pair={pair} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Figure>
  );
}

// Objects of both sides with their local fractions and the difference.

import type { ReportObject } from "../../documents";
import type { Row } from "../../export/csv";
import { Figure } from "../../figure";
import { count, format, plural } from "../../format";
import { Local } from "../../share";
import { Term } from "../../tip";
import { localShare, spans, type Cells } from "./cells";
import { BoundedDifference, Difference, DifferenceBar, difference, type Known } from "./difference";
import type { Pair } from "./sides";

/** Largest number of lines shown; the CSV has all. */
const MAX_OBJECTS_SHOWN = 40;

interface Line {
  name: string;
  site: string;
  /** Indices in the reports' objects. */
  a: number | null;
  b: number | null;
  accesses: number;
  local: [number | null, number | null];
  /** Bounds of the local fraction on each side, if accesses are samples. */
  known: [Known | null, Known | null];
}

/** Matches the objects of two profiles by name and site, else by name alone. */
function matched(one: readonly ReportObject[], two: readonly ReportObject[]): Line[] {
  const left = new Set(two.keys());
  const take = (same: (o: ReportObject) => boolean) => {
    const found = [...left].find((i) => same(two[i]!));
    if (found !== undefined) left.delete(found);
    return found ?? null;
  };
  const exact = one.map((o) => take((t) => t.name === o.name && t.site === o.site));
  const lines = one.map((o, a): Line => {
    const b = exact[a] ?? take((t) => t.name === o.name);
    const other = b === null ? null : two[b]!;
    return {
      name: o.name,
      site: o.site,
      a,
      b,
      accesses: o.accesses,
      local: [o.local_fraction, other?.local_fraction ?? null],
      known: [o.local_range, other?.local_range ?? null],
    };
  });
  for (const b of left)
    lines.push({
      name: two[b]!.name,
      site: two[b]!.site,
      a: null,
      b,
      accesses: two[b]!.accesses,
      local: [null, two[b]!.local_fraction],
      known: [null, two[b]!.local_range],
    });
  return lines;
}

/** Lines for two policies of one profile. Local shares come from the cells, because the report has them only for
 *  first-touch. */
function mapped(pair: Pair, a: Cells, b: Cells): Line[] {
  const runs = new Map(a.strip.objects.map((run) => [run.object, run]));
  const by = spans(a.strip, b.strip).spans;
  return pair.a.report.objects.flatMap((o, i): Line[] => {
    const run = runs.get(i);
    const span = run && by.find((s) => s.a.first === run.first);
    if (!span) return [];
    const local: Line["local"] = [localShare(a, span.a), localShare(b, span.b)];
    return local[0] === null || local[1] === null
      ? []
      : [{ name: o.name, site: o.site, a: i, b: i, accesses: o.accesses, local, known: [null, null] }];
  });
}

const change = ({ local: [a, b], accesses }: Line) => (a === null || b === null ? 0 : Math.abs(b - a) * accesses);

function Share({ pair, line, which }: { pair: Pair; line: Line; which: 0 | 1 }) {
  const side = which === 0 ? pair.a : pair.b;
  const index = which === 0 ? line.a : line.b;
  if (index === null) return <span class="unknown">not there</span>;
  if (!pair.profiles) return <>{format(line.local[which], "percent")}</>;
  return <Local pointer={`/objects/${index}`} of={side.report} profile={side.profile} />;
}

const of = (side: Pair["a"]) => (side.report.program.exact ? "" : " of samples");

const change_of = (line: Line) =>
  line.local[0] === null || line.local[1] === null || bounded(line) ? null : line.local[1] - line.local[0];

/** Bounds of both sides, if at least one side has bounds. */
function bounded({ local: [x, y], known: [a, b] }: Line): [Known, Known] | null {
  if (x === null || y === null || (!a && !b)) return null;
  return [a ?? [x, x], b ?? [y, y]];
}

function Changed({ line }: { line: Line }) {
  const bounds = bounded(line);
  if (bounds) return <BoundedDifference a={bounds[0]} b={bounds[1]} better="more" />;
  return <Difference a={line.local[0]} b={line.local[1]} as="percent" better="more" />;
}

export function ObjectsDifference({ pair, a, b }: { pair: Pair; a: Cells | undefined; b: Cells | undefined }) {
  if (!pair.profiles && (!a || !b)) return null;
  const lines = pair.profiles ? matched(pair.a.report.objects, pair.b.report.objects) : mapped(pair, a!, b!);
  lines.sort((x, y) => change(y) - change(x));
  const shown = lines.slice(0, MAX_OBJECTS_SHOWN);
  // The scale has a minimum, so that very small differences have short bars.
  const most = Math.max(0.05, ...lines.map(({ local: [x, y] }) => (x === null || y === null ? 0 : Math.abs(y - x))));
  const rows = (): Row[] => [
    [
      "object",
      "site",
      `accesses (${pair.a.title})`,
      `local${of(pair.a)} (${pair.a.title})`,
      `local${of(pair.b)} (${pair.b.title})`,
      "difference",
    ],
    ...lines.map((l): Row => [l.name, l.site, l.accesses, l.local[0], l.local[1], change_of(l)]),
  ];
  const samples =
    pair.a.report.program.exact && pair.b.report.program.exact
      ? ""
      : " Shares of samples are no shares of accesses: what they say of those stands between bounds, and differs where the bounds lie apart.";
  const how = pair.profiles
    ? "Objects of both profiles by name and site, with the share of their accesses that is local under first-touch in each."
    : `Objects with the share of their accesses that is local under either policy, by cells of ${plural(a!.size, "page")} that lie wholly in the object.`;
  return (
    <Figure
      id="objects-difference"
      title="Which objects differ"
      rows={rows}
      what={`${how} A bar to the right is more local on the second side, to the left less. The objects with most accesses changed stand first.${samples}`}
    >
      {lines.length === 0 ? (
        <p class="none">No object is large enough to be compared.</p>
      ) : (
        <div class="scroll">
          <table class="metrics">
            <thead>
              <tr>
                <th scope="col">Object</th>
                <th scope="col" class="n">
                  <Term of="accesses">{pair.a.report.program.exact ? undefined : "Samples"}</Term>
                </th>
                <th scope="col" class="n">
                  local{pair.profiles ? "" : of(pair.a)}, <code>{pair.a.title}</code>
                </th>
                <th scope="col" class="n">
                  local{pair.profiles ? "" : of(pair.b)}, <code>{pair.b.title}</code>
                </th>
                <th scope="col">less · more</th>
                <th scope="col">Difference</th>
              </tr>
            </thead>
            <tbody>
              {shown.map((l, i) => (
                <tr key={i}>
                  <th scope="row">
                    <code>{l.name}</code> <small>{l.site}</small>
                  </th>
                  <td class="n">{count(l.accesses)}</td>
                  <td class="n">
                    <Share pair={pair} line={l} which={0} />
                  </td>
                  <td class="n">
                    <Share pair={pair} line={l} which={1} />
                  </td>
                  <td class="mid">
                    {l.local[0] !== null && l.local[1] !== null && !bounded(l) && (
                      <DifferenceBar by={l.local[1] - l.local[0]} most={most} label={difference(l.local[0], l.local[1], "percent")} />
                    )}
                  </td>
                  <td>
                    <Changed line={l} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {lines.length > MAX_OBJECTS_SHOWN && (
        <p class="muted">The other {plural(lines.length - MAX_OBJECTS_SHOWN, "object")} are in the CSV.</p>
      )}
    </Figure>
  );
}

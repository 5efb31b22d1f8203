// The objects, the costliest first, each with its diagnosis and remedy.

import { useState } from "preact/hooks";
import { Bar } from "../../bar";
import type { Report } from "../../documents";
import type { Row } from "../../export/csv";
import { Figure } from "../../figure";
import { bytes } from "../../format";
import type { State } from "../../state";
import { Exclusivity, Local } from "../../share";
import { Term } from "../../tip";
import { Value } from "../../value";
import { Advice } from "./advice";

/** Number of objects shown at first, and added by each further request. */
const FIRST_SHOWN = 8;
const ADDED_PER_REQUEST = 100;
/** Smallest share of the run time for an object to be shown at first. */
const MIN_COST_SHARE = 0.005;

const EXPLANATION = {
  exact:
    "One line is one object: an allocation by its site, a static variable, a stack. Cost is what it accounts for of the run time that the best placement is predicted to save over first-touch; the costs of all objects add up to that. Exclusivity near 100 % means that moving pages is enough; near 1/nodes everyone uses everything, and only another schedule or even spreading helps.",
  samples:
    "One line is one object, the most remote samples first. Pages weigh alike, however often they are used. Exclusivity near 100 % means that a page has one owner, and moving it there is enough.",
};

const NONE = [null, null] as const;

function rows(report: Report): Row[] {
  const of = report.program.exact ? "" : " of samples";
  const head = [
    "object",
    "kind",
    "site",
    "size (bytes)",
    "allocated (times)",
    "pages",
    "accesses",
    "cost (share of run time)",
    `local today (fraction${of})`,
    "local, at least",
    "local, at most",
    `exclusivity (fraction${of})`,
    "exclusivity, at least",
    "exclusivity, at most",
    "sharing",
    "pattern",
    "blame",
    "advice",
  ];
  return [
    head,
    ...report.objects.map((o) => [
      o.name,
      o.kind,
      o.site,
      o.pages * report.page_size,
      o.allocations,
      o.pages,
      o.accesses,
      o.cost_share,
      o.local_fraction,
      ...(o.local_range ?? NONE),
      o.exclusivity,
      ...(o.sampled?.range ?? NONE),
      o.sharing,
      o.pattern,
      o.blame,
      o.advice,
    ]),
  ];
}

function Line({ i, report, most, open, columns }: { i: number; report: Report; most: number; open: boolean; columns: number }) {
  const object = report.objects[i]!;
  const value = (key: string, as: "percent" | "count" | "whole") => <Value pointer={`/objects/${i}/${key}`} of={report} as={as} />;
  const judged = object.sampled === null || object.sampled.range !== null;
  return (
    <>
      <tr class="object">
        <th scope="row">
          <code>{object.name}</code>
          <small>
            {object.site || object.kind}
            {object.allocations > 1 && <>, allocated {value("allocations", "whole")} times</>}
          </small>
        </th>
        {object.cost_share !== null && (
          <>
            <td class="mid">
              <Bar share={most > 0 ? object.cost_share / most : 0} tone="remote" />
            </td>
            <td class="n">{value("cost_share", "percent")}</td>
          </>
        )}
        <td class="n">{value("accesses", "count")}</td>
        <td class="n">
          <Value pointer={`/objects/${i}/pages`} of={report} as="bytes" text={(n) => bytes(n * report.page_size)} />
        </td>
        <td class="mid">
          <Bar share={object.local_fraction} range={object.local_range} />
        </td>
        <td class="n">
          <Local of={report} pointer={`/objects/${i}`} />
        </td>
        <td class="n">
          {judged ? (
            <Exclusivity
              of={report}
              pointer={`/objects/${i}/exclusivity`}
              range={`/objects/${i}/sampled/range`}
              nodes={report.machine.nodes.length}
            />
          ) : (
            <span class="unknown" title="too few samples">
              not judged
            </span>
          )}
        </td>
        <td>{object.sharing}</td>
        <td>{object.pattern}</td>
      </tr>
      <tr class="why">
        <td colSpan={columns}>
          <Advice object={object} index={i} open={open} />
        </td>
      </tr>
    </>
  );
}

function title(exact: boolean, most: number): string {
  if (!exact) return "Objects, the most remote samples first";
  return most >= MIN_COST_SHARE ? "Which object is to blame" : "Objects";
}

function Heads({ report, exact }: { report: Report; exact: boolean }) {
  return (
    <thead>
      <tr>
        <th scope="col">Object, and where it was allocated</th>
        {exact && (
          <th scope="col" colSpan={2}>
            <Term of="cost" />
          </th>
        )}
        <th scope="col" class="n">
          <Term of="accesses">{report.program.exact ? undefined : "Samples"}</Term>
        </th>
        <th scope="col" class="n">
          <Term of="pages">Touched</Term>
        </th>
        <th scope="col" colSpan={2}>
          <Term of={report.program.exact ? "local_fraction" : "local_samples"}>Local today</Term>
        </th>
        <th scope="col" class="n">
          <Term of="exclusivity" />
        </th>
        <th scope="col">
          <Term of="sharing" />
        </th>
        <th scope="col">
          <Term of="pattern" />
        </th>
      </tr>
    </thead>
  );
}

export function Objects({ report, state }: { report: Report; state: State }) {
  const costs = report.objects.map((o) => o.cost_share ?? 0);
  const costly = costs.filter((c) => c >= MIN_COST_SHARE).length;
  const [shown, show] = useState(() => Math.max(3, Math.min(FIRST_SHOWN, costly)));
  const asked = Number(state.object ?? -1);
  const exact = report.objects.some((o) => o.cost_share !== null);
  const most = Math.max(0, ...costs);
  const visible = report.objects.slice(0, Math.max(shown, asked + 1));
  const left = report.objects.length - visible.length;
  if (report.objects.length === 0) {
    return (
      <Figure id="objects" title="Objects" what={EXPLANATION.exact} rows={() => rows(report)}>
        <p class="none">No object was accessed in what was recorded.</p>
      </Figure>
    );
  }
  return (
    <Figure id="objects" title={title(exact, most)} what={exact ? EXPLANATION.exact : EXPLANATION.samples} rows={() => rows(report)}>
      <div class="scroll">
        <table class="objects">
          <Heads report={report} exact={exact} />
          <tbody>
            {visible.map((o, i) => (
              <Line
                key={`${i} ${o.name}`}
                {...{ i, report, most }}
                open={i === asked || (i === 0 && most >= MIN_COST_SHARE && asked < 0)}
                columns={exact ? 10 : 8}
              />
            ))}
          </tbody>
        </table>
      </div>
      {left > 0 && (
        <button type="button" class="more" data-unexported onClick={() => show(visible.length + ADDED_PER_REQUEST)}>
          {left <= ADDED_PER_REQUEST ? `The other ${left}` : `${ADDED_PER_REQUEST} of the other ${left}`}
          {exact && costly <= visible.length ? ", which cost next to nothing" : ""}
        </button>
      )}
    </Figure>
  );
}

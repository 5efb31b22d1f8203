// The machine under today's mapping and under the chosen one, side by side.

import { FIRST_TOUCH, chosenPolicy } from "../../chosen";
import type { Machine, Report } from "../../documents";
import type { Row } from "../../export/csv";
import { Figure } from "../../figure";
import { useLoaded } from "../../loaded";
import { Segments } from "../../segments";
import { update } from "../../state";
import { Local } from "../../share";
import { Value } from "../../value";
import type { ViewProps } from "../../view";
import { Crossings } from "./crossings";
import { Graph } from "./graph";
import { shape } from "./shape";
import { STEP_NAMES, type Placed } from "./traffic";

/** Largest numbers of nodes and links drawn as a graph; beyond these a matrix is easier to read. */
const MOST_NODES = 16;
const MOST_LINKS = 64;

const EXPLANATION =
  "Each circle is a node: its ring says how much of its threads’ accesses (of samples, where it is those) stay local (blue) or cross the machine (orange), the level in it how busy its memory is. Each line is one direction of a link, as wide as what it can carry, coloured by how much of that is used. Point at anything, or walk through with the arrow keys, for its figures. What crosses links is an estimate by 64-byte lines.";

function rows(machine: Machine, shown: readonly Placed[]): Row[] {
  const table: Row[] = [
    ["policy", "from node", "to node", "accesses", "link bandwidth (MB/s)", "link bytes", "link use (fraction)", "memory use (fraction)"],
  ];
  for (const placed of shown) {
    placed.accesses.forEach((row, from) =>
      row.forEach((accesses, to) => {
        // Data flow to the reader over the link from the memory node to the reader's node.
        const link = machine.links.findIndex((l) => l.from === to && l.to === from);
        const used = placed.links[link];
        table.push([
          placed.policy,
          from,
          to,
          accesses,
          machine.links[link]?.bandwidth,
          used?.bytes,
          used?.utilization,
          from === to ? placed.controllers[to]?.utilization : null,
        ]);
      }),
    );
  }
  return table;
}

function Legend({ graph, busy, exact }: { graph: boolean; busy: boolean; exact: boolean }) {
  return (
    <div class="legend">
      <span>
        <i class="swatch local" />
        local
      </span>
      <span>
        <i class="swatch remote" />
        remote
      </span>
      {!exact && <span>shares of samples, which are not those of the accesses</span>}
      {graph && busy && (
        <>
          <span class="gap">links and memory, share in use:</span>
          {STEP_NAMES.map((name, i) => (
            <span key={name}>
              <i class={`swatch u${i}`} />
              {name}
            </span>
          ))}
        </>
      )}
      {!graph && <span>the stronger, the more accesses</span>}
    </div>
  );
}

function Panel({
  report,
  machine,
  policy,
  graph,
  chosen,
}: {
  report: Report;
  machine: Machine;
  policy: string;
  graph: boolean;
  chosen: boolean;
}) {
  const index = report.policies.findIndex((p) => p.policy === policy);
  const placed = machine.policies.find((p) => p.policy === policy);
  if (!placed) return null;
  const label = `${report.machine.name} under ${policy}`;
  return (
    <div class="panel" data-policy={policy}>
      <h4>
        {chosen ? "With " : "Today: "}
        <code>{policy}</code>
        <span class="muted">
          {" "}
          {report.program.exact ? (
            <>
              <Local pointer={`/policies/${index}`} of={report} /> local
            </>
          ) : (
            <>
              local accesses: <Local pointer={`/policies/${index}`} of={report} />
            </>
          )}
          {report.policies[index]?.speedup !== null && chosen && (
            <>
              , <Value pointer={`/policies/${index}/speedup`} of={report} as="ratio" /> as fast
            </>
          )}
        </span>
      </h4>
      {graph ? <Graph {...{ report, machine, placed, label }} shape={shape(machine)} /> : <Crossings {...{ report, placed, label }} />}
    </div>
  );
}

function drawable(machine: Machine): boolean {
  return machine.links.length > 0 && machine.places.length <= MOST_NODES;
}

export function MachineFigure({ documents, report, profile, state }: ViewProps) {
  const { value: machine, error } = useLoaded(() => documents.machine(profile), [documents, profile]);
  if (!machine) return <div class="card machine-room">{error ?? "Drawing the machine …"}</div>;
  const chosen = chosenPolicy(report, state);
  const choices = chosen === FIRST_TOUCH ? "today" : (state.shown ?? "both");
  const graph = drawable(machine) && (state.picture ?? (machine.links.length > MOST_LINKS ? "matrix" : "graph")) === "graph";
  const policies = choices === "today" ? [FIRST_TOUCH] : choices === "chosen" ? [chosen] : [FIRST_TOUCH, chosen];
  const shown = machine.policies.filter((p) => policies.includes(p.policy));
  const busy = shown.some((p) => p.links.length > 0 || p.controllers.length > 0);
  const idle = machine.policies.every((p) => p.accesses.flat().every((a) => a === 0));
  return (
    <Figure
      id="machine"
      title={`Who reads whose memory on ${report.machine.name}`}
      what={EXPLANATION}
      rows={() => rows(machine, shown)}
      controls={
        <>
          {chosen !== FIRST_TOUCH && (
            <Segments
              label="Mapping shown"
              state="shown"
              value={choices}
              options={[
                ["both", "Both"],
                ["today", "Today"],
                ["chosen", "Chosen"],
              ]}
            />
          )}
          {drawable(machine) && (
            <Segments
              label="Picture"
              state="picture"
              value={graph ? "graph" : "matrix"}
              options={[
                ["graph", "Graph"],
                ["matrix", "Matrix"],
              ]}
            />
          )}
          <label class="field">
            Chosen
            <select value={chosen} onChange={(e) => update({ policy: e.currentTarget.value })}>
              {report.policies
                .filter((p) => p.policy !== FIRST_TOUCH)
                .map((p) => (
                  <option key={p.policy} value={p.policy}>
                    {p.policy}
                  </option>
                ))}
            </select>
          </label>
        </>
      }
    >
      {idle ? (
        <p class="none">No access was recorded: there is no traffic to draw.</p>
      ) : (
        <>
          <div class={`panels of-${policies.length}`}>
            {policies.map((policy) => (
              <Panel key={policy} {...{ report, machine, policy, graph }} chosen={policy !== FIRST_TOUCH} />
            ))}
          </div>
          <Legend graph={graph} busy={busy} exact={report.program.exact} />
        </>
      )}
    </Figure>
  );
}

// The verdict in one sentence, its reasons, and the command to run next.

import type { Report } from "../../documents";
import { Copyable } from "../../copyable";
import { Prose } from "../../prose";

const BADGES: Record<Report["verdict"]["outcome"], [string, string]> = {
  place: ["act", "A better placement exists"],
  stock: ["act", "A stock command line is enough"],
  match: ["act", "Loops should match their data"],
  "leave-alone": ["calm", "Leave it alone"],
  "not-memory-bound": ["calm", "Not bound by memory"],
  undecided: ["unsure", "Depends on what is not known yet"],
  unknown: ["unsure", "Too little was seen to say"],
};

function badge({ verdict, machine, program }: Report): [string, string] {
  if (verdict.outcome === "leave-alone" && machine.nodes.length < 2) return ["calm", "Nothing to place"];
  if (verdict.outcome === "unknown" && !program.exact) return ["unsure", "Samples say where, not how much"];
  return BADGES[verdict.outcome] ?? BADGES.unknown;
}

export function VerdictCard({ report }: { report: Report }) {
  const { verdict } = report;
  const [tone, words] = badge(report);
  return (
    <section class={`card verdict ${tone}`} aria-labelledby="verdict">
      <h3 id="verdict">{words}</h3>
      <p class="sentence">
        <Prose text={verdict.sentence} />
      </p>
      {report.machine.nodes.length < 2 && (
        <p>
          With one node every placement is the same. To see what another machine would make of this run, name one:{" "}
          <code>nodewise report --machine NAME</code>; <code>nodewise topo --list</code> has the names.
        </p>
      )}
      {verdict.next && <Copyable text={verdict.next.replace(/ && /g, " &&\n")} label="the command" lead="Next" />}
      {verdict.then && (
        <p>
          {verdict.next ? "Then" : "Next"}: <Prose text={verdict.then} />
        </p>
      )}
      {verdict.reasons.length > 0 && (
        <ul>
          {verdict.reasons.map((reason) => (
            <li key={reason}>
              <Prose text={reason} />
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

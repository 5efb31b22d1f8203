// Whether threads take the same parts of the data in each run, and the local fraction of each policy in another run.

import type { Report } from "../../documents";
import { Figure } from "../../figure";
import { Prose } from "../../prose";
import { Value } from "../../value";

const DEALT: Record<string, string> = { tasks: "as tasks", ordered: "dynamically, in a loop with ordered" };

export function Roles({ report }: { report: Report }) {
  const { roles } = report;
  if (!roles) return null;
  return (
    <Figure
      id="roles"
      title="In another run"
      what="A map binds data to thread numbers. Where threads take their parts in order of arrival, or as work comes, another run gives a part to another thread. By number: the local share there with threads bound by their numbers. By data: with threads bound by the data that they take, where nodewise run can do that. Both are expected values, from the runs that were compared."
      rows={() => [
        ["policy", "recorded run", "another run, by number", "another run, by data"],
        ...report.policies.map((p) => [p.policy, p.local_fraction, p.other_runs?.by_number ?? null, p.other_runs?.by_data ?? null]),
      ]}
    >
      <p class="reading">
        <Prose text={[roles.sentence, roles.not_followed_sentence ?? ""].join(" ")} />
      </p>
      <table>
        <thead>
          <tr>
            <th scope="col">policy</th>
            <th scope="col">local, recorded run</th>
            <th scope="col">another, by number</th>
            <th scope="col">another, by data</th>
          </tr>
        </thead>
        <tbody>
          {report.policies.map((policy, i) => (
            <tr key={policy.policy}>
              <th scope="row">{policy.policy}</th>
              {["local_fraction", "other_runs/by_number", "other_runs/by_data"].map((key) => (
                <td key={key}>
                  <Value pointer={`/policies/${i}/${key}`} of={report} as="percent" />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {roles.loops.map((loop, i) => (
        <p key={loop.site}>
          <code>{loop.function}</code> {loop.site} (<Value pointer={`/roles/loops/${i}/share`} of={report} as="percent" /> of the traffic)
          deals its work {DEALT[loop.schedule] ?? `by schedule(${loop.schedule})`}. Instead: <code>{loop.advice}</code>
        </p>
      ))}
      {roles.static_schedule && (
        <p>
          Without a change to the program, to see what a static schedule gives: <code>{roles.static_schedule}</code>
        </p>
      )}
    </Figure>
  );
}

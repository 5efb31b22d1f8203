// A table of policies: predicted time, local fraction, balance.

import { RangeBar, Bar } from "../../bar";
import { FIRST_TOUCH, chosenPolicy } from "../../chosen";
import type { Policy, Report } from "../../documents";
import type { Row } from "../../export/csv";
import { Figure } from "../../figure";
import { update, type State } from "../../state";
import { Term } from "../../tip";
import { Local } from "../../share";
import { Value } from "../../value";

const EXPLANATION = {
  exact:
    "One line is one way to place pages. The bar is the typical predicted wall time, the thin line across its end the plausible range: shorter is better. Ranges overlap because they share what is not known; the speed-up over first-touch compares like with like. Shares and balances follow from the counted accesses, time is an estimate. Choose a policy to see it in the machine and in the other views.",
  samples:
    "One line is one way to place pages. By samples a page is seen once a scan, however often it is used: what is local is known between bounds, of which the bar shows the lower in full and the upper faintly, and what a policy would save in time does not follow. Choose a policy to see it in the machine and in the other views.",
};

function rows(report: Report): Row[] {
  const head = [
    "policy",
    "predicted time (s)",
    "low (s)",
    "high (s)",
    "speed-up (×)",
    "low (×)",
    "high (×)",
    report.program.exact ? "local fraction" : "local fraction of samples",
    "local, at least",
    "local, at most",
    "access balance",
    "page balance",
    "pages moved",
  ];
  const line = (p: Policy) => [
    p.policy,
    p.seconds,
    ...(p.seconds_range ?? [null, null]),
    p.speedup,
    ...(p.speedup_range ?? [null, null]),
    p.local_fraction,
    ...(p.local_range ?? [null, null]),
    p.access_balance,
    p.page_balance,
    p.migrations,
  ];
  return [head, ...[...report.policies, ...report.copies].map(line)];
}

/** The verdict on a policy; empty if the verdict is uncertain or undecided. */
function recommendation({ policy }: Policy, { verdict }: Report): string {
  const open = verdict.outcome === "unknown" || verdict.outcome === "undecided";
  if (policy !== verdict.policy || open) return "";
  return policy === FIRST_TOUCH ? "keep it" : "recommended";
}

function Marks({ policy, report, shown }: { policy: Policy; report: Report; shown: boolean }) {
  const said = recommendation(policy, report);
  return (
    <>
      {policy.policy === FIRST_TOUCH && <small class="mark">today</small>}
      {said && <small class="mark best">{said}</small>}
      {shown && <small class="mark">shown</small>}
    </>
  );
}

interface LineProps {
  list: "policies" | "copies";
  i: number;
  report: Report;
  most: number;
  chosen: string;
}

function Line({ list, i, report, most, chosen }: LineProps) {
  const policy = report[list][i]!;
  const value = (key: string, as: "percent" | "seconds" | "ratio" | "whole") => (
    <Value pointer={`/${list}/${i}/${key}`} of={report} as={as} />
  );
  const best = recommendation(policy, report) !== "";
  return (
    <tr class={best ? "best" : ""}>
      <th scope="row">
        <button
          type="button"
          class="link"
          aria-pressed={policy.policy === chosen}
          disabled={policy.policy === FIRST_TOUCH || list === "copies"}
          onClick={() => update({ policy: policy.policy })}
        >
          <code>{policy.policy}</code>
        </button>
        <Marks {...{ policy, report }} shown={policy.policy === chosen && !best} />
      </th>
      {policy.seconds !== null && policy.seconds_range && (
        <>
          <td class="wide">
            <RangeBar value={policy.seconds} range={policy.seconds_range} most={most} strong={best} />
          </td>
          <td class="n">
            {value("seconds", "seconds")}
            <small>
              {value("seconds_range/0", "seconds")} – {value("seconds_range/1", "seconds")}
            </small>
          </td>
          <td class="n">
            {value("speedup", "ratio")}
            <small>
              {value("speedup_range/0", "ratio")} – {value("speedup_range/1", "ratio")}
            </small>
          </td>
        </>
      )}
      <td class="mid">
        <Bar share={policy.local_fraction} range={policy.local_range} />
      </td>
      <td class="n">
        <Local of={report} pointer={`/${list}/${i}`} />
      </td>
      {policy.access_balance !== null && <td class="n">{value("access_balance", "percent")}</td>}
      <td class="n">{value("page_balance", "percent")}</td>
      <td class="n">{value("migrations", "whole")}</td>
    </tr>
  );
}

export function Policies({ report, state }: { report: Report; state: State }) {
  if (report.policies.length === 0) return null;
  const timed = report.policies.some((p) => p.seconds !== null);
  const loads = report.policies.some((p) => p.access_balance !== null);
  const most = Math.max(...[...report.policies, ...report.copies].map((p) => p.seconds_range?.[1] ?? 0));
  const chosen = chosenPolicy(report, state);
  return (
    <Figure
      id="policies"
      title={timed ? "What each policy would cost" : "What each policy would make local"}
      what={report.program.exact ? EXPLANATION.exact : EXPLANATION.samples}
      rows={() => rows(report)}
    >
      <div class="scroll">
        <table class="policies">
          <thead>
            <tr>
              <th scope="col">Policy</th>
              {timed && (
                <th scope="col" colSpan={2}>
                  <Term of="seconds" />
                </th>
              )}
              {timed && (
                <th scope="col" class="n">
                  <Term of="speedup" />
                </th>
              )}
              <th scope="col" colSpan={2}>
                <Term of={report.program.exact ? "local_fraction" : "local_samples"} />
              </th>
              {loads && (
                <th scope="col" class="n">
                  <Term of="access_balance" />
                </th>
              )}
              <th scope="col" class="n">
                <Term of="page_balance" />
              </th>
              <th scope="col" class="n">
                <Term of="migrations" />
              </th>
            </tr>
          </thead>
          <tbody>
            {report.policies.map((p, i) => (
              <Line key={p.policy} list="policies" {...{ i, report, most, chosen }} />
            ))}
            {report.copies.map((p, i) => (
              <Line key={p.policy} list="copies" {...{ i, report, most, chosen }} />
            ))}
          </tbody>
        </table>
      </div>
      {report.copies.map((p) => (
        <p key={p.policy} class="muted">
          {p.copies?.sentence}
        </p>
      ))}
    </Figure>
  );
}

// The policy that views compare with today's mapping.

import type { Policy, Report } from "./documents";
import type { State } from "./state";

/** Name of today's mapping in the report. */
export const FIRST_TOUCH = "first-touch";

const better = (a: Policy, b: Policy) =>
  a.seconds !== null && b.seconds !== null ? a.seconds < b.seconds : a.local_fraction > b.local_fraction;

/** The policy in the address, else the verdict's, else the best one other than today's. */
export function chosenPolicy(report: Report, state: State): string {
  const known = (name: string | undefined) => report.policies.some((p) => p.policy === name);
  if (state.policy && known(state.policy)) return state.policy;
  if (report.verdict.policy !== FIRST_TOUCH && known(report.verdict.policy)) return report.verdict.policy;
  const others = report.policies.filter((p) => p.policy !== FIRST_TOUCH);
  return others.reduce<Policy | undefined>((best, p) => (!best || better(p, best) ? p : best), undefined)?.policy ?? FIRST_TOUCH;
}

// The two sides of a comparison: two profiles under one policy, or two policies of one profile.

import { FIRST_TOUCH, chosenPolicy } from "../../chosen";
import type { Machine, Policy, Report } from "../../documents";
import { profileTitle } from "../../profiles";
import type { Documents } from "../../source";
import type { State } from "../../state";

export interface Side {
  profile: number;
  report: Report;
  machine: Machine;
  /** The compared policy, and its index in the report. */
  policy: Policy;
  index: number;
  /** Name of the side in headings and sentences. */
  title: string;
}

export interface Pair {
  a: Side;
  b: Side;
  /** Whether two profiles are compared instead of two policies. */
  profiles: boolean;
}

async function side(documents: Documents, profile: number, policy: string, profiles: boolean): Promise<Side> {
  const [report, machine] = await Promise.all([documents.report(profile), documents.machine(profile)]);
  const found = report.policies.findIndex((p) => p.policy === policy);
  const index = Math.max(0, found);
  const shown = report.policies[index];
  if (!shown) throw new Error("There is no policy to compare: the profile was judged for none.");
  const title = profiles ? profileTitle(documents.session, profile) : shown.policy;
  return { profile, report, machine, policy: shown, index, title };
}

/** Index of the profile to compare with: the one in the address, else the first other profile. */
export function other(documents: Documents, profile: number, state: State): number | undefined {
  const asked = Number(state.against ?? -1);
  const others = documents.session.profiles.map((_, i) => i).filter((i) => i !== profile);
  return others.includes(asked) ? asked : others[0];
}

export function comparesProfiles(documents: Documents, state: State): boolean {
  return documents.session.profiles.length > 1 && state.compare !== "policies";
}

export async function pair(documents: Documents, report: Report, profile: number, state: State): Promise<Pair> {
  const against = other(documents, profile, state);
  if (comparesProfiles(documents, state) && against !== undefined) {
    const policy = state.under ?? FIRST_TOUCH;
    const [a, b] = await Promise.all([side(documents, profile, policy, true), side(documents, against, policy, true)]);
    // Two recordings of one program have the same name.
    if (a.title === b.title) [a.title, b.title] = [`${a.title} (1)`, `${b.title} (2)`];
    return { a, b, profiles: true };
  }
  const [a, b] = await Promise.all([
    side(documents, profile, state.base ?? FIRST_TOUCH, false),
    side(documents, profile, chosenPolicy(report, state), false),
  ]);
  return { a, b, profiles: false };
}

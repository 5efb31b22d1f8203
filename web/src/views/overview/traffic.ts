// The load that a policy puts on nodes and links, in figures and in words.

import type { Machine, Report } from "../../documents";
import { bandwidth, bytes, count, percent, plural } from "../../format";

export type Placed = Machine["policies"][number];

/** Limits of five steps of utilization; from half on, queueing is likely. */
export const STEPS = [0.05, 0.25, 0.5, 0.75] as const;
export const STEP_NAMES = ["idle", "to 25 %", "to 50 %", "to 75 %", "above"] as const;
export const step = (share: number) => STEPS.filter((limit) => share >= limit).length;

const sum = (numbers: readonly number[]) => numbers.reduce((a, b) => a + b, 0);

export interface NodeTraffic {
  /** Number of accesses by the node's threads, and of those to the node's own memory. */
  made: number;
  local: number;
  /** Number of accesses that the node's memory serves. */
  served: number;
  /** Utilization of the node's memory controller; null if unknown. */
  busy: number | null;
}

export function nodeTraffic(placed: Placed, node: number): NodeTraffic {
  const row = placed.accesses[node] ?? [];
  return {
    made: sum(row),
    local: row[node] ?? 0,
    served: sum(placed.accesses.map((r) => r[node] ?? 0)),
    busy: placed.controllers[node]?.utilization ?? null,
  };
}

export const localShare = (t: NodeTraffic) => (t.made > 0 ? t.local / t.made : null);

export function nodeWords(report: Report, placed: Placed, node: number): string {
  const what = report.program.exact ? "accesses" : "samples";
  const t = nodeTraffic(placed, node);
  const share = localShare(t);
  const facts = report.machine.nodes[node];
  return [
    `node ${node}${facts ? `: ${plural(facts.cpus, "CPU")}, ${bytes(facts.memory)}, ${bandwidth(facts.bandwidth)}` : ""}`,
    share === null ? `its CPUs make no ${what}` : `its CPUs make ${count(t.made)} ${what}, ${percent(share)} of these local`,
    `its memory serves ${count(t.served)} ${what}${t.busy === null ? "" : `, ${percent(t.busy)} of its bandwidth`}`,
  ].join("\n");
}

export function linkWords(machine: Machine, placed: Placed, link: number): string {
  const { from, to, bandwidth: width } = machine.links[link]!;
  const used = placed.links[link];
  const load = used ? `\ncarries ${bytes(used.bytes)}, ${percent(used.utilization)} of what it can` : "";
  return `link from node ${from} to node ${to}: ${bandwidth(width)}${load}`;
}

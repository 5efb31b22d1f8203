// Orders groups of threads by node, then by cluster, then by number.

import type { Assignment, Threads } from "../../documents";

/** The two assignments of threads that are compared, with their titles. Where the report's own figures are with threads
 *  placed by sharing, its baseline would show no difference: the threads in order of their numbers are shown then. */
export function sides(threads: Threads): [Titled, Titled] {
  return threads.in_order
    ? [
        { title: "In order", placing: threads.in_order },
        { title: "By sharing", placing: threads.after },
      ]
    : [
        { title: "Before", placing: threads.before },
        { title: "After", placing: threads.after },
      ];
}

export interface Titled {
  title: string;
  placing: Assignment;
}

export interface Order {
  groups: number[];
  /** Runs of rows on one node. */
  nodes: { node: number; first: number; end: number }[];
  /** Runs of rows of one cluster on one node. */
  clusters: { cluster: number; first: number; end: number }[];
}

function runs<T>(of: readonly T[]): { value: T; first: number; end: number }[] {
  const made: { value: T; first: number; end: number }[] = [];
  of.forEach((value, i) => {
    const last = made[made.length - 1];
    if (last && last.value === value) last.end = i + 1;
    else made.push({ value, first: i, end: i + 1 });
  });
  return made;
}

export function ordered(placing: Assignment): Order {
  const cluster = new Map<number, number>();
  placing.clusters.forEach((members, i) => members.forEach((group) => cluster.set(group, i)));
  const of = (group: number) => cluster.get(group) ?? -1;
  const groups = placing.nodes.map((_, i) => i).sort((a, b) => placing.nodes[a]! - placing.nodes[b]! || of(a) - of(b) || a - b);
  const nodes = runs(groups.map((g) => placing.nodes[g]!)).map(({ value, first, end }) => ({ node: value, first, end }));
  const clusters = nodes.flatMap(({ first, end }) =>
    runs(groups.slice(first, end).map(of)).map((run) => ({ cluster: run.value, first: first + run.first, end: first + run.end })),
  );
  return { groups, nodes, clusters: clusters.filter((c) => c.cluster >= 0) };
}

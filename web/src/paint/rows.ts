// Assigns threads to rows: the threads of a node are adjacent, and several share a row if there are too many.

export interface Rows {
  length: number;
  nodes: number;
  /** Node of each row. */
  node: Uint16Array;
  /** First row of each node, and one past its last. */
  spans: Map<number, [number, number]>;
  /** Threads of each row: how many, and their indices. */
  size: Uint16Array;
  threads: number[][];
  /** Row of each thread's index. */
  of: Uint16Array;
  /** Whether there is a last row for all threads that are not listed individually. */
  others: boolean;
}

const MAX_ROWS = 192;

export function rows(threads: { numbers: number[]; nodes: number[] }, nodes: number, others: boolean): Rows {
  const order = threads.numbers
    .map((_, i) => i)
    .sort((a, b) => threads.nodes[a]! - threads.nodes[b]! || threads.numbers[a]! - threads.numbers[b]!);
  const each = Math.max(1, Math.ceil(order.length / MAX_ROWS));
  const made: number[][] = [];
  for (const thread of order) {
    const last = made[made.length - 1];
    if (last && last.length < each && threads.nodes[last[0]!] === threads.nodes[thread]) last.push(thread);
    else made.push([thread]);
  }
  const of = new Uint16Array(order.length);
  made.forEach((members, row) => members.forEach((thread) => (of[thread] = row)));
  const spans = new Map<number, [number, number]>();
  made.forEach((members, row) => {
    const node = threads.nodes[members[0]!]!;
    spans.set(node, [spans.get(node)?.[0] ?? row, row + 1]);
  });
  return {
    spans,
    length: made.length,
    nodes,
    node: Uint16Array.from(made, (members) => threads.nodes[members[0]!]!),
    size: Uint16Array.from(made, (members) => members.length),
    threads: made,
    of,
    others,
  };
}

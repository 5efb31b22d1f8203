// Maps many pages to few columns: each column shows the most frequent node of its moved pages.

interface Home {
  page: number;
  pages: number;
  first: number;
  last: number;
}

export interface Stretch {
  from: number;
  to: number;
  node: number;
}

function counts(homes: readonly Home[], which: "first" | "last", base: number, wide: number): Map<number, Map<number, number>> {
  const columns = new Map<number, Map<number, number>>();
  for (const home of homes) {
    let page = home.page - base;
    const end = page + home.pages;
    while (page < end) {
      const column = Math.floor(page / wide + 1e-9);
      const next = Math.min(end, Math.max(page + 1e-6, (column + 1) * wide));
      const nodes = columns.get(column) ?? new Map<number, number>();
      nodes.set(home[which], (nodes.get(home[which]) ?? 0) + next - page);
      columns.set(column, nodes);
      page = next;
    }
  }
  return columns;
}

/** Neighbouring columns of one node, joined. */
export function stretches(
  homes: readonly Home[],
  which: "first" | "last",
  { base, span, columns }: { base: number; span: number; columns: number },
): Stretch[] {
  const found: Stretch[] = [];
  const inOrder = [...counts(homes, which, base, span / columns)].sort((a, b) => a[0] - b[0]);
  for (const [column, nodes] of inOrder) {
    const node = [...nodes].reduce((most, n) => (n[1] > most[1] ? n : most))[0];
    const last = found.at(-1);
    if (last && last.to === column && last.node === node) last.to = column + 1;
    else found.push({ from: column, to: column + 1, node });
  }
  return found;
}

// A table of threads, with their nodes and the threads with which they share most.

import type { Threads } from "../../documents";
import { Figure } from "../../figure";
import { count } from "../../format";
import { css, type Palette } from "../../palette";
import { sides } from "./order";

function partner(threads: Threads, group: number): { group: number; value: number } | null {
  let best: { group: number; value: number } | null = null;
  threads.sharing[group]?.forEach((value, other) => {
    if (other !== group && value > (best?.value ?? 0)) best = { group: other, value };
  });
  return best;
}

export function List({ threads, palette, unit }: { threads: Threads; palette: Palette; unit: string }) {
  const compared = sides(threads);
  const lines = threads.groups.map((group, i) => {
    const [before, after] = compared.map((side) => side.placing.nodes[i] ?? 0) as [number, number];
    const shared = (threads.sharing[i] ?? []).reduce((sum, v, j) => (j === i ? sum : sum + v), 0);
    return { label: group.label, before, after, own: threads.sharing[i]?.[i] ?? 0, shared, partner: partner(threads, i) };
  });
  return (
    <Figure
      id="thread-list"
      title="Threads"
      what={`On which node each thread runs, ${compared.map((side) => side.title.toLowerCase()).join(" and ")}, how many ${unit} go to pages of its own, and whom it shares most with.`}
      rows={() => [
        [
          "threads",
          ...compared.map((side) => `node ${side.title.toLowerCase()}`),
          `${unit} to its own pages`,
          `${unit} to shared pages`,
          "shares most with",
          unit,
        ],
        ...lines.map((l) => [
          l.label,
          l.before,
          l.after,
          l.own,
          l.shared,
          l.partner ? threads.groups[l.partner.group]!.label : "",
          l.partner?.value ?? 0,
        ]),
      ]}
    >
      <div class="scroll thread-list" tabIndex={0} role="region" aria-label="Threads">
        <table>
          <thead>
            <tr>
              <th>Thread</th>
              <th>Node</th>
              <th class="n">To its own pages</th>
              <th class="n">Shares most with</th>
            </tr>
          </thead>
          <tbody>
            {lines.map((line) => (
              <tr key={line.label}>
                <th scope="row">{line.label}</th>
                <td>
                  <Node node={line.before} palette={palette} />
                  {line.before !== line.after && (
                    <>
                      {" → "}
                      <Node node={line.after} palette={palette} />
                    </>
                  )}
                </td>
                <td class="n">{count(Math.round(line.own))}</td>
                <td class="n">
                  {line.partner ? (
                    <>
                      {threads.groups[line.partner.group]!.label} <small>{count(Math.round(line.partner.value))}</small>
                    </>
                  ) : (
                    "nobody"
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Figure>
  );
}

const Node = ({ node, palette }: { node: number; palette: Palette }) => (
  <span class="key">
    <i class="chip" style={{ background: css(palette.node(node)) }} /> {node}
  </span>
);

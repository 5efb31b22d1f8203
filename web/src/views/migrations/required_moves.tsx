// The moves that would keep every page, in each slice, on the node that uses it most. They show whether page migration
// can pay off.

import type { Report } from "../../documents";
import type { Row } from "../../export/csv";
import { Figure } from "../../figure";
import { percent, plural, whole } from "../../format";
import { Value } from "../../value";

const EXPLANATION =
  "How often each page would have to move, to be in every slice of the run on the node that uses it most in that slice (Diener et al., II-C). Pages that never would have one place for the whole run: put them there once. Where many would move again and again, only a policy that moves pages while the program runs can follow.";

/** Pages with more moves than this are shown as one group. */
const MAX_MOVES_SHOWN = 7;

interface Line {
  moves: string;
  pages: number;
  /** JSON pointer to the figure, if the report contains it. */
  pointer?: string;
}

function lines(counts: readonly number[]): Line[] {
  const own = counts.slice(0, MAX_MOVES_SHOWN).map((pages, i) => ({
    moves: i === 0 ? "never" : plural(i, "time"),
    pages,
    pointer: `/dynamicity/pages_by_moves/${i}`,
  }));
  const rest = counts.slice(MAX_MOVES_SHOWN).reduce((a, b) => a + b, 0);
  return rest > 0 ? [...own, { moves: `${MAX_MOVES_SHOWN} times or more`, pages: rest }] : own;
}

export function RequiredMoves({ report }: { report: Report }) {
  const { pages_by_moves: counts } = report.dynamicity;
  const all = counts.reduce((a, b) => a + b, 0);
  const rows = (): Row[] => [["moves", "pages"], ...(counts.length ? counts : [0]).map((n, i): Row => [i, n])];
  return (
    <Figure id="required-moves" title="How often pages would have to move" what={EXPLANATION} rows={rows}>
      {report.slices.length < 2 ? (
        <p class="none">
          The run is one slice, so nothing can be seen to change. Record with a shorter one, such as <code>--slice 100ms</code>.
        </p>
      ) : (
        <>
          <p class="none">
            <Value pointer="/dynamicity/migrations" of={report} as="whole" /> moves in all would keep every page where each of the{" "}
            {whole(report.slices.length)} slices uses it most.
          </p>
          <table class="required-moves">
            <thead>
              <tr>
                <th scope="col">Would move</th>
                <th scope="col" class="n">
                  Pages
                </th>
                <th scope="col" class="n">
                  Share
                </th>
                <th scope="col" />
              </tr>
            </thead>
            <tbody>
              {lines(counts).map((l) => (
                <tr key={l.moves}>
                  <th scope="row">{l.moves}</th>
                  <td class="n">{l.pointer ? <Value pointer={l.pointer} of={report} as="whole" /> : whole(l.pages)}</td>
                  <td class="n">{percent(all > 0 ? l.pages / all : 0)}</td>
                  <td class="half">
                    <svg class="gauge" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
                      <rect class="fill" width={(all > 0 ? (l.pages / all) * 100 : 0).toFixed(2)} height="8" />
                    </svg>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </>
      )}
    </Figure>
  );
}

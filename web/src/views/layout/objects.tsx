// Panel beside the picture while no page is under the cursor: links to the objects.

import type { Report, Strip } from "../../documents";
import { andMore } from "../../format";
import { update } from "../../state";
import { Local } from "../../share";
import { Value } from "../../value";

/** Largest number of objects listed. */
const MAX_LISTED = 16;

export function Objects({ report, strip }: { report: Report; strip: Strip }) {
  const all = strip.objects.filter((run) => run.object >= 0 && report.objects[run.object]).sort((a, b) => a.object - b.object);
  const shown = all.slice(0, MAX_LISTED);
  if (shown.length === 0) return null;
  const go = (run: (typeof shown)[number]) =>
    update({ object: String(run.object), from: String(run.first), to: String(run.first + run.pages) });
  return (
    <section aria-label="Objects">
      <h4>Objects, costliest first</h4>
      <table class="objects">
        <tbody>
          {shown.map((run) => (
            <tr key={`${run.object} ${run.first}`}>
              <td>
                <button type="button" onClick={() => go(run)}>
                  {run.name}
                </button>
              </td>
              <td class="n">
                <Value of={report} pointer={`/objects/${run.object}/bytes`} as="bytes" />
              </td>
              <td class="n">
                {report.program.exact ? (
                  <>
                    <Local of={report} pointer={`/objects/${run.object}`} /> <small>local</small>
                  </>
                ) : (
                  <>
                    <small>local:</small> <Local of={report} pointer={`/objects/${run.object}`} />
                  </>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {all.length > shown.length && <p class="muted">{andMore(all.length - shown.length, "object", "view Overview")}</p>}
    </section>
  );
}

// The diagnosis of an object, the remedy, and the code that implements it.

import { useState } from "preact/hooks";
import { Copyable } from "../../copyable";
import type { Division, ReportObject } from "../../documents";
import { andMore, percent } from "../../format";
import { Prose } from "../../prose";
import { update } from "../../state";

/** Largest number of regions listed; further ones have few accesses. */
const REGIONS = 6;

function Region({ division }: { division: Division }) {
  const { site, region, pattern, repeat, inverse, share, explained, read_fraction: reads, threads, doubt, schedule } = division;
  const how = `${pattern}${repeat > 1 ? ` in ${repeat} parts` : ""}${inverse ? ", descending" : ""}`;
  return (
    <tr>
      <th scope="row">
        <code>{region || "serial code"}</code> {site && <span class="muted">{site}</span>}
      </th>
      <td data-tip={doubt ?? undefined}>
        {how}
        {doubt && " ?"}
      </td>
      <td class="n">{percent(share)}</td>
      <td class="n">{percent(explained)}</td>
      <td class="n">{percent(reads)}</td>
      <td class="n">{threads}</td>
      <td>{schedule ?? "–"}</td>
    </tr>
  );
}

function Regions({ object }: { object: ReportObject }) {
  if (object.patterns.length === 0) return null;
  return (
    <table class="regions">
      <thead>
        <tr>
          <th scope="col">Used in</th>
          <th scope="col">divided</th>
          <th scope="col" class="n" data-tip="Share of the object’s accesses made in this region.">
            accesses
          </th>
          <th scope="col" class="n" data-tip="Share of the region’s accesses that the pattern accounts for.">
            explained
          </th>
          <th scope="col" class="n" data-tip="Share of the region’s accesses that are loads.">
            reads
          </th>
          <th scope="col" class="n">
            threads
          </th>
          <th scope="col" data-tip="The schedule the loop should have once the object is distributed as advised.">
            schedule
          </th>
        </tr>
      </thead>
      <tbody>
        {object.patterns.slice(0, REGIONS).map((d, i) => (
          <Region key={i} division={d} />
        ))}
        {object.patterns.length > REGIONS && (
          <tr>
            <td class="muted" colSpan={7}>
              {andMore(object.patterns.length - REGIONS, "region", "nodewise report --json")}
            </td>
          </tr>
        )}
      </tbody>
    </table>
  );
}

export function Advice({ object, index, open }: { object: ReportObject; index: number; open: boolean }) {
  const [opened, set] = useState(open);
  const look = (event: Event) => {
    event.preventDefault();
    update({ view: "layout", object: String(index), from: undefined, to: undefined });
  };
  return (
    <>
      <p>
        <Prose text={object.blame} />
      </p>
      <div class="ways" data-unexported>
        <button type="button" class="link fold" aria-expanded={opened} aria-controls={`advice-${index}`} onClick={() => set(!opened)}>
          What to do
        </button>
        <a href={`#view=layout&object=${index}`} onClick={look}>
          See its pages
        </a>
      </div>
      <div id={`advice-${index}`} hidden={!opened}>
        <p class="advice">
          <Prose text={object.advice} />
        </p>
        {object.snippet && <Copyable text={object.snippet.trimEnd()} label={`the code for ${object.name}`} />}
        <Regions object={object} />
      </div>
    </>
  );
}

// Panel beside the picture: the object that the pages belong to, with its place in the source.

import type { Report } from "../../documents";
import { percent, plural } from "../../format";
import { Prose } from "../../prose";
import { Exclusivity, Local } from "../../share";
import { Term } from "../../tip";
import { Value } from "../../value";
import { Glyph } from "./glyph";

export function Source({
  report,
  index,
  pinned,
  onClose,
  onZoom,
}: {
  report: Report;
  index: number;
  pinned: boolean;
  onClose: () => void;
  onZoom: () => void;
}) {
  const object = report.objects[index];
  if (!object) return null;
  const judged = object.sampled === null || object.sampled.range !== null;
  const value = (key: string, as: "bytes" | "whole" | "percent" | "count") => (
    <Value of={report} pointer={`/objects/${index}/${key}`} as={as} />
  );
  return (
    <section class="source" aria-label={`Object ${object.name}`} data-object={index}>
      <header>
        <h4>
          <span class="name">{object.name}</span> <small>{object.kind}</small>
        </h4>
        <button type="button" onClick={onZoom}>
          Show
        </button>
        {pinned && (
          <button type="button" onClick={onClose} aria-label="Unselect">
            ×
          </button>
        )}
      </header>
      <dl>
        <dt>Size</dt>
        <dd>
          {value("bytes", "bytes")}, {value("pages", "whole")} {object.pages === 1 ? "page" : "pages"} touched
        </dd>
        <dt>Allocated</dt>
        <dd>
          <code>{object.site || "unknown"}</code>
        </dd>
        {object.first_touch && (
          <>
            <dt>First touch</dt>
            <dd>
              <code>{object.first_touch.site}</code> by {plural(object.first_touch.threads, "thread")}
            </dd>
          </>
        )}
        <dt>
          <Term of={report.program.exact ? "local_fraction" : "local_samples"}>Local today</Term>
        </dt>
        <dd>
          <Local of={report} pointer={`/objects/${index}`} />
        </dd>
        <dt>
          <Term of="exclusivity" />
        </dt>
        <dd>
          {judged ? (
            <Exclusivity
              of={report}
              pointer={`/objects/${index}/exclusivity`}
              range={`/objects/${index}/sampled/range`}
              nodes={report.machine.nodes.length}
            />
          ) : (
            <span class="unknown" title="too few samples">
              not judged
            </span>
          )}
        </dd>
        {object.cost_share !== null && (
          <>
            <dt>
              <Term of="cost" />
            </dt>
            <dd>{value("cost_share", "percent")} of the run time</dd>
          </>
        )}
      </dl>
      <Regions report={report} index={index} />
      {object.blame && (
        <p class="blame">
          <Prose text={object.blame} />
        </p>
      )}
      {object.advice && (
        <p class="advice">
          → <Prose text={object.advice} />
        </p>
      )}
      {object.snippet && (
        <pre tabIndex={0}>
          <code>{object.snippet}</code>
        </pre>
      )}
    </section>
  );
}

function Regions({ report, index }: { report: Report; index: number }) {
  const { patterns, pattern } = report.objects[index]!;
  if (patterns.length === 0) {
    return (
      <p class="pattern">
        <Glyph pattern={pattern} inverse={false} /> {pattern} over the whole run
      </p>
    );
  }
  return (
    <table class="regions">
      <caption>Regions that touch it, and how</caption>
      <tbody>
        {patterns.map((p, i) => (
          <tr key={i}>
            <td>
              <Glyph pattern={p.pattern} inverse={p.inverse} />
            </td>
            <td>
              <b>
                {p.pattern}
                {p.inverse && ", inverse"}
                {p.repeat > 1 && ` ×${p.repeat}`}
              </b>{" "}
              <small>explains {percent(p.explained)}</small>
              <br />
              {p.region || "serial code"} <code>{p.site}</code>
              {p.schedule && <small> schedule: {p.schedule}</small>}
            </td>
            <td class="n">
              {percent(p.share)}
              <br />
              <small>of accesses</small>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

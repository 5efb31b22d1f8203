// The footer: how the figures were obtained, and how reliable they are.

import type { Report } from "./documents";
import { andMore, percent } from "./format";
import { Value } from "./value";

/** Largest number of modules that are named as not counted. */
const MAX_MODULES_NAMED = 4;

/** The start time, to the minute; empty if the recorded time is not plausible. */
function when(started: number): string {
  const date = new Date(started * 1000);
  return started > 0 && Number.isFinite(date.getTime()) ? ` ${date.toISOString().slice(0, 16).replace("T", " ")} UTC` : "";
}

export function Footer({ report }: { report: Report }) {
  return (
    <footer>
      <details>
        <summary>
          {report.program.exact ? "Counted exactly" : "Sampled, not counted"}
          {" · "}
          <Coverage report={report} />
          {" · how far to trust this"}
        </summary>
        {report.program.exact ? <Counted report={report} /> : <Sampled report={report} />}
        {report.notes.length > 0 && (
          <ul>
            {report.notes.map((note) => (
              <li key={note}>{note}</li>
            ))}
          </ul>
        )}
        <Sources report={report} />
      </details>
      <p class="muted">
        nodewise {report.nodewise} · recorded{when(report.program.started_at)} on {report.program.host.model || "an unknown CPU"}
      </p>
    </footer>
  );
}

function Coverage({ report }: { report: Report }) {
  if (!report.program.exact) return <>pages in use, not accesses</>;
  if (report.coverage.share === null) return <>coverage unknown</>;
  return (
    <>
      coverage <Value pointer="/coverage/share" of={report} as="percent" /> of the program’s own CPU time
    </>
  );
}

function Counted({ report }: { report: Report }) {
  const modules = report.coverage.missed_modules;
  const missed = modules.slice(0, MAX_MODULES_NAMED).map((m) => `${m.name} (${percent(m.share)})`);
  const more = andMore(modules.length - missed.length, "module", "nodewise report --json");
  return (
    <dl class="pairs">
      <div>
        <dt>Accesses</dt>
        <dd>
          Loads and stores as executed, counted by <code>{report.program.observer}</code> per thread, page and slice (
          <code>{report.program.slicing}</code>).
        </dd>
      </div>
      <div>
        <dt>Coverage</dt>
        <dd>
          {report.coverage.share === null
            ? "Unknown: the run was too short, or the kernel did not permit sampling of CPU time."
            : "The share of the program’s own CPU time that ran in counted code."}
          {missed.length > 0 && ` Not counted: ${missed.join(", ")}${more}.`}
          {" Waiting in threading runtimes took "}
          <Value pointer="/coverage/waiting" of={report} as="percent" />
          {", the kernel "}
          <Value pointer="/coverage/kernel" of={report} as="percent" />
          {" of all CPU time."}
        </dd>
      </div>
      <div>
        <dt>Shares, balances</dt>
        <dd>
          Computed from those counts for threads placed <code>{report.affinity.name}</code>; balance is by the node that holds the page.
        </dd>
      </div>
      <div>
        <dt>Time</dt>
        <dd>An estimate with a range: traffic by touched cache lines, routed over the machine’s links, calibrated by the recorded run.</dd>
      </div>
    </dl>
  );
}

function Sampled({ report }: { report: Report }) {
  const value = (key: string, as: "count" | "percent" | "seconds") => <Value pointer={`/sampling/${key}`} of={report} as={as} />;
  return (
    <dl class="pairs">
      <div>
        <dt>Samples</dt>
        <dd>
          {value("samples", "count")} of the kernel’s hint faults over {value("seconds", "seconds")}, {value("lost", "count")} lost;{" "}
          {value("first_touches", "count")} first touches and {value("copies", "count")} copies on write apart. A page is seen once a scan,
          however often it is used.
        </dd>
      </div>
      <div>
        <dt>Cost</dt>
        <dd>
          {value("cost", "percent")} of the program’s CPU time; {value("budget", "percent")} were allowed.
        </dd>
      </div>
      <div>
        <dt>Shares, exclusivity</dt>
        <dd>
          Of samples, for threads placed <code>{report.affinity.name}</code>; a page is judged from {value("minimum_samples", "count")}{" "}
          samples on. Bounds, at 95 %, are of accesses.
        </dd>
      </div>
    </dl>
  );
}

function Sources({ report }: { report: Report }) {
  const { sources, title } = report.machine;
  return (
    <>
      <p class="muted">Machine: {title}.</p>
      {sources.length > 0 && (
        <dl class="pairs small">
          {sources.map((s, i) => (
            <div key={i}>
              <dt>{s.field}</dt>
              <dd>
                {s.text}
                {s.assumed && " (assumed)"}
              </dd>
            </div>
          ))}
        </dl>
      )}
    </>
  );
}

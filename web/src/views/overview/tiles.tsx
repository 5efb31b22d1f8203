// Six figures to know a run by.

import { TODAY } from "../../chosen";
import type { Report } from "../../documents";
import { bytes as amount } from "../../format";
import { Tile } from "../../tile";
import { Value } from "../../value";

function Exclusivity({ report }: { report: Report }) {
  const sampled = report.sampling as { exclusivity?: { range: unknown } } | null;
  const note = !sampled
    ? "of accesses could be local, at best"
    : sampled.exclusivity?.range
      ? (
        <>
          of accesses <Value pointer="/sampling/exclusivity/range/0" of={report} as="percent" /> to <Value pointer="/sampling/exclusivity/range/1" of={report} as="percent" />, at 95 %
        </>
      )
      : "no page has enough samples to be judged";
  return (
    <Tile of="exclusivity" note={note}>
      <Value pointer="/application_exclusivity" of={report} as="percent" />
    </Tile>
  );
}

export function Tiles({ report }: { report: Report }) {
  const today = Math.max(0, report.policies.findIndex((p) => p.policy === TODAY));
  const { exact, host, threads } = report.program;
  const what = exact ? "accesses" : "samples";
  return (
    <dl class="tiles">
      {report.policies.length > 0 && (
        <Tile of="local_fraction" title={`Local ${what} today`} note="served by the thread’s own node, under first-touch">
          <Value pointer={`/policies/${today}/local_fraction`} of={report} as="percent" />
        </Tile>
      )}
      <Exclusivity report={report} />
      {report.policies.length > 0 && (
        <Tile of="access_balance" title="Balance today" note={exact ? "of accesses over the nodes’ memories" : "not known from samples"}>
          <Value pointer={`/policies/${today}/access_balance`} of={report} as="percent" />
        </Tile>
      )}
      <Tile of="pages" note={<>of <Value pointer="/page_size" of={report} as="bytes" />: <Value pointer="/totals/pages" of={report} as="bytes" text={(n) => amount(n * report.page_size)} /></>}>
        <Value pointer="/totals/pages" of={report} as="whole" />
      </Tile>
      <Tile of="accesses" title={exact ? undefined : "Samples"} note={exact ? <><Value pointer="/totals/reads" of={report} as="count" /> loads, <Value pointer="/totals/writes" of={report} as="count" /> stores</> : "hinting faults: one a page and scan"}>
        <Value pointer="/totals/accesses" of={report} as="count" />
      </Tile>
      <Tile of="wall" note={<><Value pointer="/program/threads" of={report} as="whole" text={(n) => `${n} thread${n === 1 ? "" : "s"}`} />{host.cpus > 0 && threads > host.cpus ? ` on ${host.cpus} CPU${host.cpus === 1 ? "" : "s"}` : ""}{exact ? ", counters included" : ", while pages were sampled"}</>}>
        <Value pointer="/program/wall_seconds" of={report} as="seconds" />
      </Tile>
    </dl>
  );
}

// The six most important figures of a run.

import { FIRST_TOUCH } from "../../chosen";
import type { Report } from "../../documents";
import { bytes as amount, plural } from "../../format";
import { Exclusivity, Local, rangeAt } from "../../share";
import { Tile } from "../../tile";
import { Value } from "../../value";

const JUDGED = "/sampling/exclusivity/range";

function MostLocal({ report }: { report: Report }) {
  const judged = report.program.exact || rangeAt(report, JUDGED) !== null;
  const samples = (
    <>
      <Value pointer="/application_exclusivity" of={report} as="percent" /> of the samples
    </>
  );
  const note = report.program.exact ? (
    "of accesses could be local, at best"
  ) : judged ? (
    <>of accesses, at 95 %; {samples}</>
  ) : (
    "no page has enough samples to be judged"
  );
  return (
    <Tile of="exclusivity" note={note}>
      {judged ? (
        <Exclusivity of={report} pointer="/application_exclusivity" range={JUDGED} nodes={report.machine.nodes.length} />
      ) : (
        <span class="unknown">–</span>
      )}
    </Tile>
  );
}

export function Tiles({ report }: { report: Report }) {
  const today = Math.max(
    0,
    report.policies.findIndex((p) => p.policy === FIRST_TOUCH),
  );
  const { exact, host, threads } = report.program;
  return (
    <dl class="tiles">
      {report.policies.length > 0 && (
        <Tile
          of={exact ? "local_fraction" : "local_samples"}
          title="Local accesses today"
          note={`${exact ? "served by the thread’s own node" : "as far as samples tell, at 95 %"}; pages ${FIRST_TOUCH}, threads ${report.affinity.name}`}
        >
          <Local pointer={`/policies/${today}`} of={report} />
        </Tile>
      )}
      <MostLocal report={report} />
      {report.policies.length > 0 && (
        <Tile of="access_balance" title="Balance today" note={exact ? "of accesses over the nodes’ memories" : "not known from samples"}>
          <Value pointer={`/policies/${today}/access_balance`} of={report} as="percent" />
        </Tile>
      )}
      <Tile
        of="pages"
        note={
          <>
            of <Value pointer="/page_size" of={report} as="bytes" />:{" "}
            <Value pointer="/totals/pages" of={report} as="bytes" text={(n) => amount(n * report.page_size)} />
          </>
        }
      >
        <Value pointer="/totals/pages" of={report} as="whole" />
      </Tile>
      <Tile
        of="accesses"
        title={exact ? undefined : "Samples"}
        note={
          exact ? (
            <>
              <Value pointer="/totals/reads" of={report} as="count" /> loads, <Value pointer="/totals/writes" of={report} as="count" />{" "}
              stores
            </>
          ) : (
            "hint faults: one a page and scan"
          )
        }
      >
        <Value pointer="/totals/accesses" of={report} as="count" />
      </Tile>
      <Tile
        of="wall"
        note={
          <>
            <Value pointer="/program/threads" of={report} as="whole" text={(n) => plural(n, "thread")} />
            {host.cpus > 0 && threads > host.cpus ? ` on ${plural(host.cpus, "CPU")}` : ""}
            {exact ? ", counters included" : ", while pages were sampled"}
          </>
        }
      >
        <Value pointer="/program/wall_seconds" of={report} as="seconds" />
      </Tile>
    </dl>
  );
}

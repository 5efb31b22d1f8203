// Totals of the moves of a run.

import type { Report } from "../../documents";
import { Local } from "../../share";
import { Tile } from "../../tile";
import { Value } from "../../value";

export function Sums({ report }: { report: Report }) {
  const value = (key: string, as: "whole" | "percent" = "whole") => <Value pointer={`/moves/${key}`} of={report} as={as} />;
  const moves = report.moves!;
  const share = report.totals.pages > 0 ? "of the pages that were seen" : "";
  return (
    <dl class="tiles">
      <Tile
        of="moved"
        note={
          moves.local_fraction === null ? (
            share
          ) : (
            <>
              local accesses, as pages {moves.simulated ? "would be" : "were"} moved: <Local of={report} pointer="/moves" />
            </>
          )
        }
      >
        {value("pages")}
      </Tile>
      <Tile of="ours" note="by nodewise’s policies">
        {value("ours")}
      </Tile>
      <Tile of="kernel" note={moves.kernel_counted === null ? "as far as they were seen" : <>{value("kernel_counted")} by its own count</>}>
        {value("kernel")}
      </Tile>
      {moves.others > 0 && (
        <Tile of="others" note="by nobody that is known">
          {value("others")}
        </Tile>
      )}
      <Tile of="ping_pong" note="back to the node just left">
        {value("ping_pongs")}
      </Tile>
      <Tile of="multiple" note="on to yet another node">
        {value("multiple")}
      </Tile>
      <Tile
        of="incorrect"
        note={moves.incorrect === null ? "not known: no policy saw the home’s own accesses" : "away from the node that used the page most"}
      >
        {value("incorrect")}
      </Tile>
    </dl>
  );
}

// Pages that moved while the program ran: the three windows of Tao et al., and totals.

import { useMemo } from "preact/hooks";
import type { Report } from "../documents";
import { Prose } from "../prose";
import { update, type State } from "../state";
import type { View, ViewProps } from "../view";
import { MoveSequence } from "./migrations/move_sequence";
import { Location } from "./migrations/location";
import { matches, numbered, runEnd, type Filter } from "./migrations/moves";
import { Player, usePlayer } from "./migrations/player";
import { RunningSession } from "./migrations/session";
import { Show } from "./migrations/show";
import { Sums } from "./migrations/sums";
import { Movers, OverTime, Pairs } from "./migrations/who";
import { RequiredMoves } from "./migrations/required_moves";

/** Largest number of moves that a report lists. */
const MAX_LISTED_MOVES = 10_000;

/** A note that the moves are simulated, with the policy's name. */
function Simulated({ policy }: { policy: string }) {
  return (
    <p class="muted">
      <Prose
        text={`Simulated: the moves that \`${policy}\` would make from first-touch, with the limits that \`nodewise simulate\` has by default. Nothing was moved in this run.`}
      />
    </p>
  );
}

function Nothing({ report }: { report: Report }) {
  const { moves } = report;
  const held = moves?.held_back.filter((h) => h.pages > 0).map((h) => `${h.pages} for ${h.cause.replace(/[-_]/g, " ")}`) ?? [];
  return (
    <section class="card nothing">
      <h3>{moves?.simulated ? `Under ${moves.simulated} no page would move` : "No page was moved while this ran"}</h3>
      {held.length > 0 && <p>A policy wanted to move pages, and they were held back: {held.join(", ")}.</p>}
      <p class="none">
        <Prose
          text={`To move pages to the node that uses them while the program runs, and to see here what that does: \`nodewise balance -o DIR -- CMD\`, or \`nodewise balance -o DIR --pid PID\` for one that runs already; then \`nodewise report DIR --html FILE\`. With \`--dry-run\` nothing is moved, and it says what would be.`}
        />
      </p>
    </section>
  );
}

function Choices({ report, filter }: { report: Report; filter: Filter }) {
  const objects = [...new Set(report.migrations.map((m) => m.object))].sort();
  const by = [...new Set(report.migrations.map((m) => m.by))].sort();
  return (
    <>
      <label class="field">
        Object
        <select value={filter.object} onChange={(e) => update({ moved: e.currentTarget.value || undefined }, true)}>
          <option value="">all</option>
          {objects.map((o) => (
            <option key={o} value={o}>
              {o}
            </option>
          ))}
        </select>
      </label>
      <label class="field">
        By
        <select value={filter.by} onChange={(e) => update({ by: e.currentTarget.value || undefined }, true)}>
          <option value="">all</option>
          {by.map((b) => (
            <option key={b} value={b}>
              {b}
            </option>
          ))}
        </select>
      </label>
    </>
  );
}

const chosen = (state: State): Filter => ({ object: state.moved ?? "", by: state.by ?? "" });

function Moved({ report, state, intervals }: ViewProps) {
  const moves = report.moves!;
  const filter = chosen(state);
  const all = useMemo(() => numbered(report.migrations), [report]);
  const shown = useMemo(() => all.filter(matches(filter)), [all, filter.object, filter.by]);
  const end = useMemo(() => runEnd(report), [report]);
  const player = usePlayer(end, state);
  const journeys = moves.journeys.filter(
    (j) => (!filter.object || j.object === filter.object) && (!filter.by || j.stays.some((s) => s.by === filter.by)),
  );
  const nodes = moves.matrix.length;
  // Memoised, because it does not depend on the playback time.
  const still = useMemo(
    () => (
      <>
        <Location objects={moves.objects.filter((o) => !filter.object || o.name === filter.object)} nodes={nodes} />
        <div class="halves">
          <Pairs report={report} />
          <OverTime moves={moves} end={end} />
        </div>
        <div class="halves">
          <Movers report={report} filter={filter} />
          <RequiredMoves report={report} />
        </div>
      </>
    ),
    [report, filter.object, filter.by],
  );
  return (
    <>
      {moves.simulated && <Simulated policy={moves.simulated} />}
      <Sums report={report} />
      <RunningSession intervals={intervals} />
      <Player player={player}>
        <Choices report={report} filter={filter} />
      </Player>
      <MoveSequence moves={shown} all={all.length} player={player} />
      {all.length >= MAX_LISTED_MOVES && (
        <p class="muted">
          These are the first 10,000 moves; all are{" "}
          {moves.simulated ? (
            <>
              listed by <code>nodewise simulate --moves --json</code>.
            </>
          ) : (
            <>
              in the profile’s table <code>migrations</code>.
            </>
          )}
        </p>
      )}
      <Show journeys={journeys} nodes={nodes} player={player} whole={journeys.length === moves.journeys.length} />
      {still}
    </>
  );
}

function Migrations(props: ViewProps) {
  const { moves } = props.report;
  if (!moves || moves.ours + moves.kernel + moves.others === 0) {
    return (
      <>
        <RunningSession intervals={props.intervals} />
        <Nothing report={props.report} />
        <RequiredMoves report={props.report} />
      </>
    );
  }
  return <Moved {...props} />;
}

export const migrations: View = {
  id: "migrations",
  title: "Migrations",
  key: "4",
  what: "Pages that moved while the program ran: as they happened, where they lived through the run, where they ended.",
  component: Migrations,
};

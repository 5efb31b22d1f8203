// Two profiles, or two policies of one: what is better, what is worse, and which pages make the difference.

import { between, percent, ratio } from "../format";
import { useLoaded } from "../loaded";
import type { View, ViewProps } from "../view";
import { cells } from "./compare/cells";
import { Choices } from "./compare/choices";
import { CrossingsDifference } from "./compare/crossings";
import { Metrics } from "./compare/metrics";
import { ObjectsDifference } from "./compare/objects";
import { pair as found, type Pair } from "./compare/sides";
import { DifferenceStrip } from "./compare/strip";

/** The difference in one sentence: times, if known, and local fractions. */
function sentence({ a, b, profiles }: Pair): string {
  const [x, y] = [a.policy, b.policy];
  const names: [string, string] = [a.title, b.title];
  if (!profiles && x.policy === y.policy) return "These are the same policy: choose another to compare with.";
  const faster = x.seconds !== null && y.seconds !== null && y.seconds > 0 ? x.seconds / y.seconds : null;
  const time =
    faster === null
      ? ""
      : Math.abs(faster - 1) < 0.005
        ? `${names[1]} is predicted to take as long as ${names[0]}; `
        : `${names[1]} is predicted to run ${ratio(faster)} as fast as ${names[0]}; `;
  const local = (p: typeof x) => (p.local_range ? between(p.local_range) : percent(p.local_fraction));
  return `${time}Of what threads access is local: ${local(x)} on the first side, ${local(y)} on the second.`;
}

function Compare({ documents, report, profile, state }: ViewProps) {
  const { value: pair, error } = useLoaded(
    () => found(documents, report, profile, state),
    [documents, report, profile, state.against, state.compare, state.under, state.base, state.policy],
  );
  const strips = useLoaded(
    async () => (pair ? { pair, a: await cells(documents, pair.a), b: await cells(documents, pair.b) } : undefined),
    [documents, pair],
  );
  if (!pair)
    return (
      <p class="none" role={error ? "alert" : "status"}>
        {error ?? "Reading both sides …"}
      </p>
    );
  // Strips of the previous pair must not be shown under the names of the new pair.
  const both = strips.value?.pair === pair ? strips.value : undefined;
  return (
    <>
      <Choices pair={pair} documents={documents} state={state} />
      <p class="card said">
        {sentence(pair)}
        {pair.a.report.affinity.name !== pair.b.report.affinity.name && (
          <span class="muted">
            {" "}
            Threads are placed {pair.a.report.affinity.name} on the first side, {pair.b.report.affinity.name} on the second.
          </span>
        )}
        {pair.a.report.program.exact !== pair.b.report.program.exact && (
          <span class="muted">
            {" "}
            One side was counted, the other sampled: what is local is exact on one and known between bounds on the other.
          </span>
        )}
      </p>
      <div class="halves">
        <Metrics pair={pair} />
        <CrossingsDifference pair={pair} />
      </div>
      {both && <DifferenceStrip pair={pair} a={both.a} b={both.b} />}
      {strips.error && <p class="none">The pages cannot be compared: {strips.error}</p>}
      <ObjectsDifference pair={pair} a={both?.a} b={both?.b} />
    </>
  );
}

export const compare: View = {
  id: "compare",
  title: "Compare",
  key: "6",
  what: "Two profiles, or two policies of one: what is better, what is worse, and which pages make the difference.",
  component: Compare,
};

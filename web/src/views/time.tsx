// The run over time: local fraction, balance, required moves, and the use of memory by nodes.

import "./time.css";
import { useMemo } from "preact/hooks";
import { useLoaded } from "../loaded";
import { film as read } from "../paint/film";
import { palette as colours } from "../palette";
import { useTheme } from "../theme";
import type { View, ViewProps } from "../view";
import { Charts } from "./time/charts";
import { Screen } from "./time/screen";
import { selection } from "./time/selection";

function Time({ documents, report, profile, state }: ViewProps) {
  const palette = colours(useTheme() === "dark");
  const { value, error } = useLoaded(
    async () => ({ film: read(await documents.film(profile)), strip: await documents.strip(profile) }),
    [documents, profile],
  );
  const selected = useMemo(() => selection(report, state.t0, state.t1), [report, state.t0, state.t1]);
  const { slices } = report;
  return (
    <>
      {slices.length === 0 && <p class="none">The profile has no slices: nothing is known of when things happened.</p>}
      {slices.length === 1 && (
        <p class="none">
          The whole run is one slice, so nothing can be seen to change. Record with a shorter one, such as{" "}
          <code class="whole">--slice 100ms</code>, to see phases.
        </p>
      )}
      {slices.length > 0 && <Charts report={report} palette={palette} selected={selected} />}
      {error && <p class="none">The film could not be read: {error}.</p>}
      {!value && !error && (
        <p class="none" role="status">
          Reading the film …
        </p>
      )}
      {value && value.film.steps > 0 && value.film.width > 0 && (
        <Screen report={report} strip={value.strip} film={value.film} palette={palette} selected={selected} state={state} />
      )}
    </>
  );
}

export const time: View = {
  id: "time",
  title: "Time",
  key: "3",
  what: "Locality, balance and moves slice by slice, and a film of who used which pages when.",
  component: Time,
};
